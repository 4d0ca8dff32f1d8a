"""Run two processes on one conversation, at the same moment, again and again, with PostgreSQL.

Both wait at a barrier in the database and then compact the same history, each with summaries of its
own; or both prepare it in the background, and compact then; or, with `agent`, both run the same
agent on the same thread. `rounds_of_two` starts them and compares their reports.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from command_line import PartFailed, deaf, in_one_line
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from worker_cases import talk, word
from worker_places import place

from conspectus import CompactionResult, Compactor, is_summary_message
from conspectus.agents.state import HELD
from conspectus.archive import Archive, Scope
from conspectus.bridge import run
from conspectus.compactor.settings import LOCAL
from conspectus.guard import ContextGuard
from conspectus.messages import read_messages
from conspectus.middleware import SummarizationMiddleware
from conspectus_lab.testing.scripted_models import ScriptedChatModel

OWN = word(0)
SCOPE = Scope(LOCAL, OWN, "main")
TRIGGER, KEEP = ("messages", 10), ("messages", 4)
STEP = 12
"""Messages by which the history grows in a round."""

NEAR = 4
"""Messages that arrive while notes are prepared."""

WAIT = 120
"""Seconds that one process waits for the other at the barrier."""

STALLED = 300
"""Seconds without output after which two processes are given up."""

LOOK = 0.05
"""Seconds between two checks of them."""


@dataclass
class Rounds:
    """The outcome; `apart`, `missing`, `doubled` and `failed` should be 0.

    Attributes:
        won: rounds in which one process compacted, and the other saw its record or its draft.
        crossed: rounds in which both put a record in force, one right after the other.
        compactions: records in force at the end.
        paid: summaries that a model was asked for.
        apart: rounds after which their views differed.
        missing: messages neither in view nor in the archive.
        doubled: messages that are there twice.
        failed: calls that raised, or left the history unchanged without a reason.
    """

    rounds: int = 0
    won: int = 0
    crossed: int = 0
    compactions: int = 0
    paid: int = 0
    apart: int = 0
    missing: int = 0
    doubled: int = 0
    failed: int = 0
    said: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Return whether the promises held, and anything was tried at all."""
        wrong = self.apart + self.missing + self.doubled + self.failed
        return not wrong and self.compactions > 0


def rounds_of_two(address: str, rounds: int, what: str = "compactor") -> Rounds:
    """Start two processes, wait for them, and compare their reports.

    Args:
        address: of an empty PostgreSQL database or schema.
        rounds: number of meetings.
        what: `compactor`, `compactor in the background` or `agent`.

    Raises:
        PartFailed: one of the processes failed.
    """
    with _connected(address) as db:
        db.execute("CREATE TABLE IF NOT EXISTS met (round TEXT, who TEXT)")
    with place("postgres", Path(), address):
        pass  # the tables exist before the processes start
    command = [sys.executable, __file__, address, str(rounds), what]
    outputs = side_by_side({who: [*command, who] for who in "ab"})
    said = [[json.loads(line) for line in out.splitlines()] for out in outputs]
    found = Rounds(rounds)
    for one, other in zip(*said, strict=True):
        records = {one["record"], other["record"]} - {None}
        found.won += len(records) == 1
        found.crossed += len(records) == 2
        found.paid += one["paid"] + other["paid"]
        found.apart += one["shown"] != other["shown"]
        for side in (one, other):
            found.failed += side["failed"]
            found.missing += side["missing"]
            found.doubled += side["doubled"]
            found.said += side["said"]
    found.compactions = said[0][-1]["chain"]
    return found


def side_by_side(commands: dict[str, list[str]]) -> list[str]:
    """Run processes at the same time, which may wait for each other, and return their output.

    They print to files: a pipe that is not read while another one is read is full after 64 KB, and
    blocks its process, and with it the processes that wait for it.

    Args:
        commands: by the name of the process.

    Raises:
        PartFailed: one ended with another code than 0, or all are silent.
    """
    with ExitStack() as stack:
        running = [stack.enter_context(_running(name, one)) for name, one in commands.items()]
        heard, since = 0, time.monotonic()
        while waiting := [one for one in running if one.process.poll() is None]:
            _all_well(running)  # a failure ends the others, which would wait in vain
            size = sum(one.size for one in running)
            if size > heard:
                heard, since = size, time.monotonic()
            if time.monotonic() - since > STALLED:
                names = " and ".join(one.name for one in waiting)
                raise PartFailed(f"{names} said nothing for {STALLED} seconds")
            time.sleep(LOOK)
        _all_well(running)
        return [one.said for one in running]


