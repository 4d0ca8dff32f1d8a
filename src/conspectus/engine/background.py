"""Work in the background: its setting, the preparations of this process, their end.

A preparation runs in a daemon thread, also where an event loop has begun it, as that loop may be
over before the notes are written.
"""

from __future__ import annotations

import atexit
import contextvars
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal, Self
from weakref import WeakSet

from conspectus._newest import Newest
from conspectus.archive import Archive, Scope
from conspectus.archive.calls import GATE, Gate, Stopped
from conspectus.bridge import arun, io, pause, run
from conspectus.core.items import Size
from conspectus.core.policy import grown
from conspectus.errors import PolicyError

PREPARE = 0.7
"""Share of the trigger from which on notes are prepared. In windows with a tenth of room above the
trigger, four tenths of it outlast a summary of 30 seconds."""

SESSIONS = 256  # Most sessions whose latest preparation is known

LOOK_AGAIN, LONGEST_END = 0.02, 30.0
"""Seconds between two looks at a preparation, and in which its calls of a store must end once it
was stopped."""

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
    head: str = field(default="", repr=False)  # of the history that it is for
    size: Size | None = field(default=None, repr=False)
    _gate: Gate = field(default_factory=Gate, repr=False)  # its way to the store
    _thread: threading.Thread = field(default_factory=threading.Thread, repr=False)

    @property
    def under_way(self) -> bool:
        """Whether it may still end by itself: not once it was stopped, or lost in a fork."""
        return self._thread.is_alive() and not self._gate.is_shut

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it has ended; return False if that takes longer than `seconds`."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    async def await_end(self, seconds: float | None = None) -> bool:
        """`wait` on an event loop."""
        await _wait_while(lambda: self.under_way, seconds)
        return not self._thread.is_alive()

    def end(self, outcome: Outcome, reason: str = "") -> None:
        self.outcome, self.reason = outcome, reason

    def stop(self) -> None:
        """Stop its writes; its thread ends when its model answers."""
        self._gate.shut()
        if not self.outcome:
            self.end("cancelled", "it was stopped")

    async def stopped(self) -> None:
        """Wait until it uses no store."""
        await _wait_while(lambda: self._thread.is_alive() and not self._gate.is_idle, LONGEST_END)

    def begin(self, work: Callable[[Preparation], Awaitable[None]]) -> None:
        """Begin in a daemon thread: nothing that it writes is in force, and nobody waits for it."""
        context = contextvars.copy_context()
        context.run(GATE.set, self._gate)
        runs = sys.modules.get("langchain_core.runnables.config")
        if runs is not None:  # nobody of this run is called back: it may be over before
            context.run(runs.var_child_runnable_config.set, None)

        def to_its_end() -> None:
            try:
                context.run(run, work(self))
            except Stopped as error:
                self.end("cancelled", str(error))
            except BaseException as error:
                self.end("failed", f"{type(error).__name__}: {error}")

        _LIVE.add(self)
        name = "conspectus-background"
        self._thread = threading.Thread(target=to_its_end, daemon=True, name=name)
        self._thread.start()


_LIVE: WeakSet[Preparation] = WeakSet()


async def _wait_while(true: Callable[[], bool], seconds: float | None) -> None:
    until = inf if seconds is None else time.monotonic() + seconds
    while true() and time.monotonic() < until:
        await pause(LOOK_AGAIN)


async def _stop(jobs: Iterable[Preparation]) -> None:
    """Stop preparations, and wait until none of them uses a store."""
    stopping = list(jobs)
    for job in stopping:
        job.stop()
    for job in stopping:
        await job.stopped()


@atexit.register
def _stop_all() -> None:
    """Stop all before the process ends, so that no store loses its writer."""
    run(_stop(_LIVE))


class Preparations:
    """The newest preparations of one object, by history.

    Attributes:
        prepare: share of each trigger from which on the next notes are prepared.
    """

    def __init__(self, prepare: float = PREPARE) -> None:
        self.prepare, self.closed = prepare, False
        self._known: Newest[Scope, Preparation] = Newest(SESSIONS)

    @classmethod
    def of(cls, setting: object) -> Preparations | None:
        """Read `background` as users write it; None for off.

        Raises:
            PolicyError: it is no such setting.
        """
        if setting is None or setting is False:
            return None
        options: Any = {"prepare": PREPARE} if setting is True else setting
        share: Any = options.get("prepare", PREPARE) if isinstance(options, Mapping) else None
        number = isinstance(share, (int, float)) and not isinstance(share, bool)
        if not number or set(options) - {"prepare"} or not 0 < share <= 1:
            raise PolicyError(
                f'background must be True, False or {{"prepare": {PREPARE}}}, a share of the '
                f"trigger above 0 and at most 1, not {setting!r}"
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
        before = known.size
        if before is None or known.head != head or size.messages < before.messages:
            return True
        more = grown(size.tokens, before.tokens) or grown(size.messages, before.messages)
        return more and known.outcome != "ready"

    def begin(
        self, scope: Scope, job: Preparation, work: Callable[[Preparation], Awaitable[None]]
    ) -> Preparation:
        """Begin a preparation, or return the one that is under way."""
        known = self.latest(scope)
        if known is not None and known.under_way:
            return known
        self._known.put(scope, job)
        if self.closed:
            job.stop()
        else:
            job.begin(work)
        return job

    async def close(self, seconds: float | None) -> None:
        """Begin no more; wait up to these seconds for those under way, then stop them."""
        self.closed = True
        jobs = self._known.values()
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
