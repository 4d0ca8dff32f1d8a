"""A call cancelled at each of its awaits in turn; nothing may be half done.

Every task of the loop is driven through `Steps`, which counts each time that any of them waits and
cancels the call at the n-th: first at the first, then, on a new scene, at the second, until a run
comes to its end. Without a loop, a `KeyboardInterrupt` takes the place of the cancellation, in each
operation of the store and each call of the model, before and after it is done.
"""

from __future__ import annotations

import asyncio
import copy
import gc
import sys
import warnings
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore, Op, Result
from langgraph.store.memory import InMemoryStore
from worker_cases import FILLER, look, summary, talk, tasks_left, word

from conspectus import ChatModelSummarizer, Compactor, is_summary_message
from conspectus.agents.state import HELD
from conspectus.archive import Archive, Scope
from conspectus.bridge import run
from conspectus.compactor.settings import LOCAL
from conspectus.guard import ContextGuard
from conspectus.middleware import SummarizationMiddleware
from conspectus.short_term import asummarize_messages, summarize_messages
from conspectus_lab.testing.scripted_models import ScriptedChatModel

OWN = word(0)
OWN_SCOPE = Scope(LOCAL, OWN, "main")
THREAD: Any = {"configurable": {"thread_id": OWN}, "recursion_limit": 100}
MOST = 5_000
"""Awaits after which a call is given up as endless."""

Stop = Callable[[], None]


