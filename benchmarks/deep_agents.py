"""A long deep agent with subagents, killed and resumed; then faults, compared.

    make bench-deep        or: python benchmarks/deep_agents.py [--turns N] [--postgres ADDRESS]

First a deep agent with two declared subagents and the general-purpose one, each with a window of
6,000 tokens (its tools take 4,000 of the main agent's), for 200 turns: the largest request of each
agent, torn pairs, originals that cannot be reached. Then the same run, killed at random requests
and resumed from its checkpoints, must come out the same: on SQLite, and on PostgreSQL where an
address is given. At last one fault at a time, for our middleware and for Deep Agents' own in the
same run. Ends with 1 if a promise does not hold.
"""

from __future__ import annotations

import argparse
import logging
import random
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import printed
from deep_agent_faults import fault_table
from deep_agent_run import WINDOW, Killed, Run, ask, summarise
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.sqlite import SqliteSaver

from conspectus.agents.state import HELD
from conspectus.archive import Archive, Scope
from conspectus.bridge import run as drive
from conspectus.compactor.settings import LOCAL
from conspectus.deep_agents import create_deep_agent, summarization_middleware
from conspectus.messages import read_messages

screen = printed.screen(110)
THREAD: Any = {"configurable": {"thread_id": "t"}}
KILLS = 12
"""How often a run is killed."""

