"""Many workers on one instance at once: every request is searched for the words of others.

Each conversation has a word of its own, which stands in all that is said in it. Nothing here asks
Conspectus what it did, but the archive for the originals: what was sent is taken from the models.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from string import ascii_lowercase as letters
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool
from worker_places import aplace, place

from conspectus import Compactor, is_summary_message
from conspectus.agents.state import HELD
from conspectus.archive import Archive, Scope
from conspectus.bridge import arun, run
from conspectus.compactor.calls import compact_flow
from conspectus.compactor.settings import LOCAL
from conspectus.guard import ContextGuard
from conspectus.messages import read_messages
from conspectus.middleware import SummarizationMiddleware
from conspectus_lab.testing.scripted_models import ScriptedChatModel

WORD = re.compile(r"\bword[a-z]{3}\b")
NOTES = 6
"""Notes that each agent looks at."""

WINDOW = 6_000
ROUNDS = 3
"""Times that each caller of a `Compactor` comes back with a longer history."""

FILLER = "and nothing else is said of it here. " * 5


@dataclass
class Seen:
    """What came of one case; `foreign`, `missing`, `doubled`, `failed` and `left` should be 0.

    Attributes:
        case: what was done.
        database: where it was kept.
        at_once: workers.
        compactions: records in force at the end.
        paid: summaries that a model was asked for.
        recalled: recalls that found what they should.
        foreign: words of other conversations in requests, summaries and recalls.
        missing: messages neither in view nor in the archive; and recalls that found nothing.
        doubled: messages that are there twice, and summaries paid for twice.
        failed: workers that raised.
        left: tasks, and threads of ours, that are still there at the end.
    """

    case: str
    database: str
    at_once: int
    compactions: int = 0
    paid: int = 0
    recalled: int = 0
    foreign: int = 0
    missing: int = 0
    doubled: int = 0
    failed: int = 0
    left: int = 0
    said: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Whether what is promised held, and anything was tried at all."""
        wrong = self.foreign + self.missing + self.doubled + self.failed + self.left
        return not wrong and self.compactions > 0


def word(number: int) -> str:
    """Return the word of a conversation."""
    a, b = divmod(number, 26)
    return f"word{letters[a // 26]}{letters[a % 26]}{letters[b]}"


def summary(messages: Sequence[BaseMessage]) -> str:
    """Write a summary that names every word that it has read of."""
    found = WORD.findall(" ".join(str(message.text) for message in messages))
    return f"## Done\n- Notes of {', '.join(sorted(set(found)))} were looked at, one by one"


def summariser() -> ScriptedChatModel:
    """Make a model that writes such summaries."""
    return ScriptedChatModel(answers=summary, delay=0.002)


# An agent


@tool
def look(own: str, number: int) -> str:
    """Look at a note."""
    return f"note {number} of {own}: the lamp hangs in room-{number}-{own}, {FILLER}"


def play(messages: list[BaseMessage]) -> AIMessage:
    """Look at the notes, then recall the first one, which is in view no longer."""
    last = messages[-1]
    own = WORD.findall(" ".join(str(message.text) for message in messages))[0]
    if last.name == "recall":
        return AIMessage(f"{own} recalled: {f'room-0-{own}' in str(last.text)}")
    asked = messages[-2].tool_calls if last.type == "tool" else []  # type: ignore[attr-defined]
    number = int(asked[0]["args"]["number"]) + 1 if asked else 0
    if number < NOTES:
        call = {"name": "look", "args": {"own": own, "number": number}, "id": f"call-{number}"}
        return AIMessage(f"Looking at note {number} of {own}.", tool_calls=[call])
    call = {"name": "recall", "args": {"query": "lamp of note 0"}, "id": "call-recall"}
    return AIMessage(f"Recalling the lamp of {own}.", tool_calls=[call])


def expected(own: str) -> set[str]:
    """Return the messages of one such conversation, without the answer of `recall`."""
    notes = [str(look.invoke({"own": own, "number": n})) for n in range(NOTES)]
    asked = [f"Looking at note {n} of {own}." for n in range(NOTES)]
    end = {f"Recalling the lamp of {own}.", f"{own} recalled: True"}
    return {_said(own), *notes, *asked, *end}


def _said(own: str) -> str:
    return f"I am {own}. Look at my notes."


