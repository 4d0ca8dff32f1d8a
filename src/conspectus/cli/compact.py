"""`conspectus compact`: bring a history inside its window."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from conspectus.cli import options, output
from conspectus.cli.compact_report import as_json as result_as_json
from conspectus.cli.compact_report import print_report
from conspectus.cli.failures import ARCHIVE_FAILED, DONE, NO_SUMMARY, STUCK, complain
from conspectus.cli.options import LOCAL, ArchiveOption, FileArgument, JsonOption, TenantOption
from conspectus.cli.output import STDOUT
from conspectus.errors import InputError

if TYPE_CHECKING:
    from conspectus.compactor import CompactionResult, Compactor
    from conspectus.transcripts import HistoryFile


def compact(
    file: FileArgument,
    trigger: Annotated[
        list[str] | None,
        typer.Option(
            help="When to compact: tokens:8000, messages:50, fraction:0.8 of the window; several "
            "that must all hold joined with +. Repeat it for alternatives. Default: 85% of "
            "the window, else 170,000 tokens."
        ),
    ] = None,
    keep: Annotated[
        str, typer.Option(help="How much of the newest history stays in view, in the same form.")
    ] = "messages:20",
    window: options.WindowOption = None,
    reserve: Annotated[
        int, typer.Option(help="Tokens of the window for the answer, the system prompt and tools.")
    ] = 0,
    model: Annotated[
        str,
        typer.Option(
            help="What summarises: provider:model such as openai:gpt-5-mini, which is recommended, "
            "or embedded, which quotes the messages and needs no model."
        ),
    ] = "embedded",
    max_summary_tokens: Annotated[
        int | None, typer.Option(help="The most that the text of the summary may take, in tokens.")
    ] = None,
    archive: ArchiveOption = None,
    no_archive: Annotated[
        bool, typer.Option("--no-archive", help="Keep no originals: nothing can be recalled.")
    ] = False,
    thread: Annotated[
        str | None,
        typer.Option(help="Name of the conversation. Default: derived from the path of the file."),
    ] = None,
    tenant: TenantOption = LOCAL,
    force: Annotated[
        bool, typer.Option("--force", help="Compact although nothing asks for it.")
    ] = False,
    redact: Annotated[
        bool,
        typer.Option("--redact", help="Take secrets out of what is archived and summarised."),
    ] = False,
    focus: Annotated[
        str | None, typer.Option(help="What to keep above all, in plain words.")
    ] = None,
    on_failure: Annotated[
        str,
        typer.Option(
            help="When no summary can be made: degrade (keep the history while there is room, "
            "else the embedded summariser), keep, or raise."
        ),
    ] = "degrade",
    out: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write the messages here, in the form of FILE."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compact a history; report messages that left and stayed, and the archive.

    FILE holds chat messages of OpenAI, Anthropic, LangChain or LangGraph, or a session of Claude
    Code, Codex, Gemini CLI or opencode. It is never changed, unless -o names it.
    """
    if no_archive and archive is not None:
        raise InputError("--archive and --no-archive exclude each other; leave one out")
    if thread == "":
        raise InputError("--thread is empty; name the conversation, or leave the option out")
    if out == STDOUT and as_json:
        raise InputError("-o - and --json both want standard output; give -o a file")
    settings: dict[str, Any] = {
        "summarizer": options.summarizer_of(model, "--model"),
        "trigger": options.triggers(trigger or []),
        "keep": options.size(keep, "--keep"),
        "reserved_tokens": reserve,
        "max_summary_tokens": max_summary_tokens,
        "on_failure": on_failure,
        "redact": redact,
    }
    where = None if no_archive else options.archive_of(archive)
    if out is not None and out != STDOUT:
        output.check_output(out)
        kept_in = None if where is None else options.file_of(where)
        if kept_in is not None and output.target_of(out) == output.target_of(kept_in):
            raise InputError("-o names the archive itself; give it another file")
    from conspectus.transcripts import read_history, write_history

    with output.working("Reading …") as say:
        history = read_history(file)
        given = history.mended()
        window = window or history.window or options.window_of(history.model)
        settings |= {"window": window, "model": options.known_model(history.model)}
        _check_that_shares_have_a_window([*(trigger or []), keep], window)
        name = history.thread_hint if thread is None else thread
        say(f"Compacting {len(given.messages):,} messages …")
        with _compactor(where, settings, say) as (compactor, caveats):
            result = compactor.compact(
                given.messages, thread_id=name, tenant=tenant, force=force, focus=focus
            )
    written = history.mended(result.messages)
    if out is not None:
        _check_that_nothing_is_lost(out, history, written.left_out)
        encoding = (sys.stdout.encoding or "utf-8") if out == STDOUT else "utf-8"
        text = write_history(written.messages, history, encoding)
        if out == STDOUT:
            sys.stdout.write(text)
        else:
            output.write_file(out, text)
    notes = [*caveats, *result.notes, *given.notes, *history.remarks]
    if result.outcome == "kept" and not (force or result.failed or result.cause):
        notes.append(_what_would_do_something(result, trigger, window, history))
    report: dict[str, Any] = {
        "archive": where,
        "thread": name,
        "tenant": tenant,
        "model": history.model,
        "window": window,
        "output": None if out in (None, STDOUT) else str(out),
        "notes": notes,
    }
    code, reason = _verdict(result)
    if as_json:
        output.print_json(result_as_json(result, history, report))
    else:
        screen = output.console(stderr=out == STDOUT)
        print_report(result, history, report, screen, why=not reason)
    if reason:
        complain(reason)
    raise typer.Exit(code)


