"""Notes prepared beside the agent: the setting, what is under way, and where it runs."""

from __future__ import annotations

import asyncio
import contextvars
import os
import socket
import sys
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal
from weakref import WeakValueDictionary

from conspectus._core.given_cut import foreseen
from conspectus._core.items import Size, Window
from conspectus._core.policy import Policy, grown
from conspectus._drive import Flow, Io, arun, run
from conspectus.archive import Scope
from conspectus.compactor.memory import THREADS
from conspectus.compactor.waiting import LONGEST_LOOK
from conspectus.errors import PolicyError

PREPARE = 0.7
"""Share of its trigger from which on the next notes are prepared, where nothing is said."""

Outcome = Literal["", "ready", "elsewhere", "nothing", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class Background:
    """How notes are prepared beside the agent.

    Attributes:
        prepare: share of each trigger from which on the next notes are prepared, above 0 and at
            most 1. Default: 0.7.

    Raises:
        PolicyError: `prepare` is no such share.

    Example:
        >>> Background.of({"prepare": 0.5})
        Background(prepare=0.5)
    """

    prepare: float = PREPARE

    def __post_init__(self) -> None:
        number = isinstance(self.prepare, (int, float)) and not isinstance(self.prepare, bool)
        if not number or not 0 < self.prepare <= 1:
            raise PolicyError(
                "background prepare must be a share of the trigger above 0 and at most 1, such as "
                f"{PREPARE}, not {self.prepare!r}"
            )

    def near(self, policy: Policy, size: Size, room: Window | None) -> bool:
        """Whether a history is so large that its next notes should be prepared."""
        limit = None if room is None else room.limit
        return policy.fired(foreseen(size, self.prepare), limit) is not None

    @classmethod
    def of(cls, given: object) -> Background | None:
        """The setting from a user's own words; None where notes are made when they are due.

        Raises:
            PolicyError: it cannot mean anything.
        """
        if given is None or given is False:
            return None
        if given is True:
            return cls()
        if isinstance(given, cls):
            return given
        if isinstance(given, Mapping) and set(given) <= {"prepare"}:
            return cls(**given)
        raise PolicyError(
            f'background must be True, False or {{"prepare": {PREPARE}}}, not {given!r}'
        )


AnyBackground = bool | Background | Mapping[str, Any] | None


@dataclass(eq=False, slots=True, weakref_slot=True)
class Preparation:
    """Notes that are being prepared beside the caller.

    Attributes:
        outcome: empty while it is under way; `ready`: a draft waits for the trigger; `elsewhere`:
            another worker is at it; `nothing`: there is nothing to prepare yet; `failed`;
            `cancelled`.
        reason: why there is none, as one sentence; empty where there is one.
        head: id of the record in force at its beginning; empty for none.
        notes: names the notes in force then; None until they are known.
        size: of the history, as the trigger counts; None until it is known.
        due: it was begun at the trigger itself.
        begun: when, by `time.monotonic()`.
        owner: the thread in which it runs.
        name: tells it from others.
    """

    head: str = ""
    notes: str | None = None
    size: Size | None = None
    outcome: Outcome = ""
    reason: str = ""
    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    begun: float = field(default_factory=time.monotonic)
    owner: int = 0
    due: bool = False
    _over: threading.Event = field(default_factory=threading.Event)
    _loop: asyncio.AbstractEventLoop | None = None

    @property
    def under_way(self) -> bool:
        """Whether it has not ended; one whose event loop was closed never goes on."""
        if self._over.is_set():
            return False
        lost = self._loop is not None and self._loop.is_closed()
        return not lost and time.monotonic() - self.begun < LONGEST_LOOK

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it has ended; False where it has not within so many seconds."""
        return self._over.wait(seconds)

    async def await_end(self, seconds: float | None = None) -> bool:
        """`wait` on an event loop."""
        until = None if seconds is None else time.monotonic() + seconds
        while self.under_way and (until is None or time.monotonic() < until):
            await asyncio.sleep(LOOK_AGAIN)
        return self._over.is_set()

    def looked_at(self) -> Io:
        """A step that lets it go on; answers with False where it cannot, as this very thread is
        that of its event loop."""

        def call() -> bool:
            if self._loop is not None and self.owner == threading.get_ident():
                return False
            self._over.wait(LOOK_AGAIN)
            return True

        return Io(call, lambda: asyncio.sleep(LOOK_AGAIN, True))

    def ended(self, outcome: Outcome, reason: str = "") -> None:
        """Say what has come of it."""
        self.outcome, self.reason = outcome, reason

    def _end(self) -> None:
        self._over.set()


_LIVE: WeakValueDictionary[str, Preparation] = WeakValueDictionary()
"""The preparations of this process, by name."""

LOOK_AGAIN = 0.02
"""Seconds between two looks at what is under way."""

Make = Callable[[Preparation], Flow[None]]


class Preparations:
    """What is prepared, by history, in this process: bounded.

    Args:
        setting: when to begin.

    Attributes:
        setting: as given.
    """

    def __init__(self, setting: Background) -> None:
        self.setting = setting
        self._known: OrderedDict[Scope, Preparation] = OrderedDict()
        self._lock = threading.Lock()

    @classmethod
    def of(cls, given: object) -> Preparations | None:
        """For a setting as a user writes it; None where notes are made when they are due.

        Raises:
            PolicyError: it cannot mean anything.
        """
        setting = Background.of(given)
        return None if setting is None else cls(setting)

    def latest(self, scope: Scope) -> Preparation | None:
        """The latest preparation for a history, under way or over."""
        with self._lock:
            return self._known.get(scope)

    def forget(self, scope: Scope) -> None:
        """It was swapped in or dropped: another may begin."""
        with self._lock:
            self._known.pop(scope, None)

    def wanted(self, scope: Scope, head: str, size: Size) -> bool:
        """Whether another preparation should begin for a history.

        One that came to nothing is tried again once the history has grown by a tenth.

        Args:
            scope: whose it is.
            head: id of the record in force; empty for none.
            size: of the history.
        """
        known = self.latest(scope)
        if known is None or known.under_way:
            return known is None
        before = known.size
        if before is None or known.head != head or size.messages < before.messages:
            return True
        if known.outcome in ("ready", "elsewhere"):
            return False
        return grown(size.tokens, before.tokens) or grown(size.messages, before.messages)

    def begin(self, scope: Scope, head: str, size: Size | None, make: Make) -> Flow[Preparation]:
        """Begin one beside the caller: in a thread, or as a task of the event loop.

        Where one is under way already, that is the answer.

        Args:
            scope: whose history it is.
            head: id of the record in force; empty for none.
            size: of the history, where that is known already.
            make: the work, which says in the preparation what has come of it.
        """
        with self._lock:
            known = self._known.pop(scope, None)
            new = known is None or not known.under_way
            job = Preparation(head, size=size) if known is None or new else known
            self._known[scope] = job
            while len(self._known) > THREADS:
                self._known.popitem(last=False)
        if new:
            _LIVE[job.name] = job
            yield Io(lambda: _in_thread(job, make), lambda: _as_task(job, make))
        return job


def _context() -> contextvars.Context:
    """The caller's, less the run of LangChain that it is in: what is prepared is no part of it."""
    context = contextvars.copy_context()
    runs = sys.modules.get("langchain_core.runnables.config")
    if runs is not None:
        context.run(runs.var_child_runnable_config.set, None)
    return context


def _in_thread(job: Preparation, make: Make) -> None:
    context = _context()

    def work() -> None:
        try:
            context.run(run, make(job))
        except BaseException as error:
            job.ended("failed", f"{type(error).__name__}: {error}")
        finally:
            job._end()

    # A daemon: the end of the process waits for nobody, and nothing that it writes is in force.
    thread = threading.Thread(target=work, daemon=True, name="conspectus-background")
    thread.start()
    job.owner = thread.ident or 0


async def _work(job: Preparation, make: Make) -> None:
    try:
        await arun(make(job))
    except asyncio.CancelledError:
        job.ended("cancelled", "its task was cancelled")
        raise
    except BaseException as error:
        job.ended("failed", f"{type(error).__name__}: {error}")


def _over(job: Preparation, task: asyncio.Task[None]) -> None:
    _TASKS.discard(task)
    if not job.outcome:
        job.ended("cancelled", "its task was cancelled")
    if not task.cancelled():
        task.exception()
    job._end()


async def _as_task(job: Preparation, make: Make) -> None:
    job._loop, job.owner = asyncio.get_running_loop(), threading.get_ident()
    task = job._loop.create_task(_work(job, make), context=_context(), name="conspectus-background")
    _TASKS.add(task)  # a loop holds its tasks weakly
    task.add_done_callback(partial(_over, job))


_TASKS: set[asyncio.Task[None]] = set()


def owner_of(job: Preparation) -> list[Any]:
    """Names the worker of a preparation to others: machine, process, preparation."""
    return [socket.gethostname(), os.getpid(), job.name]


def is_at_work(owner: Sequence[Any]) -> bool:
    """Whether a worker may still be at a preparation: one on another machine is believed."""
    if len(owner) != 3 or owner[0] != socket.gethostname():
        return len(owner) == 3
    process, name = owner[1:]
    if process == os.getpid():
        job = _LIVE.get(name)
        return job is not None and job.under_way
    if os.name == "nt":  # there, a signal of 0 ends the process
        return True
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except (TypeError, OverflowError, OSError):
        return False
    return True
