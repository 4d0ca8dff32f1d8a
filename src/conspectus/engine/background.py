"""Notes that are prepared in the background: the setting, the jobs of this process, their end.

A job runs in a daemon thread, also where an event loop has begun it: its notes are finished though
the loop of one request is over, and nobody waits for a loop that stands still.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal, Self
from weakref import WeakSet, WeakValueDictionary

from conspectus._newest import Newest
from conspectus.archive import Archive, Scope
from conspectus.archive.calls import GATE, Gate, Stopped
from conspectus.bridge import arun, io, run
from conspectus.core.items import Size
from conspectus.core.policy import grown
from conspectus.errors import PolicyError

PREPARE = 0.7
"""Share of the trigger from which on notes are prepared. In windows with a tenth of room above the
trigger, four tenths of it outlast a summary of 30 seconds."""

SESSIONS = 256  # Most sessions whose latest preparation is known

LOOK_AGAIN, LONGEST, LONGEST_END = 0.02, 600.0, 30.0
"""Seconds between two looks at a preparation; until it is taken to be lost; and in which its calls
of a store must end once it was stopped."""

AnyBackground = bool | Mapping[str, Any] | None
Outcome = Literal["", "ready", "nothing", "failed", "cancelled"]


@dataclass(eq=False, slots=True, weakref_slot=True)
class Preparation:
    """Notes that are being prepared in the background.

    Attributes:
        outcome: empty while it is under way; `ready`: a draft waits for the trigger; `nothing`:
            there is nothing to prepare yet; `failed`; `cancelled`.
        reason: why there is no draft, as one sentence.
    """

    outcome: Outcome = ""
    reason: str = ""
    _head: str = ""  # of the history that it is for
    _size: Size | None = None
    _begun: float = field(default_factory=time.monotonic)
    _gate: Gate = field(default_factory=Gate)  # its way to the store
    _process: int = field(default_factory=os.getpid)
    _over: threading.Event = field(default_factory=threading.Event)

    @property
    def under_way(self) -> bool:
        """Whether it may still end by itself: not once it was stopped, or lost in a fork."""
        stopped = self._over.is_set() or self._gate.is_shut or self._process != os.getpid()
        return not stopped and time.monotonic() - self._begun < LONGEST

    @property
    def is_at_rest(self) -> bool:
        """Whether it is using no store."""
        return self._process != os.getpid() or self._gate.is_idle

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it has ended; return False if that takes longer than `seconds`."""
        return self._over.wait(seconds)

    async def await_end(self, seconds: float | None = None) -> bool:
        """`wait` on an event loop."""
        await self.let_go_on(seconds, lambda: self.under_way)
        return self._over.is_set()

    async def let_go_on(self, seconds: float | None, while_true: Callable[[], bool]) -> None:
        """Wait while something is true, at most `seconds`."""
        until = inf if seconds is None else time.monotonic() + seconds
        while while_true() and time.monotonic() < until:
            await io(lambda: time.sleep(LOOK_AGAIN), lambda: asyncio.sleep(LOOK_AGAIN))

    def ended(self, outcome: Outcome, reason: str = "") -> None:
        self.outcome, self.reason = outcome, reason

    def stop(self) -> None:
        """Stop its writes; its thread ends when its model answers."""
        self._gate.shut()
        if not self.outcome:
            self.ended("cancelled", "it was stopped")

    def begin(self, work: Callable[[Preparation], Awaitable[None]]) -> None:
        """Begin in a daemon thread: nothing that it writes is in force, and nobody waits for it."""
        context = contextvars.copy_context()
        context.run(GATE.set, self._gate)
        runs = sys.modules.get("langchain_core.runnables.config")
        if runs is not None:  # nobody of this run is told: it may be over before
            context.run(runs.var_child_runnable_config.set, None)

        def to_its_end() -> None:
            try:
                context.run(run, work(self))
            except Stopped as error:
                self.ended("cancelled", str(error))
            except BaseException as error:
                self.ended("failed", f"{type(error).__name__}: {error}")
            finally:
                self._over.set()

        _LIVE.add(self)
        threading.Thread(target=to_its_end, daemon=True, name="conspectus-background").start()


