"""Write a measurement as tables of text, for a terminal and for a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conspectus_lab.evaluate import Evaluation, GoingOn, Mean, Share

NOTHING = "–"
"""Stands in place of a missing number."""

Columns = Mapping[str, Callable[[Any], str]]
"""Headings, each with the function of its cells."""

Rows = Sequence[tuple[str, Any]]
"""Measured things, each with the name of its row."""


@dataclass(frozen=True, slots=True)
class Table:
    """One table; `bad` holds row and column of cells that report a failure."""

    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    bad: frozenset[tuple[int, int]] = frozenset()


def tables_of(found: Evaluation) -> list[Table]:
    """Make the tables of a measurement; those without a row are left out."""
    future, answers, rounds = (
        [(one.label, part) for one in found.systems if (part := getattr(one, name)) is not None]
        for name in ("future_use", "answers", "rounds")
    )
    contexts = [
        (f"{one.label}, {name}" if len(one.contexts) > 1 else one.label, part)
        for one in found.systems
        for name, part in one.contexts.items()
    ]
    many, going = found.settings.rounds, [(one.name, one) for one in found.going_on]
    window = found.going_on[0].window if going else 0
    made = [
        _table("Future use", FUTURE_USE_NOTE, future, FUTURE_USE, ("over", "broken")),
        _by_name("Quoted, by kind of identifier", NEEDED, [(n, use.by_kind) for n, use in future]),
        _by_name(
            "Quoted, by distance in messages", NEEDED, [(n, use.by_distance) for n, use in future]
        ),
        _table("Answers", ANSWERS_NOTE, answers, ANSWERS, ("over", "broken")),
        _table("Answers beside a plain search", GAINS_NOTE, answers, GAINS),
        _by_name(
            "Answers, by category of question",
            "In brackets how many questions were marked.",
            [(name, one.by_category) for name, one in answers],
            "category {name} ({count:,})",
        ),
        _table(
            f"{many} rounds of compaction of one thread",
            f"quoted after one compaction, after {many} while the thread grows, and the ratio. "
            "over: summaries larger than their limit.",
            rounds,
            ROUNDS,
            ("over", "broken"),
        ),
        _table("What became of what left the view", EVICTED_NOTE, contexts, EVICTED),
        _table("What summarising took", COST_NOTE, contexts, COST),
        _table(
            "The first system beside the others",
            "The same transcripts or questions, pair by pair. Above 0 the first is better; where "
            "the interval holds 0, chance may have done it.",
            [(f"{one.first} less {one.second}", one) for one in found.differences],
            DIFFERENCES,
            first="systems",
        ),
        _table(
            f"Going on after a run in a window of {window:,} tokens",
            GOING_ON_NOTE,
            going,
            GOING_ON,
            ("over",),
        ),
        _by_name(
            "Going on, by kind",
            "Of questions and of planted statements: the share that stands in view.",
            [(name, one.by_kind) for name, one in going if one.by_kind],
            "{name}",
        ),
    ]
    return [table for table in made if table.rows]


def share(value: float | None) -> str:
    """Write a share as text.

    Example:
        >>> share(0.72166), share(None)
        ('0.722', '–')
    """
    return NOTHING if value is None else f"{value:.3f}"


def interval(mean: Mean) -> str:
    """Write the ends of an interval as text."""
    if mean.low is None or mean.high is None:
        return NOTHING
    return f"{mean.low:.3f}..{mean.high:.3f}"


def number(value: float) -> str:
    """Write a count or a size as text; halves are rounded up."""
    return f"{int(value + 0.5):,}"


def skipped(found: Evaluation) -> list[tuple[str, int]]:
    """Count the reasons for which transcripts were left out, the commonest first."""
    return Counter(noted.skipped for noted in found.transcripts if noted.skipped).most_common()


def measured_how(found: Evaluation) -> str:
    """State the number of transcripts measured, and the settings."""
    settings = found.settings
    used = sum(not noted.skipped for noted in found.transcripts)
    recall = f", recall of {settings.recall_tokens:,} tokens" if settings.recall_tokens else ""
    return (
        f"{used:,} of {len(found.transcripts):,} transcripts measured; keep {settings.keep}{recall}"
        f", {settings.counter} token counter, seed {settings.seed}."
    )


def lost_of(one: GoingOn) -> list[str]:
    """Describe, a line each, the evidence that is not in view after runs."""
    lines = []
    for lost in one.lost:
        away = "recalled by its own words" if lost.recalled else "not recalled by its own words"
        there = ", ".join(lost.missing)
        what = f"missing: {there}" if lost.what == "question" else f"in the archive as {there}"
        lines.append(f"{lost.transcript}: {lost.what} ({lost.kind}) {lost.text!r}: {what}; {away}")
    return [f"Not in view with {one.name}:", *lines] if lines else []


FUTURE_USE_NOTE = (
    "quoted: share of the identifiers that the agent needs again, and that have left the view, "
    "which stand in the context in the words around them. far: which stand there at all. over "
    "and broken should be 0."
)
FUTURE_USE: Columns = {
    "quoted": lambda use: share(use.quoted.value),
    "95 %": lambda use: interval(use.quoted),
    "far": lambda use: share(use.far.value),
    "over": lambda use: number(use.contexts.over),
    "broken": lambda use: number(use.contexts.broken),
    "tokens": lambda use: number(use.contexts.tokens),
    "files": lambda use: number(use.quoted.count),
    "cuts": lambda use: number(use.cuts),
}
NEEDED = "All transcripts together; in brackets how many were needed."
ANSWERS_NOTE = (
    "answers: share of the right answers that still stand on one line with enough around them, "
    "in the context and what recall adds. evidence: share of the messages behind them that "
    "stand there whole. over and broken should be 0."
)
ANSWERS: Columns = {
    "answers": lambda one: share(one.answers.value),
    "95 %": lambda one: interval(one.answers),
    "evidence": lambda one: share(one.evidence),
    "over": lambda one: number(one.contexts.over + one.recall_over),
    "broken": lambda one: number(one.contexts.broken),
    "tokens": lambda one: number(one.tokens),
    "questions": lambda one: number(one.questions),
}
GAINS_NOTE = (
    "bm25: the kept tail and what a plain BM25 search adds in as many tokens as recall may. "
    "gain: ours less that, question by question."
)
GAINS: Columns = {
    "answers": lambda one: share(one.answers.value),
    "bm25": lambda one: share(one.bm25.value),
    "gain": lambda one: f"{one.gain.value:+.3f}",
    "95 %": lambda one: interval(one.gain),
}
ROUNDS: Columns = {
    "one": lambda rounds: share(rounds.one),
    "many": lambda rounds: share(rounds.many),
    "ratio": lambda rounds: share(rounds.ratio),
    "over": lambda rounds: number(rounds.over),
    "broken": lambda rounds: number(rounds.broken),
    "largest summary": lambda rounds: number(rounds.largest_summary),
    "cuts": lambda rounds: number(rounds.cuts),
    "skipped": lambda rounds: number(rounds.skipped),
}
EVICTED_NOTE = (
    "read: share of the messages that the summariser read whole. recoverable: share that came "
    "back from the archive equal to what it was. cited: share that the summary names."
)
EVICTED: Columns = {
    "messages": lambda one: number(one.evicted),
    "read": lambda one: share(Share(one.read, one.evicted).share),
    "recoverable": lambda one: share(Share(one.recoverable, one.evicted).share),
    "cited": lambda one: share(Share(one.cited, one.evicted).share),
}
COST_NOTE = (
    "Median and largest summary in tokens; calls and tokens of a model; seconds of one compaction, "
    "which differ from run to run."
)
COST: Columns = {
    "times": lambda one: number(one.count),
    "summary": lambda one: number(one.summary_tokens),
    "largest": lambda one: number(one.largest_summary),
    "calls": lambda one: number(one.calls),
    "tokens in": lambda one: number(one.input_tokens),
    "tokens out": lambda one: number(one.output_tokens),
    "seconds": lambda one: f"{one.seconds:.3f}",
}
DIFFERENCES: Columns = {
    "measure": lambda one: one.measure,
    "difference": lambda one: f"{one.difference.value:+.3f}",
    "95 %": lambda one: interval(one.difference),
}
GOING_ON_NOTE = (
    "view: share of the questions whose evidence stands in what a model is sent at the end. "
    "recall: the same, or in what the question itself recalls. said: share of the planted "
    "statements that stand. lasting: share of what once stood in the notes that stands at the "
    "end, after so many rounds (compactions). stale and over should be 0: old values behind "
    "new ones, requests larger than the window. tokens: of the view at the end (median), "
    "fullest: the largest of "
    "these in the window. cached: share of each request that repeats the one before. cost: "
    "tokens to pay for a request, a repeated one counting a tenth."
)
GOING_ON: Columns = {
    "view": lambda one: share(one.in_view.share),
    "recall": lambda one: share(one.with_recall.share),
    "said": lambda one: share(one.statements.share),
    "lasting": lambda one: share(one.lasting.share),
    "rounds": lambda one: f"{one.rounds:.1f}",
    "stale": lambda one: number(one.stale),
    "over": lambda one: number(one.over),
    "tokens": lambda one: number(one.tokens),
    "fullest": lambda one: share(one.fullest),
    "cached": lambda one: share(one.cached),
    "cost": lambda one: number(one.cost),
}


def _table(
    title: str,
    note: str,
    rows: Rows,
    columns: Columns,
    zero: Collection[str] = (),
    first: str = "system",
) -> Table:
    """Make a table with a row for each thing; figures that should be zero are marked."""
    cells = [tuple(cell(one) for cell in columns.values()) for _, one in rows]
    bad = {
        (row, place)
        for row, line in enumerate(cells)
        for place, (name, cell) in enumerate(zip(columns, line, strict=True), 1)
        if name in zero and cell != "0"
    }
    lines = tuple((name, *line) for (name, _), line in zip(rows, cells, strict=True))
    return Table(title, note, (first, *columns), lines, frozenset(bad))


def _by_name(
    title: str,
    note: str,
    rows: Sequence[tuple[str, Mapping[str, Share | Mean]]],
    heading: str = "{name} ({count:,})",
) -> Table:
    """Make a table of shares with a column for each name; a missing one stays empty."""
    known = {n: one for _, shares in reversed(rows) for n, one in shares.items()}
    names = dict.fromkeys(name for _, shares in rows for name in shares)
    headings = (heading.format(name=name, count=_part(known[name])[1]) for name in names)
    lines = [
        (label, *(share(_part(shares[n])[0] if n in shares else None) for n in names))
        for label, shares in rows
    ]
    return Table(title, note, ("system", *headings), tuple(lines))


def _part(one: Share | Mean) -> tuple[float | None, int]:
    """Return a share and its whole."""
    return (one.share, one.wanted) if isinstance(one, Share) else (one.value, one.count)
