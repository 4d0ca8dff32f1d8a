"""One process of a worker: opens the databases, goes on with the thread, and tells how it ends."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kill_boundaries import MODEL, Boundaries
from killed_databases import aopened, opened
from langchain.agents import create_agent
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from scripted_thread import (
    KEEP,
    STATE,
    TRIGGER,
    TURNS,
    WINDOW,
    answer,
    asked,
    ever_said,
    look,
    newest_turn,
    said_in,
    summarise,
    wrong_with,
)

from conspectus import Compactor
from conspectus.agents.state import HELD
from conspectus.archive import Archive, Scope
from conspectus.archive.values import manifest, unpacked
from conspectus.bridge import arun, run
from conspectus.compactor import preparation, preparing
from conspectus.compactor.settings import LOCAL
from conspectus.messages import is_summary_message, read_messages
from conspectus.middleware import SummarizationMiddleware
from conspectus.recall import recall_flow
from conspectus_lab.testing.scripted_models import ScriptedChatModel

WORKERS = (
    "agent, replace",
    "agent, preserve",
    "agent on a loop, replace",
    "Compactor",
    "agent, background",
    "agent on a loop, background",
    "Compactor, background",
)


LONGEST = 60.0
"""Seconds that something prepared may take."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where one thread is.

    Attributes:
        worker: one of `WORKERS`.
        where: a folder for SQLite files, or an address.
        folder: for what is noted beside the databases.
        thread: its name.
    """

    worker: str
    where: str | Path
    folder: Path
    thread: str

    @property
    def background(self) -> bool:
        """Whether notes are prepared beside the worker."""
        return "background" in self.worker

    def note(self, name: str) -> Path:
        """Return the path of a file beside the databases."""
        return self.folder / name

    def lines(self, name: str) -> list[str]:
        """Read the lines of such a file."""
        path = self.note(name)
        return path.read_text().splitlines() if path.exists() else []

    def note_start(self, drafts: list[str]) -> None:
        """Note the paid summaries and the kept drafts at the start of a process."""
        with self.note("starts").open("a") as file:
            file.write(json.dumps([len(self.lines("paid")), drafts]) + "\n")


def work(place: Place, die_at: int) -> dict[str, Any]:
    """Continue the thread from the databases, and report its end."""
    boundaries = Boundaries(die_at, place.note("died"))
    boundaries.watch_flow()
    preparing.SETTLES = 0.0  # no other worker is at it
    if "loop" in place.worker:
        return asyncio.run(_on_a_loop(place, boundaries))
    with opened(place.where, boundaries) as (saver, store):
        place.note_start(run(_drafts(store, place.thread)))
        if place.worker.startswith("Compactor"):
            view, head, channel = _compacting(place, store, boundaries), None, None
        else:
            agent = _agent(place, saver, store, boundaries)
            config = _config(place)
            while (given := _next(agent.get_state(config), config)) is not True:
                agent.invoke(given, config, durability="sync")
            values = agent.get_state(config).values
            view, head, channel = values["messages"], values[HELD]["head"], values["messages"]
        boundaries.on = False
        end = run(_end(place, store, view, head, channel))
    return {**end, "kinds": boundaries.kinds}


def warm_up() -> None:
    """Import and build all that a process needs once, before others are forked from this one.

    No database is opened, and no thread is left running.
    """
    with tempfile.TemporaryDirectory() as name:
        place = Place(WORKERS[0], "", Path(name), "thread")
        boundaries = Boundaries(0, place.note("died"))
        agent = _agent(place, InMemorySaver(), InMemoryStore(), boundaries)
        for turn in range(TURNS):
            agent.invoke({"messages": [asked(turn)]}, _config(place))


async def _on_a_loop(place: Place, boundaries: Boundaries) -> dict[str, Any]:
    async with aopened(place.where, boundaries) as (saver, store):
        place.note_start(await arun(_drafts(store, place.thread)))
        agent = _agent(place, saver, store, boundaries)
        config = _config(place)
        while (given := _next(await agent.aget_state(config), config)) is not True:
            await agent.ainvoke(given, config, durability="sync")
        values = (await agent.aget_state(config)).values
        channel = values["messages"]
        boundaries.on = False
        end = await arun(_end(place, store, channel, values[HELD]["head"], channel))
    return {**end, "kinds": boundaries.kinds}


def _config(place: Place) -> dict[str, Any]:
    return {"configurable": {"thread_id": place.thread}, "recursion_limit": 100}


def _next(state: Any, config: Any) -> Any:
    """Return the agent's next input, None within a turn, or True after the last turn."""
    # Not `next`: that leaves out tasks whose writes are kept and not yet part of a checkpoint.
    if state.tasks:
        return None
    turn = newest_turn(state.values.get("messages", ()))[1]
    return True if turn == TURNS - 1 else {"messages": [asked(turn + 1)]}


def _agent(place: Place, saver: Any, store: Any, boundaries: Boundaries) -> Any:
    def answered(messages: list[BaseMessage]) -> Any:
        _wait_for_what_is_prepared()
        boundaries.passes(MODEL)
        _note_request(place, messages)
        boundaries.passes(MODEL)
        return answer(messages)

    model = OffTheLoop(answers=answered, profile={"max_input_tokens": WINDOW})
    own = SummarizationMiddleware(
        model,
        summarizer=_summariser(place, boundaries),
        trigger=TRIGGER,
        keep=KEEP,
        history="preserve" if "preserve" in place.worker else "replace",
        background=place.background,
    )
    boundaries.watch_saver(saver)
    return create_agent(model, [look], middleware=[own], store=store, checkpointer=saver)


