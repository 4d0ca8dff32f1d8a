"""`conspectus compact`: bring a history below a size, and report what was done."""

from __future__ import annotations

import logging
import shlex
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

from typer import Exit, Option

from conspectus.archive import Scope, without_password
from conspectus.cli import options, output
from conspectus.cli.failures import ARCHIVE_FAILED, DONE, NO_SUMMARY, STUCK, complain
from conspectus.cli.options import LOCAL, help_of
from conspectus.cli.output import STDOUT
from conspectus.core.policy import names_embedded
from conspectus.engine import CompactionResult, Compactor
from conspectus.engine.settings import CompactorSettings
from conspectus.errors import InputError
from conspectus.messages.alternation import AlternateRoles, joins_by_setting
from conspectus.model import windows
from conspectus.transcripts import HistoryFile, mend, read_history, write_history

TRIGGER = help_of(
    "trigger",
    "tokens:8000, messages:50 or fraction:0.8 of the window. + joins conditions that must all "
    "hold; repeat the option for alternatives. Default: 85% of the window, or 170,000 tokens if no "
    "window is known.",
)
KEEP = help_of("keep", "The form is that of --trigger.")
MODEL = (
    "What writes the summary: provider:model, such as openai:gpt-5-mini, which we recommend; or "
    "embedded, which quotes the messages and needs no model."
)
THREAD = "The name of the conversation. Default: a name that is made from the path of FILE."
FOCUS = "A subject that a model's summary must keep, in plain words."
ON_FAILURE = help_of(
    "on_failure",
    "degrade: the history stays unchanged while it fits the window; then the embedded summariser "
    "writes. keep: it stays unchanged. raise: the command fails.",
)
RULE = help_of("rules", "A sentence that stands in each summary; repeat the option for more.")
ROLES = help_of(
    "alternate_roles", "on, off, or auto: the model in FILE decides, or else the history."
)
RESULT_FIELDS = """outcome reason cause tokens_before tokens_after budget evicted kept clipped
    dropped summary record_id archived""".split()
"""Fields of a result that its JSON has, too."""

COST = ("calls", "input_tokens", "output_tokens")
COLOURS = {"compacted": "green", "kept": "cyan"}


