"""Preparations: the work in the background that writes notes before they are due."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Literal
from weakref import WeakSet

from conspectus.archive import Scope
from conspectus.archive.guard import Gate
from conspectus.bridge import (
    Driver,
    is_blocked,
    outliving_driver,
    pause,
    run,
)
from conspectus.core.growth import size_has_grown
from conspectus.core.items import Size

SESSIONS = 256
"""The most sessions whose latest preparation is remembered after it has ended."""

STOP_TIMEOUT = 30.0
"""Seconds in which a stopped preparation must end its calls of a store."""

POLL_INTERVAL = 0.02
"""Seconds between two looks at the work of another worker."""

WRITER_TIMEOUT = 600.0
"""Seconds after which a worker is no longer waited for."""

STOPPED = "it was stopped"


@dataclass(eq=False, slots=True, weakref_slot=True)
class Preparation:
    """A summary that is being prepared in the background.

    Attributes:
        outcome: empty while it runs. `ready`: a draft is stored until the trigger is reached.
            `nothing`: there is nothing to prepare yet. `failed`, `cancelled`: there is no draft.
        reason: why there is no draft, in one sentence.
    """

    outcome: Literal["", "ready", "nothing", "failed", "cancelled"] = ""
    reason: str = ""
    head_id: str = field(default="", repr=False)  # of the history that it is for
    size: Size | None = field(default=None, repr=False)
    gate: Gate = field(default_factory=Gate, repr=False)  # its way to the store
    thread: threading.Thread = field(default_factory=threading.Thread, repr=False)
    driver: Driver = field(default_factory=outliving_driver, repr=False)

    @property
    def under_way(self) -> bool:
        """Whether its thread runs and was not stopped."""
        return self.thread.is_alive() and not self.gate.is_shut

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it has ended. Return False if it has not ended after `seconds`."""
        if self.driver.home == threading.get_ident():
            self.driver.leave()
        self.thread.join(seconds)
        return not self.thread.is_alive()

    def leave_blocked_loop(self) -> None:
        """Let it use a loop of its own if the caller blocks the event loop that it uses."""
        if is_blocked(self.driver.home):
            self.driver.leave()


LIVE: WeakSet[Preparation] = WeakSet()
"""The preparations of this process that may be running."""


async def wait_while(condition: Callable[[], bool], seconds: float | None) -> None:
    """Wait while a condition holds, at most for these seconds; None sets no limit."""
    until = inf if seconds is None else time.monotonic() + seconds
    while condition() and time.monotonic() < until:
        await pause(POLL_INTERVAL)


async def _stop(preparations: Iterable[Preparation]) -> None:
    """Stop the writes of preparations, and wait until none uses a store."""
    stopping = list(preparations)
    for preparation in stopping:
        preparation.gate.shut()
        if not preparation.outcome:
            preparation.outcome = "cancelled"
            preparation.reason = STOPPED

    def uses_a_store() -> bool:
        return any(
            preparation.thread.is_alive() and not preparation.gate.is_idle
            for preparation in stopping
        )

    await wait_while(uses_a_store, STOP_TIMEOUT)


@atexit.register
def _stop_all() -> None:
    """Stop all before the process ends, so that no store loses its writer."""
    run(_stop(LIVE))


class Preparations:
    """The newest preparations of one object, by history."""

    def __init__(self) -> None:
        self.closed = False
        self.lock = threading.RLock()  # held where one is begun, so that two callers begin one
        self.latest: dict[Scope, Preparation] = {}  # the oldest first

    def add(self, scope: Scope, preparation: Preparation) -> None:
        """Keep a preparation as the newest one of its history.

        The oldest ones that have ended are dropped. One that runs is never dropped, so that `close`
        finds it.
        """
        with self.lock:
            self.latest.pop(scope, None)
            self.latest[scope] = preparation
            excess = max(0, len(self.latest) - SESSIONS)
            ended = [scope for scope, known in self.latest.items() if not known.thread.is_alive()]
            for dropped in ended[:excess]:
                del self.latest[dropped]

    def may_begin(self, scope: Scope, head_id: str, size: Size) -> bool:
        """Tell whether another preparation may begin for a history of this size.

        If the last one has made no draft, the history must have grown by a tenth.
        """
        latest = self.latest.get(scope)
        if self.closed or (latest is not None and latest.under_way):
            return False
        if latest is None or latest.size is None or latest.head_id != head_id:
            return True
        if size.messages < latest.size.messages:
            return True  # it has gone back
        return size_has_grown(size, latest.size) and latest.outcome != "ready"

    async def close(self, seconds: float | None) -> None:
        """Begin no more; wait up to these seconds for those that run, then stop them."""
        with self.lock:
            self.closed = True
            preparations = list(self.latest.values())
        for preparation in preparations:
            preparation.leave_blocked_loop()
        await wait_while(
            lambda: any(preparation.under_way for preparation in preparations), seconds
        )
        await _stop(preparations)
