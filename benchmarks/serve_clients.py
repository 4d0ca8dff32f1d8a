"""Real clients through `conspectus serve`, each in a session of ten windows.

    make clients           or: python benchmarks/serve_clients.py [--only WORD] [--windows 10]

The endpoint, and each client with a home of its own, run as processes. The model is scripted: it
asks for one file after the other with the client's own tool. Ends with 1 if a client that ran sent
a request over the window upstream or one that a provider refuses, or if a message is neither in the
archive nor, word for word, in the last request.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import printed
from client_programs import CLIENTS, KEY, Client, Place, Unavailable, cache
from client_session import Kept, Session, size
from command_line import Options, Progress, ended
from rich.console import Console
from serve_process import endpoint

from conspectus_lab.testing.fault_server import FaultServer

WINDOWS, TURNS = 10, 4


@dataclass(frozen=True)
class Went:
    """The course of a session.

    Attributes:
        client, version: who.
        requests, beside: of the session, and others, such as a title for it.
        windows: that what was said fills.
        over, refused: requests over the window, and others that a provider refuses.
        kept: places of the messages.
        wrong: promises that do not hold.
    """

    client: Client
    version: str
    requests: int
    beside: int
    windows: float
    over: int
    refused: int
    kept: Kept
    wrong: tuple[str, ...]


def went_through(
    client: Client, program: Path, version: str, windows: int = WINDOWS, turns: int = TURNS
) -> Went:
    """Run one client's session."""
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        folder, home = base / "work", base / "home"
        folder.mkdir()
        home.mkdir()
        session = Session(folder, client.window, windows, client.piece, turns, client.model)
        archive = str(base / "archive.db")
        failed: list[str] = []
        with (
            FaultServer(session.answer, window=client.window, count=size) as server,
            endpoint(server.anthropic_url, archive, base / "secret", client.window) as serving,
        ):
            place = Place(serving.url, folder, home, session.questions, base / "log")
            try:
                client.session(program, place)
            except Unavailable as error:
                if not server.requests:
                    raise
                failed.append(str(error))
        kept = session.kept(archive, serving.tenant(KEY))
        refused = [why for request in server.torn for why in request.torn] + session.broken
    failed += session.wrong[:3]
    if not session.over and not failed:
        failed.append("the session did not come to its end")
    if server.refused:
        sizes = ", ".join(f"{one.tokens:,}" for one in server.refused[:5])
        failed.append(f"{len(server.refused)} requests over {client.window:,} tokens: {sizes}")
    failed += [f"refused: {why}" for why in refused[:3]]
    failed += [f"missing: {what}" for what in kept.missing[:3]]
    if kept.records < windows:
        failed.append(f"{kept.records} compactions are too few for {windows} windows")
    return Went(
        client, version, session.requests, session.beside, session.windows, len(server.refused),
        len(refused), kept, tuple(failed),
    )  # fmt: skip


def show(rows: Sequence[Went], screen: Console) -> None:
    """Print the table."""
    names = (
        "client,version,protocol,window,windows,requests,over,refused,compacted,threads,messages,"
        "archived,in view,missing"
    ).split(",")
    table = printed.table("Clients through conspectus serve", names, 3)
    for one in rows:
        kept = one.kept
        every = kept.archived + kept.in_view + len(kept.missing)
        requests = f"{one.requests:,}" + (f" + {one.beside}" if one.beside else "")
        numbers = (
            one.over, one.refused, kept.records, kept.threads, every, kept.archived, kept.in_view,
            len(kept.missing),
        )  # fmt: skip
        table.add_row(
            one.client.name, one.version, one.client.speaks, f"{one.client.window:,}",
            f"{one.windows:.1f}", requests, *(f"{number:,}" for number in numbers),
        )  # fmt: skip
    screen.print(table)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; give the exit code."""
    parser = Options(description="Real clients through conspectus serve.")
    parser.add_argument("--only", default="", help="clients with this word in their names")
    parser.add_argument("--windows", type=int, default=WINDOWS, help="of each session")
    given = parser.parse_args(arguments)
    chosen = parser.holding("ONLY= or --only", given.only, CLIENTS, lambda one: one.name)
    progress = Progress("clients", len(chosen))
    rows: list[Went] = []
    absent: list[str] = []
    for client in chosen:
        try:
            program, version = client.had(cache() / client.folder)
            rows.append(went_through(client, program, version, given.windows))
        except Unavailable as error:
            absent.append(f"{client.name} cannot be had or started here: {error}")
        progress.step(client.name)
    if rows:
        show(rows, printed.screen(140))
    for line in absent:
        print(line)
    complaints = (f"{one.client.name}: {what}" for one in rows for what in one.wrong)
    return int(printed.complain(complaints))


if __name__ == "__main__":
    ended(main)
