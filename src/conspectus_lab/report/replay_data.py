"""Collect the data of the page of a replay."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor
from typing import Literal

from conspectus_lab.billing import Bill, summed
from conspectus_lab.replay import Compaction, Original, PolicyRun, Replay
from conspectus_lab.replay.results import by_policy, is_bad, totals
from conspectus_lab.report.evaluation import COLOURS as PALETTE
from conspectus_lab.report.tables import NOTHING, Table

OURS, NO_POLICY = "conspectus", "none"
COLOURS = {OURS: 0, "langchain": 1, NO_POLICY: 5}
"""Colours that policies always have; others take the rest."""

_CITED = re.compile(r"\[([^\[\]\n]{1,400})\]")
_NAME = re.compile(r"[^,;\s]+")
_HEADING = re.compile(r"^#{1,6}[ \t]+\S.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Left:
    """A message that left the view; its text stands once on the page, at the anchor `whole`."""

    anchor: str
    whole: str
    original: Original


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a summary: text, a heading, or a link to an original."""

    kind: Literal["text", "heading", "link"]
    text: str
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Opened:
    """One compaction with its summary in pieces."""

    anchor: str
    number: int
    what: Compaction
    read_share: float | None
    left: tuple[Left, ...]
    summary: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """One policy with its compactions."""

    anchor: str
    colour: int
    what: PolicyRun
    compactions: tuple[Opened, ...]


@dataclass(frozen=True, slots=True)
class TranscriptData:
    """One transcript: its table and its runs."""

    anchor: str
    what: Replay
    table: Table
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """All data of a page, our policy first; two tables only for several transcripts."""

    transcripts: tuple[TranscriptData, ...]
    total: Table | None
    overview: Table | None


def report_of(replays: Sequence[Replay]) -> ReplayReport:
    replays = [_ordered(replay) for replay in replays]
    transcript = tuple(_transcript(f"t{place}", replay) for place, replay in enumerate(replays, 1))
    many = len(replays) > 1
    return ReplayReport(
        transcript, total_table(replays) if many else None, _overview(replays) if many else None
    )


def percent(value: float | None) -> str:
    """Write a share as text; only the whole is 100 %.

    Example:
        >>> percent(1.0), percent(0.99996), percent(0.5), percent(None)
        ('100 %', '99.9 %', '50.0 %', '–')
    """
    if value is None:
        return NOTHING
    return "100 %" if value >= 1 else f"{floor(value * 1000) / 10:.1f} %"


Runs = Sequence[PolicyRun]

MEASURES = {
    "model calls": "requests",
    "peak tokens of a request": "peak_tokens",
    "sum of tokens sent": "sent_tokens",
    "compactions": "compactions",
    "summariser calls": "summarizer_calls",
    "summariser tokens": "summarizer_tokens",
    "evicted text that was read": "read_share",
    "requests with a broken pair": "broken",
    "requests over the window": "over",
    "input from the cache": "cached_share",
    "money of the session": "money",
    "seconds waited": "waited_seconds",
    "messages missing": "missing",
}
"""Each row of the table, and the figure in it."""


def _cells(runs: Runs) -> dict[str, str]:
    """Write the figures of some runs of one policy as text."""
    figures = totals(runs)
    cells = {name: f"{value or 0:,}" for name, value in figures.items()}
    bills = summed(run.bills for run in runs)
    return cells | {
        "read_share": percent(figures["read_share"]),
        "waited_seconds": f"{figures['waited_seconds']:,.1f}",
        "cached_share": percent(bills[0].cached_share if bills else None),
        "money": _dollars(bills[0]) if bills else NOTHING,
    }


def _dollars(bill: Bill) -> str:
    return f"${bill.money:,.3f}"


def _priced(replays: Sequence[Replay]) -> str:
    """Name the prices, and the cost in an unlimited window."""
    bills = summed(replay.without for replay in replays)
    if not bills:
        return ""
    return (
        f" Money at the prices of {bills[0].model}, its prefix cache simulated; without "
        f"compaction, in a window without end: {_dollars(bills[0])}."
    )


def policy_table(replay: Replay) -> Table:
    """Make the table of one transcript's measures, a column for each policy."""
    note = (
        f"{replay.messages:,} messages, {replay.tokens:,} tokens; window {replay.window:,} tokens. "
        f"Trigger: {replay.trigger}. Kept: {replay.keep}. Summariser of all: {replay.summarizer}."
        f"{_priced([replay])}"
    )
    return _table("Policies side by side", note, by_policy([replay]))


def total_table(replays: Sequence[Replay]) -> Table:
    """Make the same table over all transcripts, with sums and the highest peak."""
    note = f"{len(replays):,} transcripts together; the peak is the highest of them."
    note += _priced(replays)
    return _table("Policies side by side, all transcripts", note, by_policy(replays))