class OffTheLoop(ScriptedChatModel):
    """The scripted model, whose event loop serves others until it answers."""

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Any:
        return await asyncio.to_thread(self._generate, messages, stop, None, **kwargs)


def _wait_for_what_is_prepared() -> None:
    """Let a step take longer than a summary, so that each run ends alike."""
    for job in list(preparation.under_way()):
        job.wait(LONGEST)


def _note_request(place: Place, messages: Sequence[BaseMessage]) -> None:
    if wrong := wrong_with(messages):
        with place.note("wrong").open("a") as file:
            file.writelines(f"{one}\n" for one in wrong)


def _summariser(place: Place, boundaries: Boundaries) -> ScriptedChatModel:
    written = summarise(place.note("paid"), lambda: boundaries.passes(MODEL))
    return ScriptedChatModel(answers=written, profile={"max_input_tokens": 50_000})


def _compacting(place: Place, store: Any, boundaries: Boundaries) -> list[Any]:
    """Keep every message in a file, as a caller, and send them all each time."""
    compactor = Compactor(
        _summariser(place, boundaries),
        trigger=TRIGGER,
        keep=KEEP,
        window=WINDOW,
        archive=Archive(store),
        background=place.background,
    )
    begun = len(place.lines("turns"))
    view: list[Any] = []
    for number, sent in [*enumerate(_sent(place))][max(0, begun - 1) :]:
        if number >= begun:
            with place.note("turns").open("a") as file:
                file.write(f"{number}\n")
        boundaries.passes(MODEL)
        result = compactor.compact(sent, thread_id=place.thread)
        view = list(result.messages)
        _wait_for_what_is_prepared()
        _note_request(place, view)
    return view


def _sent(place: Place) -> Iterator[list[BaseMessage]]:
    """Yield the history as a caller sends it, turn by turn.

    With notes in the background also as each turn begins, so that there is a step between two
    triggers.
    """
    said: list[BaseMessage] = []
    for turn in range(TURNS):
        more = said_in(turn)
        if place.background:
            yield [*said, more[0]]
        said = [*said, *more]
        yield said


async def _drafts(store: Any, thread: str) -> list[str]:
    """List the states in summaries that were kept before this process began."""
    archive, found = Archive(store), []
    values = archive.backend.values
    for body in (await archive.flow(values, Scope(LOCAL, thread), "draft", None)).values():
        found += STATE.findall(json.dumps(unpacked(body)))
    return found


async def _end(
    place: Place, store: Any, view: Sequence[Any], head: str | None, channel: Sequence[Any] | None
) -> dict[str, Any]:
    """Report the view at the end, the originals behind it, and the faults of both."""
    archive, scope = Archive(store), Scope(LOCAL, place.thread)
    chain = await archive.flow(archive.chain, scope)
    if head is not None:
        chain = await archive.flow(archive.chain_at, scope, head)
    keys = [key for record in chain for key in record.covers]
    originals = await archive.flow(archive.get, scope, manifest(chain))
    by_id = {one.id: one for one in originals}
    if channel is not None and "preserve" in place.worker:
        covered = set(keys)
        view = [one.source for one in read_messages(list(channel)) if one.key not in covered]
    left = [one.message for one in originals[: len(keys)]]
    here = [one for one in view if not is_summary_message(one)]
    recalled = 0
    for one in originals:
        found = await recall_flow(
            archive, scope, chain, id=one.id, tokens=20_000, count=lambda text: len(text) // 4
        )
        recalled += _words(one.message.text) in _words(found.text)
    return {
        "left": [_plain(one) for one in left],
        "here": [_plain(one) for one in here],
        "shown_short": {i: _plain(by_id[i].message) for i in _ids(here) if i in by_id},
        "channel": None if "preserve" not in place.worker else [_plain(m) for m in channel or ()],
        "summaries": [record.summary for record in chain],
        "records": [len(record.covers) for record in chain],
        "shown": [str(m.text) for m in view if is_summary_message(m)],
        "recalled": recalled == len(originals),
    }


def _words(text: object) -> str:
    """Normalise the white space of a text."""
    return " ".join(str(text).split())


def _ids(messages: Iterable[Any]) -> list[str]:
    return [str(message.id) for message in messages]


def _plain(message: Any) -> list[Any]:
    calls = [[c["id"], c["name"], c["args"]] for c in getattr(message, "tool_calls", ())]
    return [message.type, message.id, message.content, calls]


def judged(end: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Ids of messages that are missing, and of those that are there twice or out of order."""
    wanted = [_plain(message) for message in ever_said()]
    there = [end["shown_short"].get(one[1], one) for one in end["here"]]
    found = end["left"] + there
    missing = [one[1] for one in wanted if one not in found]
    if not end["recalled"]:
        missing.append("an original that recall does not find")
    if end["channel"] is not None and end["channel"] != wanted:
        missing.append("the channel is not whole")
    ids = [one[1] for one in found]
    doubled = sorted({one for one in ids if ids.count(one) > 1})
    if not missing and not doubled and found != wanted:
        doubled.append("they are out of order")
    return missing, doubled