_LIVE: WeakSet[Preparation] = WeakSet()
_UNDER_WAY: WeakValueDictionary[Hashable, Preparation] = WeakValueDictionary()
"""The preparations of this process, by archive, history and settings."""


async def _stopped(jobs: Iterable[Preparation]) -> None:
    """Stop preparations, and wait until none of them uses a store."""
    stopping = list(jobs)
    for job in stopping:
        job.stop()
    for job in stopping:
        await job.let_go_on(LONGEST_END, lambda job=job: not job.is_at_rest)  # type: ignore[misc]


@atexit.register
def _stop_all() -> None:
    """Stop all before the process ends, so that no store loses its writer."""
    run(_stopped(_LIVE))


class Preparations:
    """The newest preparations of one object, by history.

    Attributes:
        prepare: share of each trigger from which on the next notes are prepared.
    """

    def __init__(self, prepare: float = PREPARE) -> None:
        self.prepare, self.closed = prepare, False
        self._known: Newest[Scope, Preparation] = Newest(SESSIONS)
        self._begun: WeakSet[Preparation] = WeakSet()
        self._lock = threading.Lock()

    @classmethod
    def of(cls, given: object) -> Preparations | None:
        """Read `background` as users write it; None for off.

        Raises:
            PolicyError: it is no such setting.
        """
        if given is None or given is False:
            return None
        share: Any = {} if given is True else given
        share = share.get("prepare", PREPARE) if isinstance(share, Mapping) else None
        known = given is True or (isinstance(given, Mapping) and set(given) <= {"prepare"})
        number = isinstance(share, (int, float)) and not isinstance(share, bool)
        if not known or not number or not 0 < share <= 1:
            raise PolicyError(
                f'background must be True, False or {{"prepare": {PREPARE}}}, a share of the '
                f"trigger above 0 and at most 1, not {given!r}"
            )
        return cls(share)

    def latest(self, scope: Scope) -> Preparation | None:
        return self._known.get(scope)

    def wanted(self, scope: Scope, head: str, size: Size) -> bool:
        """Return whether another preparation should begin for a history.

        One without a draft is tried again once the history has grown by a tenth.
        """
        known = self.latest(scope)
        if self.closed or known is None or known.under_way:
            return known is None and not self.closed
        before = known._size
        if before is None or known._head != head or size.messages < before.messages:
            return True
        more = grown(size.tokens, before.tokens) or grown(size.messages, before.messages)
        return more and known.outcome != "ready"

    def begin(
        self,
        scope: Scope,
        head: str,
        size: Size | None,
        work: Callable[[Preparation], Awaitable[None]],
        name: Hashable,
    ) -> Preparation:
        """Begin a preparation, or return the one under way, also another object's of this name."""
        with self._lock:
            known = self._known.get(scope)
            if known is None or not known.under_way:  # another object's, on the same history
                known = _UNDER_WAY.get(name)
            if known is not None and known.under_way:
                self._known.put(scope, known)
                return known
            job = Preparation(_head=head, _size=size)
            if self.closed:
                job.ended("cancelled", "what prepares the notes was closed")
                job._over.set()
                return job
            self._known.put(scope, job)
            self._begun.add(job)
            _UNDER_WAY[name] = job
        job.begin(work)
        return job

    async def close(self, seconds: float | None) -> None:
        """Begin no more; wait up to these seconds for those under way, then stop them."""
        with self._lock:
            self.closed, jobs = True, list(self._begun)
        until = None if seconds is None else time.monotonic() + seconds
        for job in jobs:
            left = None if until is None else until - time.monotonic()
            await job.let_go_on(left, lambda job=job: job.under_way)  # type: ignore[misc]
        await _stopped(jobs)


class Closing:
    """`close`, `aclose` and `with` for an object that prepares notes."""

    _background: Preparations | None
    _opened: Archive | None

    def _prepares(self) -> Sequence[Preparations]:
        return () if self._background is None else (self._background,)

    def _own_archive(self) -> Archive | None:
        return self._opened

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
        for one in self._prepares():
            await one.close(timeout)
        if (archive := self._own_archive()) is not None:
            await io(archive.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        # After an error or an interrupt, there is no wait for a model.
        self.close(None if kind is None else 0)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *error: object) -> None:
        await self.aclose(None if kind is None else 0)