@dataclass
class Cancelled:
    """Outcomes of cancelling one call; the last four counts should be 0.

    Attributes:
        call: which.
        by: name of the stop.
        times: number of stops, each at another place.
        as_before: after which nothing had changed.
        done: after which all of it was done.
        half: after which something was lost, doubled, or in force and not there.
        stuck: after which the next call did not do what it does undisturbed.
        left: tasks that were still there.
        warned: errors that nobody could catch, and coroutines that nobody awaited.
    """

    call: str
    by: str
    times: int = 0
    as_before: int = 0
    done: int = 0
    half: int = 0
    stuck: int = 0
    left: int = 0
    warned: int = 0
    said: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Say whether the promises held, and anything was tried at all."""
        return self.times > 0 and not self.half + self.stuck + self.left + self.warned


class Interrupted(KeyboardInterrupt):
    """A keyboard interrupt, which nothing of ours may catch."""


class Meddler:
    """A counter of places that stops the call at the n-th."""

    def __init__(self) -> None:
        self.passed, self.at, self.stop = 0, 0, _nothing

    def arm(self, at: int, stop: Stop) -> None:
        """Count from now on, and stop at the n-th place."""
        self.passed, self.at, self.stop = 0, at, stop

    def here(self) -> None:
        """Pass a place where it may stop."""
        self.passed += 1
        if self.passed == self.at:
            self.stop()


def _nothing() -> None:
    """Do nothing, before it is armed."""


class Steps(Coroutine[Any, Any, Any]):
    """A coroutine that counts each of its waits with the meddler."""

    def __init__(self, coroutine: Any, meddler: Meddler) -> None:
        self._coroutine, self._meddler = coroutine, meddler

    def send(self, value: Any) -> Any:
        return self._after(self._coroutine.send(value))

    def throw(self, *error: Any) -> Any:
        return self._after(self._coroutine.throw(*error))

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        raise TypeError("for tasks only")

    def _after(self, waits: Any) -> Any:
        self._meddler.here()
        return waits


class MeddledStore(BaseStore):
    """A store in memory with a place before and after each operation."""

    def __init__(self, meddler: Meddler) -> None:
        self._inner, self._meddler = InMemoryStore(), meddler

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        self._meddler.here()
        found = self._inner.batch(ops)
        self._meddler.here()
        return found

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        await asyncio.sleep(0)
        found = self._inner.batch(ops)
        await asyncio.sleep(0)
        return found


# What is called


class Scene(Protocol):
    """One call on things of its own."""

    def before(self) -> None:
        """Prepare the state before the call."""

    def call(self) -> Any:
        """Call without a loop."""

    async def acall(self) -> Any:
        """Call on a loop."""

    def judge(self) -> str:
        """Judge the state: `as before`, `done`, or the half that is done."""

    def same(self, answer: Any) -> bool:
        """Say whether an undisturbed call had its usual answer."""


def _writer(meddler: Meddler | None = None) -> ScriptedChatModel:
    def write(messages: list[BaseMessage]) -> str:
        if meddler is not None:
            meddler.here()
        return summary(messages)

    return ScriptedChatModel(answers=write)


class CompactScene:
    """`Compactor.compact` on a history that is read in several parts at once."""

    def __init__(self, meddler: Meddler) -> None:
        parts = ChatModelSummarizer(_writer(meddler), trim_tokens_to_summarize=600)
        self.archive = Archive(MeddledStore(meddler))
        self.compactor = Compactor(
            parts, trigger=("messages", 10), keep=("messages", 4), archive=self.archive
        )
        self.history = talk(OWN, 30)
        self._sent = copy.deepcopy(self.history)

    def before(self) -> None:
        """Prepare nothing."""

    def call(self) -> Any:
        return self.compactor.compact(self.history, thread_id=OWN)

    async def acall(self) -> Any:
        return await self.compactor.acompact(self.history, thread_id=OWN)

    def judge(self) -> str:
        if self.history != self._sent:
            return "the caller's own list was changed"
        chain = self.archive.chain(OWN_SCOPE)
        if not chain:
            return "as before"
        return _sound(self.archive, OWN_SCOPE, [key for one in chain for key in one.covers])

    def same(self, answer: Any) -> bool:
        return bool(answer.summary) and answer.archived and len(answer.messages) <= 5


class RecallScene(CompactScene):
    """`Compactor.recall`, with an index that is still to be filled."""

    def before(self) -> None:
        super().call()
        self._head = self.archive.chain(OWN_SCOPE)

    def call(self) -> Any:
        return self.compactor.recall("room of note 3", thread_id=OWN)

    async def acall(self) -> Any:
        return await self.compactor.arecall("room of note 3", thread_id=OWN)

    def judge(self) -> str:
        same = self.archive.chain(OWN_SCOPE) == self._head
        return "as before" if same else "the record in force has changed"

    def same(self, answer: Any) -> bool:
        return f"room-3-{OWN}" in answer.text


class ShortTermScene:
    """`summarize_messages`, which holds no state but the archive's."""

    def __init__(self, meddler: Meddler) -> None:
        self.archive, self.model = Archive(MeddledStore(meddler)), _writer(meddler)
        kinds = (HumanMessage, AIMessage)
        said = talk(OWN, 20)
        self.history = [kinds[n % 2](one["content"], id=f"m{n}") for n, one in enumerate(said)]
        self._sent = copy.deepcopy(self.history)

    def before(self) -> None:
        """Prepare nothing."""

    @property
    def _given(self) -> dict[str, Any]:
        return {
            "running_summary": None,
            "model": self.model,
            "max_tokens": 500,
            "archive": self.archive,
            "thread_id": OWN,
        }

    def call(self) -> Any:
        return summarize_messages(self.history, **self._given)

    async def acall(self) -> Any:
        return await asummarize_messages(self.history, **self._given)

    def judge(self) -> str:
        if self.history != self._sent:
            return "the caller's own list was changed"
        covered = [key for one in self.archive.chain(OWN_SCOPE) for key in one.covers]
        return _sound(self.archive, OWN_SCOPE, covered) if covered else "as before"

    def same(self, answer: Any) -> bool:
        running, shown = answer.running_summary, len(answer.messages)
        left = running.summarized_message_ids if running else set()
        return running is not None and len(left) + shown - 1 == len(self.history)