def _table(title: str, note: str, runs: Mapping[str, Runs]) -> Table:
    columns = [(_cells(some), totals(some)) for some in runs.values()]
    rows = [(name, *(cells[key] for cells, _ in columns)) for name, key in MEASURES.items()]
    bad = {
        (row, at)
        for row, key in enumerate(MEASURES.values())
        for at, (_, figures) in enumerate(columns, 1)
        if is_bad(key, figures.get(key))
    }
    titles = (some[0].title for some in runs.values())
    return Table(title, note, ("measure", *titles), tuple(rows), frozenset(bad))


def _overview(replays: Sequence[Replay]) -> Table:
    """Make the table of all transcripts, with their size and the peak of each policy."""
    titles = list(dict.fromkeys(run.title for replay in replays for run in replay.runs))
    rows, bad = [], set()
    for place, replay in enumerate(replays):
        runs = {run.title: run for run in replay.runs}
        peaks = (f"{runs[title].peak:,}" if title in runs else NOTHING for title in titles)
        sizes = (f"{size:,}" for size in (replay.messages, replay.tokens, replay.window))
        rows.append((replay.name, *sizes, *peaks))
        bad |= {(place, 4 + at) for at, t in enumerate(titles) if t in runs and runs[t].over}
    columns = ("transcript", "messages", "tokens", "window", *(f"peak, {t}" for t in titles))
    note = "Peak tokens of a request under each policy; what exceeds the window stands out."
    return Table("Transcripts", note, columns, tuple(rows), frozenset(bad))


def _ordered(replay: Replay) -> Replay:
    """Put our policy first, for narrow screens, and no compaction last."""
    order = sorted(replay.runs, key=lambda run: (run.policy != OURS, run.policy == NO_POLICY))
    return replace(replay, runs=tuple(order))


def _transcript(anchor: str, replay: Replay) -> TranscriptData:
    runs: list[Run] = []
    whole: dict[Original, str] = {}
    for run, colour in zip(replay.runs, _colours(replay.runs), strict=True):
        own = f"{anchor}-p{len(runs) + 1}"
        runs.append(Run(own, colour, run, tuple(_opened(run, own, whole))))
    return TranscriptData(anchor, replay, policy_table(replay), tuple(runs))


def _colours(runs: Runs) -> list[int]:
    """Give each run a colour."""
    free = [colour for colour in range(PALETTE) if colour not in COLOURS.values()]
    made: list[int] = []
    for place, run in enumerate(runs):
        colour = COLOURS.get(run.policy)
        if colour is None or colour in made:
            colour = free.pop(0) if free else place % PALETTE
        made.append(colour)
    return made


def _opened(run: PolicyRun, anchor: str, whole: dict[Original, str]) -> Iterator[Opened]:
    """Open the compactions of a run; `whole` gets the anchor of each message that first left."""
    where: dict[str, str] = {}
    for number, one in enumerate(run.compactions, 1):
        left = []
        for place, original in enumerate(one.left, 1):
            own = f"{anchor}-c{number}-m{place}"
            left.append(Left(own, whole.setdefault(original, own), original))
        for part in left:
            # Of two with one name the later is meant; of one that left twice, where its text is.
            here = part.whole.startswith(f"{anchor}-c")
            where[part.original.cite] = part.whole if here else part.anchor
        yield Opened(
            f"{anchor}-c{number}",
            number,
            one,
            one.read / one.characters if one.characters else None,
            tuple(left),
            tuple(pieces(one.summary, where)),
        )


def pieces(summary: str, where: Mapping[str, str]) -> Iterator[Piece]:
    """Divide a summary into headings, citations of known originals, and text.

    Args:
        where: anchors of originals by their names in summaries.

    Example:
        >>> [piece.text for piece in pieces("done [m1, x]", {"m1": "a"}) if piece.kind == "link"]
        ['m1']
    """
    found: list[tuple[int, int, Piece]] = []
    for group in _CITED.finditer(summary):
        for name in _NAME.finditer(summary, group.start(1), group.end(1)):
            if name[0] in where:
                found.append((name.start(), name.end(), Piece("link", name[0], where[name[0]])))
    starts = [start for start, _, _ in found]
    for line in _HEADING.finditer(summary):
        if bisect_left(starts, line.start()) == bisect_left(starts, line.end()):
            found.append((line.start(), line.end(), Piece("heading", line[0])))
    end = 0
    for start, stop, piece in sorted(found, key=lambda one: one[0]):
        if start > end:
            yield Piece("text", summary[end:start])
        yield piece
        end = stop
    if end < len(summary):
        yield Piece("text", summary[end:])
