"""Agents of a soak: each drives a conversation through faults, and checks it.

An agent keeps its own list of everything that was ever said on its branch: what users said as they
said it, what tools gave as they gave it, and what the model said. Each of these must be in view, or
come back whole from the archive. One body for agents with and without an event loop: steps are
coroutines, as in `conspectus.bridge`.
"""

from __future__ import annotations

import hashlib
import random
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from soak_faults import STORE_FAULTS, UncertainStore, Weather, Writer
from soak_measures import Counts, Gate

from conspectus import TokenMeter
from conspectus.archive import Archive
from conspectus.bridge import io, pause
from conspectus.compactor.settings import LOCAL

MODEL = "gpt-4o"
WINDOW, DEEP_WINDOW = 4_000, 9_000
"""Input limits in tokens; the tools of a deep agent take some 4,000."""

ENGLISH = "The page lists invoices of a customer, with their numbers and dates. "
CHINESE = "这一页列出了客户的发票、编号和日期，请逐项核对后再继续下一步。"
MARKS = 12
"""Places that an agent may go back to."""


@dataclass
class Settings:
    """Settings that all agents of a soak share.

    Attributes:
        counts: shared counts.
        folder: for files.
        renew: turns after which a conversation ends and another begins.
        check: turns between two looks at whether everything is there.
        faults: frequency of faults, as a factor; 1 is as documented.
        gate: closed while memory is looked at.
    """

    counts: Counts
    folder: Path
    renew: int = 30
    check: int = 10
    faults: float = 1.0
    gate: Gate = field(default_factory=Gate)