class AgentScene:
    """A turn of an agent with middleware, guard and a tool, and several compactions."""

    def __init__(self, meddler: Meddler) -> None:
        self.store, self._meddler = MeddledStore(meddler), meddler
        model = ScriptedChatModel(
            answers=self._answer, model_name="agent", profile={"max_input_tokens": 1_400}
        )
        middle = SummarizationMiddleware(
            model,
            trigger=("messages", 6),
            keep=("messages", 2),
            summarizer=_writer(meddler),
            recall="auto",
        )
        self.graph: Any = create_agent(
            model,
            [look],
            middleware=[middle, ContextGuard(middle)],
            checkpointer=InMemorySaver(),
            store=self.store,
        )
        self._said = 0

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        self._meddler.here()
        done = sum(message.type == "tool" for message in messages)
        last = messages[-1]
        number = int(str(last.text).split()[1]) + 1 if last.type == "tool" else 0
        if done and number > 4:
            return AIMessage(f"All notes of {OWN} were looked at.")
        call = {"name": "look", "args": {"own": OWN, "number": number}, "id": f"call-{number}"}
        return AIMessage(f"Looking at note {number}. {FILLER}", tool_calls=[call])

    def before(self) -> None:
        self.graph.invoke(self._given(), THREAD)
        self._head = self._in_force()

    def _in_force(self) -> Any:
        return (self.graph.get_state(THREAD).values.get(HELD) or {}).get("head")

    def _given(self) -> dict[str, Any]:
        self._said += 1
        return {"messages": [HumanMessage(f"Turn {self._said} of {OWN}: look at all notes.")]}

    def call(self) -> Any:
        return self.graph.invoke(self._given(), THREAD)

    async def acall(self) -> Any:
        return await self.graph.ainvoke(self._given(), THREAD)

    def judge(self) -> str:
        values = self.graph.get_state(THREAD).values
        held, archive = values.get(HELD) or {}, Archive(self.store)
        scope = Scope(LOCAL, held.get("thread", OWN), held.get("session", "main"))
        chain = archive.flow(archive.chain_at, scope, held.get("head") or "")
        keys = [key for one in run(chain) for key in one.covers]
        sound = _sound(archive, scope, keys)
        if sound != "done":
            return sound
        kept = [one.message.id for one in run(archive.flow(archive.find, scope, keys)).values()]
        view = [m.id for m in values["messages"] if not is_summary_message(m)]
        ever = {
            message.id
            for one in self.graph.get_state_history(THREAD)
            for message in one.values.get("messages", ())
            if not is_summary_message(message)
        }
        if lost := ever - {*kept, *view}:
            return f"lost: {sorted(map(str, lost))[:3]}"
        again = set(kept) & set(view)
        if again:
            return f"in view and archived: {sorted(map(str, again))[:3]}"
        return "as before" if self._in_force() == self._head else "done"

    def same(self, answer: Any) -> bool:
        return str(answer["messages"][-1].text) == f"All notes of {OWN} were looked at."


def _sound(archive: Archive, scope: Scope, keys: Sequence[str]) -> str:
    """Judge whether all originals of records are there, and once."""
    found = run(archive.flow(archive.find, scope, list(keys)))
    if len(keys) != len(set(keys)):
        return "covered twice"
    return "done" if len(found) == len(keys) else "a record in force, and not all originals"


SCENES: dict[str, Callable[[Meddler], Scene]] = {
    "Compactor.acompact": CompactScene,
    "Compactor.arecall": RecallScene,
    "asummarize_messages": ShortTermScene,
    "agent.ainvoke": AgentScene,
}


# Stopping it everywhere


def cancelled_everywhere(call: str, *, step: int = 1) -> Cancelled:
    """Cancel a call at its first await, at its second, and so on to its end.

    Args:
        call: a key of `SCENES`.
        step: 1 for every await; 5 for every fifth.
    """
    seen = Cancelled(call, "cancelled")
    with _Complaints(seen) as complaints:
        for at in range(1, MOST, step):
            if asyncio.run(_one_cancellation(SCENES[call], at, seen, complaints)):
                return seen
    raise RuntimeError(f"{call} does not end")


