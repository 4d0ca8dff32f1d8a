"""Background work: notes are prepared before the trigger, and put in force at it.

A preparation archives what would leave and saves a draft under the name of the notes that it
follows; it puts nothing in force. At the trigger the draft is used if all that it read still stands
in the history and may leave. Two processes may prepare at once: the draft saved last is found, and
the commit decides, as everywhere. A preparation runs in a daemon thread. Where an event loop has
begun it, its async calls are made on that loop while it runs, and then on one of its own. Its calls
of a model belong to the run that has begun it: they have its callbacks, tags, metadata and config.
"""

from __future__ import annotations

import atexit
import contextvars
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Literal, NamedTuple, Self
from weakref import WeakSet

from conspectus._langchain import begun_beside, kept_config
from conspectus._newest import Newest
from conspectus.archive import Archive, Scope
from conspectus.archive.guard import GATE, Gate, Stopped
from conspectus.bridge import Driver, arun, io, is_held, outliving, pause, run
from conspectus.core.items import Compact, Keep, Plan, Size
from conspectus.core.plan import may_leave, plan_draft
from conspectus.core.policy import grown
from conspectus.core.records import Draft
from conspectus.engine.fitting import fits
from conspectus.engine.material import Material, collect, confirm
from conspectus.engine.thread import (
    LONGEST_LOOK,
    LOOK_AGAIN,
    PREPARATION,
    FailedSummary,
    Thread,
    alone,
)
from conspectus.engine.view import History
from conspectus.engine.writing import hash_of, write
from conspectus.errors import ConspectusError, PolicyError, SummaryError
from conspectus.messages import Message
from conspectus.observe import emit, heard_by, log, observing

SESSIONS = 256  # Most sessions whose latest preparation is known
LONGEST_END = 30.0  # Seconds in which a stopped preparation's calls of a store must end
RUN = "prepare a summary"  # the name of a preparation in traces
IN_VAIN = "preparing failed before; it is tried again once the history has grown by a tenth"
GOES_ON = "the next notes are being prepared, and the messages fit the window until they are there"
MISFIT = "the history has gone back or was changed, or something that it stands for must stay now"


