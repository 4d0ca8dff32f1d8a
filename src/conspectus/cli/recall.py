"""`conspectus recall`: find archived originals again."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from typer import Argument, Option

from conspectus.cli import options, output
from conspectus.cli.options import LOCAL, ArchiveOption, JsonOption, SessionOption, TenantOption
from conspectus.errors import InputError


def recall(
    thread: Annotated[str, Option(help="Name of the conversation, as compact gives it.")],
    query: Annotated[str | None, Argument(metavar="QUERY", help="Words to look for.")] = None,
    id: Annotated[str | None, Option("--id", help="A message id, as a summary cites it.")] = None,
    at: Annotated[int | None, Option("--at", help="With --id: characters to skip.")] = None,
    first: Annotated[str | None, Option("--from", help="First id of a stretch.")] = None,
    last: Annotated[str | None, Option("--to", help="Last id of the stretch.")] = None,
    tokens: Annotated[int, Option(help="Most tokens of the answer.")] = 1024,
    archive: ArchiveOption = None,
    tenant: TenantOption = LOCAL,
    session: SessionOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Find archived originals by words, by id, by words in one of them, or in a stretch."""
    if (first is None) != (last is None):
        raise InputError("--from and --to name the two ends of a stretch; give both")
    stretch = None if first is None or last is None else (first, last)
    from conspectus.engine import Compactor

    names = tenant, thread, session
    opening = options.opened(options.archive_of(archive), *names, existing=True)
    with output.working("Searching …"), opening as kept:
        whose = {"thread_id": thread, "tenant": tenant, "session": session}
        result = Compactor(archive=kept).recall(
            query, **whose, id=id, at=at, range=stretch, tokens=tokens
        )
    if as_json:
        output.print_json(asdict(result))
        return
    for hit in result.hits:
        note = f"({hit.note})" if hit.note else ""
        parts = (f"[{hit.cite}]", hit.role, hit.name, hit.date, note)
        output.say(" ".join(part for part in parts if part), "bold")
        output.say(f"{hit.text}\n")
    if result.truncated:
        last = result.text.rpartition("\n")[2]
        rest = f" {last}" if last.startswith("(") else ""
        more = "More was found than fits; raise --tokens, or read on with --id and --at."
        output.say(f"{more}{rest}")
    elif not result.hits:
        output.say("Nothing was found; try other words, or recall by --id.")
