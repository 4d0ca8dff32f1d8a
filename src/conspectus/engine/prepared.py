"""Prepare the draft that is foreseen, and find it at the trigger.

A preparation archives what would leave and saves a draft under the name of the notes that it
follows; it puts nothing in force. At the trigger the draft is used if all that it read still stands
in the history and may leave. Two processes may prepare at once: the draft saved last is found, and
the commit decides, as everywhere.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable
from dataclasses import replace
from typing import NamedTuple

from conspectus.bridge import aside
from conspectus.core.items import Compact, Keep, Plan, Size
from conspectus.core.plan import may_leave, plan_draft
from conspectus.core.records import Draft
from conspectus.engine.background import LOOK_AGAIN, Preparation
from conspectus.engine.material import Material, collect, confirm
from conspectus.engine.thread import LONGEST_LOOK, Thread, alone
from conspectus.engine.view import History
from conspectus.engine.writing import hash_of, write
from conspectus.errors import ConspectusError
from conspectus.messages import Message
from conspectus.observe import emit, heard_by, observing

GOES_ON = "the next notes are being prepared, and the messages fit the window until they are there"

CHANGED = "the history has gone back, or was changed"


class Chosen(NamedTuple):
    """The decision about a history."""

    plan: Plan
    draft: Draft | None = None  # the prepared draft that is put in force; None for none
    goes_on: bool = False  # the agent continues while its notes are being prepared
    waited: float = 0.0  # seconds that the agent waited for a draft


def begin(
    thread: Thread, history: History | list[Message], head: str = "", size: Size | None = None
) -> Preparation:
    """Prepare the next notes of a history, or of its messages as read, in the background.

    With its head and its size, one that fails at once is tried again only once it has grown.
    """
    jobs = thread.engine.background
    assert jobs is not None
    # No listener and no person of this run is asked: it may be over before the notes are there.
    engine = replace(thread.engine, on_event=None, preview=None, hooks=())
    beside = replace(thread, engine=engine, draft_only=True)

    def work(job: Preparation) -> Awaitable[None]:
        return heard_by(engine.listeners, _prepare(beside, history, job))

    return jobs.begin(thread.scope, Preparation(head=head, size=size), work)


async def _prepare(thread: Thread, history: History | list[Message], job: Preparation) -> None:
    emit("preparation", thread.scope, name="began")
    with observing("preparation", thread.scope, name="finished", waited=0.0) as seen:
        if thread.engine.redaction is not None:
            seen.hides_errors = True
        try:
            count = await aside(_draft(thread, history, job))
            seen.add(messages=count, reason=job.reason)
        except ConspectusError as error:
            [why] = await thread.engine.redacted([str(error)])
            job.end("failed", why)
            what = {"failure": error.failure, "error": type(error).__qualname__}
            seen.add(outcome="failed", error_message=why, **what)


async def _draft(thread: Thread, history: History | list[Message], job: Preparation) -> int:
    """Write the draft of the plan that is foreseen; return the number of its messages, or 0."""
    jobs = thread.engine.background
    assert jobs is not None
    if not isinstance(history, History):
        thread, history = thread.measured(await thread.fold(history))
    job.head, job.size = history.head_id or "", thread.trigger_size or history.size
    name = _name(thread, history)
    async with alone(thread, name):
        known = await thread.find_draft(name)
        if known is not None and (why := _misfit(known, history)) in ("", CHANGED):
            another = "notes are prepared for another branch of the history"
            job.end("nothing" if why else "ready", another if why else "")
            return 0
        plan = thread.foresees(history, jobs.prepare)
        if not isinstance(plan, Compact) or not plan.evicted:
            short = "messages are only truncated"
            job.end("nothing", short if isinstance(plan, Compact) else plan.reason)
            return 0
        material = Material(thread, history, plan)
        await collect(material)
        await confirm(material)
        draft, _ = await write(material)
        # Summaries of other libraries were read as what was known before.
        read = dict.fromkeys((*draft.read, *material.keys))
        await thread.save_draft(name, replace(draft, read=tuple(read)))
    job.end("ready")
    return len(material.keys)


async def choose(thread: Thread, history: History, plan: Plan) -> Chosen:
    """Decide about a history whose notes are prepared; `plan` is the one without them."""
    engine, scope, usual = thread.engine, thread.scope, Chosen(plan)
    jobs, size, head = engine.background, thread.trigger_size or history.size, history.head_id or ""
    assert jobs is not None
    if not isinstance(plan, Compact):
        near = isinstance(plan, Keep) and thread.nears(size, jobs.prepare)
        if near and jobs.wanted(scope, head, size):
            begin(thread, history, head, size)
        return usual
    over = thread.over(history.size)
    failed = engine.memory.of(scope).failure(history.head_id, history.size.messages, over)
    if not plan.summary_tokens or failed is not None:
        return usual
    if (ready := await _ready(thread, history, plan)) is not None or jobs.closed:
        return ready or usual
    job = jobs.latest(scope)
    in_vain = job is not None and not job.under_way and job.head == head
    if not over and not in_vain:
        begin(thread, history, head, size)
        emit("preparation", scope, name="went_on")
        return Chosen(Keep(GOES_ON, history.size.tokens), goes_on=True)
    if job is None or not job.under_way:
        return usual
    start = time.monotonic()
    await job.await_end(engine.settings.summarizer_timeout or LONGEST_LOOK)
    waited = time.monotonic() - start
    if (ready := await _ready(thread, history, plan)) is not None:
        return ready._replace(waited=waited)
    if waited >= LOOK_AGAIN:
        emit("preparation", scope, name="waited", waited=waited)
    return Chosen(plan, waited=waited)


async def _ready(thread: Thread, history: History, plan: Compact) -> Chosen | None:
    """Return the plan that puts a finished draft in force, or the usual one if it does not fit."""
    draft = await thread.find_draft(_name(thread, history))
    if draft is None:
        return None
    why = _misfit(draft, history)
    if not why:
        # What is still above the trigger then is for the next preparation.
        leaving = _leaving(history, draft)
        size = Material(thread, history, plan).size(draft.text)
        swap = plan_draft(history.items, thread.room, plan, leaving, size)
        if swap is not None:
            return Chosen(swap, draft)
        why = "less may leave now than it stands for"
    facts = {"outcome": "dropped", "reason": why, "messages": len(draft.read)}
    emit("preparation", thread.scope, name="dropped", **facts)
    return Chosen(plan)


def _name(thread: Thread, history: History) -> str:
    """Name the draft that follows the notes in force, made with these settings.

    A record that only clips messages does not change a draft.
    """
    notes = next((record.id for record in reversed(history.chain) if record.covers), "")
    return hash_of(["prepared", notes, thread.engine.identity("")])


def _leaving(history: History, draft: Draft) -> list[int]:
    covers = set(draft.read)
    items = enumerate(history.items)
    return [i for i, item in items if item.key in covers and not item.summary]


def _misfit(draft: Draft, history: History) -> str:
    """Return why a draft does not belong to a history, or an empty text."""
    covers = set(draft.read)
    foreign = {item.key for item in history.items if item.foreign}
    here = {item.key for item in history.items if not item.summary} | foreign
    if not foreign <= covers:
        return "a summary of another library has come"
    if not covers <= here:
        return CHANGED
    if not may_leave(history.items, _leaving(history, draft)):
        return "something that it stands for must stay now"
    return ""