@dataclass(repr=False)  # LangChain keeps what a model looks like in text, with whom it calls back
class Soaked:
    """One agent.

    Attributes:
        kind: of agent.
        number: which.
        settings: shared by all.
        saver, store: of its conversation.
        ever: marks of the texts of all that was ever said on its branch, by id, in order.
        marks: places to go back to: what names the place, and how much had been said.
    """

    kind: str
    number: int
    settings: Settings
    saver: Any
    store: Any
    seed: int
    weather: Weather = field(default_factory=Weather)
    ever: dict[str, bytes] = field(default_factory=dict)
    marks: list[tuple[Any, int]] = field(default_factory=list)
    turn: int = 0
    life: int = 0
    faults: int = 0
    diary: deque[str] = field(default_factory=lambda: deque(maxlen=20))

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.counts = self.settings.counts
        self.uncertain = UncertainStore(self.store, self.weather, self.random)
        self.writer = Writer(answers=[], seed=self.seed, failed=self.fail)
        # Not all at once: the first conversation of each is of another length.
        self.ends = self.random.randint(2, max(2, self.settings.renew))
        self._new_meter()
        self.begin()

    def _new_meter(self) -> None:
        # Counts requests as they are sent; one of each conversation, as it remembers messages.
        self.meter = TokenMeter(model=MODEL)

    @property
    def thread(self) -> str:
        """Name the conversation."""
        return f"agent-{self.number}-{self.life}"

    def chance(self, share: float) -> bool:
        """Say whether a fault of this frequency happens now."""
        return self.random.random() < share * self.settings.faults

    def fail(self, kind: str) -> None:
        """Note a fault."""
        self.faults += 1
        self.diary.append(f"{self.turn}: {kind}")
        self.counts.failed(kind)

    def words(self, giant: bool = False) -> str:
        """Make words in English or Chinese, few or more than any window."""
        text = CHINESE if self.random.random() < 0.2 else ENGLISH
        if giant:
            return text * (self.random.randint(25_000, 60_000) // len(text))
        return text * self.random.randint(1, 6)

    def heard(self, event: str, data: Any) -> None:
        """Listen to compactions."""
        if event == "end":
            self.counts.compacted_by(self.kind)
        elif event == "attempt_failed":
            self.fail("a summary failed or was refused")
        elif event == "failed":
            self.fail("no summary in the end: history kept")

    def timed(self, kind: str, started: float, waited: float, failed: int) -> None:
        """Note the time of a step of ours, without the summariser."""
        took = max(0.0, time.perf_counter() - started - (self.writer.spent - waited))
        calm = not self.weather.fault and self.faults == failed
        self.counts.took(kind if calm else f"{kind}, with a fault", took)

    # What kinds do in their own way

    def begin(self) -> None:
        """Begin a conversation."""
        raise NotImplementedError

    def restart(self) -> None:
        """Go on as another process would, without any memory."""
        raise NotImplementedError

    def say(self) -> Awaitable[None]:
        """Play one turn."""
        raise NotImplementedError

    def back(self, mark: Any) -> Awaitable[None]:
        """Go back to a place."""
        raise NotImplementedError

    def place(self) -> Awaitable[Any]:
        """Name the present place."""
        raise NotImplementedError

    @property
    def held(self) -> int:
        """Count the bytes of the agent's records, which are the soak's, not ours."""
        kept = [self.ever, *vars(self).get("known", ())]
        return sum(
            sys.getsizeof(one) + sum(map(sys.getsizeof, (*one, *one.values()))) for one in kept
        )

    def there(self) -> Awaitable[dict[str, set[str]]]:
        """Find the texts in view or in the archive, by their names in `ever`."""
        raise NotImplementedError

    # One turn, and what is around it

    async def step(self) -> None:
        """Play one turn with its faults, and check that all is there."""
        self.turn += 1
        if self.chance(0.12):
            self.weather.fault = self.random.choice(STORE_FAULTS)
            self.fail(f"store {self.weather.fault}")
        try:
            await self.say()
        finally:
            self.weather.fault = ""
        self.counts.turn_of(self.kind)
        if self.turn % self.settings.check == 0 or self.turn >= self.ends:
            await self.verify()
        self.marks.append(((await self.place()), len(self.ever)))
        del self.marks[:-MARKS]
        if self.chance(0.04):
            self.restart()
            self.fail("restarted from its checkpoint")
        if self.chance(0.04) and len(self.marks) > 2:
            at = self.random.randrange(len(self.marks) - 1)
            mark, said = self.marks[at]
            del self.marks[at:]
            await self.back(mark)
            self.ever = dict(list(self.ever.items())[:said])
            self.fail("went back to an earlier place")
            await self.verify()
        if self.turn >= self.ends:
            await self.renew()

    async def renew(self) -> None:
        """End this conversation, forget it, and begin another."""
        archive = Archive(self.store)
        await archive.flow(archive.forget, LOCAL, self.thread)
        if self.saver is not None:
            thread = self.thread
            await io(
                lambda: self.saver.delete_thread(thread), lambda: self.saver.adelete_thread(thread)
            )
        self.turn, self.life = 0, self.life + 1
        self.ends = self.settings.renew
        self.ever, self.marks = {}, []
        self._new_meter()
        self.begin()

    async def verify(self) -> None:
        """Check that all words are in view, or come back whole."""
        there = await self.there()
        shown = {name: {*map(mark_of, texts)} for name, texts in there.items()}
        gone = [name for name, mark in self.ever.items() if mark not in shown.get(name, ())]
        self.counts.add(verified=len(self.ever), missing=len(gone))
        for name in gone[:2]:
            texts = [text[:60] for text in there.get(name, ())]
            self.counts.say(
                f"{self.kind} {self.thread}, turn {self.turn}: {name} {texts}; {[*self.diary]}"
            )


def mark_of(text: object) -> bytes:
    """Hash a text, as the soak itself must not keep all words."""
    return hashlib.blake2b(str(text).encode("utf-8", "surrogatepass"), digest_size=16).digest()


async def living(agent: Soaked, until: float, wait: float, patience: Callable[[], bool]) -> None:
    """Drive one agent until the time is over.

    Args:
        agent: which.
        until: on the monotonic clock, in seconds.
        wait: seconds between two turns, on average.
        patience: says whether to go on.
    """
    await pause(agent.random.random() * wait)
    gate = agent.settings.gate
    while time.monotonic() < until and patience():
        if not gate.enter():
            await pause(0.1)
            continue
        try:
            await agent.step()
        finally:
            gate.leave()
        left = max(0.0, until - time.monotonic())
        await pause(min(left, wait * (0.5 + agent.random.random())))
    while not gate.enter():
        await pause(0.1)
    try:
        await agent.verify()
    finally:
        gate.leave()