def _check_that_shares_have_a_window(sizes: list[str], window: int | None) -> None:
    """Refuse a share of a window that is not known."""
    share = next((one for one in sizes if "fraction" in one), None)
    if share is not None and window is None:
        raise InputError(
            f"{share} is a share of the window; give --window, the input limit of the model that "
            "will answer, or write tokens:8000 or messages:50"
        )


def _check_that_nothing_is_lost(out: Path, history: HistoryFile, left_out: int) -> None:
    """Refuse to replace the only file with a part of a history by one without it."""
    same = history.path is not None and out != STDOUT
    if not same or output.target_of(out) != output.target_of(Path(str(history.path))):
        return
    if left_out:
        raise InputError(
            f"{out} holds tool results that answer no call, which a provider refuses and which are "
            "archived nowhere; -o with another name writes the history without them"
        )
    if history.form.session or history.parsed.broken:
        raise InputError(
            f"{out} holds more than its messages, which would be lost; give -o another name"
        )


def _what_would_do_something(
    result: CompactionResult, trigger: list[str] | None, window: int | None, history: HistoryFile
) -> str:
    """Name the options that would compact a history below the trigger."""
    at = " or ".join(trigger or ()) or "170,000 tokens"
    if not trigger and window is not None:
        whose = f" of {history.model}" if history.model else ""
        at = f"85% of the window{whose}, {window:,} tokens"
    size = result.tokens_before
    smaller = size // 10 ** max(0, len(str(size)) - 2) * 10 ** max(0, len(str(size)) - 2)
    fits = f", --window {smaller} for a model with so small a window" if size >= 1_000 else ""
    return (
        f"it has {size:,} tokens, and the trigger is at {at}; to compact it nevertheless, give "
        f"--force{fits}"
    )


@contextlib.contextmanager
def _compactor(
    where: str | None, settings: Mapping[str, Any], say: Callable[[str], None]
) -> Iterator[tuple[Compactor, list[str]]]:
    """Make a compactor with its archive open, and list its policy's warnings."""
    from conspectus.compactor import Compactor

    def on_event(event: str, data: Mapping[str, Any]) -> None:
        if event == "start":
            say(f"Archiving and summarising {data['evict']:,} messages …")
        elif event == "attempt_failed":
            say(f"Trying again: {data['reason']}")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compactor = Compactor(**settings, on_event=on_event)
    caveats = [str(each.message) for each in caught if each.category is UserWarning]
    if where is None:
        yield compactor, caveats
        return
    # The settings are valid, so an archive may be made now.
    with options.opened(where) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield Compactor(**settings, archive=archive, on_event=on_event), caveats


def _verdict(result: CompactionResult) -> tuple[int, str]:
    """Return the exit code, and an error text if it is not 0."""
    if result.failed is not None:
        return ARCHIVE_FAILED if result.failed == "archive" else NO_SUMMARY, result.reason
    return (STUCK, result.reason) if result.outcome == "stuck" else (DONE, "")
