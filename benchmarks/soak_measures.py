"""Counts and times of a soak: failures, latencies, and the growth of memory."""

from __future__ import annotations

import ctypes
import functools
import gc
import math
import os
import random
import sys
import threading
import time
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from conspectus.bridge import LEFT_BEHIND
from conspectus.short_term import prompts, records, settings

KEPT = 20_000
"""Latencies kept of each kind: beyond that, a random sample of all."""

PERCENTILES = (50, 90, 99, 99.9, 100)


@dataclass
class Counts:
    """Counts of all agents of a soak; safe to share between threads."""

    steps: int = 0
    turns: int = 0
    compactions: int = 0
    verified: int = 0
    missing: int = 0
    over: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    said: list[str] = field(default_factory=list)
    latencies: dict[str, array[float]] = field(
        default_factory=lambda: defaultdict(lambda: array("d"))
    )
    timed: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    turns_of: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _random: random.Random = field(default_factory=lambda: random.Random(1))

    def add(self, **more: int) -> None:
        """Count."""
        with self._lock:
            for name, number in more.items():
                setattr(self, name, getattr(self, name) + number)

    def turn_of(self, kind: str) -> None:
        """Count one more turn of an agent of this kind."""
        with self._lock:
            self.turns += 1
            self.turns_of[kind] += 1

    def compacted_by(self, kind: str) -> None:
        """Count one more compaction of an agent of this kind."""
        with self._lock:
            self.compactions += 1
            self.kinds[kind] += 1

    def failed(self, kind: str) -> None:
        """Count one more fault of a kind."""
        with self._lock:
            self.failures[kind] += 1

    def say(self, text: str) -> None:
        """Remember a fault in words, the first times."""
        with self._lock:
            if len(self.said) < 20:
                self.said.append(text[:1_000])

    def took(self, kind: str, seconds: float) -> None:
        """Note the time of one step of our code."""
        with self._lock:
            self.timed[kind] += 1
            kept = self.latencies[kind]
            if len(kept) < KEPT:
                kept.append(seconds)
            elif (place := self._random.randrange(self.timed[kind])) < KEPT:
                kept[place] = seconds

    @property
    def held(self) -> int:
        """Count the bytes of the latencies, which grow until there are enough."""
        with self._lock:
            return sum(map(sys.getsizeof, self.latencies.values()))


def percentiles(seconds: Sequence[float]) -> list[float]:
    """Give the latencies at the percentiles, the nearest ones that were measured."""
    ordered = sorted(seconds)
    last = len(ordered) - 1
    return [
        ordered[min(last, math.ceil(round(p * len(ordered) / 100, 6)) - 1)] for p in PERCENTILES
    ]


def settle() -> None:
    """Free garbage, so that what remains is in use.

    Garbage in cycles is collected, and the C library gives free pages back: each thread that ever
    was leaves some behind, and those are no growth of ours.
    """
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def forget_caches() -> None:
    """Empty the bounded caches of functions, ours and those of libraries.

    Those are no leak; but some take longer to fill than a soak lasts, such as the statements that a
    connection to SQLite has compiled. What has no bound is left alone, as it could be a leak.

    Only while nobody is at work: a tuple that another thread is building would be held here too,
    and Python then refuses to finish it.
    """
    for cached in gc.get_objects():
        if isinstance(cached, functools._lru_cache_wrapper) and cached.cache_info().maxsize:
            cached.cache_clear()
    for tallies in settings._tallies.values():  # emptied, as nodes hold them too
        tallies._threads.clear()
    for kept in (prompts._standing, records._notes, records._followed):
        kept.clear()


def none_left_behind(patience: float) -> bool:
    """Say whether no late call of ours is under way after this number of seconds."""
    until = time.monotonic() + patience
    while any(thread.name == LEFT_BEHIND for thread in threading.enumerate()):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


ARENAS = -8
"""The option of glibc's `mallopt` that says how many arenas there may be."""


def in_one_arena() -> None:
    """Let all threads have their memory from one place, where the C library can.

    Otherwise each thread leaves free memory in an arena of its own, which is not given back while
    anything in it is in use: it hides what is held.
    """
    choose = getattr(ctypes.CDLL(None), "mallopt", None)
    if choose is not None:
        choose(ARENAS, 1)


def resident() -> int:
    """Give the bytes of memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


class _Allocated(ctypes.Structure):
    """The answer of glibc's `mallinfo2`."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def in_use() -> int:
    """Count the bytes in use from the C library, without free ones between them.

    Without that figure, return the memory of the process.
    """
    ask = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if ask is None:
        return resident()
    ask.restype = _Allocated
    told = ask()
    return int(told.uordblks + told.hblkhd)


class Gate:
    """A gate where agents wait while memory is looked at."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._working, self._closed = 0, False

    def enter(self) -> bool:
        """Say whether one more turn may begin now; it must `leave` then."""
        with self._changed:
            self._working += not self._closed
            return not self._closed

    def leave(self) -> None:
        """End a turn."""
        with self._changed:
            self._working -= 1
            self._changed.notify_all()

    @contextmanager
    def closed(self, patience: float) -> Iterator[bool]:
        """Close it; say whether nobody is at work after this number of seconds."""
        with self._changed:
            self._closed = True
            quiet = self._changed.wait_for(lambda: not self._working, patience)
        try:
            yield quiet
        finally:
            with self._changed:
                self._closed = False


@dataclass(frozen=True)
class Slope:
    """Bytes by which memory grows in a step, with a 95 % interval."""

    each: float
    low: float
    high: float
    steps: float


def slope(samples: Sequence[tuple[float, float]]) -> Slope | None:
    """Fit a straight line through memory over steps, by least squares.

    Samples that follow each other are alike, so the error is Newey and West's, with weights that
    fall to nothing over an eighth of the samples; the interval takes Student's t for as many
    degrees of freedom as there are such stretches.

    Args:
        samples: steps and bytes, in the order of time.
    """
    count = len(samples)
    if count < 16:
        return None
    mean_x = sum(x for x, _ in samples) / count
    mean_y = sum(y for _, y in samples) / count
    spread = sum((x - mean_x) ** 2 for x, _ in samples)
    if spread == 0:
        return None
    each = sum((x - mean_x) * (y - mean_y) for x, y in samples) / spread
    pulls = [(x - mean_x) * (y - mean_y - each * (x - mean_x)) for x, y in samples]
    lags = count // 8
    variance = sum(one * one for one in pulls)
    for lag in range(1, lags + 1):
        weight = 1 - lag / (lags + 1)
        together = sum(a * b for a, b in zip(pulls, pulls[lag:], strict=False))
        variance += 2 * weight * together
    error = math.sqrt(max(variance, 0.0) * count / (count - 2)) / spread
    t = 2.45  # Student's, 95 %, 6 degrees of freedom
    return Slope(each, each - t * error, each + t * error, samples[-1][0] - samples[0][0])
