"""`conspectus compact`: bring a history inside its window."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Exit, Option

from conspectus.archive import without_password
from conspectus.cli import options, output
from conspectus.cli.compact_report import as_data, print_report
from conspectus.cli.failures import ARCHIVE_FAILED, DONE, NO_SUMMARY, STUCK, complain
from conspectus.cli.options import LOCAL
from conspectus.cli.output import STDOUT
from conspectus.errors import InputError

if TYPE_CHECKING:
    from conspectus.engine import CompactionResult, Compactor
    from conspectus.transcripts import HistoryFile


KEEP = "How much of the newest history stays in view, in the same form."
RESERVE = "Tokens of the window for the answer, the system prompt and tools."
MODEL = "What summarises: provider:model, which is recommended, or embedded, which quotes."
TRIGGER = (
    "When to compact: tokens:8000, messages:50 or fraction:0.8 of the window. Join those that must "
    "all hold with +; repeat it for alternatives. Default: 85% of the window, else 170,000 tokens."
)
ON_FAILURE = (
    "When no summary can be made: degrade (keep the history while there is room, else use the "
    "embedded summariser), keep, or raise."
)


def compact(
    file: options.FileArgument,
    trigger: Annotated[list[str] | None, Option(help=TRIGGER, show_default=False)] = None,
    keep: Annotated[str, Option(help=KEEP)] = "messages:20",
    window: options.WindowOption = None,
    reserve: Annotated[int, Option(help=RESERVE)] = 0,
    model: Annotated[str, Option(metavar="NAME", help=MODEL)] = "embedded",
    max_summary_tokens: Annotated[int | None, Option(help="Most tokens of the summary.")] = None,
    archive: options.ArchiveOption = None,
    no_archive: Annotated[bool, Option("--no-archive", help="Keep no originals.")] = False,
    thread: Annotated[str | None, Option(help="Name of the conversation.")] = None,
    tenant: options.TenantOption = LOCAL,
    force: Annotated[bool, Option("--force", help="Compact although nothing asks for it.")] = False,
    redact: Annotated[bool, Option("--redact", help="Take secrets out of what is kept.")] = False,
    focus: Annotated[str | None, Option(help="What to keep above all, in plain words.")] = None,
    on_failure: Annotated[str, Option(help=ON_FAILURE)] = "degrade",
    out: options.OutOption = None,
    as_json: options.JsonOption = False,
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

    with output.working("Reading …") as progress:
        history = read_history(file)
        given = history.mended()
        window = window or history.window or options.window_of(history.model)
        if window is None and any("fraction" in value for value in (*(trigger or ()), keep)):
            raise InputError(
                "a fraction is a share of the window; give --window, the input limit of the model "
                "that will answer, or write tokens:8000 or messages:50"
            )
        settings |= {"window": window, "tokenizer": options.known_model(history.model)}
        name = history.thread_hint if thread is None else thread
        progress(f"Compacting {len(given.messages):,} messages …")
        with _compactor(where, settings, progress) as (compactor, caveats):
            result = compactor.compact(
                given.messages, thread_id=name, tenant=tenant, force=force, focus=focus
            )
    written = history.mended(result.messages)
    if out is not None:
        _check_that_nothing_is_lost(out, history, written.left_out)
        output.write_text(out, lambda encoding: write_history(written.messages, history, encoding))
    notes = [*caveats, *result.notes, *given.notes, *history.remarks]
    if result.outcome == "kept" and not (force or result.failed or result.cause):
        notes.append(_what_would_do_something(result, trigger, window, history))
    data = as_data(result, history) | {
        "archive": None if where is None else without_password(where),
        "thread": name,
        "tenant": tenant,
        "window": window,
        "output": None if out in (None, STDOUT) else str(out),
        "notes": notes,
    }
    code, reason = _verdict(result)
    if as_json:
        output.print_json(data)
    else:
        print_report(data, output.console(stderr=out == STDOUT), why=not reason)
    if reason:
        complain(reason)
    raise Exit(code)


def _check_that_nothing_is_lost(out: Path, history: HistoryFile, left_out: int) -> None:
    """Refuse to replace the only file of a history by one with a part of it."""
    if history.path is None or output.target_of(out) != output.target_of(history.path):
        return
    if left_out or history.form.session or history.parsed.broken:
        raise InputError(
            f"{out} holds more than messages that a provider takes, such as tool results without "
            "a call, and the rest is archived nowhere; give -o another name"
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
    smaller = f", or --window {size // 1000 * 1000}, as of a smaller model" if size > 999 else ""
    return (
        f"it has {size:,} tokens, and the trigger is at {at}; to compact it nevertheless, give "
        f"--force{smaller}"
    )


@contextlib.contextmanager
def _compactor(
    where: str | None, settings: Mapping[str, Any], progress: Callable[[str], None]
) -> Iterator[tuple[Compactor, list[str]]]:
    """Make a compactor with its archive open, and list its policy's warnings."""
    from conspectus.engine import Compactor

    logging.getLogger("conspectus").addHandler(logging.NullHandler())  # the report says it all

    def on_event(event: str, data: Mapping[str, Any]) -> None:
        if event == "start":
            progress(f"Archiving and summarising {data['evict']:,} messages …")
        elif event == "attempt_failed":
            progress(f"Trying again: {data['reason']}")

    with warnings.catch_warnings(record=True) as caught, contextlib.ExitStack() as stack:
        warnings.simplefilter("always")
        Compactor(**settings)  # wrong settings make no archive
        archive = None if where is None else stack.enter_context(options.opened(where))
        compactor = Compactor(**settings, archive=archive, on_event=on_event)
        caveats = dict.fromkeys(str(w.message) for w in caught if w.category is UserWarning)
        yield compactor, list(caveats)


def _verdict(result: CompactionResult) -> tuple[int, str]:
    """Return the exit code, and an error text if it is not 0."""
    if result.failed is not None:
        return ARCHIVE_FAILED if result.failed == "archive" else NO_SUMMARY, result.reason
    return (STUCK, result.reason) if result.outcome == "stuck" else (DONE, "")
