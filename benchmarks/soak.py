"""Agents driven with faults at random; nothing may be lost, over or leaking.

    make soak MINUTES=30 [AGENTS=50] [POSTGRES=address] [SEED=1] [PAUSE=4] [RENEW=30]

A mix of agents, half of them on an event loop, the others in threads of their own: `create_agent`
with `history="replace"` and `"preserve"`, deep agents, callers of `Compactor`, and nodes of the
short-term memory. Their summarisers fail in every way of `fault_cases.py`, their stores fail and
forget, their models fail, steps are cancelled, agents start again from their checkpoints and go
back to earlier ones, messages are larger than the window, in English and Chinese. Each agent holds
everything that was ever said against view and archive, all the time and at the end. Ends with 1 if
anything is missing, a request is over its window, or memory grows; with 2 if an option makes no
sense.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import printed
from command_line import Options, Progress, at_least, ended, stopped, whole
from rich.table import Table
from soak_agents import Settings, Soaked, living
from soak_callers import SoakedCaller, SoakedNode
from soak_graphs import SoakedAgent
from soak_measures import (
    PERCENTILES,
    Counts,
    Slope,
    forget_caches,
    in_one_arena,
    in_use,
    none_left_behind,
    percentiles,
    resident,
    settle,
    slope,
)
from worker_places import aplace, own_schema, place

from conspectus.bridge import arun, run

screen = printed.screen(110)

SCHEMAS = "conspectus_soak"

KINDS: tuple[tuple[str, type[Soaked]], ...] = (
    ("agent, replace", SoakedAgent),
    ("agent, preserve", SoakedAgent),
    ("Compactor", SoakedCaller),
    ("short_term", SoakedNode),
    ("deep agent", SoakedAgent),
)
"""What agents there are; they take turns in this order."""

GROWTH = 128 * 1024
"""Bytes by which memory may grow in 1,000 steps: the interval must not lie wholly above it."""

WARM_UP = 0.5
"""Share of the time left out of the slope: caches fill, conversations are not renewed yet."""

LEAST = 5_000
"""Steps, after the warm-up, from which on memory is judged: before, conversations still grow."""

MANY = 300
"""Turns of one kind of agents within which some must have compacted."""

EVERY = 20.0
"""Seconds between two looks at memory."""

TOLD = 60.0
"""Seconds between two lines that say how far it is."""

PATIENCE = 20.0
"""Seconds that a look waits for agents to end their turns; others do not begin theirs meanwhile."""


class Look(NamedTuple):
    """One look at memory: seconds, steps, and bytes in use and resident."""

    at: float
    steps: float
    in_use: int
    resident: int


@dataclass
class Soak:
    """One soak.

    Attributes:
        agents: number of agents.
        seconds: duration.
        wait: seconds between two turns of one agent, on average.
        seed: of all chance.
        address: of a PostgreSQL database for a third of the agents; empty for none.
        renew: turns of one conversation.
        faults: frequency of faults, as a factor.
    """

    agents: int = 50
    seconds: float = 60
    wait: float = 4.0
    seed: int = 1
    address: str = ""
    renew: int = 30
    faults: float = 1.0
    counts: Counts = field(default_factory=Counts)
    memory: list[Look] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    driven: list[Soaked] = field(default_factory=list)

    def run(self) -> Soak:
        """Drive them all; print the figures so far where somebody stops it."""
        progress = Progress("soak, seconds", math.ceil(self.seconds), TOLD)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
            folder = Path(name)
            self.settings = Settings(self.counts, folder, self.renew, faults=self.faults)
            self.began = time.monotonic()
            self.until = self.began + self.seconds
            with ExitStack() as stack:
                places = [stack.enter_context(place("sqlite", folder, lean=True))]
                if self.address:
                    there = place("postgres", folder, self.address, lean=True)
                    places.append(stack.enter_context(there))
                loop = threading.Thread(target=self._on_a_loop, args=(folder,), name="soak-loop")
                threads = [
                    threading.Thread(target=self._alone, args=(number, *places[which]))
                    for number in range(0, self.agents, 2)
                    for which in [self._where(number, len(places))]
                ]
                for thread in [*threads, loop]:
                    thread.start()
                try:
                    while any(thread.is_alive() for thread in [*threads, loop]):
                        self._sample()
                        time.sleep(min(EVERY, self.seconds / 40))
                        gone = int(time.monotonic() - self.began)
                        progress.step(self._far, gone - progress.done)
                except KeyboardInterrupt:
                    self.show()
                    raise
        return self

    @property
    def _far(self) -> str:
        counts = self.counts
        return (
            f"{counts.steps:,} steps, {counts.compactions:,} compactions, "
            f"{counts.missing} missing, {counts.over} over"
        )

    def _where(self, number: int, places: int) -> int:
        return 1 if places > 1 and number // 2 % 3 == 2 else 0

    def _sample(self) -> None:
        if len(self.driven) < self.agents:
            return  # some are still being built, and no gate keeps these
        if time.monotonic() >= self.until:
            return  # agents come to their end, one by one
        with self.settings.gate.closed(PATIENCE) as quiet:
            if not quiet or not none_left_behind(PATIENCE):
                self.counts.failed("memory not looked at: turns took too long")
                return
            forget_caches()
            settle()
            at = time.monotonic() - self.began
            self.memory.append(Look(at, self.counts.steps, in_use(), resident()))

    def _agent(self, number: int, saver: Any, store: Any) -> Soaked:
        kind, made = KINDS[number // 2 % len(KINDS)]
        own = random.Random(self.seed * 1_000 + number).randrange(2**31)
        keeps = saver if kind.startswith(("agent", "deep")) else None
        agent: Soaked = made(kind, number, self.settings, keeps, store, own)
        self.driven.append(agent)
        return agent

    @property
    def held(self) -> int:
        """Count the bytes of the soak's own records."""
        return self.counts.held + sum(agent.held for agent in self.driven)

    def _flow(self, number: int, saver: Any, store: Any) -> Any:
        agent = self._agent(number, saver, store)
        return living(agent, self.until, self.wait, lambda: not self.broken)

    def _alone(self, number: int, saver: Any, store: Any) -> None:
        try:
            run(self._flow(number, saver, store))
        except BaseException:
            self.broken.append(f"agent {number}: {traceback.format_exc()[-3000:]}")

    def _on_a_loop(self, folder: Path) -> None:
        (folder / "loop").mkdir()

        async def main() -> None:
            async with aplace("sqlite", folder / "loop", lean=True) as own:
                if not self.address:
                    await self._together([own])
                    return
                async with aplace("postgres", folder, self.address, lean=True) as other:
                    await self._together([own, other])

        try:
            asyncio.run(main())
        except BaseException:
            self.broken.append(f"on the loop: {traceback.format_exc()[-3000:]}")

    async def _together(self, places: list[tuple[Any, Any]]) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(1, self.agents, 2):
                which = places[self._where(number, len(places))]
                group.create_task(arun(self._flow(number, *which)))

    # What came of it

    @property
    def growth(self) -> Slope | None:
        """Fit the growth of memory in use once it is warm."""
        return slope([(look.steps, look.in_use) for look in self._warm])

    @property
    def _warm(self) -> list[Look]:
        start = self.memory[-1].at * WARM_UP if self.memory else 0
        return [look for look in self.memory if look.at >= start]

    @property
    def wrong(self) -> list[str]:
        """List the faults, one sentence each."""
        counts, growth = self.counts, self.growth
        found = list(self.broken)
        if counts.missing:
            found.append(f"{counts.missing} messages are missing")
        if counts.over:
            found.append(f"{counts.over} requests are over their window")
        if not self.broken and (not counts.compactions or not counts.verified):
            found.append(
                "nothing was compacted or looked at: the run was too short to say anything"
            )
        found += [
            f"of the agents of the kind {kind} none has compacted in {turns:,} turns"
            for kind, turns in sorted(counts.turns_of.items())
            if turns >= MANY and not counts.kinds[kind]
        ]
        if growth is None and counts.steps >= 3 * LEAST:
            found.append("memory was looked at too seldom to be judged")
        if growth is not None and growth.steps >= LEAST and growth.low > GROWTH / 1_000:
            found.append("memory grows")
        return [*found, *counts.said]

    def show(self) -> None:
        """Print the tables and the faults."""
        for table in self.tables():
            screen.print(table)
        for one in self.wrong:
            screen.print(one, style="red")

    def tables(self) -> list[Table]:
        """Make the tables."""
        counts, growth = self.counts, self.growth
        title = f"{self.agents} agents, {self.seconds / 60:g} minutes, seed {self.seed}"
        main = printed.table(title, ("what", "count"))
        rows: dict[str, Any] = {
            "turns": counts.turns,
            "steps": counts.steps,
            "compactions": counts.compactions,
            **{f"  of {kind}": counts.kinds[kind] for kind, _ in KINDS},
            "looks at a message": counts.verified,
            "messages missing": counts.missing,
            "budget misses": counts.over,
        }
        for name, value in rows.items():
            main.add_row(name, f"{value:,}")
        if growth is None:
            main.add_row("memory", "too few samples for a slope")
        else:
            judged = "" if growth.steps >= LEAST else f"; not judged below {LEAST:,} steps"
            main.add_row("memory in use", _in_words(growth) + judged)
            of_system = slope([(look.steps, look.resident) for look in self._warm])
            main.add_row("memory of the process", _in_words(of_system) if of_system else "")
            last = self.memory[-1]
            main.add_row("in use at the end", f"{last.in_use / 2**20:,.0f} MB")
            main.add_row("of the process then", f"{last.resident / 2**20:,.0f} MB")
            main.add_row("held by the soak itself then", f"{self.held / 2**20:,.1f} MB")
        title = "what went wrong, on purpose, and what came of it"
        faults = printed.table(title, ("kind", "times"))
        for kind, times in sorted(counts.failures.items(), key=lambda one: (-one[1], one[0])):
            faults.add_row(kind, f"{times:,}")
        columns = ("kind", "steps", *("max" if p == 100 else f"{p:g} %" for p in PERCENTILES))
        late = printed.table("milliseconds of ours in a step, without the models", columns)
        for kind, seconds in sorted(counts.latencies.items()):
            found = [f"{1_000 * one:,.1f}" for one in percentiles(seconds)]
            late.add_row(kind, f"{counts.timed[kind]:,}", *found)
        return [main, faults, late]


