"""Compact a growing thread again and again, and once at its end."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from langchain_core.messages import ToolMessage

from conspectus_lab.evaluate.cases import SLACK, Case, Cut
from conspectus_lab.evaluate.measure import OnTranscript
from conspectus_lab.evaluate.results import Rounds
from conspectus_lab.evaluate.systems import Compacted, System
from conspectus_lab.pairs import broken_pairs

LINES_AROUND = 48
"""Tokens of a summary message's first lines and of its mark."""


def measure_rounds(
    cases: Sequence[Case], system: System, summary_tokens: int, rounds: int, step: OnTranscript
) -> Rounds | None:
    """Measure the quoted share if the way to a cut is compacted in rounds.

    Each round gets the whole history so far. The steps are spread evenly over the messages that
    leave, so that something new leaves in each; shorter cuts are skipped and counted.

    Returns:
        The means; None if no cut could be measured.
    """
    ones: list[float] = []
    manys: list[float] = []
    compactions: list[int] = []
    # The opening line of the message comes on top of what a summariser is allowed.
    slack = 1.0 if system.family == "conspectus" else SLACK
    limit = slack * summary_tokens + LINES_AROUND
    over = largest = broken = skipped = 0
    for case in cases:
        scores: list[tuple[float, float]] = []
        if case.cuts:
            step(case.transcript.name)
        for cut in case.cuts:
            ends = _whole(cut, ends_of(len(cut.prefix), len(cut.tail), rounds))
            if not ends:
                skipped += 1
                continue
            (once,) = _grown(system, summary_tokens, cut, [len(cut.prefix)])
            made = _grown(system, summary_tokens, cut, ends)
            compactions.append(sum(one.done for one in made))
            over += sum(one.summary_tokens > limit for one in made)
            largest = max(largest, *(one.summary_tokens for one in made))
            broken += sum(len(broken_pairs(one.messages)) for one in made)
            kept = [len(cut.kept(one.messages)[1]) / len(cut.far) for one in (once, made[-1])]
            scores.append((kept[0], kept[1]))
        if scores:
            ones.append(statistics.fmean(one for one, _ in scores))
            manys.append(statistics.fmean(many for _, many in scores))
    if not ones:
        return None
    one, many = statistics.fmean(ones), statistics.fmean(manys)
    return Rounds(
        rounds=rounds,
        one=one,
        many=many,
        ratio=many / one if one else None,
        over=over,
        largest_summary=largest,
        broken=broken,
        compactions=statistics.fmean(compactions),
        cuts=len(compactions),
        skipped=skipped,
    )


def ends_of(length: int, kept: int, rounds: int) -> list[int]:
    """Divide a history into rounds; empty if it is too short for them.

    Example:
        >>> ends_of(50, 20, 3)
        [30, 40, 50]
    """
    leaving = length - kept
    if leaving < rounds:
        return []
    return [kept + leaving * number // rounds for number in range(1, rounds + 1)]


def _whole(cut: Cut, ends: Sequence[int]) -> list[int]:
    """Move ends to where no tool call waits for its result."""
    moved = []
    for end in ends:
        while end < len(cut.prefix) and isinstance(cut.prefix[end], ToolMessage):
            end += 1
        moved.append(end)
    return list(dict.fromkeys(moved))


def _grown(system: System, summary_tokens: int, cut: Cut, ends: Sequence[int]) -> list[Compacted]:
    thread = system.open(summary_tokens)
    made = [thread.compact(cut.prefix[:end]) for end in ends]
    thread.close()
    return made
