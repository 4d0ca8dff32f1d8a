"""`conspectus compact`: bring a history below a size, and report what was done."""

from __future__ import annotations

import logging
import shlex
import warnings
from collections.abc import Callable, Mapping, Sequence
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
from conspectus.transcripts import mend, read_history, write_history

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
ROLES = help_of(
    "alternate_roles", "on, off, or auto: the model in FILE decides, or else the history."
)
RESULT_FIELDS = """outcome reason cause tokens_before tokens_after budget evicted kept clipped
    dropped summary record_id archived""".split()
"""Parts of a result that stand in its JSON as they are."""

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
    triggers = options.triggers(trigger or [])
    kept_size = options.size(keep, "--keep") if keep else None
    address = None if no_archive else options.archive_of(archive)
    output.check_output(out, Path(file), None if address is None else options.file_of(address))
    logging.getLogger("conspectus").addHandler(logging.NullHandler())  # the report says it all
    catching = warnings.catch_warnings(record=True, action="always")
    with output.working("Compacting …"), catching as caught:
        history = read_history(file)
        mended = mend(history.messages)
        window = window or history.window or windows.input_limit_in_profile(history.model)
        name = history.thread_hint if thread is None else thread
        settings: dict[str, Any] = {
            "summarizer": model,
            "trigger": triggers,
            "keep": kept_size,
            "window": window,
            "reserved_tokens": reserve or 0,
            "archive": address,
            "tokenizer": options.known_model(history.model),
            "max_summary_tokens": max_summary_tokens,
            "on_failure": on_failure,
            "redact": redact,
            "alternate_roles": _roles_for(history.model, alternate_roles),
        }
        with Compactor(**settings) as compactor:
            kept = compactor.archive
            is_new = kept is None or not kept.chain(Scope(tenant, name, "main"))
            result = compactor.compact(
                mended.messages, thread_id=name, tenant=tenant, force=force, focus=focus
            )
    if out is not None:
        compacted = mend(result.messages, orphans=False).messages
        output.write_text(out, write_history(compacted, history))
    texts = (str(warning.message) for warning in caught if warning.category is UserWarning)
    notes = [*dict.fromkeys(texts), *mended.notes, *history.remarks]
    if focus is not None and names_embedded(model):
        notes.append("the embedded summariser takes no notice of --focus; give a --model")
    # A result that continues the thread has a record before its own, or the thread's is in force.
    continues_thread = result.record.parent if result.record is not None else result.head
    if not is_new and not continues_thread:
        notes.append(
            f"the thread {name} holds another conversation already; recall searches the one that "
            "was compacted last; to search both, give each a --thread of its own"
        )
    if result.outcome == "kept" and not (force or result.failed or result.cause):
        notes.append(_why_kept(result.tokens_before, window, trigger or ()))
    data = {
        **_as_data(result),
        "messages_before": len(mended.messages),
        "model": history.model,
        "format": history.format.name,
        "skipped": history.skipped + history.parsed.broken,
        "archive": None if address is None else without_password(address),
        "thread": name,
        "tenant": tenant,
        "window": window,
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


def _roles_for(model: str | None, setting: str) -> str:
    """Return `alternate_roles`: a file's model of an unknown tokenizer still tells by its name."""
    by_name = joins_by_setting(cast("AlternateRoles", setting), model or "")
    return "on" if by_name else setting


def _why_kept(tokens: int, window: int | None, triggers: Sequence[str]) -> str:
    """Say how a history can be compacted that is still below its trigger."""
    threshold = "170,000 tokens" if window is None else f"85% of the window, {window:,} tokens"
    smaller = f", or --window {tokens // 1000 * 1000}" if tokens > 999 else ""
    return (
        f"it has {tokens:,} tokens, and the trigger is at {' or '.join(triggers) or threshold}; to "
        f"compact it now, give --force, with --keep messages:2 where it is short{smaller}"
    )


def _as_data(result: CompactionResult) -> dict[str, Any]:
    """Return a result as plain data."""
    return {
        **{name: getattr(result, name) for name in RESULT_FIELDS},
        "messages_after": len(result.messages),
        "redacted": dict(result.redacted),
        "cost": {name: getattr(result.cost, name) for name in COST},
        "failures": list(result.failures),
    }


def _code_of(result: CompactionResult) -> int:
    """Return the exit code of a result."""
    if result.failed is not None:
        return ARCHIVE_FAILED if result.failed == "archive" else NO_SUMMARY
    return STUCK if result.outcome == "stuck" else DONE


def _print(data: Mapping[str, Any], *, err: bool, why: bool) -> None:
    """Print the report; the reason only if no error message says it."""
    line = partial(output.say, err=err)
    outcome = data["outcome"]
    reason = f": {data['reason']}" if why else ""
    cause = f" ({data['cause']})" if data["cause"] not in reason else ""
    line(f"{outcome}{reason}{cause}", bold=True, fg=COLOURS.get(outcome, "red"))
    _print_sizes(data, line)
    if data["redacted"]:
        kinds = (f"{kind} {count:,}" for kind, count in sorted(data["redacted"].items()))
        line(f"Secrets taken out of what is kept, in places: {', '.join(kinds)}")
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
    """Print the messages and tokens before and after, and what has left."""
    dropped = data["dropped"]
    before = data["messages_before"]
    if dropped:
        counts = f"{before:,} messages, of which {dropped:,} were evicted before"
        line(f"file   {counts}; a summary has their place")
        before += 1 - dropped  # what was evicted before is one message, the summary
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