def _in_words(growth: Slope) -> str:
    low, mid, high = (one * 1_000 / 1_024 for one in (growth.low, growth.each, growth.high))
    return f"{mid:+,.1f} KB in 1,000 steps (95 %: {low:+,.1f} to {high:+,.1f})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Soak, print the tables, and say whether the promises held."""
    in_one_arena()  # before there are threads
    parser = Options(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=at_least(0, float, above=True), default=30)
    parser.add_argument("--agents", type=at_least(1), default=50)
    parser.add_argument("--seed", type=whole, default=1)
    parser.add_argument(
        "--pause", type=at_least(0, float), default=4.0, help="seconds between two turns of one"
    )
    parser.add_argument("--renew", type=at_least(1), default=30, help="turns of one conversation")
    parser.add_argument(
        "--postgres", default="", help="address of a database; a schema is made and dropped"
    )
    given = parser.parse_args(arguments)
    parser.reaches(given.postgres)
    logging.disable(logging.CRITICAL)  # thousands of faults would each have a line
    warnings.simplefilter("ignore")
    soak = Soak(
        agents=given.agents,
        seconds=given.minutes * 60,
        wait=given.pause,
        seed=given.seed,
        renew=given.renew,
    )
    try:
        with own_schema(given.postgres, SCHEMAS) as soak.address:
            soak.run()
    except KeyboardInterrupt:
        return stopped("the tables hold what was done until then, not all of it looked at")
    soak.show()
    return 1 if soak.wrong else 0


if __name__ == "__main__":
    ended(main, lambda: f"a schema {SCHEMAS}_* may be left where POSTGRES= was given")
