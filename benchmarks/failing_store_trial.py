"""One failing store under one way in: its effect, and the words about it."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from scripted_thread import KEEP, TRIGGER, TURNS, WINDOW, answer, asked, look, said_in, wrong_with
from store_failures import Case, Fault

from conspectus import ArchiveError, Compactor
from conspectus.agents.state import HELD
from conspectus.archive import Archive, Scope
from conspectus.bridge import arun, io, run
from conspectus.compactor.settings import LOCAL
from conspectus.guard import ContextGuard
from conspectus.messages import is_summary_message
from conspectus.middleware import SummarizationMiddleware
from conspectus_lab.testing.scripted_models import ScriptedChatModel

WAYS = ("Compactor", "Compactor on a loop", "agent", "agent on a loop")
TROUBLE = TURNS - 2
"""The turn in which there is trouble; the one before has compacted, the one after is to."""

ADVICE = ("try again", "check", "open", "free ", "close ", "use ")


@dataclass
class Outcome:
    """The outcome of trouble.

    Attributes:
        struck: whether there was any.
        changed: a message had left the view though its compaction failed.
        lost: ids of messages that are neither in view nor archived at the end, or twice.
        wrong: requests that were torn or over the window.
        told: texts about it.
        went_on: the turn came to its end.
        done: the compaction took place all the same.
        after: a compaction took place when trouble was over.
    """

    struck: bool = True
    changed: bool = False
    lost: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    went_on: bool = False
    done: bool = False
    after: bool = False

    @property
    def clear(self) -> bool:
        """Say whether there were words about it, each with advice."""
        return bool(self.told) and all(any(a in text for a in ADVICE) for text in self.told)

    @property
    def quiet(self) -> bool:
        """Say whether the record was in force before there was trouble."""
        return self.done and not self.told


class _Told(logging.Handler):
    def __init__(self, to: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._to = to

    def emit(self, record: logging.LogRecord) -> None:
        if record.name == "conspectus" and "archive" in (text := record.getMessage()):
            self._to.append(text)


def trial(case: Case, way: str, step: int = 1) -> Outcome:
    """Put one thread through trouble."""
    flow = _compacting if way.startswith("Compactor") else _answering
    on_a_loop = "loop" in way

    async def played() -> Outcome:
        async with case.opened(step, on_a_loop) as fault:
            if on_a_loop:
                return await arun(flow(case, fault))
            return await asyncio.to_thread(run, flow(case, fault))

    return asyncio.run(played())


def _summary(messages: list[BaseMessage]) -> str:
    return "The user has the agent look at modules, part by part."


async def _compacting(case: Case, fault: Fault) -> Outcome:
    """Play a caller who keeps every message."""
    out, thread = Outcome(), f"thread-{uuid.uuid4().hex[:12]}"

    def compact(messages: list[Any], store: BaseStore, patience: float = 30.0) -> Awaitable[Any]:
        model = ScriptedChatModel(answers=_summary, profile={"max_input_tokens": 50_000})
        archive = Archive(store, timeout=patience)
        compactor = Compactor(model, trigger=TRIGGER, keep=KEEP, window=WINDOW, archive=archive)
        return io(
            lambda: compactor.compact(messages, thread_id=thread),
            lambda: compactor.acompact(messages, thread_id=thread),
        )

    scope = Scope(LOCAL, thread)
    await compact(_said(1), fault.store)
    first = await compact(_said(TROUBLE), fault.store)
    assert first.record is not None
    await io(fault.begin)
    given, kept = _said(TROUBLE + 1), _said(TROUBLE + 1)
    during, head = given, first.record.id
    try:
        result = await compact(given, fault.store, case.patience)
        during = list(result.messages)
        if result.record is not None:
            out.changed, head = not (case.harmless or case.each_step), result.record.id
            out.done = not result.failed
        out.told += [result.reason] if result.failed else []
        out.went_on = True
    except ArchiveError as error:
        # The caller sends what it has, which is everything, and tries again at the next turn.
        out.told.append(str(error))
        out.went_on = True
    except Exception as error:
        out.told.append(f"{type(error).__name__}: {error}")
    await io(fault.end)
    store = fault.anew or fault.store
    out.struck = bool(fault.struck())
    out.changed |= given != kept
    if any(map(is_summary_message, during)):
        # The pointer may stand on a record that could not be confirmed; the answer does not.
        archive = Archive(store)
        chain = await archive.flow(archive.chain_at, scope, head)
        out.changed |= bool(await _lost(archive, scope, chain, during, TROUBLE + 1))
    result = await compact(_said(TURNS), store)
    chain = await Archive(store).chain_flow(scope)
    out.after = result.record is not None or len(chain) > 1
    view = list(result.messages)
    out.wrong += wrong_with(view)
    out.lost += await _lost(Archive(store), scope, chain, view, TURNS)
    return out


async def _answering(case: Case, fault: Fault) -> Outcome:
    """Play an agent with our middleware and guard; its checkpoints are elsewhere."""
    out, saver, thread = Outcome(), InMemorySaver(), f"thread-{uuid.uuid4().hex[:12]}"
    config: Any = {"configurable": {"thread_id": thread}, "recursion_limit": 100}
    scope = Scope(LOCAL, thread)

    def answered(messages: list[BaseMessage]) -> Any:
        out.wrong += wrong_with(messages)
        return answer(messages)

    def built(store: BaseStore, patience: float = 30.0) -> Any:
        model = ScriptedChatModel(answers=answered, profile={"max_input_tokens": WINDOW})
        own = SummarizationMiddleware(
            model,
            summarizer=ScriptedChatModel(answers=_summary, profile={"max_input_tokens": 50_000}),
            trigger=TRIGGER,
            keep=KEEP,
            archive=Archive(store, timeout=patience),
            history="preserve" if case.whole else "replace",
        )
        return create_agent(model, [look], middleware=[own, ContextGuard(own)], checkpointer=saver)

    def say(agent: Any, turn: int) -> Awaitable[Any]:
        given = {"messages": [asked(turn)]}
        return io(lambda: agent.invoke(given, config), lambda: agent.ainvoke(given, config))

    agent = built(fault.store)
    for turn in range(TROUBLE):
        await say(agent, turn)
    first = agent.get_state(config).values[HELD]["head"]
    assert first is not None
    agent = built(fault.store, case.patience)
    await io(fault.begin)
    listener = _Told(out.told)
    logging.getLogger("conspectus").addHandler(listener)
    try:
        await say(agent, TROUBLE)
        out.went_on = agent.get_state(config).values["messages"][-1].id == f"done-{TROUBLE}"
    except Exception as error:
        out.told.append(f"{type(error).__name__}: {error}")
    finally:
        logging.getLogger("conspectus").removeHandler(listener)
    during = agent.get_state(config).values
    await io(fault.end)
    store = fault.anew or fault.store
    out.struck = bool(fault.struck())
    head = during[HELD]["head"]
    out.done = head != first
    if not case.harmless and not case.each_step:
        out.changed = out.done
    agent = built(store)
    archive = Archive(store)
    if not case.whole:
        chain = await archive.flow(archive.chain_at, scope, head)
        gone = await _lost(archive, scope, chain, during["messages"], TROUBLE + 1)
        out.changed |= bool(gone)
    await say(agent, TURNS - 1)
    values = agent.get_state(config).values
    out.after = values[HELD]["head"] != first
    chain = await archive.flow(archive.chain_at, scope, values[HELD]["head"])
    view = values["messages"]
    if case.whole:
        out.lost += [m.id for m in _said(TURNS) if m not in view]
        covered = {one.id for one in (await _left(archive, scope, chain))}
        view = [message for message in view if message.id not in covered]
    out.lost += await _lost(archive, scope, chain, view, TURNS)
    return out


def _said(turns: int) -> list[Any]:
    return [message for turn in range(turns) for message in said_in(turn)]


async def _left(archive: Archive, scope: Scope, chain: Any) -> list[Any]:
    keys = [key for one in chain for key in one.covers]
    found = await archive.flow(archive.find, scope, keys)
    return [found[key].message for key in keys if key in found]


async def _lost(
    archive: Archive, scope: Scope, chain: Any, view: Sequence[Any], turns: int
) -> list[str]:
    """List ids of messages that are not there exactly once, and in order.

    The newest message of the user may stay while what came after it leaves, and leave later: in the
    archive, those of the user are in order among themselves, and so are the others.
    """
    marks = [mark.key for one in chain for mark in one.clips]
    whole = {o.id: o.message for o in (await archive.flow(archive.find, scope, marks)).values()}
    left = await _left(archive, scope, chain)
    here = [whole.get(one.id, one) for one in view if not is_summary_message(one)]
    gone, shown, wanted = (list(map(_plain, some)) for some in (left, here, _said(turns)))
    lost = [str(one[1]) for one in wanted if (gone + shown).count(one) != 1]
    if lost or len(gone + shown) != len(wanted):
        return lost or ["more than was said"]
    theirs = [one for one in gone if one[0] == "human"]
    rows = theirs, [one for one in gone if one not in theirs], shown
    in_order = all(row == [one for one in wanted if one in row] for row in rows)
    return [] if in_order else ["out of order"]


def _plain(message: Any) -> tuple[Any, ...]:
    calls = [(c["id"], c["name"], str(c["args"])) for c in getattr(message, "tool_calls", ())]
    return message.type, message.id, str(message.content), calls