@dataclass
class _Running:
    """A process and the files that it prints to."""

    name: str
    process: subprocess.Popen[str]
    out: IO[str]
    err: IO[str]

    @property
    def size(self) -> int:
        """Count the bytes that it has printed."""
        return Path(self.out.name).stat().st_size

    @property
    def said(self) -> str:
        """Return its standard output."""
        return Path(self.out.name).read_text()

    @property
    def complaint(self) -> str:
        """Return its standard error."""
        return Path(self.err.name).read_text()


@contextmanager
def _running(name: str, command: list[str]) -> Iterator[_Running]:
    """Start a process that does not outlive this block."""
    with tempfile.NamedTemporaryFile("w") as out, tempfile.NamedTemporaryFile("w") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, text=True)
        try:
            yield _Running(name, process, out, err)
        finally:
            process.kill()
            process.wait()


def _all_well(running: Sequence[_Running]) -> None:
    for one in running:
        if code := one.process.poll():
            whole = one.complaint
            why = (whole.strip().splitlines() or ["it said nothing"])[-1]
            how = f"ended with {code}" if code > 0 else f"was ended by signal {-code}"
            raise PartFailed(f"process {one.name} {how} ({why})", whole)


class Process:
    """One of the two processes."""

    def __init__(self, address: str, who: str) -> None:
        self.address, self.who = address, who
        self.random = random.Random(who)
        self.writer = ScriptedChatModel(answers=self._summary)
        self._paid = 0

    def _summary(self, messages: Sequence[BaseMessage]) -> str:
        time.sleep(self.random.choice((0, 0.002, 0.01, 0.03)))
        # Two summaries of one history hardly ever agree.
        return f"## Done\n- Notes of {OWN} were looked at by process {self.who}"

    def paid(self) -> int:
        """Count the summaries since the last call."""
        before, self._paid = self._paid, len(self.writer.calls)
        return self._paid - before

    def meet(self, name: str) -> None:
        """Wait for the other one."""
        with _connected(self.address) as db:
            db.execute("INSERT INTO met VALUES (%s, %s)", (name, self.who))
            deadline = time.monotonic() + WAIT
            while db.execute("SELECT count(*) FROM met WHERE round = %s", (name,)).fetchone() != (
                2,
            ):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"the other process did not come to {name}")
                time.sleep(0.001)


def compact_together(process: Process, rounds: int, store: Any) -> None:
    """Send the whole history in both at one moment; then once more, one after the other."""
    archive = Archive(store)
    compactor = Compactor(process.writer, trigger=TRIGGER, keep=KEEP, archive=archive)
    for number in range(rounds):
        _one_round(process, compactor, archive, number)


def prepare_together(process: Process, rounds: int, store: Any) -> None:
    """Prepare the notes of one history in both at one moment; then send the messages since."""
    archive = Archive(store)
    compactor = Compactor(
        process.writer, trigger=TRIGGER, keep=KEEP, archive=archive, background=True
    )
    for number in range(rounds):
        _one_round(process, compactor, archive, number, prepared=True)
    compactor.close()


def _one_round(
    process: Process, compactor: Compactor, archive: Archive, number: int, prepared: bool = False
) -> None:
    sent = talk(OWN, STEP * (number + 1))
    process.meet(f"round {number}")
    said, failed, record, first = [], 0, None, list[str]()
    try:
        if prepared:
            compactor.prepare(sent[:-NEAR], thread_id=OWN).wait(WAIT)
            process.meet(f"prepared {number}")
            result = _as_soon_as_it_is_there(compactor, sent)
        else:
            result = compactor.compact(sent, thread_id=OWN)
            if not result.summary or len(result.messages) >= len(sent):
                failed, said = 1, [result.reason]
        record, first = result.record_id, _texts(result)
    except Exception as error:
        failed, said = 1, [f"{type(error).__name__}: {error}"]
    process.meet(f"after {number}")
    shown = _texts(compactor.compact(sent, thread_id=OWN))
    chain = archive.chain(SCOPE)
    keys = [key for one in chain for key in one.covers]
    kept = set(run(archive.flow(archive.find, SCOPE, keys)))
    gone = [e for e in read_messages(sent) if e.text not in shown and e.key not in kept]
    row = {
        "record": record,
        "shown": shown,
        "chain": len(chain),
        "paid": process.paid(),
        "missing": len(gone),
        "doubled": sum(len(some) - len(set(some)) for some in (keys, first, shown)),
        "failed": failed,
        "said": said,
    }
    print(json.dumps(row), flush=True)
    process.meet(f"end of {number}")


