"""Keep the preparations of this process by history, and stop them at `close`."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Self
from weakref import WeakSet, WeakValueDictionary

from conspectus.archive import Archive, Scope
from conspectus.bridge import arun, io, run
from conspectus.core.items import Size, Window
from conspectus.core.policy import Policy, grown
from conspectus.core.prepared_cut import foreseen
from conspectus.engine.memory import THREADS
from conspectus.engine.preparation import Make, Preparation, begun, stopped_flow
from conspectus.errors import PolicyError

PREPARE = 0.7
"""Share of the trigger from which on notes are prepared. In windows with a tenth of room above the
trigger, four tenths of it outlast a summary of 30 seconds."""


@dataclass(frozen=True, slots=True)
class Background:
    """When notes are prepared in the background.

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
        limit = None if room is None else room.limit
        return policy.fired(foreseen(size, self.prepare), limit) is not None

    @classmethod
    def of(cls, given: object) -> Background | None:
        """Read the setting as users write it; None for off."""
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


def check_seconds(given: object) -> None:
    """Raise `PolicyError` for an invalid time to wait."""
    number = isinstance(given, (int, float)) and not isinstance(given, bool)
    if given is not None and not (number and 0 <= given < inf):  # type: ignore[operator]
        raise PolicyError(f"timeout must be seconds from 0 on, or None for no end, not {given!r}")


AnyBackground = bool | Background | Mapping[str, Any] | None


_UNDER_WAY: WeakValueDictionary[Hashable, Preparation] = WeakValueDictionary()
"""The preparations of this process, by archive, history and settings."""


class Preparations:
    """The newest preparations of this process, by history."""

    def __init__(self, setting: Background) -> None:
        self.setting = setting
        self._known: OrderedDict[Scope, Preparation] = OrderedDict()
        self._begun: WeakSet[Preparation] = WeakSet()
        self._lock, self._closed = threading.Lock(), False

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def busy(self) -> bool:
        """Whether a preparation may be using a store."""
        with self._lock:
            return any(job.under_way or not job.is_at_rest for job in self._begun)

    @classmethod
    def of(cls, given: object) -> Preparations | None:
        """Read the setting as users write it; None for off."""
        setting = Background.of(given)
        return None if setting is None else cls(setting)

    def latest(self, scope: Scope) -> Preparation | None:
        with self._lock:
            return self._known.get(scope)

    def forget(self, scope: Scope) -> None:
        """Forget the latest preparation: it was swapped in or dropped."""
        with self._lock:
            self._known.pop(scope, None)

    def wanted(self, scope: Scope, head: str, size: Size) -> bool:
        """Return whether another preparation should begin for a history.

        One without a draft is tried again once the history has grown by a tenth. After two that
        were cancelled, as where each request has an event loop of its own, none begins again.
        """
        known = self.latest(scope)
        if self._closed or known is None or known.under_way:
            return known is None and not self._closed
        before = known.size
        if known.lost and known.outcome in ("", "cancelled"):
            return False
        if before is None or known.head != head or size.messages < before.messages:
            return True
        if known.outcome == "ready":
            return False
        return grown(size.tokens, before.tokens) or grown(size.messages, before.messages)

    async def begin(
        self, scope: Scope, head: str, size: Size | None, make: Make, name: Hashable
    ) -> Preparation:
        """Begin a preparation, or return the one under way, also another object's of this name."""
        with self._lock:
            known = self._known.pop(scope, None)
            if known is None or not known.under_way:
                known = _UNDER_WAY.get(name, known)
            new = known is None or not known.under_way
            job = Preparation(head, size=size) if known is None or new else known
            if known is not None and known.outcome in ("", "cancelled"):
                job.lost = known.lost + new
            if self._closed and new:
                job.ended("cancelled", "what prepares the notes was closed")
                job._over.set()
                return job
            self._known[scope] = job
            if new:
                self._begun.add(job)
                _UNDER_WAY[name] = job
            while len(self._known) > THREADS:
                self._known.popitem(last=False)
        if new:
            await begun(job, make)
        return job

    async def close_flow(self, seconds: float | None) -> None:
        """Begin no more; wait up to these seconds for those under way, then stop them."""
        with self._lock:
            self._closed, jobs = True, list(self._begun)
        until = None if seconds is None else time.monotonic() + seconds
        for job in jobs:
            while job.under_way and (until is None or time.monotonic() < until):
                if not (await job.looked_at()):
                    break
        await stopped_flow(jobs)


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

        Afterwards no thread and no task of this object uses a store, whose connection may then be
        closed. A store or an `Archive` that was given stays open, and the object goes on without
        `background`.

        Args:
            timeout: seconds to wait for notes that a model is writing; later ones are thrown away.
                Default: no limit.

        Raises:
            PolicyError: `timeout` is no number of seconds.
        """
        run(self._closed_flow(timeout))

    async def aclose(self, timeout: float | None = None) -> None:
        """`close` on an event loop, where notes are prepared as its tasks."""
        await arun(self._closed_flow(timeout))

    async def _closed_flow(self, timeout: float | None) -> None:
        check_seconds(timeout)
        for one in self._prepares():
            await one.close_flow(timeout)
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
