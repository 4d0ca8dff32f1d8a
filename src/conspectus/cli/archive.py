"""`conspectus recall` and `archive`: find, list, show, export, check and forget originals."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from operator import attrgetter
from typing import Annotated, Any

import typer
from typer import Argument, Option

from conspectus.archive import Archive, Scope, without_password
from conspectus.archive.values import DAMAGED
from conspectus.cli import options, output
from conspectus.cli.failures import ARCHIVE_FAILED, EXIT_CODES
from conspectus.cli.options import (
    LOCAL,
    ArchiveOption,
    JsonOption,
    OutOption,
    SessionOption,
    TenantOption,
    ThreadOption,
)
from conspectus.engine import Compactor
from conspectus.errors import ArchiveError, InputError

app = typer.Typer(help="List, show, export, check or forget archived originals.", epilog=EXIT_CODES)


@contextmanager
def _archive_to_read(archive: str | None, tenant: str, *names: str | None) -> Iterator[Archive]:
    """Open the archive to read one thread, one session of it, or all of a tenant.

    `names` are those of the thread and of the session.
    """
    address = options.archive_of(archive)
    with (
        output.working("Reading …"),
        options.open_archive(address, tenant, *names, existing=True) as kept,
    ):
        yield kept


def recall(
    thread: Annotated[str, Option(help="The name of the conversation, as compact prints it.")],
    query: Annotated[str | None, Argument(metavar="QUERY", help="Words to search for.")] = None,
    id: Annotated[
        str | None, Option("--id", help="The id of a message, as a summary cites it.")
    ] = None,
    at: Annotated[
        int | None, Option("--at", help="With --id: the number of characters to skip.")
    ] = None,
    first: Annotated[str | None, Option("--from", help="The first id of a range.")] = None,
    last: Annotated[str | None, Option("--to", help="The last id of the range.")] = None,
    tokens: Annotated[int, Option(help="The most tokens of the answer.")] = 1024,
    archive: ArchiveOption = None,
    tenant: TenantOption = LOCAL,
    session: SessionOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Find archived originals: by words, by id, by words within one message, or in a range."""
    if (first is None) != (last is None):
        raise InputError("--from and --to name the two ends of a range; give both")
    ends = None if first is None or last is None else (first, last)
    with _archive_to_read(archive, tenant, thread, session) as kept:
        whose = {"thread_id": thread, "tenant": tenant, "session": session}
        result = Compactor(archive=kept).recall(
            query, **whose, id=id, at=at, range=ends, tokens=tokens
        )
    if as_json:
        output.print_json(asdict(result))
        return
    nothing = "Nothing was found; try other words, or recall by --id."
    output.say(result.text if result.hits or result.truncated else nothing)
    if result.truncated:
        output.say("Not all is shown: raise --tokens, or read on with --id and --at.", bold=True)


@app.command("list", epilog=EXIT_CODES)
def list_threads(
    archive: ArchiveOption = None, tenant: TenantOption = LOCAL, as_json: JsonOption = False
) -> None:
    """List the archived conversations, with their messages, compactions, bytes and dates."""
    with _archive_to_read(archive, tenant) as kept:
        rows = [_describe_history(kept, scope) for scope in sorted(kept.scopes(tenant), key=str)]
        served = [name for name in kept.threads("conspectus serve") if name != tenant]
    address = without_password(options.archive_of(archive))
    if as_json:
        data: dict[str, Any] = {"archive": address, "tenant": tenant, "threads": rows}
        if served:
            data["other_tenants"] = served
        output.print_json(data)
        return
    nothing = f"{address} keeps nothing of {tenant}; compact something first, or check --tenant"
    output.print_rows(rows, nothing)
    if served:
        output.say(f"--tenant lists another tenant: {', '.join(served)}", err=True)


def _describe_history(kept: Archive, scope: Scope) -> dict[str, Any]:
    """Describe one archived history. Its dates say when the archive got the originals."""
    chain = kept.chain(scope)
    keys = kept.keys_in_reach(scope, chain)
    return {
        "thread": scope.thread,
        "session": scope.session,
        "messages": len(keys),
        "compactions": len(chain),
        "bytes": kept.size(scope),
        "first": _date(kept, scope, keys[:1]),
        "last": _date(kept, scope, keys[-1:]),
    }


def _date(kept: Archive, scope: Scope, keys: Sequence[str]) -> str | None:
    """Return when the archive got an original, to the minute; None if it is damaged."""
    originals = kept.find(scope, keys).values()
    dates = (original.archived_at[:16].replace("T", " ") for original in originals)
    return next(filter(None, dates), None)