async def _one_cancellation(
    scene_of: Callable[[Meddler], Scene], at: int, seen: Cancelled, complaints: _Complaints
) -> bool:
    """Run once; True where the call ended before it was cancelled."""
    meddler = Meddler()
    scene = scene_of(meddler)
    await asyncio.to_thread(scene.before)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(complaints.of_the_loop)

    def counted(loop: asyncio.AbstractEventLoop, coroutine: Any, **more: Any) -> asyncio.Task[Any]:
        return asyncio.Task(Steps(coroutine, meddler), loop=loop, **more)

    loop.set_task_factory(counted)
    task = asyncio.ensure_future(scene.acall())
    meddler.arm(at, lambda: task.cancel() and None)
    was_cancelled = False
    try:
        answer = await task
    except asyncio.CancelledError:
        was_cancelled = True
    loop.set_task_factory(None)
    meddler.arm(0, _nothing)
    if not was_cancelled:
        if not scene.same(answer):
            seen.stuck += 1
        return meddler.passed < at or task.done()
    seen.left += tasks_left()
    _judged(scene, seen, at)
    try:
        _next(scene, await scene.acall(), seen, at)
    except Exception as error:
        _failed_next(error, seen, at)
    return False


def interrupted_everywhere(call: str, error: type[BaseException] = Interrupted) -> Cancelled:
    """Interrupt a call without a loop at each operation of store and model in turn."""
    seen = Cancelled(_without_a(call), error.__name__)
    with _Complaints(seen):
        for at in range(1, MOST):
            meddler = Meddler()
            scene = SCENES[call](meddler)
            scene.before()

            def stop() -> None:
                raise error

            meddler.arm(at, stop)
            answer = None
            with suppress(error):
                answer = scene.call()
            reached = meddler.passed >= at
            meddler.arm(0, _nothing)
            if not reached:
                seen.stuck += not scene.same(answer)
                return seen
            _judged(scene, seen, at)
            try:
                _next(scene, scene.call(), seen, at)
            except Exception as problem:
                _failed_next(problem, seen, at)
    raise RuntimeError(f"{call} does not end")


def _without_a(call: str) -> str:
    """Name the same call without a loop."""
    owner, dot, name = call.rpartition(".")
    return owner + dot + name.removeprefix("a")


def _judged(scene: Scene, seen: Cancelled, at: int) -> None:
    seen.times += 1
    verdict = scene.judge()
    seen.as_before += verdict == "as before"
    seen.done += verdict == "done"
    if verdict not in ("as before", "done"):
        seen.half += 1
        seen.said.append(f"stopped at {at}: {verdict}")


def _next(scene: Scene, answer: Any, seen: Cancelled, at: int) -> None:
    verdict = scene.judge()
    if not scene.same(answer) or verdict not in ("as before", "done"):
        seen.stuck += 1
        seen.said.append(f"stopped at {at}, then: {verdict}, {str(answer)[:200]}")


def _failed_next(error: Exception, seen: Cancelled, at: int) -> None:
    seen.stuck += 1
    seen.said.append(f"stopped at {at}, then: {type(error).__name__}: {error}"[:300])


class _Complaints:
    """A record of errors in finalisers, tasks and coroutines that nobody awaited."""

    def __init__(self, seen: Cancelled) -> None:
        self._seen = seen
        self._warnings = warnings.catch_warnings(record=True)

    def __enter__(self) -> _Complaints:
        gc.collect()  # what others have left is not ours
        self._heard = self._warnings.__enter__()
        warnings.simplefilter("always", RuntimeWarning)
        self._hook, sys.unraisablehook = sys.unraisablehook, self._unraisable
        return self

    def __exit__(self, *args: object) -> None:
        gc.collect()
        for one in self._heard or ():
            if "never awaited" in str(one.message):
                self._note(str(one.message))
        self._warnings.__exit__(None, None, None)
        sys.unraisablehook = self._hook

    def of_the_loop(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Note an error that a loop can tell nobody."""
        self._note(str(context.get("message")))

    def _unraisable(self, unraisable: Any) -> None:
        self._note(f"{unraisable.err_msg}: {unraisable.exc_value!r}")

    def _note(self, text: str) -> None:
        self._seen.warned += 1
        self._seen.said.append(text[:200])