def _texts(result: CompactionResult) -> list[str]:
    return [str(one["content"]) for one in result.messages]


def _as_soon_as_it_is_there(compactor: Compactor, sent: Sequence[Any]) -> CompactionResult:
    """Compact once the notes are there: the other process may still be writing them."""
    until = time.monotonic() + WAIT
    while (result := compactor.compact(sent, thread_id=OWN)).preparing:
        if time.monotonic() > until:
            raise TimeoutError("the notes were not there in time")
        time.sleep(LOOK)
    return result


def run_together(process: Process, rounds: int, saver: Any, store: Any) -> None:
    """Run the same agent in both on the same thread at one moment, then continue."""
    model = ScriptedChatModel(answers=lambda messages: AIMessage(f"Noted. {'So it is. ' * 8}"))
    middle = SummarizationMiddleware(
        model, trigger=("messages", 6), keep=("messages", 2), summarizer=process.writer
    )
    graph: Any = create_agent(
        model, [], middleware=[middle, ContextGuard(middle)], checkpointer=saver, store=store
    )
    config: Any = {"configurable": {"thread_id": OWN}}
    for number in range(rounds):
        process.meet(f"round {number}")
        failed, said = 0, []
        try:
            text = f"Turn {number} of {process.who} in {OWN}."
            graph.invoke({"messages": [HumanMessage(text)]}, config, durability="sync")
        except Exception as error:
            failed, said = 1, [f"{type(error).__name__}: {error}"]
        process.meet(f"after {number}")
        values = graph.get_state(config).values
        held = values.get(HELD)
        chain: Any = ()
        archived: dict[str, Any] = {}
        keys: list[str] = []
        if held and held["head"]:
            archive, scope = Archive(store), Scope(LOCAL, held["thread"], held["session"])
            chain = run(archive.flow(archive.chain_at, scope, held["head"]))
            keys = [key for one in chain for key in one.covers]
            archived = run(archive.flow(archive.find, scope, keys))
        there = Counter(one.message.id for one in archived.values())
        there.update(m.id for m in values["messages"] if not is_summary_message(m))
        ever = _ever_said(graph, config)
        row = {
            "record": held["head"] if held else None,
            "shown": [str(message.text) for message in values["messages"]],
            "chain": len(chain),
            "paid": process.paid(),
            "missing": len(ever - set(there)) + len(set(keys) - set(archived)),
            "doubled": sum(n - 1 for n in there.values()),
            "failed": failed,
            "said": said,
        }
        print(json.dumps(row), flush=True)
        process.meet(f"end of {number}")


def _ever_said(graph: Any, config: Any) -> set[Any]:
    """Return the ids of all messages on the branch in force, from its checkpoints."""
    history = list(graph.get_state_history(config))
    by_id = {one.config["configurable"]["checkpoint_id"]: one for one in history}
    found: set[Any] = set()
    at = history[0].config["configurable"]["checkpoint_id"] if history else None
    while at in by_id:
        snapshot = by_id[at]
        messages = snapshot.values.get("messages", ())
        found |= {message.id for message in messages if not is_summary_message(message)}
        parent = snapshot.parent_config
        at = parent["configurable"]["checkpoint_id"] if parent else None
    return found


def _connected(address: str) -> Any:
    import psycopg

    return psycopg.connect(address, autocommit=True)


def main() -> None:
    """Run as one of the two; an error prints a traceback, and then one line for the parent."""
    deaf()
    address, rounds, what, who = sys.argv[1:5]
    process = Process(address, who)
    try:
        with place("postgres", Path(), address) as (saver, store):
            parts: dict[str, Callable[[], None]] = {
                "compactor": lambda: compact_together(process, int(rounds), store),
                "compactor in the background": lambda: prepare_together(
                    process, int(rounds), store
                ),
                "agent": lambda: run_together(process, int(rounds), saver, store),
            }
            parts[what]()
    except Exception as error:
        traceback.print_exc()
        sys.exit(in_one_line(error))


if __name__ == "__main__":
    main()