Saver = Callable[[], Any]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run.

    Attributes:
        said: the main agent's channel: who said what, with all calls.
        records: messages that each record of each session covers, sorted.
        summaries: calls of the summariser.
        sessions: histories that were compacted.
        unreachable: messages of any session that neither stand in view nor come back from the
            archive as they were.
        missing_files: of those that records cover, without a readable copy.
    """

    said: tuple[Any, ...]
    records: tuple[tuple[int, ...], ...]
    summaries: int
    sessions: int
    unreachable: int
    missing_files: int


@contextmanager
def sqlite_in(folder: Path) -> Iterator[tuple[Saver, str]]:
    """Open checkpointer and archive in SQLite files."""
    with ExitStack() as stack:

        def saver() -> SqliteSaver:
            path = folder / "checkpoints.sqlite"
            connection = sqlite3.connect(path, check_same_thread=False)
            stack.callback(connection.close)
            return SqliteSaver(connection)

        yield saver, str(folder / "archive.sqlite")


@contextmanager
def postgres_at(address: str) -> Iterator[tuple[Saver, str]]:
    """Open checkpointer and archive on a PostgreSQL server."""
    from langgraph.checkpoint.postgres import PostgresSaver

    with ExitStack() as stack:

        def saver() -> PostgresSaver:
            made = stack.enter_context(PostgresSaver.from_conn_string(address))
            made.setup()
            return made

        yield saver, address


def go(
    where: tuple[Saver, str], turns: int, kills: list[int], folder: Path
) -> tuple[Outcome, Run, int]:
    """Play the turns, die at each of these requests, and go on as a new process."""
    saver, address = where
    run = Run(folder / "work", create_deep_agent)
    run.folder.mkdir()
    run.watch.kill_at = set(kills)
    agent, checkpoints, archive = _opened(run, saver, address)
    died = turn = 0
    taken = False
    while turn < turns:
        try:
            agent.invoke(None if taken else ask(turn), THREAD, durability="sync")
        except Killed:
            died += 1
            archive.close()
            # Nothing that the process has remembered survives it.
            agent, checkpoints, archive = _opened(run, saver, address)
            newest = agent.get_state(THREAD).values.get("messages", ())
            taken = any(message.id == f"turn-{turn}" for message in newest)
            continue
        turn, taken = turn + 1, False
    found = outcome(agent, checkpoints, archive, run)
    archive.close()
    return found, run, died


def _opened(run: Run, saver: Saver, address: str) -> tuple[Any, Any, Archive]:
    from deepagents.backends import FilesystemBackend

    checkpoints, archive = saver(), Archive.open(address)
    backend = FilesystemBackend(root_dir=run.folder, virtual_mode=True)
    main = run.model("main", run._either, run.main_window)
    ours = summarization_middleware(main, backend, archive=archive, summarizer=summarise(run.watch))
    agent = run.agent(checkpointer=checkpoints, middleware=[ours])
    return agent, checkpoints, archive


def outcome(agent: Any, checkpoints: Any, archive: Archive, run: Run) -> Outcome:
    """Judge the checkpoints, the archive and the folder."""
    values = agent.get_state(THREAD).values
    states = {"": values}
    for one in checkpoints.list(THREAD):
        space = one.config["configurable"].get("checkpoint_ns", "")
        if space and space not in states and HELD in one.checkpoint["channel_values"]:
            states[space] = one.checkpoint["channel_values"]
    files = "".join(
        path.read_text() for path in sorted(run.folder.glob("conversation_history/*/*.md"))
    )
    records, unreachable, missing = [], 0, 0
    for state in states.values():
        held = state.get(HELD)
        if held is None:
            continue
        scope = Scope(LOCAL, held["thread"], held["session"])
        chain = drive(archive.flow(archive.chain_at, scope, held["head"]))
        covered = [key for record in chain for key in record.covers]
        own = {entry.key: entry for entry in read_messages(state["messages"])}
        back = {one.key: one.message for one in archive.get(scope, covered)}
        unreachable += sum(key not in own or back[key] != own[key].source for key in covered)
        missing += sum(own[key].text not in files for key in covered if key in own)
        missing += sum(c.args not in files for key in covered if key in own for c in own[key].calls)
        records.append(tuple(len(record.covers) for record in chain))
    said = tuple(map(_said, values["messages"]))
    return Outcome(
        said, tuple(sorted(records)), run.watch.summaries, len(records), unreachable, missing
    )


def _said(message: BaseMessage) -> Any:
    calls = message.tool_calls if isinstance(message, AIMessage) else ()
    return message.type, str(message.text), tuple((c["name"], str(c["args"])) for c in calls)


def kills_for(requests: int, seed: int) -> list[int]:
    """Draw the requests at which a run dies."""
    return sorted(random.Random(seed).sample(range(2, requests), min(KILLS, requests // 3)))


def long_run(turns: int, postgres: str | None) -> bool:
    """Play the first two parts; say whether all held."""
    columns = (
        *("run", "main", "reader", "counter", "torn", "sessions", "summaries", "lost", "no file"),
        "same",
    )
    table = printed.table(
        f"{turns} turns, windows of {WINDOW:,} tokens; largest request of each agent", columns
    )
    good = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        places: dict[str, Any] = {"SQLite": None}
        if postgres is not None:
            places["PostgreSQL"] = postgres
        whole: Outcome | None = None
        requests = 0
        for place, address in places.items():
            for killed in (False, True):
                if place == "PostgreSQL" and not killed:
                    continue
                own = folder / f"{place}-{killed}"
                own.mkdir()
                kills = kills_for(requests, 7) if killed else []
                opened = postgres_at(address) if address else sqlite_in(own)
                with opened as where:
                    found, run, died = go(where, turns, kills, own)
                if whole is None:
                    whole, requests = found, run.watch.calls
                sizes = run.watch.sizes
                same = found == whole
                table.add_row(
                    f"{place}, killed {died} times" if killed else f"{place}, not killed",
                    *(f"{sizes.get(agent, 0):,}" for agent in ("main", "reader", "counter")),
                    str(run.watch.torn),
                    str(found.sessions),
                    str(found.summaries),
                    str(found.unreachable),
                    str(found.missing_files),
                    "yes" if same else "NO",
                )
                good &= same and max(sizes.values()) <= WINDOW and not run.watch.torn
                good &= not found.unreachable and not found.missing_files
                good &= died == len(kills)
    screen.print(table)
    if postgres is None:
        screen.print("PostgreSQL was left out; give --postgres ADDRESS of an empty database.")
    return good


def main() -> int:
    """Play everything; give the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--postgres", help="address of an empty database")
    given = parser.parse_args()
    for name in ("conspectus", "deepagents"):  # both tell of the faults that are made here
        logging.getLogger(name).setLevel(logging.CRITICAL)
    good = long_run(given.turns, given.postgres)
    table, held = fault_table()
    screen.print(table)
    return 0 if good and held else 1


if __name__ == "__main__":
    sys.exit(main())
