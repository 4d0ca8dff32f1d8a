"""A measurement as tables of text: what a terminal prints and what a page shows, word for word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from conspectus_lab.evaluate import Contexts, Evaluation, GoingOn, Mean, Share, SystemResult

NOTHING = "–"
"""Stands where there is no number."""


@dataclass(frozen=True, slots=True)
class Table:
    """One table.

    Attributes:
        title: what it shows.
        note: how to read it, in plain words.
        columns: headings; the first column is text, the others are numbers.
        rows: the cells.
        bad: places of cells that say that something failed, as row and column.
    """

    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    bad: frozenset[tuple[int, int]] = frozenset()


def tables_of(found: Evaluation) -> list[Table]:
    """The tables of a measurement; those that nothing was measured for are left out."""
    made = [
        _future_use(found),
        _shares(found, "by_kind", "Quoted, by kind of identifier"),
        _shares(found, "by_distance", "Quoted, by distance in messages"),
        _answers(found),
        _gains(found),
        _categories(found),
        _rounds(found),
        _evicted(found),
        _cost(found),
        _differences(found),
        _going_on(found),
        _going_on_kinds(found),
    ]
    return [table for table in made if table is not None and table.rows]


def share(value: float | None) -> str:
    """A share as text.

    Example:
        >>> share(0.72166), share(None)
        ('0.722', '–')
    """
    return NOTHING if value is None else f"{value:.3f}"


def interval(mean: Mean) -> str:
    """The ends of an interval as text."""
    if mean.low is None or mean.high is None:
        return NOTHING
    return f"{mean.low:.3f}..{mean.high:.3f}"


def number(value: float) -> str:
    """A count or a size as text; halves that a median has are rounded up."""
    return f"{int(value + 0.5):,}"


def skipped(found: Evaluation) -> list[tuple[str, int]]:
    """Why transcripts were left out, with how many, the commonest first."""
    return Counter(noted.skipped for noted in found.transcripts if noted.skipped).most_common()


def measured_how(found: Evaluation) -> str:
    """One sentence on what was measured under which settings."""
    settings = found.settings
    used = sum(not noted.skipped for noted in found.transcripts)
    recall = f", recall of {settings.recall_tokens:,} tokens" if settings.recall_tokens else ""
    return (
        f"{used:,} of {len(found.transcripts):,} transcripts measured; keep {settings.keep}{recall}"
        f", {settings.counter} token counter, seed {settings.seed}."
    )


def lost_of(one: GoingOn) -> list[str]:
    """What does not stand in view after runs in a window, a line each, with where it is."""
    lines = []
    for lost in one.lost:
        away = "recalled by its own words" if lost.recalled else "not recalled by its own words"
        there = ", ".join(lost.missing)
        what = f"missing: {there}" if lost.what == "question" else f"in the archive as {there}"
        lines.append(f"{lost.transcript}: {lost.what} ({lost.kind}) {lost.text!r}: {what}; {away}")
    return [f"Not in view with {one.name}:", *lines] if lines else []


def _going_on(found: Evaluation) -> Table:
    rows: list[tuple[str, ...]] = []
    bad: set[tuple[int, int]] = set()
    for one in found.going_on:
        bad |= {(len(rows), 7)} if one.over else set()
        rows.append(
            (
                one.name,
                share(one.in_view.share),
                share(one.with_recall.share),
                share(one.statements.share),
                share(one.lasting.share),
                f"{one.rounds:.1f}",
                f"{one.stale:,}",
                f"{one.over:,}",
                number(one.tokens),
                share(one.fullest),
                share(one.cached),
                number(one.cost),
            )
        )
    window = found.going_on[0].window if found.going_on else 0
    return Table(
        f"Going on after a run in a window of {window:,} tokens",
        "view: share of the questions whose evidence stands in what a model is sent at the end. "
        "recall: the same, or in what the question itself recalls. said: share of the planted "
        "statements that stand. lasting: share of what once stood in the notes that stands at the "
        "end, after so many rounds (compactions). stale and over should be 0: old values behind "
        "new ones, requests larger than the window. tokens: of the view at the end (median), "
        "fullest: the largest of "
        "these in the window. cached: share of each request that repeats the one before. cost: "
        "tokens to pay for a request, a repeated one counting a tenth.",
        (
            "system",
            "view",
            "recall",
            "said",
            "lasting",
            "rounds",
            "stale",
            "over",
            "tokens",
            "fullest",
            "cached",
            "cost",
        ),
        tuple(rows),
        frozenset(bad),
    )


def _going_on_kinds(found: Evaluation) -> Table:
    kinds = list(dict.fromkeys(kind for one in found.going_on for kind in one.by_kind))
    rows = [
        (one.name, *(share(one.by_kind[k].share if k in one.by_kind else None) for k in kinds))
        for one in found.going_on
        if kinds
    ]
    return Table(
        "Going on, by kind",
        "Of questions and of planted statements: the share that stands in view.",
        ("system", *kinds),
        tuple(rows),
    )


def _future_use(found: Evaluation) -> Table:
    rows: list[tuple[str, ...]] = []
    bad: set[tuple[int, int]] = set()
    for result in found.systems:
        if (use := result.future_use) is None:
            continue
        contexts = use.contexts
        bad |= {(len(rows), 4)} if contexts.over else set()
        bad |= {(len(rows), 5)} if contexts.broken else set()
        rows.append(
            (
                result.label,
                share(use.quoted.value),
                interval(use.quoted),
                share(use.far.value),
                f"{contexts.over:,}",
                f"{contexts.broken:,}",
                number(contexts.tokens),
                f"{use.quoted.count:,}",
                f"{use.cuts:,}",
            )
        )
    return Table(
        "Future use",
        "quoted: share of the identifiers that the agent needs again, and that have left the view, "
        "which stand in the context in the words around them. far: which stand there at all. over "
        "and broken should be 0.",
        (
            "system",
            "quoted",
            "95 %",
            "far",
            "over",
            "broken",
            "tokens",
            "files",
            "cuts",
        ),
        tuple(rows),
        frozenset(bad),
    )


def _shares(found: Evaluation, which: str, title: str) -> Table:
    columns: dict[str, None] = {}
    per_system: list[tuple[str, Mapping[str, Share]]] = []
    for result in found.systems:
        if result.future_use is not None:
            shares: Mapping[str, Share] = getattr(result.future_use, which)
            per_system.append((result.label, shares))
            columns |= dict.fromkeys(shares)
    rows = [
        (label, *(share(shares[name].share) if name in shares else NOTHING for name in columns))
        for label, shares in per_system
    ]
    counts = per_system[0][1] if per_system else {}
    headings = (f"{name} ({counts[name].wanted:,})" for name in columns)
    return Table(
        title,
        "All transcripts together; in brackets how many were needed.",
        ("system", *headings),
        tuple(rows),
    )


def _answers(found: Evaluation) -> Table:
    rows: list[tuple[str, ...]] = []
    bad: set[tuple[int, int]] = set()
    for result in found.systems:
        if (answers := result.answers) is None:
            continue
        over = answers.contexts.over + answers.recall_over
        bad |= {(len(rows), 4)} if over else set()
        bad |= {(len(rows), 5)} if answers.contexts.broken else set()
        rows.append(
            (
                result.label,
                share(answers.answers.value),
                interval(answers.answers),
                share(answers.evidence),
                f"{over:,}",
                f"{answers.contexts.broken:,}",
                number(answers.tokens),
                f"{answers.questions:,}",
            )
        )
    return Table(
        "Answers",
        "answers: share of the right answers that still stand on one line with enough around them, "
        "in the context and what recall adds. evidence: share of the messages behind them that "
        "stand there whole. over and broken should be 0.",
        ("system", "answers", "95 %", "evidence", "over", "broken", "tokens", "questions"),
        tuple(rows),
        frozenset(bad),
    )


def _gains(found: Evaluation) -> Table:
    rows = tuple(
        (
            result.label,
            share(result.answers.answers.value),
            share(result.answers.bm25.value),
            f"{result.answers.gain.value:+.3f}",
            interval(result.answers.gain),
        )
        for result in found.systems
        if result.answers is not None
    )
    return Table(
        "Answers beside a plain search",
        "bm25: the kept tail and what a plain BM25 search adds in as many tokens as recall may. "
        "gain: ours less that, question by question.",
        ("system", "answers", "bm25", "gain", "95 %"),
        rows,
    )


def _categories(found: Evaluation) -> Table:
    with_answers = [(r.label, r.answers) for r in found.systems if r.answers is not None]
    columns = with_answers[0][1].by_category if with_answers else {}
    rows = [
        (label, *(share(answers.by_category[name].value) for name in columns))
        for label, answers in with_answers
    ]
    headings = (f"category {name} ({mean.count:,})" for name, mean in columns.items())
    return Table(
        "Answers, by category of question",
        "In brackets how many questions were marked.",
        ("system", *headings),
        tuple(rows),
    )


def _rounds(found: Evaluation) -> Table:
    rows: list[tuple[str, ...]] = []
    bad: set[tuple[int, int]] = set()
    for result in found.systems:
        if (rounds := result.rounds) is None:
            continue
        bad |= {(len(rows), 4)} if rounds.over else set()
        bad |= {(len(rows), 5)} if rounds.broken else set()
        rows.append(
            (
                result.label,
                share(rounds.one),
                share(rounds.many),
                share(rounds.ratio),
                f"{rounds.over:,}",
                f"{rounds.broken:,}",
                f"{rounds.largest_summary:,}",
                f"{rounds.cuts:,}",
                f"{rounds.skipped:,}",
            )
        )
    many = found.settings.rounds
    return Table(
        f"{many} rounds of compaction of one thread",
        f"quoted after one compaction, after {many} while the thread grows, and the ratio. over: "
        "summaries larger than their limit.",
        ("system", "one", "many", "ratio", "over", "broken", "largest summary", "cuts", "skipped"),
        tuple(rows),
        frozenset(bad),
    )


def _evicted(found: Evaluation) -> Table:
    rows: list[tuple[str, ...]] = []
    for label, contexts in _contexts(found):
        parts = (contexts.read, contexts.recoverable, contexts.cited)
        rows.append(
            (
                label,
                f"{contexts.evicted:,}",
                *(share(part / contexts.evicted if contexts.evicted else None) for part in parts),
            )
        )
    return Table(
        "What became of what left the view",
        "read: share of the messages that the summariser read whole. recoverable: share that came "
        "back from the archive equal to what it was. cited: share that the summary names.",
        ("system", "messages", "read", "recoverable", "cited"),
        tuple(rows),
    )


def _cost(found: Evaluation) -> Table:
    rows = [
        (
            label,
            f"{contexts.count:,}",
            number(contexts.summary_tokens),
            f"{contexts.largest_summary:,}",
            share(contexts.carried),
            f"{contexts.calls:,}",
            f"{contexts.input_tokens:,}",
            f"{contexts.output_tokens:,}",
            f"{contexts.seconds:.3f}",
        )
        for label, contexts in _contexts(found)
    ]
    return Table(
        "What summarising took",
        "Median and largest summary in tokens; facts: share of it that is exact facts; calls and "
        "tokens of a model; seconds of one compaction, which differ from run to run.",
        (
            "system",
            "times",
            "summary",
            "largest",
            "facts",
            "calls",
            "tokens in",
            "tokens out",
            "seconds",
        ),
        tuple(rows),
    )


def _differences(found: Evaluation) -> Table:
    rows = tuple(
        (
            f"{one.first} less {one.second}",
            one.measure,
            f"{one.difference.value:+.3f}",
            interval(one.difference),
        )
        for one in found.differences
    )
    return Table(
        "The first system beside the others",
        "The same transcripts or questions, pair by pair. Above 0 the first is better; where the "
        "interval holds 0, chance may have done it.",
        ("systems", "measure", "difference", "95 %"),
        rows,
    )


def _contexts(found: Evaluation) -> Iterator[tuple[str, Contexts]]:
    """The contexts of each system, those of both measures where it has both."""
    for result in found.systems:
        both = result.future_use is not None and result.answers is not None
        for name, part in _measures(result):
            yield f"{result.label}, {name}" if both else result.label, part


def _measures(result: SystemResult) -> Sequence[tuple[str, Contexts]]:
    made = []
    if result.future_use is not None:
        made.append(("future use", result.future_use.contexts))
    if result.answers is not None:
        made.append(("answers", result.answers.contexts))
    return made
