"""`conspectus compact`: bring a history inside its window, and report what became of it."""

from __future__ import annotations

import logging
import shlex
import warnings
from collections.abc import Mapping
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
from conspectus.engine import Compactor
from conspectus.engine.settings import CompactorSettings
from conspectus.errors import InputError
from conspectus.messages.alternation import AlternateRoles, alternates
from conspectus.model import windows
from conspectus.transcripts import mend, read_history, write_history

TRIGGER = help_of(
    "trigger",
    "tokens:8000, messages:50 or fraction:0.8 of the window. Join those that must all hold with +; "
    "repeat the option for alternatives. Default: 85% of the window, else 170,000 tokens.",
)
KEEP = help_of("keep", "In the form of --trigger. Default: messages:20, or fewer.")
MODEL = "What summarises: provider:model, which is recommended, or embedded, which quotes."
ON_FAILURE = help_of(
    "on_failure",
    "degrade (keep the history while there is room, else use the embedded summariser), keep, or "
    "raise.",
)
ROLES = help_of(
    "alternate_roles", "on, off, or auto: by the model in FILE, else by what the history shows."
)
SAME = """outcome reason cause tokens_before tokens_after budget evicted kept clipped dropped
    summary record_id archived""".split()  # in a result and in its JSON


def compact(
    file: options.FileArgument,
    trigger: Annotated[list[str] | None, Option(help=TRIGGER, show_default=False)] = None,
    keep: Annotated[str | None, Option(help=KEEP)] = None,
    window: options.WindowOption = None,
    reserve: Annotated[int | None, options.tokens(help_of("reserved_tokens"))] = None,
    model: Annotated[
        str, Option("--model", "--summarizer", metavar="NAME", help=MODEL)
    ] = "embedded",
    max_summary_tokens: Annotated[int | None, Option(help=help_of("max_summary_tokens"))] = None,
    archive: options.ArchiveOption = None,
    no_archive: Annotated[bool, Option("--no-archive", help="Keep no originals.")] = False,
    thread: Annotated[str | None, Option(help="Name of the conversation.")] = None,
    tenant: options.TenantOption = LOCAL,
    force: Annotated[bool, Option("--force", help="Compact although nothing asks for it.")] = False,
    redact: Annotated[bool, Option("--redact", help=help_of("redact"))] = False,
    focus: Annotated[str | None, Option(help="What a model is to keep above all.")] = None,
    on_failure: Annotated[str, Option(help=ON_FAILURE)] = CompactorSettings.on_failure,
    alternate_roles: Annotated[str, Option(help=ROLES)] = CompactorSettings.alternate_roles,
    out: options.OutOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Compact a history; report messages that left and stayed, and the archive.

    FILE holds chat messages of OpenAI, Anthropic, LangChain or LangGraph, or a session of Claude
    Code, Codex, Gemini CLI or opencode. It is never changed.
    """
    if no_archive and archive is not None:
        raise InputError("--archive and --no-archive exclude each other; leave one out")
    if thread == "":
        raise InputError("--thread is empty; name the conversation, or leave the option out")
    if out == STDOUT and as_json:
        raise InputError("-o - and --json both want standard output; give -o a file")
    triggers, kept_size = options.triggers(trigger or []), keep and options.size(keep, "--keep")
    where = None if no_archive else options.archive_of(archive)
    output.check_output(out, Path(file), None if where is None else options.file_of(where))
    logging.getLogger("conspectus").addHandler(logging.NullHandler())  # the report says it all
    caught = warnings.catch_warnings(record=True, action="always")
    with output.working("Compacting …"), caught as warned:
        history = read_history(file)
        mended = mend(history.messages)
        window = window or history.window or windows.profile_of(history.model)
        name = history.thread_hint if thread is None else thread
        roles = cast("AlternateRoles", alternate_roles)
        settings: dict[str, Any] = {
            "summarizer": model,
            "trigger": triggers,
            "keep": kept_size,
            "window": window,
            "reserved_tokens": reserve or 0,
            "archive": where,
            "tokenizer": options.known_model(history.model),
            "max_summary_tokens": max_summary_tokens,
            "on_failure": on_failure,
            "redact": redact,
            # A file's model of an unknown tokenizer still tells by its name.
            "alternate_roles": "on" if alternates(roles, history.model or "") else roles,
        }
        with Compactor(**settings) as compactor:
            kept = compactor.archive
            is_new = kept is None or not kept.chain(Scope(tenant, name, "main"))
            result = compactor.compact(
                mended.messages, thread_id=name, tenant=tenant, force=force, focus=focus
            )
    if out is not None:
        written = mend(result.messages, orphans=False).messages
        output.write_text(out, write_history(written, history))
    caveats = dict.fromkeys(str(one.message) for one in warned if one.category is UserWarning)
    notes = [*caveats, *mended.notes, *history.remarks]
    if focus is not None and names_embedded(model):
        notes.append("the embedded summariser takes no notice of --focus; give a --model")
    goes_on = result.record.parent if result.record is not None else result.summary
    if not is_new and not goes_on:
        notes.append(
            f"the thread {name} holds another conversation already; recall searches the one that "
            "was compacted last; to search both, give each a --thread of its own"
        )
    if result.outcome == "kept" and not (force or result.failed or result.cause):
        size = result.tokens_before
        at = "170,000 tokens" if window is None else f"85% of the window, {window:,} tokens"
        smaller = f", or --window {size // 1000 * 1000}" if size > 999 else ""
        notes.append(
            f"it has {size:,} tokens, and the trigger is at {' or '.join(trigger or ()) or at}; to "
            f"compact it now, give --force, with --keep messages:2 where it is short{smaller}"
        )
    data = {
        **{key: getattr(result, key) for key in SAME},
        "messages_before": len(mended.messages),
        "messages_after": len(result.messages),
        "redacted": dict(result.redacted),
        "model": history.model,
        "format": history.form.name,
        "skipped": history.skipped + history.parsed.broken,
        "cost": {k: getattr(result.cost, k) for k in ("calls", "input_tokens", "output_tokens")},
        "failures": list(result.failures),
        "archive": None if where is None else without_password(where),
        "thread": name,
        "tenant": tenant,
        "window": window,
        "output": None if out in (None, STDOUT) else str(out),
        "notes": notes,
    }
    code = STUCK if result.outcome == "stuck" else DONE
    if result.failed is not None:
        code = ARCHIVE_FAILED if result.failed == "archive" else NO_SUMMARY
    if as_json:
        output.print_json(data)
    else:
        _print(data, err=out == STDOUT, why=code == DONE)
    if code != DONE:
        complain(result.reason)
    raise Exit(code)


def _print(data: Mapping[str, Any], *, err: bool, why: bool) -> None:
    """Print the report; the reason only if no error message says it."""
    line = partial(output.say, err=err)
    outcome, dropped, cost = data["outcome"], data["dropped"], data["cost"]
    reason = f": {data['reason']}" if why else ""
    cause = f" ({data['cause']})" if data["cause"] not in reason else ""
    colour = {"compacted": "green", "kept": "cyan"}.get(outcome, "red")
    line(f"{outcome}{reason}{cause}", bold=True, fg=colour)
    if dropped:
        had = f"{data['messages_before']:,} messages, of which {dropped:,} were evicted before"
        line(f"file   {had}; a summary has their place")
    # What was evicted before is one message, the summary.
    before = data["messages_before"] - dropped + bool(dropped)
    line(f"before {before:>9,} messages {data['tokens_before']:>11,} tokens")
    line(f"after  {data['messages_after']:>9,} messages {data['tokens_after']:>11,} tokens")
    if data["budget"] is not None:
        line(f"budget {data['budget']:>30,} tokens")
    if data["evicted"] or data["clipped"] or dropped:
        evicted = output.many(data["evicted"], "message")
        line(f"{evicted} evicted now, {data['clipped']:,} truncated")
    if data["redacted"]:
        kinds = ", ".join(f"{kind} {n:,}" for kind, n in sorted(data["redacted"].items()))
        line(f"Secrets taken out of what is kept, in places: {kinds}")
    for note in [*data["failures"], *data["notes"]]:
        line(f"Note: {note}", fg="yellow")
    if data["summary"]:
        line(f"\nSummary\n{data['summary']}\n")
    if cost["calls"]:
        tokens = cost["input_tokens"] + cost["output_tokens"]
        line(f"Cost: {cost['calls']:,} calls of a model, {tokens:,} tokens")
    if data["output"] is not None:
        line(f"Messages: {data['output']}")
    if outcome != "compacted" and not dropped:
        return
    if data["archive"] is None:
        line("Originals: not archived, so nothing can be recalled; keep the file", fg="yellow")
        return
    line(f"Originals: {data['archive']} (thread {data['thread']})")
    if not data["archived"]:
        behind = "those behind the summary in the file are not there; --thread goes on with theirs"
        line(f"  {behind}", fg="yellow")
    parts = ["conspectus", "recall", "--thread", data["thread"]]
    parts += ["--archive", data["archive"]] if data["archive"] != options.archive_of(None) else []
    parts += ["--tenant", data["tenant"]] if data["tenant"] != LOCAL else []
    if data["archive"] not in options.IN_MEMORY:
        line(f"Next: {shlex.join(parts)} 'what you look for'", bold=True)
