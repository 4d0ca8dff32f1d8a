"""Render replays: tables of text, and one self-contained page with charts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from conspectus.errors import InputError, install_command
from conspectus_lab.billing import Bill, summed
from conspectus_lab.results import PolicyRun, Replay, by_policy, is_bad, totals

WIDTH = 900  # of a line chart, in the units of its SVG
HEIGHT = 240

COLOURS = ("#2563eb", "#d97706", "#6b7280", "#059669", "#9333ea", "#dc2626")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Table:
    """One table. A row of one cell is a heading. `bad` has row and column of each failure."""

    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    bad: frozenset[tuple[int, int]] = frozenset()


def percent(value: float | None) -> str:
    """Write a share as a percentage. It is never rounded up to 100 %.

    Example:
        >>> percent(0.9999), percent(1.0), percent(None)
        ('99.9%', '100%', '–')
    """
    if value is None:
        return "–"
    return "100%" if value >= 1 else f"{int(value * 1000) / 10:.1f}%"


FIGURES = {
    "compactions": "compactions",
    "peak": "peak_tokens",
    "sent": "sent_tokens",
    "calls": "summarizer_calls",
    "summariser": "summarizer_tokens",
    "read": "read_share",
    "broken": "broken",
    "over": "over",
    "missing": "missing",
}
"""Headings of a replay's table, and the figures under them."""

REPLAY_NOTE = (
    "peak, sent: tokens of the largest request and of all together; calls, summariser: of a model "
    "that summarised, and its tokens; read: share of the text that left which the summariser was "
    "given; broken, over: requests with a parted tool call or result, and above the window; "
    "missing: originals neither in view nor in the archive at the end."
)
BILL_NOTE = (
    "cached: share of the input that the provider's prefix cache, simulated, held; waited: seconds "
    "of preparing requests on this machine."
)
BILL: Mapping[str, Callable[[Bill], str]] = {
    "requests": lambda bill: f"{bill.requests:,}",
    "input": lambda bill: f"{bill.input_tokens:,}",
    "cached": lambda bill: percent(bill.cached_share),
    "summariser": lambda bill: f"${bill.summarizer_money:,.3f}",
    "money": lambda bill: f"${bill.money:,.3f}",
    "waited": lambda bill: f"{bill.waited:,.1f} s",
}


def replay_tables(replays: Sequence[Replay]) -> Iterator[Table]:
    """Make the tables of some replays: figures of each and of all, and a bill if it is known."""
    yield _figures("Policies", REPLAY_NOTE, FIGURES, replays)
    bills = {
        runs[0].title: summed(run.bill for run in runs) for runs in by_policy(replays).values()
    }
    without = summed(replayed.without for replayed in replays)
    bills["in a window without end"] = without
    if without is None:
        return
    rows = [
        (f"  {title}", *(write(bill) for write in BILL.values()))
        for title, bill in bills.items()
        if bill is not None
    ]
    yield Table("Bill", BILL_NOTE, (f"bill as {without.model}", *BILL), tuple(rows))


KEPT_NOTE = (
    "needed: identifiers that the agent writes again when every message that showed them has left; "
    "quoted: share of them that the request holds in the words around them; in view, with recall: "
    "share of the questions whose evidence is in the last request, or recalled by the question."
)
KEPT = {
    "compactions": "compactions",
    "needed": "needed",
    "quoted": "quoted_share",
    "questions": "asked",
    "in view": "in_view_share",
    "with recall": "with_recall_share",
    "read": "read_share",
    "broken": "broken",
    "over": "over",
    "missing": "missing",
    "sent": "sent_tokens",
}


def retention_tables(replays: Sequence[Replay]) -> Iterator[Table]:
    """Make the tables of what survives: figures, and the questions lost by us."""
    yield _figures("What survives", KEPT_NOTE, KEPT, replays)
    rows: set[tuple[str, ...]] = set()
    for replayed in replays:
        for run in filter(attrgetter("ours"), replayed.runs):
            for lost in run.lost:
                missing = "; ".join(lost.missing)
                recalled = "yes" if lost.recalled else "no"
                rows.add((run.policy, replayed.name, lost.question, missing, recalled))
    if rows:
        columns = ("policy", "transcript", "question", "missing", "recalled")
        yield Table("Questions not in view", "", columns, tuple(sorted(rows)))


def _figures(title: str, note: str, columns: Mapping[str, str], replays: Sequence[Replay]) -> Table:
    """Make a table of figures, of each transcript and of all."""
    rows: list[tuple[str, ...]] = []
    bad: set[tuple[int, int]] = set()

    def add(heading: str, groups: Iterable[Sequence[PolicyRun]]) -> None:
        rows.append((heading,))
        for runs in groups:
            figures = totals(runs)
            cells = [(name, figures[name]) for name in columns.values()]
            bad.update((len(rows), at) for at, cell in enumerate(cells, 1) if is_bad(*cell))
            texts = (percent(v) if name.endswith("_share") else f"{v:,}" for name, v in cells)
            rows.append((f"  {runs[0].title}", *texts))

    for replayed in replays:
        size = f"{replayed.messages:,} messages, {replayed.tokens:,} tokens"
        add(f"{replayed.name} ({size})", [[run] for run in replayed.runs])
    if len(replays) > 1:
        add(f"all {len(replays):,} transcripts", by_policy(replays).values())
    return Table(title, note, ("", *columns), tuple(rows), frozenset(bad))


def replay_page(replays: Sequence[Replay]) -> str:
    """Render some replays as HTML that needs no other file, no program and no network.

    Args:
        replays: one for each transcript. Their texts are hostile input, and are escaped.

    Raises:
        InputError: the extra `report` is not installed.

    Example:
        >>> replay_page([]).startswith("<!doctype html>")
        True
    """
    tables = [*replay_tables(replays), *retention_tables(replays)] if replays else []
    text: str = (
        environment()
        .get_template("page.html")
        .render(
            width=WIDTH,
            height=HEIGHT,
            percent=percent,
            tables=tables,
            charts=[_chart(replayed) for replayed in replays],
            replays=replays,
        )
    )
    return text


def _chart(replay: Replay) -> dict[str, Any]:
    """Draw the tokens of each request: a line for each policy, a dot for each compaction."""
    largest = max([replay.window, *(run.peak for run in replay.runs)], default=1) or 1
    longest = max([1, *(len(run.steps) for run in replay.runs)])
    lines = []
    for colour, run in zip(COLOURS * len(replay.runs), replay.runs, strict=False):
        places = [
            (
                round(WIDTH * step.number / longest, 1),
                round(HEIGHT * (1 - step.tokens / largest), 1),
                step.compacted,
            )
            for step in run.steps
        ]
        lines.append({"title": run.title, "colour": colour, "places": places})
    window = round(HEIGHT * (1 - replay.window / largest), 1)
    return {"title": replay.name, "lines": lines, "window": window}


def environment() -> Any:
    """Return the template of a page; raise `InputError` if the extra `report` is missing."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise InputError(f"a page needs Jinja: {install_command('report')}") from error

    return Environment(
        loader=PackageLoader("conspectus_lab"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_writable,
    )


def _writable(value: Any) -> Any:
    """Replace control characters and half characters, which a file cannot have, in plain texts."""
    if type(value) is not str:
        return value
    whole = value.encode("utf-8", "replace").decode("utf-8")
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", whole)
