"""What Conspectus costs, beside LangChain's `SummarizationMiddleware` and FTS5 in the same run.

    make bench [ONLY="steps recall"] [QUICK=1]    or: python benchmarks/speed.py [--json]

Costs are of the processor, medians of runs that take turns, so that other work on the machine
hardly counts; stalls of the event loop are real time, the least of three runs. `x` is a ratio,
LangChain's middleware = 1 unless the row names another. Ends with 1 if a value breaks its limit.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import calls
import rules
import speed_archive
import speed_hostile
import speed_serve
import speed_tokens
import summaries
from agent_steps import NEVER, Steps, fresh, loop, ours, theirs
from tables import Row, child, cpu, end, interleaved, number, ratio
from threads import SHAPES, agent, objects

from conspectus import Compactor

Rows = Iterator[Row]
IMPORT = """import json, time
began = time.process_time()
from conspectus import Compactor
print(json.dumps(time.process_time() - began))
"""


def importing(quick: bool) -> Rows:
    """Time the import in fresh interpreters."""
    runs = [child(IMPORT) for _ in range(3 if quick else 6)][1:]
    yield Row("from conspectus import Compactor, CPU", statistics.median(runs), 0.3, "s")


def stalls(quick: bool) -> Rows:
    """Measure the longest time in which the event loop does not turn."""
    for count, asked in ((1, 50), (8, 100)):
        runs = [asyncio.run(_longest_stall(count)) for _ in range(1 if quick else 3)]
        name = f"longest stall of the loop, acompact of 150,000 tokens, {count} at once"
        yield Row(name, min(runs), asked, "ms", f"runs: {', '.join(map(number, runs))} ms")


async def _longest_stall(count: int) -> float:
    """Compact so many threads at once; return the longest stall in milliseconds."""
    histories = [agent(651, seed) for seed in range(count)]  # some 150,000 tokens each
    longest = 0.0
    ends = False

    async def tick() -> None:
        nonlocal longest
        while not ends:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            longest = max(longest, time.perf_counter() - before - 0.001)

    with (
        tempfile.TemporaryDirectory() as folder,
        Compactor(window=100_000, archive=f"{folder}/a.db") as compactor,
    ):
        compactor.compact(agent(9), thread_id="warm", force=True)
        gc.collect()
        gc.freeze()  # a full collection of what the benchmark itself has made is no work of ours
        ticker = asyncio.create_task(tick())
        await asyncio.sleep(0.01)
        calls = [compactor.acompact(h, thread_id=f"t{at}") for at, h in enumerate(histories)]
        results = await asyncio.gather(*calls)
        await asyncio.sleep(0.01)
        ends = True
        await ticker
    assert all(result.outcome == "compacted" for result in results)
    return 1000 * longest


def first_step(quick: bool) -> Rows:
    """Time the first step on a long thread that no object of which was seen before."""
    count = 2_000 if quick else 10_000
    for shape, make in SHAPES.items():
        history = objects(make(count))

        def first(middleware: Callable[..., Any], history: Any = history) -> float:
            return Steps(middleware(trigger=NEVER), fresh(history)).step()

        results = interleaved(3, lambda: first(ours), lambda: first(theirs), seconds=15)
        yield ratio(f"first step on {count:,} messages, {shape}", results[0], results[1], 5)


def loops(quick: bool) -> Rows:
    """Time whole runs with compactions, without an archive and with one."""
    steps = 300 if quick else 2_000
    for shape, make in SHAPES.items():
        dicts = make(2 * steps)
        trigger = ("tokens", 20_000)
        counts: dict[str, int] = {}

        def run(name: str, middleware: Callable[..., Any], **more: Any) -> float:
            done = loop(middleware(trigger=trigger, **more), objects(dicts))  # noqa: B023
            counts[name] = done.compactions  # noqa: B023
            return done.spent

        with tempfile.TemporaryDirectory() as folder:
            paths = (f"{folder}/{at}.db" for at in range(100))
            alone, kept, base = interleaved(
                3,
                lambda: run("ours", ours),
                lambda: run("SQLite", ours, archive=next(paths)),  # noqa: B023
                lambda: run("theirs", theirs),
                seconds=15,
            )
        for what, spent, key, asked in (
            ("no archive", alone, "ours", 2),
            ("SQLite", kept, "SQLite", 4),
        ):
            row = ratio(f"loop of {steps:,} steps, {what}, {shape}", spent, base, asked)
            compactions = f"; {counts[key]} and {counts['theirs']} compactions"
            yield Row(row.name, row.value, asked, detail=row.detail + compactions)


def plain_loops(quick: bool) -> Rows:
    """Time `Compactor.compact` with nothing due on a growing list of dicts."""
    count = 1_000 if quick else 4_000
    for shape, make in SHAPES.items():
        dicts = make(count + 100)
        base = Steps(theirs(trigger=NEVER), objects(dicts[:count]))
        with tempfile.TemporaryDirectory() as folder:
            for archive in (None, f"{folder}/a.db"):
                compactor = Compactor(trigger=NEVER, archive=archive)
                compactor.compact(dicts[:count], thread_id="t")
                ends = iter(range(count + 2, len(dicts), 2))

                def step(compactor: Any = compactor, dicts: Any = dicts, ends: Any = ends) -> float:
                    history = dicts[: next(ends)]
                    return cpu(lambda: compactor.compact(history, thread_id="t"))

                mine, other = interleaved(15, step, base.step, seconds=10)
                what = "SQLite" if archive else "no archive"
                name = f"plain loop, nothing due, {count:,} dicts, {what}, {shape}"
                yield ratio(name, mine, other, 2)


def warm_steps(quick: bool) -> Rows:
    """Time a step with nothing due on a thread that was seen before, at two lengths.

    Several in a row, as in a loop: the first one finds the caches of the processor swept by the
    garbage collection before it.
    """
    lengths = (1_000, 10_000) if quick else (10_000, 100_000)
    in_a_row = 8
    kinds: dict[str, dict[str, Any]] = {
        "": {}, ', recall="auto"': {"recall": "auto", "archive": "memory:"}
    }  # fmt: skip
    taken: dict[tuple[str, str, int], tuple[float, float]] = {}
    for shape, make in SHAPES.items():
        for count in lengths:
            history = objects(make(count + 2 * in_a_row * 16))
            base = Steps(theirs(trigger=NEVER), history[:count])
            for kind, settings in kinds.items():
                mine = Steps(ours(trigger=NEVER, **settings), history[:count])
                mine.step()
                pairs = iter(range(count, len(history), 2))
                first = list[float]()

                def steps(
                    mine: Any = mine, history: Any = history, pairs: Any = pairs, first: Any = first
                ) -> float:
                    places = [next(pairs) for _ in range(in_a_row)]
                    each = [float(mine.step(history[at : at + 2])) for at in places]
                    first.append(each[0])
                    return statistics.fmean(each)

                both = interleaved(5 if count > 50_000 else 15, steps, base.step)
                asked = 0.02 if count >= 10_000 else None
                row = ratio(f"warm step at {count:,} messages, {shape}{kind}", *both, asked)
                cold = f"; {number(statistics.median(first))} ms after a garbage collection"
                yield Row(row.name, row.value, asked, detail=row.detail + cold)
                taken[shape, kind, count] = row.value, statistics.median(both[0])
    for (shape, kind, count), (value, spent) in taken.items():
        if count == lengths[1]:
            name = f"warm step, growth over ten times as many, {shape}{kind}"
            less, least = taken[shape, kind, lengths[0]]
            detail = f"LangChain's = 1; {number(least)} → {number(spent)} ms"
            yield Row(name, value / less, 1, detail=detail)


MEMORY = "import json, sys, speed; print(json.dumps(speed.memory_of(int(sys.argv[1]))))"
PATIENCE = 60.0
"""Seconds of the processor after which the long thread is given up."""


def memory(quick: bool) -> Rows:
    """Measure the memory of a process over one long thread."""
    turns = 4_000 if quick else 20_000
    # The C library's allocator gives pages back; Python's own keeps an arena for one small object.
    sizes = child(MEMORY, str(turns), environment={"PYTHONMALLOC": "malloc"})
    detail = ", ".join(f"{count:,}: {size:.1f} MB" for count, size in sizes)
    yield Row(f"turns in one thread, in {PATIENCE:g} s of CPU", sizes[-1][0], turns, "",
              at_least=True)  # fmt: skip
    name = "memory after all turns in one thread, after the first 1,000 = 1"
    yield Row(name, sizes[-1][1] / sizes[0][1], 1.1, detail=detail)


def memory_of(turns: int) -> list[tuple[int, float]]:
    """Run turns in one thread; return megabytes in memory after some counts of them."""
    import ctypes
    import gc

    trim = ctypes.CDLL(None).malloc_trim
    sizes = []
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        compactor = Compactor(window=6_000, archive=f"{folder}/a.db")
        view: list[Any] = []
        for turn in range(1, turns + 1):
            said = f"What does part {turn} of the project do, and who calls it?"
            answer = f"Part {turn} adds up the rows of table {turn % 97} and prints them. " * 3
            view += [{"role": "user", "content": said}, {"role": "assistant", "content": answer}]
            view = list(compactor.compact(view, thread_id="t").messages)
            over = turn > 1_000 and time.process_time() - began > PATIENCE
            if turn in (1_000, turns // 2, turns) or over:
                gc.collect()
                trim(0)
                pages = int(Path("/proc/self/statm").read_text().split()[1])
                sizes.append((turn, pages * 4096 / 1e6))
            if over:
                break
    return sizes


GROUPS: dict[str, Callable[[bool], Rows]] = {
    "import": importing,
    "stalls": stalls,
    "first": first_step,
    "loops": loops,
    "plain": plain_loops,
    "steps": warm_steps,
    "tokens": speed_tokens.rows,
    "memory": memory,
    "endpoint": speed_serve.rows,
    "hostile": speed_hostile.rows,
    "calls": calls.rows,
    "summaries": summaries.rows,
    "rules": rules.rows,
    **speed_archive.GROUPS,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=GROUPS, metavar="GROUP", default=[*GROUPS],
                        help=f"some of {', '.join(GROUPS)}")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="shorter threads, for a first look")
    parser.add_argument("--json", action="store_true", help="print the rows as data")
    given = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)
    rows: list[Row] = []
    began = time.monotonic()
    for name in given.only:
        before = time.monotonic()
        try:
            rows.extend(GROUPS[name](given.quick))
        except KeyboardInterrupt:
            print(f"stopped in {name}; the rows before it:", file=sys.stderr)
            return end("Speed", rows, given.json) or 130
        print(f"{name}: {time.monotonic() - before:.0f} s", file=sys.stderr, flush=True)
    title = f"Speed, in {time.monotonic() - began:.0f} s"
    return end(title, rows, given.json)


if __name__ == "__main__":
    sys.exit(main())
