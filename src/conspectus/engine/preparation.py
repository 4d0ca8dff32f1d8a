"""Run one preparation of notes in the background, wait for it, and stop it."""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import os
import sys
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal
from weakref import WeakValueDictionary

from conspectus.archive.calls import GATE, Gate, Stopped
from conspectus.bridge import arun, io, run
from conspectus.core.items import Size
from conspectus.engine.memory import LONGEST_LOOK, LOOK_AGAIN

LONGEST_END = 30.0  # Seconds in which a preparation must end once it was asked to

Outcome = Literal["", "ready", "nothing", "failed", "cancelled"]


@dataclass(eq=False, slots=True, weakref_slot=True)
class Preparation:
    """Notes that are being prepared in the background.

    Attributes:
        outcome: empty while it is under way; `ready`: a draft waits for the trigger; `nothing`:
            there is nothing to prepare yet; `failed`; `cancelled`.
        reason: why there is no draft, as one sentence.
        head: id of the record in force at its beginning; empty for none.
        notes: names the notes in force then; None until they are known.
        size: of the history, as the trigger counts; None until it is known.
        count: messages of the history then, without summaries; 0 until it is known.
        lost: how many before it were cancelled, one after another.
        due: it was begun at the trigger itself.
        begun: when, by `time.monotonic()`.
        owner: the thread in which it runs.
        gate: its way to the store.
        name: unique in this process.
    """

    head: str = ""
    notes: str | None = None
    size: Size | None = None
    outcome: Outcome = ""
    reason: str = ""
    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    begun: float = field(default_factory=time.monotonic)
    owner: int = 0
    count: int = 0
    lost: int = 0
    due: bool = False
    gate: Gate = field(default_factory=Gate)
    _process: int = field(default_factory=os.getpid)
    _over: threading.Event = field(default_factory=threading.Event)
    _loop: asyncio.AbstractEventLoop | None = None
    _task: asyncio.Task[None] | None = None

    @property
    def under_way(self) -> bool:
        """Whether it may still end by itself.

        Not once it was stopped, its event loop closed, or its thread lost in a fork.
        """
        if self._over.is_set() or self.gate.is_shut or self._process != os.getpid():
            return False
        lost = self._loop is not None and self._loop.is_closed()
        return not lost and time.monotonic() - self.begun < LONGEST_LOOK

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it has ended; return False if that takes longer than `seconds`."""
        return self._over.wait(seconds)

    async def await_end(self, seconds: float | None = None) -> bool:
        """`wait` on an event loop."""
        until = None if seconds is None else time.monotonic() + seconds
        while self.under_way and (until is None or time.monotonic() < until):
            await asyncio.sleep(LOOK_AGAIN)
        return self._over.is_set()

    def looked_at(self) -> Awaitable[Any]:
        """Return a step that lets it go on.

        It answers False on the thread of its event loop, and while that loop stands still.
        """

        def call() -> bool:
            loop = self._loop
            if loop and (self.owner == threading.get_ident() or not loop.is_running()):
                return False
            if self._over.wait(LOOK_AGAIN):
                time.sleep(LOOK_AGAIN)
            return True

        return io(call, lambda: asyncio.sleep(LOOK_AGAIN, True))

    def ended(self, outcome: Outcome, reason: str = "") -> None:
        self.outcome, self.reason = outcome, reason

    def stop(self) -> None:
        """Stop its writes and its task; a thread ends when its model answers."""
        self.gate.shut()
        if not self.outcome:
            self.ended("cancelled", "it was stopped")
        task, loop = self._task, self._loop
        if task is not None and loop is not None and not self._over.is_set():
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(task.cancel)

    @property
    def is_at_rest(self) -> bool:
        if self._process != os.getpid():
            return True
        gone = self._loop is None or self._loop.is_closed() or self._over.is_set()
        return self.gate.is_idle and gone


_LIVE: WeakValueDictionary[str, Preparation] = WeakValueDictionary()
"""The preparations of this process, by name."""

Make = Callable[[Preparation], Awaitable[None]]


def begun(job: Preparation, make: Make) -> Awaitable[Any]:
    """Return a step that begins a preparation, in a thread or as a task."""
    _LIVE[job.name] = job
    return io(lambda: _in_thread(job, make), lambda: _as_task(job, make))


async def stopped_flow(jobs: Iterable[Preparation]) -> None:
    """Stop preparations, and wait until none of them uses a store."""
    until = time.monotonic() + LONGEST_END
    for job in (stopping := list(jobs)):
        job.stop()
    for job in stopping:
        while not job.is_at_rest and time.monotonic() < until:
            if not (await job.looked_at()):
                break


@atexit.register
def _stop_all() -> None:
    """Stop all before the process ends, so that no store loses its writer."""
    run(stopped_flow(list(_LIVE.values())))


def _context(job: Preparation) -> contextvars.Context:
    context = contextvars.copy_context()
    context.run(GATE.set, job.gate)
    runs = sys.modules.get("langchain_core.runnables.config")
    if runs is not None:
        context.run(runs.var_child_runnable_config.set, None)
    return context


@contextmanager
def _to_its_end(job: Preparation) -> Iterator[None]:
    """Note whatever ends a preparation; it ends nothing else."""
    try:
        yield
    except asyncio.CancelledError:
        job.ended("cancelled", "its task was cancelled")
    except Stopped as error:
        job.ended("cancelled", str(error))
    except BaseException as error:
        job.ended("failed", f"{type(error).__name__}: {error}")


def _in_thread(job: Preparation, make: Make) -> None:
    context = _context(job)

    def work() -> None:
        with _to_its_end(job):
            context.run(run, make(job))
        job._over.set()

    # A daemon: the end of the process waits for nobody, and nothing that it writes is in force.
    thread = threading.Thread(target=work, daemon=True, name="conspectus-background")
    thread.start()
    job.owner = thread.ident or 0


async def _work(job: Preparation, make: Make) -> None:
    with _to_its_end(job):
        await arun(make(job))


def _over(job: Preparation, task: asyncio.Task[None]) -> None:
    _TASKS.discard(task)
    if not job.outcome:
        job.ended("cancelled", "its task was cancelled")
    if not task.cancelled():
        task.exception()
    job._over.set()


async def _as_task(job: Preparation, make: Make) -> None:
    job._loop, job.owner = asyncio.get_running_loop(), threading.get_ident()
    job._task = task = job._loop.create_task(
        _work(job, make), context=_context(job), name="conspectus-background"
    )
    _TASKS.add(task)  # a loop holds its tasks weakly
    task.add_done_callback(partial(_over, job))


_TASKS: set[asyncio.Task[None]] = set()
