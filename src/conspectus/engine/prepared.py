"""Prepare the draft that is foreseen, and find it at the trigger.

A preparation archives originals and saves a draft under the name of the notes that it follows; it
puts nothing in force. At the trigger the draft is used if all that it read still stands in the
history and may leave. Two processes may prepare at once: the draft saved last is found, and the
commit decides, as everywhere.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from conspectus.bridge import aside
from conspectus.core.items import Compact, Item, Keep, Plan
from conspectus.core.plan import may_leave, plan_draft
from conspectus.core.policy import EMBEDDED
from conspectus.core.records import Draft
from conspectus.engine.background import LONGEST, LOOK_AGAIN, Preparation
from conspectus.engine.material import Material, gather
from conspectus.engine.thread import Thread
from conspectus.engine.view import History
from conspectus.engine.writing import confirm, hash_of, write
from conspectus.errors import ArchiveError, ConspectusError
from conspectus.messages import Message
from conspectus.observe import emit, heard_by, observing

GOES_ON = "the next notes are being prepared, and the messages fit the window until they are there"

CHANGED = "the history has gone back, or was changed"

NOTHING = Draft("", by="", read=())  # Saved in the place of a draft that must not be used again


class Chosen(NamedTuple):
    """The decision about a history."""

    plan: Plan
    thread: Thread  # with the summarisers to use
    draft: Draft | None = None  # the prepared draft that is put in force; None for none
    goes_on: bool = False  # the agent continues while its notes are being prepared
    waited: float = 0.0  # seconds that the agent waited for a draft


Given = History | list[Message]
"""A history that is folded and measured, or its messages as read."""


def begin(thread: Thread, given: Given) -> Preparation:
    """Prepare a thread's next notes in the background."""
    jobs = thread.engine.background
    assert jobs is not None
    # Nobody of this run is told or asked: it may be over before the notes are there.
    engine = replace(thread.engine, on_event=None, preview=None, hooks=())
    beside = replace(thread, engine=engine, aside=True)

    def work(job: Preparation) -> Awaitable[None]:
        return heard_by(engine.listeners, _prepare(beside, given, job))

    size, head = thread.asked, thread.head if isinstance(thread.head, str) else ""
    if isinstance(given, History):
        size, head = size or given.size, given.head_id or ""
    elif isinstance(thread.head, tuple) and thread.head:
        head = thread.head[-1].id
    name = (id(engine.archive or engine.memory), thread.scope, engine.identity(""))
    return jobs.begin(thread.scope, head, size, work, name)


async def _prepare(thread: Thread, given: Given, job: Preparation) -> None:
    emit("preparation", thread.scope, name="began")
    with observing("preparation", thread.scope, name="finished", waited=0.0) as seen:
        if thread.engine.redaction is not None:
            seen.hide_errors()
        try:
            count = await aside(_draft(thread, given, job))
            seen.add(messages=count, reason=job.reason)
        except ConspectusError as error:
            [why] = await thread.engine.redacted([str(error)])
            job.ended("failed", why)
            seen.add(outcome="failed", error_message=why, error=type(error).__qualname__)


async def _draft(thread: Thread, given: Given, job: Preparation) -> int:
    """Write the draft of the plan that is foreseen; return the number of its messages, or 0."""
    jobs = thread.engine.background
    assert jobs is not None
    if isinstance(given, History):
        history = given
    else:
        thread, history = thread.measured(await thread.fold(given))
        job._head, job._size = history.head_id or "", thread.asked or history.size
    name = _name(thread, history)
    known = await thread.find_draft(name)
    why = _unfit(known, history) if known is not None and known.read else "it is none"
    if why in ("", CHANGED):
        another = "notes are prepared for another branch of the history"
        job.ended("nothing" if why else "ready", another if why else "")
        return 0
    history, plan = thread.foresees(history, jobs.prepare)
    if not isinstance(plan, Compact) or not plan.evicted:
        short = isinstance(plan, Compact)
        job.ended("nothing", "messages are only shown short" if short else plan.reason)  # type: ignore[union-attr]
        return 0
    material = Material(thread, history, plan)
    await gather(material)
    await confirm(material)
    draft, _ = await write(material)
    # Summaries of other libraries were read as what was known before.
    read = dict.fromkeys((*draft.read, *material.keys))
    await thread.save_draft(name, replace(draft, read=tuple(read)))
    job.ended("ready")
    return len(material.keys)