def compact(
    file: options.FileArgument,
    trigger: Annotated[list[str] | None, Option(help=TRIGGER, show_default=False)] = None,
    keep: Annotated[
        str | None, Option(help=f"{KEEP} Default: messages:20, or fewer if the room is tight.")
    ] = None,
    window: options.WindowOption = None,
    reserve: Annotated[int | None, options.tokens(help_of("reserved_tokens"))] = None,
    model: Annotated[
        str, Option("--model", "--summarizer", metavar="NAME", help=MODEL)
    ] = "embedded",
    max_summary_tokens: Annotated[int | None, Option(help=help_of("max_summary_tokens"))] = None,
    archive: options.ArchiveOption = None,
    no_archive: Annotated[bool, Option("--no-archive", help="Archive no originals.")] = False,
    thread: Annotated[str | None, Option(help=THREAD)] = None,
    tenant: options.TenantOption = LOCAL,
    force: Annotated[
        bool, Option("--force", help="Compact although the trigger is not reached.")
    ] = False,
    rule: Annotated[list[str] | None, Option(help=RULE, show_default=False)] = None,
    redact: Annotated[bool, Option("--redact", help=help_of("redact"))] = False,
    focus: Annotated[str | None, Option(help=FOCUS)] = None,
    on_failure: Annotated[str, Option(help=ON_FAILURE)] = CompactorSettings.on_failure,
    alternate_roles: Annotated[str, Option(help=ROLES)] = CompactorSettings.alternate_roles,
    out: options.OutOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Bring a history below a size, and report what was evicted, what stayed, and the archive.

    FILE has chat messages of OpenAI, Anthropic, LangChain or LangGraph, or a session of Claude
    Code, Codex, Gemini CLI or opencode. The file is never changed: -o writes the messages for the
    model to another file.
    """
    if no_archive and archive is not None:
        raise InputError("--archive and --no-archive exclude each other; leave one out")
    if thread == "":
        raise InputError("--thread is empty; name the conversation, or leave the option out")
    if out == STDOUT and as_json:
        raise InputError("-o - and --json both want standard output; give -o a file")
    address = None if no_archive else options.archive_of(archive)
    settings: dict[str, Any] = {
        "summarizer": model,
        "trigger": options.triggers(trigger or []),
        "keep": options.size(keep, "--keep") if keep else None,
        "reserved_tokens": reserve or 0,
        "archive": address,
        "max_summary_tokens": max_summary_tokens,
        "on_failure": on_failure,
        "redact": redact,
        "rules": rule or None,
        "alternate_roles": alternate_roles,
    }
    output.check_output(out, Path(file), None if address is None else options.file_of(address))
    logging.getLogger("conspectus").addHandler(logging.NullHandler())  # the report has it all
    catching = warnings.catch_warnings(record=True, action="always")
    with output.working("Compacting …"), catching as caught:
        compacted = _compact_file(file, settings, window, thread, tenant, force=force, focus=focus)
    result = compacted.result
    if out is not None:
        messages = mend(result.messages, orphans=False).messages
        output.write_text(out, write_history(messages, compacted.history))
    texts = (str(warning.message) for warning in caught if warning.category is UserWarning)
    notes = [*dict.fromkeys(texts), *compacted.notes]
    if focus is not None and names_embedded(model):
        notes.append("the embedded summariser takes no notice of --focus; give a --model")
    if result.outcome == "kept" and not (force or result.failed or result.cause):
        notes.append(_why_kept(result.tokens_before, compacted.window, trigger or ()))
    data = {
        **_as_data(compacted),
        "archive": None if address is None else without_password(address),
        "tenant": tenant,
        "output": None if out in (None, STDOUT) else str(out),
        "notes": notes,
    }
    code = _code_of(result)
    if as_json:
        output.print_json(data)
    else:
        _print(data, err=out == STDOUT, why=code == DONE)
    if code != DONE:
        complain(result.reason)
    raise Exit(code)


@dataclass(frozen=True)
class _CompactedFile:
    """A file whose history was compacted."""

    history: HistoryFile
    message_count: int  # before the compaction
    window: int | None
    thread: str
    result: CompactionResult
    notes: tuple[str, ...]  # for the user


def _compact_file(
    file: str,
    settings: Mapping[str, Any],
    window: int | None,
    thread: str | None,
    tenant: str,
    *,
    force: bool,
    focus: str | None,
) -> _CompactedFile:
    """Read a file, and compact its history. `window` and `thread` replace those of the file."""
    history = read_history(file)
    mended = mend(history.messages)
    window = window or history.window or windows.input_limit_in_profile(history.model)
    name = history.thread_hint if thread is None else thread
    of_file = {
        "window": window,
        "tokenizer": options.known_model(history.model),
        "alternate_roles": _roles_for(history.model, settings["alternate_roles"]),
    }
    notes = [*mended.notes, *history.remarks]
    with Compactor(**{**settings, **of_file}) as compactor:
        archive = compactor.archive
        is_new = archive is None or not archive.chain(Scope(tenant, name, "main"))
        result = compactor.compact(
            mended.messages, thread_id=name, tenant=tenant, force=force, focus=focus
        )
    # If the result continues the thread, its record has a parent, or the thread's is in force.
    continues_thread = result.record.parent if result.record is not None else result.head_id
    if not is_new and not continues_thread:
        notes.append(
            f"the thread {name} holds another conversation already; recall searches the one that "
            "was compacted last; to search both, give each a --thread of its own"
        )
    return _CompactedFile(history, len(mended.messages), window, name, result, tuple(notes))


def _roles_for(model: str | None, setting: str) -> str:
    """Return `alternate_roles`: "on" if the name of the model decides so."""
    by_name = joins_by_setting(cast("AlternateRoles", setting), model or "")
    return "on" if by_name else setting


def _why_kept(tokens: int, window: int | None, triggers: Sequence[str]) -> str:
    """Say how to compact a history that is below its trigger."""
    threshold = "170,000 tokens" if window is None else f"85% of the window, {window:,} tokens"
    smaller = f", or --window {tokens // 1000 * 1000}" if tokens > 999 else ""
    return (
        f"it has {tokens:,} tokens, and the trigger is at {' or '.join(triggers) or threshold}; to "
        f"compact it now, give --force, with --keep messages:2 where it is short{smaller}"
    )


def _as_data(compacted: _CompactedFile) -> dict[str, Any]:
    """Return a compacted file and its result as plain data."""
    result = compacted.result
    history = compacted.history
    return {
        **{name: getattr(result, name) for name in RESULT_FIELDS},
        "messages_before": compacted.message_count,
        "messages_after": len(result.messages),
        "redacted": dict(result.redacted),
        "rules_left_out": [rule._asdict() for rule in result.rules_left_out],
        "cost": {name: getattr(result.cost, name) for name in COST},
        "failures": list(result.failures),
        "model": history.model,
        "format": history.format.name,
        "skipped": history.skipped + history.parsed.broken,
        "thread": compacted.thread,
        "window": compacted.window,
    }


def _code_of(result: CompactionResult) -> int:
    """Return the exit code of a result."""
    if result.failed is not None:
        return ARCHIVE_FAILED if result.failed == "archive" else NO_SUMMARY
    return STUCK if result.outcome == "stuck" else DONE


def _print(data: Mapping[str, Any], *, err: bool, why: bool) -> None:
    """Print the report. The reason is left out if an error message has it."""
    line = partial(output.say, err=err)
    outcome = data["outcome"]
    reason = f": {data['reason']}" if why else ""
    cause = f" ({data['cause']})" if data["cause"] not in reason else ""
    line(f"{outcome}{reason}{cause}", bold=True, fg=COLOURS.get(outcome, "red"))
    _print_sizes(data, line)
    if data["redacted"]:
        kinds = (f"{kind} {count:,}" for kind, count in sorted(data["redacted"].items()))
        line(f"Secrets taken out of what is kept, in places: {', '.join(kinds)}")
    for rule in data["rules_left_out"]:
        text = " ".join(rule["text"].split())
        line(f"No room for the rule {rule['id']}: {text}".replace("  ", " "), fg="yellow")
    for note in [*data["failures"], *data["notes"]]:
        line(f"Note: {note}", fg="yellow")
    if data["summary"]:
        line(f"\nSummary\n{data['summary']}\n")
    cost = data["cost"]
    if cost["calls"]:
        tokens = cost["input_tokens"] + cost["output_tokens"]
        line(f"Cost: {cost['calls']:,} calls of a model, {tokens:,} tokens")
    if data["output"] is not None:
        line(f"Messages: {data['output']}")
    if outcome == "compacted" or data["dropped"]:
        _print_archive(data, line)


def _print_sizes(data: Mapping[str, Any], line: Callable[..., None]) -> None:
    """Print the messages and tokens before and after, and how many were evicted."""
    dropped = data["dropped"]
    before = data["messages_before"]
    if dropped:
        counts = f"{before:,} messages, of which {dropped:,} were evicted before"
        line(f"file   {counts}; a summary has their place")
        before += 1 - dropped  # the summary, one message, replaces those evicted before
    line(f"before {before:>9,} messages {data['tokens_before']:>11,} tokens")
    line(f"after  {data['messages_after']:>9,} messages {data['tokens_after']:>11,} tokens")
    if data["budget"] is not None:
        line(f"budget {data['budget']:>30,} tokens")
    if data["evicted"] or data["clipped"] or dropped:
        evicted = output.many(data["evicted"], "message")
        line(f"{evicted} evicted now, {data['clipped']:,} clipped")


def _print_archive(data: Mapping[str, Any], line: Callable[..., None]) -> None:
    """Print where the originals are, and the command that finds them."""
    address = data["archive"]
    if address is None:
        line("Originals: not archived, so nothing can be recalled; keep the file", fg="yellow")
        return
    line(f"Originals: {address} (thread {data['thread']})")
    if not data["archived"]:
        text = "those behind the summary in the file are not there; --thread goes on with theirs"
        line(f"  {text}", fg="yellow")
    if address in options.IN_MEMORY:
        return
    command = ["conspectus", "recall", "--thread", data["thread"]]
    if address != options.archive_of(None):
        command += ["--archive", address]
    if data["tenant"] != LOCAL:
        command += ["--tenant", data["tenant"]]
    line(f"Next: {shlex.join(command)} 'what you look for'", bold=True)