@app.command("show", epilog=EXIT_CODES)
def show(
    thread: Annotated[str, Option(help="The name of the conversation.")],
    archive: ArchiveOption = None,
    tenant: TenantOption = LOCAL,
    session: SessionOption = "main",
    as_json: JsonOption = False,
) -> None:
    """List the compactions of a conversation and what each one did, the oldest first."""
    scope = Scope(tenant, thread, session)
    with _archive_to_read(archive, tenant, thread, session) as kept:
        chain = kept.in_force(scope)
        dates = [_date(kept, scope, record.covers[-1:]) for record in chain]
    rows = [
        {
            "compaction": number,
            "record": record.id,
            "date": date,
            "cause": record.cause,
            "evicted": len(record.covers),
            "clipped": len(record.clips),
            "tokens before": record.tokens_before,
            "after": record.tokens_after,
            "by": record.by,
        }
        for number, (record, date) in enumerate(zip(chain, dates, strict=True), 1)
    ]
    if as_json:
        output.print_json([record.to_json() for record in chain])
    else:
        output.print_rows(rows, "No compaction is in force there.")


@app.command("check", epilog=EXIT_CODES)
def check(
    archive: ArchiveOption = None, tenant: TenantOption = LOCAL, as_json: JsonOption = False
) -> None:
    """Read every archived original of the tenant, and list damaged and missing ones."""
    with _archive_to_read(archive, tenant) as kept:
        wrong = [f"the store: {problem}" for problem in kept.check()]
        scopes = kept.scopes(tenant)
        for scope in scopes:
            name = f"{scope.thread} ({scope.session})"
            wrong += [f"{name}: {problem}" for problem in kept.check(scope)]
    if as_json:
        output.print_json({"threads": len(scopes), "wrong": wrong})
    else:
        for line in wrong or [f"{len(scopes):,} histories read; all is sound"]:
            output.say(line)
    if wrong:
        raise typer.Exit(ARCHIVE_FAILED)


@app.command("export", epilog=EXIT_CODES)
def export(
    archive: ArchiveOption = None,
    tenant: TenantOption = LOCAL,
    thread: ThreadOption = None,
    session: Annotated[
        str | None, Option(help="Export only this session of the thread, such as main.")
    ] = None,
    out: OutOption = None,
) -> None:
    """Write the originals of one --thread, or of all threads, as JSON lines, the oldest first.

    All sessions of a thread are written, unless --session names one. If an original is damaged, its
    line has no message, all other originals are written, and the exit code is 3.
    """
    output.check_output(out)
    rows: list[dict[str, Any]] = []
    wrong: list[str] = []
    with _archive_to_read(archive, tenant, thread, session) as kept:
        for scope in sorted(kept.scopes(tenant), key=attrgetter("thread", "session")):
            if thread not in (None, scope.thread) or session not in (None, scope.session):
                continue
            names = {"tenant": tenant, "thread": scope.thread, "session": scope.session}
            try:
                rows += [{**names, **row} for row in kept.export(scope)]
            except ArchiveError as error:
                wrong.append(str(error))
    output.write_text(out, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    wrong += [row[DAMAGED] for row in rows if DAMAGED in row]
    if wrong:
        hint = ""
        if len(wrong) > 1:
            hint = f" ({len(wrong):,} are damaged; archive check names all)"
        raise ArchiveError(wrong[0] + hint)


@app.command("forget", epilog=EXIT_CODES)
def forget(
    archive: ArchiveOption = None,
    tenant: TenantOption = LOCAL,
    thread: ThreadOption = None,
    everything: Annotated[bool, Option("--all", help="Delete everything of the tenant.")] = False,
    yes: Annotated[bool, Option("--yes", help="Do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Delete archived originals, summaries and drafts permanently. The command asks first."""
    if (thread is None) != everything:
        raise InputError("name one --thread, or give --all for every thread of the tenant")
    deleted = f"everything of {tenant}" if thread is None else f"the thread {thread} of {tenant}"
    if not (yes or sys.stdin.isatty()):
        raise InputError(f"nobody is there to confirm that {deleted} is deleted; give --yes")
    address = options.archive_of(archive)
    with options.open_archive(address, tenant, thread, existing=True) as kept:
        question = f"Delete {deleted} in {without_password(address)}?"
        if not yes and not typer.confirm(output.printable(question), err=True):
            print("Nothing was deleted.", file=sys.stderr)
            return
        count = kept.forget(tenant, thread)
    if as_json:
        output.print_json({"tenant": tenant, "thread": thread, "deleted": count})
    else:
        output.say(f"{count:,} values deleted: {deleted}")