class Agents:
    """One agent, one middleware with its guard, for all threads."""

    def __init__(self, saver: Any, store: Any) -> None:
        self.store, self.ends = store, Counter[str]()
        self._lock = threading.Lock()
        self.model = ScriptedChatModel(
            answers=play, model_name="agent", profile={"max_input_tokens": WINDOW}
        )
        self.writer = summariser()
        middle = SummarizationMiddleware(
            self.model,
            trigger=("messages", 6),
            keep=("messages", 2),
            summarizer=self.writer,
            recall="tool",
            on_event=self._heard,
        )
        self.graph: Any = create_agent(
            self.model,
            [look],
            middleware=[middle, ContextGuard(middle)],
            checkpointer=saver,
            store=store,
        )

    def _heard(self, event: str, data: Any) -> None:
        with self._lock:
            self.ends[event] += 1

    def given(self, own: str) -> tuple[Any, Any]:
        """Return the input of a thread, and its configuration."""
        config = {"configurable": {"thread_id": own}, "recursion_limit": 200}
        return {"messages": [HumanMessage(_said(own))]}, config

    async def check(self, own: str, values: dict[str, Any], seen: Seen) -> None:
        """Hold one thread's state and archive against what was said in it."""
        held = values[HELD]
        archive, scope = Archive(self.store), Scope(LOCAL, held["thread"], held["session"])
        chain = await archive.flow(archive.chain_at, scope, held["head"] or "")
        keys = [key for record in chain for key in record.covers]
        found = await archive.flow(archive.find, scope, keys)
        view = [m.text for m in values["messages"] if not is_summary_message(m)]
        there = Counter([*view, *(one.message.text for one in found.values())])
        text = " ".join([*there, *(record.summary for record in chain)])
        seen.compactions += len(chain)
        seen.foreign += len(set(WORD.findall(text)) - {own})
        gone = [one for one in expected(own) if one not in there]
        seen.missing += len(gone) + len(set(keys) - set(found))
        seen.said += [f"{own}: {one[:80]}" for one in gone]
        seen.doubled += sum(count - 1 for count in there.values()) + len(keys) - len(set(keys))
        seen.recalled += f"{own} recalled: True" in there

    def judge(self, seen: Seen) -> Seen:
        """Hold all requests against the words that may stand in them."""
        for call in [*self.model.calls, *self.writer.calls]:
            found = set(WORD.findall(call.text))
            seen.foreign += len(found - {call.metadata.get("thread_id")})
        seen.paid = len(self.writer.calls)
        seen.doubled += abs(seen.paid - seen.compactions) + abs(self.ends["end"] - seen.compactions)
        return seen


def agent_threads(database: str, count: int, folder: Path, address: str = "") -> Seen:
    """One agent, so many threads of the operating system at once, a conversation each."""
    seen = Seen("agent, threads", database, count)
    before = _own_threads()
    with place(database, folder, address) as (saver, store):
        agents = Agents(saver, store)
        _all_at_once(lambda n: agents.graph.invoke(*agents.given(word(n))), count, seen)
        for n in range(count):
            values = agents.graph.get_state(agents.given(word(n))[1]).values
            run(agents.check(word(n), values, seen))
        seen.left = _own_threads() - before
        return agents.judge(seen)


def agent_tasks(database: str, count: int, folder: Path, address: str = "") -> Seen:
    """One agent, so many tasks of one event loop at once, a conversation each."""
    seen = Seen("agent, tasks", database, count)

    async def main() -> Seen:
        async with aplace(database, folder, address) as (saver, store):
            before = asyncio.all_tasks()
            agents = Agents(saver, store)
            work = [agents.graph.ainvoke(*agents.given(word(n))) for n in range(count)]
            _tell(seen, await asyncio.gather(*work, return_exceptions=True))
            for n in range(count):
                state = await agents.graph.aget_state(agents.given(word(n))[1])
                await arun(agents.check(word(n), state.values, seen))
            seen.left = tasks_left(before)
            return agents.judge(seen)

    return asyncio.run(main())


# Callers of a compactor


def talk(own: str, count: int) -> list[dict[str, Any]]:
    """Make a conversation as dicts."""
    roles = ("user", "assistant")
    return [
        {"role": roles[n % 2], "content": f"note {n} of {own}: room-{n}-{own}, {FILLER}"}
        for n in range(count)
    ]


def _compactor(store: Any) -> tuple[Compactor, ScriptedChatModel]:
    writer = summariser()
    made = Compactor(writer, trigger=("messages", 10), keep=("messages", 4), archive=Archive(store))
    return made, writer


async def caller(compactor: Compactor, own: str) -> tuple[list[Any], str]:
    """One caller: comes back with a longer history, and recalls at last."""
    view: list[Any] = []
    for n in range(ROUNDS):
        new = talk(own, 12 * (n + 1))[12 * n :]
        flow = compact_flow(compactor._session(Scope(LOCAL, own, "main")), [*view, *new], False, "")
        view = (await flow).messages
    scope = Scope(LOCAL, own, "main")
    found = await compactor._recall(scope, query="room of note 0", id=None, range=None, tokens=400)
    return view, found.text


async def _check_caller(compactor: Compactor, own: str, done: Any, seen: Seen) -> None:
    if isinstance(done, BaseException):
        return
    view, recalled = done
    assert compactor.archive is not None
    rows = await compactor.archive.flow(compactor.archive.export, Scope(LOCAL, own, "main"))
    chain = await compactor.archive.flow(compactor.archive.chain, Scope(LOCAL, own, "main"))
    seen.compactions += len(chain)
    texts = [str(row["message"]["content"]) for row in rows]
    texts += [str(one["content"]) for one in view if not is_summary_message(one)]
    there = Counter(texts)
    shown = " ".join([*texts, recalled, *(record.summary for record in chain)])
    seen.foreign += len(set(WORD.findall(shown)) - {own})
    gone = [one["content"] for one in talk(own, 12 * ROUNDS) if one["content"] not in there]
    hit = f"room-0-{own}" in recalled
    seen.recalled += hit
    seen.missing += len(gone) + (not hit)
    seen.said += [f"{own}: {one[:80]}" for one in gone] + ([] if hit else [f"{own}: no recall"])
    seen.doubled += sum(count - 1 for count in there.values())


