"""`conspectus archive`: list, show, export, check and forget archived originals."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from conspectus.archive import Scope, without_password
from conspectus.archive.values import manifest
from conspectus.cli import options, output
from conspectus.cli.failures import EXIT_CODES
from conspectus.cli.options import LOCAL, ArchiveOption, JsonOption, SessionOption, TenantOption
from conspectus.errors import InputError

if TYPE_CHECKING:
    from conspectus.archive import Archive

app = typer.Typer(help="List, show, export, check or forget archived originals.", epilog=EXIT_CODES)


@app.command("list", epilog=EXIT_CODES)
def list_threads(
    archive: ArchiveOption = None, tenant: TenantOption = LOCAL, as_json: JsonOption = False
) -> None:
    """Name the conversations of which originals are kept: how many, how large, from when."""
    where = options.archive_of(archive)
    with options.opened(where, existing=True) as kept:
        rows = [_listed(kept, scope) for scope in sorted(kept.scopes(tenant), key=_by_name)]
    shown = without_password(where)
    if as_json:
        output.print_json({"archive": shown, "tenant": tenant, "threads": rows})
        return
    if not rows:
        output.say(f"{shown} keeps nothing of {tenant}")
        return
    screen = output.console()
    if not screen.is_terminal:  # one line each for other programs, without a heading
        for row in rows:
            values = (" ".join(str(value or "-").split()) for value in row.values())
            print(output.shown("\t".join(values)))
        return
    table = output.columns(*(f">{name}" if name in COUNTS else name for name in rows[0]))
    for row in rows:
        values = (f"{row[n]:,}" if n in COUNTS else output.shown(str(row[n] or "")) for n in row)
        table.add_row(*values)
    screen.print(table)


COUNTS = ("messages", "compactions", "bytes")


def _by_name(scope: Scope) -> tuple[str, str]:
    return scope.thread, scope.session


def _listed(kept: Archive, scope: Scope) -> dict[str, Any]:
    """Return what is kept of one history; dates are when the archive took the originals."""
    chain = kept.chain(scope)
    keys = manifest(chain)
    ends = kept.find(scope, [*keys[:1], *keys[-1:]])
    days = [one.archived_at[:16].replace("T", " ") for one in ends.values()]
    return {
        "thread": scope.thread,
        "session": scope.session,
        "messages": len(keys),
        "compactions": len(chain),
        "bytes": kept.size(scope),
        "first": min(days, default=None),
        "last": max(days, default=None),
    }


@app.command("show", epilog=EXIT_CODES)
def show(
    thread: Annotated[str, typer.Option(help="Which conversation.")],
    archive: ArchiveOption = None,
    tenant: TenantOption = LOCAL,
    session: SessionOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Show what each compaction of a conversation did, the first one first."""
    with options.opened(options.archive_of(archive), existing=True) as kept:
        options.check_thread(kept, tenant, thread)
        chain = kept.chain(Scope(tenant, thread, session))
    if as_json:
        output.print_json([record.to_json() for record in chain])
        return
    for number, record in enumerate(chain, 1):
        by = f", by {record.by}" if record.by else ""
        short = f", {output.many(len(record.clips), 'message')} shown short" if record.clips else ""
        output.say(f"{number}. {record.id}: {record.cause}", "bold")
        output.say(
            f"   {output.many(len(record.covers), 'message')} left{short}; "
            f"{record.tokens_before:,} tokens before, {record.tokens_after:,} after{by}"
        )
    if not chain:
        output.say("No compaction is in force there.")


@app.command("check", epilog=EXIT_CODES)
def check(
    archive: ArchiveOption = None, tenant: TenantOption = LOCAL, as_json: JsonOption = False
) -> None:
    """Read all that a tenant's conversations answer for, and say what is damaged or gone."""
    where = options.archive_of(archive)
    with options.opened(where, existing=True) as kept, output.working("Reading …"):
        wrong = [f"the store: {said}" for said in kept.check()]
        scopes = sorted(kept.scopes(tenant), key=_by_name)
        for scope in scopes:
            name = scope.thread if scope.session == "main" else f"{scope.thread}/{scope.session}"
            wrong += [f"{name}: {said}" for said in kept.check(scope)]
    if as_json:
        output.print_json({"threads": len(scopes), "wrong": wrong})
    else:
        for line in wrong or [f"{len(scopes):,} histories read; all is sound"]:
            output.say(line)
    if wrong:
        raise typer.Exit(3)


@app.command("export", epilog=EXIT_CODES)
def export(
    archive: ArchiveOption = None,
    tenant: TenantOption = LOCAL,
    thread: Annotated[
        str | None, typer.Option(help="Which conversation. Default: all of the tenant.")
    ] = None,
    session: SessionOption = "main",
    out: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write here. Default: standard output.")
    ] = None,
) -> None:
    """Write the archived originals as JSON lines: one a line, oldest first."""
    from conspectus.cli.readers import dump

    if out is not None and str(out) != "-":
        output.check_output(out)
    encoding = "utf-8" if out is not None else sys.stdout.encoding or "utf-8"
    with (
        options.opened(options.archive_of(archive), existing=True) as kept,
        output.working("Reading …"),
    ):
        if thread is not None:
            options.check_thread(kept, tenant, thread)
        rows = [
            {"tenant": tenant, "thread": name, "session": session, **row}
            for name in (kept.threads(tenant) if thread is None else (thread,))
            for row in kept.export(Scope(tenant, name, session))
        ]
    text = "".join(f"{dump(row, encoding=encoding)}\n" for row in rows)
    if out is None or str(out) == "-":
        sys.stdout.write(text)
    else:
        output.write_file(out, text)
        print(f"{len(rows):,} originals written to {out}", file=sys.stderr)


@app.command("forget", epilog=EXIT_CODES)
def forget(
    archive: ArchiveOption = None,
    tenant: TenantOption = LOCAL,
    thread: Annotated[str | None, typer.Option(help="Which conversation.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every conversation of the tenant.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Delete archived originals, summaries and drafts for good; ask first."""
    if (thread is None) != everything:
        raise InputError("name one --thread, or give --all for every thread of the tenant")
    what = f"everything of {tenant}" if thread is None else f"the thread {thread} of {tenant}"
    if not yes and not sys.stdin.isatty():
        raise InputError(f"nobody is there to confirm that {what} is deleted; give --yes")
    where = options.archive_of(archive)
    with options.opened(where, existing=True) as kept:
        if thread is not None:
            options.check_thread(kept, tenant, thread)
        question = f"Delete {what} in {without_password(where)}?"
        if not yes and not typer.confirm(output.shown(question), err=True):
            print("Nothing was deleted.", file=sys.stderr)
            return
        count = kept.forget(tenant, thread)
    if as_json:
        output.print_json({"tenant": tenant, "thread": thread, "deleted": count})
    else:
        output.say(f"{count:,} values deleted: {what}")