@dataclass(eq=False, slots=True, weakref_slot=True)
class Preparation:
    """Notes that are being prepared in the background.

    Attributes:
        outcome: empty while it is under way; `ready`: a draft waits for the trigger; `nothing`:
            there is nothing to prepare yet; `failed`; `cancelled`.
        reason: why there is no draft, as one sentence.
    """

    outcome: Literal["", "ready", "nothing", "failed", "cancelled"] = ""
    reason: str = ""
    head: str = field(default="", repr=False)  # of the history that it is for
    size: Size | None = field(default=None, repr=False)
    gate: Gate = field(default_factory=Gate, repr=False)  # its way to the store
    thread: threading.Thread = field(default_factory=threading.Thread, repr=False)
    driver: Driver = field(default_factory=outliving, repr=False)

    @property
    def under_way(self) -> bool:
        """Whether it may still end by itself: not once it was stopped, or lost in a fork."""
        return self.thread.is_alive() and not self.gate.is_shut

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it has ended; return False if that takes longer than `seconds`."""
        if self.driver.home == threading.get_ident():
            self.driver.leave()
        self.thread.join(seconds)
        return not self.thread.is_alive()

    def may_be_waited_for(self) -> None:
        """Have it do without its event loop, if that stands still while it is waited for."""
        if is_held(self.driver.home):
            self.driver.leave()


_LIVE: WeakSet[Preparation] = WeakSet()


async def _wait_while(true: Callable[[], bool], seconds: float | None) -> None:
    until = inf if seconds is None else time.monotonic() + seconds
    while true() and time.monotonic() < until:
        await pause(LOOK_AGAIN)


async def _stop(jobs: Iterable[Preparation]) -> None:
    """Stop the writes of preparations, and wait until none uses a store."""
    stopping = list(jobs)
    for job in stopping:
        job.gate.shut()
        if not job.outcome:
            job.outcome, job.reason = "cancelled", "it was stopped"

    def uses_a_store() -> bool:
        return any(job.thread.is_alive() and not job.gate.is_idle for job in stopping)

    await _wait_while(uses_a_store, LONGEST_END)


@atexit.register
def _stop_all() -> None:
    """Stop all before the process ends, so that no store loses its writer."""
    run(_stop(_LIVE))


class Preparations:
    """The newest preparations of one object, by history."""

    def __init__(self) -> None:
        self.closed = False
        self.latest: Newest[Scope, Preparation] = Newest(SESSIONS)

    def wanted(self, thread: Thread, head: str, size: Size) -> bool:
        """Return whether a preparation should begin for a history.

        One without a draft is tried again once the history has grown by a tenth.
        """
        known = self.latest.get(thread.scope)
        if self.closed or (known and known.under_way) or not thread.nears(size):
            return False
        if known is None or known.size is None or known.head != head:
            return True
        before = known.size
        if size.messages < before.messages:
            return True
        more = grown(size.tokens, before.tokens) or grown(size.messages, before.messages)
        return more and known.outcome != "ready"

    async def close(self, seconds: float | None) -> None:
        """Begin no more; wait up to these seconds for those under way, then stop them."""
        self.closed = True
        jobs = list(self.latest.values())
        for job in jobs:
            job.may_be_waited_for()
        await _wait_while(lambda: any(job.under_way for job in jobs), seconds)
        await _stop(jobs)


class Closing:
    """`close`, `aclose` and `with` for an object that prepares notes."""

    _background: Preparations | None
    _opened: Archive | None

    def close(self, timeout: float | None = None) -> None:
        """Wait for notes that are being prepared, and close an archive opened here.

        Afterwards no thread of this object uses a store, whose connection may then be
        closed. A store or an `Archive` that was given stays open, and the object goes on without
        `background`.

        Args:
            timeout: seconds to wait for notes that a model is writing; later ones are thrown away.
                Default: no limit.

        Raises:
            PolicyError: `timeout` is no number of seconds.
        """
        run(self._close(timeout))

    async def aclose(self, timeout: float | None = None) -> None:
        """`close` on an event loop."""
        await arun(self._close(timeout))

    async def _close(self, timeout: float | None) -> None:
        number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
        if timeout is not None and not (number and 0 <= timeout < inf):
            raise PolicyError(
                f"timeout must be seconds from 0 on, or None for no end, not {timeout!r}"
            )
        if self._background is not None:
            await self._background.close(timeout)
        if self._opened is not None:
            await io(self._opened.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        # After an error or an interrupt, there is no wait for a model.
        self.close(None if kind is None else 0)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *error: object) -> None:
        await self.aclose(None if kind is None else 0)


def begin(
    thread: Thread, history: History | list[Message], head: str = "", size: Size | None = None
) -> Preparation:
    """Prepare the next notes of a history, or of its messages as read, in the background.

    Return the preparation, or the one that is under way. With its head and its size, one that fails
    at once is tried again only once it has grown.
    """
    jobs = thread.engine.background
    assert jobs is not None
    known, job = jobs.latest.get(thread.scope), Preparation(head=head, size=size)
    if known is not None and known.under_way:
        return known
    if jobs.closed:
        return replace(job, outcome="cancelled", reason="it was stopped")
    # No listener of the caller's own and no person is asked, as the run may be over by then.
    engine = replace(thread.engine, on_event=None, preview=None, hooks=())
    beside = replace(thread, engine=engine, draft_only=True)
    context = contextvars.copy_context()
    context.run(GATE.set, job.gate)
    ended: Callable[[dict[str, Any]], object] = dict
    runs = sys.modules.get("langchain_core.runnables.config")
    if runs is not None:
        config = kept_config(runs.var_child_runnable_config.get())
        try:
            ended = begun_beside(config, RUN)
        except Exception as error:
            log("listener_failed", "a callback of the run failed: %s", error, exc_info=error)
        context.run(runs.var_child_runnable_config.set, config)

    def work() -> None:
        try:
            context.run(job.driver.run, heard_by(engine.listeners, _prepare(beside, history, job)))
        except Stopped as error:
            job.outcome, job.reason = "cancelled", str(error)
        except BaseException as error:
            job.outcome, job.reason = "failed", f"{type(error).__name__}: {error}"
        finally:
            with suppress(Exception):  # of a callback, which may belong to a run that has ended
                ended({"outcome": job.outcome})

    jobs.latest.put(thread.scope, job)
    _LIVE.add(job)
    job.thread = threading.Thread(target=work, daemon=True, name="conspectus-background")
    job.thread.start()
    return job


async def _prepare(thread: Thread, history: History | list[Message], job: Preparation) -> None:
    emit("preparation", thread.scope, name="began")
    with observing("preparation", thread.scope, name="finished", waited=0.0) as seen:
        seen.hides_errors |= thread.engine.redaction is not None
        try:
            count, job.reason = await _draft(thread, history, job)
            job.outcome = "nothing" if job.reason else "ready"
            seen.add(messages=count, reason=job.reason)
        except ConspectusError as error:
            if isinstance(error, SummaryError) and job.size is not None:
                size = job.size
                failed = FailedSummary(job.head or None, size, size, over=False)
                await thread.note_failure(failed, PREPARATION)
            [job.reason] = await thread.engine.redacted([str(error)])
            job.outcome = "failed"
            seen.add(outcome="failed", failure=error.failure)
            seen.add(error=type(error).__qualname__, error_message=job.reason)


async def _draft(
    thread: Thread, history: History | list[Message], job: Preparation
) -> tuple[int, str]:
    """Write the draft that is foreseen; return how many messages it read, or why there is none."""
    if not isinstance(history, History):
        history = await thread.history(history)
        corrected = thread.corrected(history.reports(), history.head)
        if corrected is not thread:
            thread, history = corrected, history.measured_by(corrected.engine)
    job.head, job.size = history.head_id or "", thread.trigger_size or history.size
    name = _name(thread, history)
    async with alone(thread, name):
        known = await thread.find_draft(name)
        if known is not None and _fits(known, history):
            return 0, ""
        thread, history = thread.shared_out(history)
        plan = thread.plan(history, ahead=True)
        if not isinstance(plan, Compact):
            return 0, plan.reason
        if plan.stuck is not None:
            return 0, plan.stuck.reason
        if not plan.evicted:
            return 0, "messages are only truncated"
        if await thread.has_prepared_in_vain(history):
            return 0, IN_VAIN
        material = Material(thread, history, plan)
        await collect(material)
        await confirm(material)
        draft, _ = await write(material)
        # Summaries of other libraries were read as what was known before.
        read = dict.fromkeys((*draft.read, *material.keys))
        await thread.save_draft(name, replace(draft, read=tuple(read)))
    return len(material.keys), ""


class Chosen(NamedTuple):
    """The decision about a history."""

    plan: Plan
    draft: Draft | None = None  # the prepared draft that is put in force; None for none
    waited: float = 0.0  # seconds that the agent waited for a draft


async def choose(thread: Thread, history: History, plan: Plan) -> Chosen:
    """Decide about a history whose notes are prepared; `plan` is the one without them."""
    engine, scope, usual = thread.engine, thread.scope, Chosen(plan)
    jobs, size, head = engine.background, thread.trigger_size or history.size, history.head_id or ""
    assert jobs is not None
    if not isinstance(plan, Compact):
        if isinstance(plan, Keep) and jobs.wanted(thread, head, size):
            begin(thread, history, head, size)
        return usual
    over = thread.over(history.size)
    failed = engine.memory.of(scope).failure(history.head_id, history.size.messages, over)
    if not plan.summary_tokens or failed is not None or plan.stuck is not None:
        return usual
    if (ready := await _ready(thread, history, plan)) is not None or jobs.closed:
        return ready or usual
    job = jobs.latest.get(scope)
    in_vain = job is not None and not job.under_way and job.head == head
    if not over and not in_vain:
        begin(thread, history, head, size)
        emit("preparation", scope, name="went_on")
        return Chosen(Keep(GOES_ON, history.size.tokens, preparing=True))
    if job is None or not job.under_way:
        return usual
    start = time.monotonic()
    job.may_be_waited_for()
    await _wait_while(lambda: job.under_way, engine.settings.summarizer_timeout or LONGEST_LOOK)
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
    if _fits(draft, history):
        # What is still above the trigger then is for the next preparation.
        size = Material(thread, history, plan).size(draft.text)
        leaving = _leaving(history, draft)
        base = thread.base_of(history)
        swap = plan_draft(history.items, thread.room, plan, leaving, size, base)
        if swap is not None and fits(thread, history, swap):
            return Chosen(swap, draft)
    facts = {"outcome": "dropped", "reason": MISFIT, "messages": len(draft.read)}
    emit("preparation", thread.scope, name="dropped", **facts)
    return Chosen(plan)


def _name(thread: Thread, history: History) -> str:
    """Name the draft that follows the notes in force, made with these settings."""
    # A record that only clips messages does not change a draft.
    notes = next((record.id for record in reversed(history.chain) if record.covers), "")
    return hash_of(["prepared", notes, thread.engine.identity("")])


def _leaving(history: History, draft: Draft) -> list[int]:
    covers, items = set(draft.read), enumerate(history.items)
    return [i for i, item in items if item.key in covers and not item.summary]


def _fits(draft: Draft, history: History) -> bool:
    """Tell whether all that a draft stands for is in the history, and may leave."""
    foreign = {item.key for item in history.items if item.foreign}
    here = foreign | {item.key for item in history.items if not item.summary}
    covers = foreign <= set(draft.read) <= here
    return covers and may_leave(history.items, _leaving(history, draft))