def _judge_callers(writer: ScriptedChatModel, seen: Seen) -> Seen:
    seen.foreign += sum(len(set(WORD.findall(call.text))) - 1 for call in writer.calls)
    seen.paid = len(writer.calls)
    seen.doubled += abs(seen.paid - seen.compactions)
    return seen


def compactor_threads(database: str, count: int, folder: Path, address: str = "") -> Seen:
    """One compactor, so many threads at once, a conversation each."""
    seen, before = Seen("Compactor, threads", database, count), _own_threads()
    with place(database, folder, address) as (_, store):
        compactor, writer = _compactor(store)
        done = _all_at_once(lambda n: run(caller(compactor, word(n))), count, seen)
        for n, one in enumerate(done):
            run(_check_caller(compactor, word(n), one, seen))
        seen.left = _own_threads() - before
        return _judge_callers(writer, seen)


def compactor_tasks(database: str, count: int, folder: Path, address: str = "") -> Seen:
    """One compactor, so many tasks at once, a conversation each."""
    seen = Seen("Compactor, tasks", database, count)

    async def main() -> Seen:
        async with aplace(database, folder, address) as (_, store):
            before = asyncio.all_tasks()
            compactor, writer = _compactor(store)
            work = [arun(caller(compactor, word(n))) for n in range(count)]
            done = await asyncio.gather(*work, return_exceptions=True)
            _tell(seen, done)
            for n, one in enumerate(done):
                await arun(_check_caller(compactor, word(n), one, seen))
            seen.left = tasks_left(before)
            return _judge_callers(writer, seen)

    return asyncio.run(main())


# All of them in one conversation


def one_thread(
    database: str, count: int, folder: Path, address: str = "", *, lengths: int = 1
) -> Seen:
    """So many threads of the operating system send one conversation at once.

    Args:
        database, count, folder, address: as everywhere here.
        lengths: in how many lengths: with 1, all of them send the same.
    """
    kind = "one conversation" if lengths == 1 else f"one, in {lengths} lengths"
    seen = Seen(kind, database, count)
    before = _own_threads()
    own, scope = word(0), Scope(LOCAL, word(0), "main")
    with place(database, folder, address) as (_, store):
        compactor, writer = _compactor(store)
        said = [talk(own, 40 + n % lengths) for n in range(count)]
        done = _all_at_once(lambda n: compactor.compact(said[n], thread_id=own), count, seen)
        archive = compactor.archive
        assert archive is not None
        kept = {row["key"] for row in archive.export(scope)}
        records = archive.records(scope)
        covered = {key for record in records for key in record.covers}
        kept |= set(run(archive.flow(archive.find, scope, sorted(covered - kept))))
        for sent, result in zip(said, done, strict=True):
            if isinstance(result, BaseException):
                continue
            view = {str(one["content"]) for one in result.messages}
            keys = {entry.text: entry.key for entry in read_messages(sent)}
            gone = [text for text, key in keys.items() if text not in view and key not in kept]
            seen.missing += len(gone)
            if result.outcome != "compacted" and not result.summary:
                seen.failed += 1
                seen.said.append(result.reason)
        again = compactor.compact(talk(own, 40 + lengths), thread_id=own)  # all of it goes on
        seen.failed += len(again.messages) >= 40
        seen.compactions = len(archive.chain(scope))
        seen.paid, seen.left = len(writer.calls), _own_threads() - before
        if lengths == 1:
            seen.doubled = seen.paid - 1
        return seen


# What all cases share


def _all_at_once(work: Callable[[int], Any], count: int, seen: Seen) -> list[Any]:
    """Return the answers, or errors, of so many threads that begin at one moment."""
    gate = threading.Barrier(count)

    def one(number: int) -> Any:
        gate.wait(120)
        try:
            return work(number)
        except Exception as error:
            return error

    with ThreadPoolExecutor(count) as pool:
        done = list(pool.map(one, range(count)))
    _tell(seen, done)
    return done


def _tell(seen: Seen, done: Sequence[Any]) -> None:
    errors = [one for one in done if isinstance(one, BaseException)]
    seen.failed += len(errors)
    seen.said += [f"{type(one).__name__}: {one}"[:200] for one in errors]


def tasks_left(before: Collection[Any] = ()) -> int:
    """Tasks of this loop: without this one, those of a store, and those that were there before."""
    others = asyncio.all_tasks() - {asyncio.current_task()} - set(before)
    names = [getattr(task.get_coro(), "__qualname__", "") for task in others]
    return sum(name != "_run" for name in names)


def _own_threads() -> int:
    return sum(thread.name.startswith("conspectus") for thread in threading.enumerate())


CASES: tuple[Callable[..., Seen], ...] = (
    agent_threads,
    agent_tasks,
    compactor_threads,
    compactor_tasks,
    one_thread,
)
