"""`conspectus archive`: list, export, compact and forget archived originals."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from conspectus.archive import without_password
from conspectus.cli import options, output
from conspectus.cli.failures import EXIT_CODES
from conspectus.cli.options import LOCAL, ArchiveOption, JsonOption, SessionOption, TenantOption
from conspectus.errors import InputError

app = typer.Typer(help="List, export, compact or forget archived originals.", epilog=EXIT_CODES)


@app.command("list", epilog=EXIT_CODES)
def list_threads(
    archive: ArchiveOption = None, tenant: TenantOption = LOCAL, as_json: JsonOption = False
) -> None:
    """Name the conversations of which originals are kept."""
    where = options.archive_of(archive)
    with options.opened(where, existing=True) as kept:
        threads = kept.threads(tenant)
    shown = without_password(where)
    if as_json:
        output.print_json({"archive": shown, "tenant": tenant, "threads": list(threads)})
        return
    for line in threads or [f"{shown} keeps nothing of {tenant}"]:
        output.say(line)


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
    from conspectus.archive import Scope
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


@app.command("compact", epilog=EXIT_CODES)
def compact(archive: ArchiveOption = None, as_json: JsonOption = False) -> None:
    """Bring an archive of an earlier version up to the smaller form of this one.

    Stop the agents that use it first. Stopped half way, it is sound; run it again.
    """
    where = options.archive_of(archive)
    file = options.file_of(where)
    with options.opened(where, existing=True) as kept, output.working("Rewriting …"):
        before = _bytes_of(file)
        count = kept.compact()
    after = _bytes_of(file)
    shown = without_password(where)
    if as_json:
        sizes = {} if file is None else {"bytes_before": before, "bytes_after": after}
        output.print_json({"archive": shown, "rewritten": count, **sizes})
        return
    said = f"{count:,} values of {shown} rewritten"
    if file is not None:
        said += f"; {before:,} bytes before, {after:,} now"
    output.say(said)


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


def _bytes_of(file: Path | None) -> int:
    """Return the bytes of an archive's file and journal; 0 without a file."""
    if file is None:
        return 0
    parts = [file, file.with_name(f"{file.name}-wal")]
    return sum(one.stat().st_size for one in parts if one.exists())