async def choose(thread: Thread, history: History, plan: Plan) -> Chosen:
    """Decide about a history whose notes are prepared; `plan` is the one without them."""
    usual, jobs, size = Chosen(plan, thread), thread.engine.background, thread.asked or history.size
    assert jobs is not None
    if not isinstance(plan, Compact):
        near = isinstance(plan, Keep) and thread.nears(size, jobs.prepare)
        if near and jobs.wanted(thread.scope, history.head_id or "", size):
            begin(thread, history)
        return usual
    if not plan.summary_tokens:
        return usual
    if (ready := await _ready(thread, history, plan)) is not None:
        return ready
    if jobs.closed:
        return usual
    job, over = jobs.latest(thread.scope), thread.over(history.size)
    lost = job is not None and not job.under_way and job._head == (history.head_id or "")
    if not over and not lost:
        begin(thread, history)
        emit("preparation", thread.scope, name="went_on")
        return Chosen(Keep(GOES_ON, history.size.tokens), thread, goes_on=True)
    if job is None or not job.under_way:
        return usual
    start, longest = time.monotonic(), thread.engine.timeout or LONGEST
    await job.let_go_on(longest, lambda: job.under_way)
    waited = time.monotonic() - start
    if (ready := await _ready(thread, history, plan)) is not None:
        return ready._replace(waited=waited)
    if waited >= LOOK_AGAIN:
        emit("preparation", thread.scope, name="waited", waited=waited)
    if job.under_way and thread.engine.on_failure == "degrade":
        # Its time is over: it is not asked for as long once more.
        thread = replace(thread, engine=replace(thread.engine, order=(EMBEDDED,)))
    return Chosen(plan, thread, waited=waited)


async def _ready(thread: Thread, history: History, plan: Compact) -> Chosen | None:
    """Return the plan that puts a finished draft in force; drop a draft that does not fit."""
    draft = await thread.find_draft(_name(thread, history))
    if draft is None or not draft.read:
        return None
    why = _unfit(draft, history)
    if not why:
        covers = set(draft.read)
        # What is still above the trigger then is for the next preparation.
        given = plan_draft(
            history.items,
            thread.room,
            plan,
            [i for i, p in enumerate(history.places) if _leaves(p.item, covers)],
            thread.message_size(draft.text),
            clip=thread.engine.where is not None,
            words=thread.engine.archive is not None,
        )
        if given is not None:
            return Chosen(given, thread, draft)
        why = "less may leave now than it stands for"
    await drop(thread, history, draft, why)
    # Another branch under the same notes may still want it: this one does not wait for its own.
    return Chosen(plan, thread) if why == CHANGED else None


async def drop(thread: Thread, history: History, draft: Draft, why: str) -> None:
    """Let nobody use a prepared draft again."""
    if why != CHANGED:
        with suppress(ArchiveError):  # it is looked at again, and dropped then
            await thread.save_draft(_name(thread, history), NOTHING)
    count = len(draft.read)
    emit("preparation", thread.scope, name="dropped", outcome="dropped", reason=why, messages=count)


def _name(thread: Thread, history: History) -> str:
    """Name the draft that follows the notes in force, made with these settings.

    A record that only clips messages does not change a draft.
    """
    notes = next((record.id for record in reversed(history.chain) if record.covers), "")
    return hash_of(["prepared", notes, thread.engine.identity("")])


def _leaves(item: Item, covers: set[str]) -> bool:
    return item.key in covers and not item.summary


def _unfit(draft: Draft, history: History) -> str:
    """Return why a draft does not belong to a history, or an empty text."""
    covers = set(draft.read)
    own = [p for p in history.places if p.foreign or not p.item.summary]
    places = [p for p in own if p.item.key in covers]
    leaving = [i for i, p in enumerate(history.places) if _leaves(p.item, covers)]
    if any(p.foreign and p.item.key not in covers for p in history.places):
        return "a summary of another library has come"
    if len(places) < len(covers):
        return CHANGED
    if not may_leave(history.items, leaving):
        return "something that it stands for must stay now"
    return ""
