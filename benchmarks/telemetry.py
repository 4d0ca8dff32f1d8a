"""The cost of telemetry: nobody listening, a listener, OpenTelemetry's own kit.

    make bench-telemetry    or: python benchmarks/telemetry.py [--json]

The same short thread is compacted again and again, with a function as the summariser and originals
in memory, so that little else takes time, under each kind of telemetry in turn. Processor time
counts, the least of all runs. Beside that stands what
one `if` costs where nobody listens, times the places that a compaction passes. Ends with 1 if
results differ, if nobody is told anything, or if what is off is told of after all.
"""

from __future__ import annotations

import io
import logging
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import printed
from made_thread import made_thread
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from rich.console import Console

from conspectus import Compactor
from conspectus.events import Compaction, Event, observing
from conspectus.telemetry import LogLines, UsageTally, instrument, listen, uninstrument, unlisten

LOGGER = "conspectus.events"
WINDOW = 2_000
CALLS = 100_000
"""Times that the `if` is carried out to measure it."""


class Counted:
    """A count of the events that a listener has heard."""

    def __init__(self) -> None:
        self.events = 0

    def __call__(self, event: Event) -> None:
        self.events += 1


@contextmanager
def heard(*listeners: Any) -> Any:
    """Have these listen for a while."""
    for one in listeners:
        listen(one)
    try:
        yield
    finally:
        for one in listeners:
            unlisten(one)


@contextmanager
def logged() -> Any:
    """Write log lines of level INFO to memory, and a bill."""
    logger, handler = logging.getLogger(LOGGER), logging.StreamHandler(io.StringIO())
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        with heard(UsageTally(), LogLines()):
            yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = before[1]
        logger.setLevel(before[0])


@contextmanager
def opentelemetry(exporter: InMemorySpanExporter) -> Any:
    """Keep OpenTelemetry's own spans and metrics in memory."""
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    instrument(tracers, MeterProvider([InMemoryMetricReader()]))
    try:
        yield
    finally:
        uninstrument()


def compact(thread: list[dict[str, Any]]) -> tuple[float, Any]:
    """Compact once; give the processor's seconds, and the record."""
    compactor = Compactor(
        lambda messages: "The modules are looked at one by one; all were sound so far.",
        window=WINDOW,
        archive="memory:",
    )
    start = time.process_time()
    result = compactor.compact(thread, thread_id="t", force=True)
    return time.process_time() - start, result.record


def off_cost(calls: int) -> float:
    """Time one place where nobody listens, in nanoseconds."""
    start = time.process_time()
    for _ in range(calls):
        with observing(Compaction):
            pass
    return (time.process_time() - start) / calls * 1e9


def measure(messages: int = 40, runs: int = 15, calls: int = CALLS) -> dict[str, Any]:
    """Measure every kind of telemetry, each run of all of them in turn."""
    thread = made_thread(messages)
    counted, exporter = Counted(), InMemorySpanExporter()
    kinds: dict[str, Callable[[], AbstractContextManager[Any]]] = {
        "off": nullcontext,
        "a listener that counts": lambda: heard(counted),
        "usage and log lines": logged,
        "OpenTelemetry, in memory": lambda: opentelemetry(exporter),
    }
    times: dict[str, list[float]] = {name: [] for name in kinds}
    records = set()
    wrong: list[str] = []
    for turn in range(runs + 1):
        for name, around in kinds.items():
            before = counted.events, len(exporter.get_finished_spans())
            with around():
                seconds, record = compact(thread)
            after = counted.events, len(exporter.get_finished_spans())
            records.add(None if record is None else record.id)
            if name == "off" and after != before:
                wrong.append("off, somebody was told something")
            if turn:  # the first one warms up
                times[name].append(seconds)
    events = counted.events // (runs + 1)
    if not events or not exporter.get_finished_spans():
        wrong.append("on, nobody was told anything")
    if len(records) != 1 or None in records:
        wrong.append("the results differ")
    base = min(times["off"])
    place = off_cost(calls)
    return {
        "messages": messages,
        "runs": runs,
        "events": events,
        "place_ns": place,
        "off_share": place * events / 1e9 / base,
        "rows": [
            {"telemetry": name, "ms": min(found) * 1e3, "ratio": min(found) / base}
            for name, found in times.items()
        ],
        "wrong": sorted(set(wrong)),
    }


def show(found: dict[str, Any], screen: Console) -> None:
    """Print the table."""
    title = f"One compaction of {found['messages']:,} messages, {found['events']} events"
    table = printed.table(title, ("telemetry", "ms", "ratio"))
    for row in found["rows"]:
        table.add_row(row["telemetry"], f"{row['ms']:.2f}", f"{row['ratio']:.2f}")
    screen.print(table)
    screen.print(
        f"Off, each of the {found['events']} places costs {found['place_ns']:.0f} ns: "
        f"{found['off_share']:.4%} of the compaction."
    )
    for said in found["wrong"]:
        screen.print(f"WRONG: {said}")


def main(arguments: list[str] | None = None) -> int:
    """Measure and show."""
    asked, found = printed.options(__doc__).parse_args(arguments), measure()
    screen = printed.screen(100)
    return printed.end(asked.json, lambda: found, lambda: show(found, screen), not found["wrong"])


if __name__ == "__main__":
    sys.exit(main())
