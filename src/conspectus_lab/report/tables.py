"""Write a replay or a measurement as tables of text, for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conspectus_lab.billing import Bill, summed
from conspectus_lab.evaluate import Evaluation, Result
from conspectus_lab.replay import PolicyRun, Replay
from conspectus_lab.replay.results import by_policy, is_bad, totals

NOTHING = "–"
"""Stands in place of a missing number."""


@dataclass(frozen=True, slots=True)
class Table:
    """One table; a row of one cell is a heading, `bad` holds row and column of failures."""

    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    bad: frozenset[tuple[int, int]] = frozenset()


def percent(value: float | None) -> str:
    """Write a share as a percentage that is never rounded up to all.

    Example:
        >>> percent(0.9999), percent(1.0), percent(None)
        ('99.9%', '100%', '–')
    """
    if value is None:
        return NOTHING
    return "100%" if value >= 1 else f"{int(value * 1000) / 10:.1f}%"


FIGURES: Mapping[str, str] = {
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
    """Make the tables of some replays: figures of each and of all, and a bill for each model."""
    rows: list[tuple[str, ...]] = []
    bad: set[tuple[int, int]] = set()

    def add(heading: str, groups: Iterable[Sequence[PolicyRun]]) -> None:
        rows.append((heading,))
        for runs in groups:
            figures = totals(runs)
            cells = [(name, figures[name]) for name in FIGURES.values()]
            bad.update((len(rows), at) for at, cell in enumerate(cells, 1) if is_bad(*cell))
            texts = (percent(v) if name == "read_share" else f"{v:,}" for name, v in cells)
            rows.append((f"  {runs[0].title}", *texts))

    for one in replays:
        size = f"{one.messages:,} messages, {one.tokens:,} tokens"
        add(f"{one.name} ({size})", [[run] for run in one.runs])
    if len(replays) > 1:
        add(f"all {len(replays):,} transcripts", by_policy(replays).values())
    yield Table("Policies", REPLAY_NOTE, ("", *FIGURES), tuple(rows), frozenset(bad))
    for place, without in enumerate(summed(one.without for one in replays)):
        bills = {
            runs[0].title: summed(run.bills for run in runs)[place]
            for runs in by_policy(replays).values()
        }
        bills["in a window without end"] = without
        lines = tuple(
            (f"  {title}", *(cell(bill) for cell in BILL.values())) for title, bill in bills.items()
        )
        yield Table("Bill", BILL_NOTE, (f"bill as {without.model}", *BILL), lines)


EVALUATION_NOTE = (
    "quoted: share of the identifiers that the agent needs again, and that have left the view, "
    "which stand in it in the words around them. in view, with recall: share of the questions "
    "whose evidence is there, or recalled by the question. read, recoverable: share of what left "
    "that the summariser read whole, and that came back from the archive. over, broken: summaries "
    "above their limit, and parted tool calls; both should be 0. tokens: of the view (median)."
)
EVALUATION: Mapping[str, Callable[[Result], Any]] = {
    "quoted": lambda one: percent(one.quoted),
    "needed": lambda one: f"{one.needed:,}",
    "in view": lambda one: percent(one.in_view),
    "with recall": lambda one: percent(one.with_recall),
    "questions": lambda one: f"{one.asked:,}",
    "read": lambda one: percent(one.read),
    "recoverable": lambda one: percent(one.recoverable),
    "over": lambda one: f"{one.over:,}",
    "broken": lambda one: f"{one.broken:,}",
    "tokens": lambda one: f"{one.tokens:,}",
    "seconds": lambda one: f"{one.seconds:.3f}",
}


def evaluation_tables(found: Evaluation) -> Iterator[Table]:
    """Make the tables of a measurement: figures, questions lost by us, transcripts left out."""
    rows = tuple((one.label, *(cell(one) for cell in EVALUATION.values())) for one in found.results)
    failures = [place for place, name in enumerate(EVALUATION, 1) if name in ("over", "broken")]
    bad = frozenset(
        (at, place) for at, row in enumerate(rows) for place in failures if row[place] != "0"
    )
    yield Table("What survives", EVALUATION_NOTE, ("system", *EVALUATION), rows, bad)
    ours = {one.name for one in found.results if one.ours}
    lost = [one for one in found.lost if one.system in ours]
    if lost:
        lines = {
            (one.system, one.transcript, one.question, "; ".join(one.missing), _yes(one.recalled))
            for one in lost
        }
        columns = ("system", "transcript", "question", "missing", "recalled")
        yield Table("Questions not in view", "", columns, tuple(sorted(lines)))
    skipped = tuple((one.name, one.skipped) for one in found.transcripts if one.skipped)
    if skipped:
        yield Table("Left out", "", ("transcript", "why"), skipped)


def _yes(value: bool) -> str:
    return "yes" if value else "no"
