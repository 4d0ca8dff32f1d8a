"""Measure one system with one size of summary on all cases."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from langchain_core.messages import BaseMessage, HumanMessage

from conspectus_lab.evaluate.answers import lines, shown_lines
from conspectus_lab.evaluate.cases import Case, Cut, Yardstick
from conspectus_lab.evaluate.identifiers import KINDS
from conspectus_lab.evaluate.intervals import mean_of
from conspectus_lab.evaluate.langchain_system import tail_of
from conspectus_lab.evaluate.results import Answers, Contexts, FutureUse, Share, SystemResult
from conspectus_lab.evaluate.systems import Compacted, Recalling, System, written
from conspectus_lab.pairs import broken_pairs

DISTANCES = ((10, "under 10"), (30, "10 to 29"), (100, "30 to 99"))
FARTHEST = "100 or more"
BANDS = (*(name for _, name in DISTANCES), FARTHEST)
"""Messages between the last place of an identifier and its need."""

OVERHEAD = 4
"""Tokens of the message around recalled text."""

ADDED_UP = "evicted read recoverable cited calls input_tokens output_tokens".split()
"""Figures of single contexts that are summed."""

OnTranscript = Callable[[str], None]
"""Called with the name of each transcript before it is measured."""


@dataclass(slots=True)
class _Sizes:
    """Sizes of the contexts of one system."""

    yardstick: Yardstick
    system: System
    summary_tokens: int
    made: list[Compacted] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    over: int = 0
    broken: int = 0

    def add(
        self, compacted: Compacted, prefix: Sequence[BaseMessage], tail: Sequence[BaseMessage]
    ) -> int:
        """Add a context, and return its tokens."""
        if self.system.keep != self.yardstick.keep:
            tail = tail_of(prefix, self.system.keep, self.yardstick.count)
        size = self.yardstick.count(compacted.messages)
        self.over += size > self.yardstick.allowed(prefix, tail, self.summary_tokens)
        self.broken += len(broken_pairs(compacted.messages))
        self.made.append(compacted)
        self.tokens.append(size)
        return size

    def together(self) -> Contexts:
        made = self.made
        return Contexts(
            count=len(made),
            tokens=statistics.median(self.tokens),
            largest=max(self.tokens),
            over=self.over,
            broken=self.broken,
            summary_tokens=statistics.median(one.summary_tokens for one in made),
            largest_summary=max(one.summary_tokens for one in made),
            seconds=statistics.fmean(one.seconds for one in made),
            **{name: sum(getattr(one, name) for one in made) for name in ADDED_UP},
        )


def measure(
    cases: Sequence[Case],
    system: System,
    summary_tokens: int,
    yardstick: Yardstick,
    seed: int,
    step: OnTranscript,
) -> tuple[SystemResult, list[float]]:
    """Measure a system on all cases; also return the share of each marked question's answer."""
    future = _FutureUse(_Sizes(yardstick, system, summary_tokens))
    answers = _Answers(_Sizes(yardstick, system, summary_tokens))
    for case in cases:
        if case.cuts or case.marker is not None:
            step(case.transcript.name)
        if case.cuts:
            future.add(case)
        if case.marker is not None:
            answers.add(case)
    found = SystemResult(
        system.name,
        system.family,
        written(system.keep),
        summary_tokens,
        future.together(seed),
        answers.together(seed),
    )
    return found, answers.shares


@dataclass(slots=True)
class _FutureUse:
    sizes: _Sizes
    quoted_in: dict[str, float] = field(default_factory=dict)
    far: list[float] = field(default_factory=list)
    cuts: int = 0
    kinds: defaultdict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    bands: defaultdict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))

    def add(self, case: Case) -> None:
        scores = [self._cut(cut) for cut in case.cuts]
        self.far.append(statistics.fmean(far for far, _ in scores))
        self.quoted_in[case.transcript.name] = statistics.fmean(quote for _, quote in scores)
        self.cuts += len(scores)

    def _cut(self, cut: Cut) -> tuple[float, float]:
        thread = self.sizes.system.open(self.sizes.summary_tokens)
        compacted = thread.compact(cut.prefix)
        thread.close()
        self.sizes.add(compacted, cut.prefix, cut.tail)
        present, kept = cut.kept(compacted.messages)
        for need in cut.far:
            self.kinds[need.kind].append(need.value in kept)
            self.bands[band_of(need.distance)].append(need.value in kept)
        return len(present) / len(cut.far), len(kept) / len(cut.far)

    def together(self, seed: int) -> FutureUse | None:
        quote, far = mean_of(list(self.quoted_in.values()), seed), mean_of(self.far, seed)
        if quote is None or far is None:
            return None
        return FutureUse(
            quoted=quote,
            far=far,
            by_kind={kind: _share(self.kinds[kind]) for kind in KINDS if kind in self.kinds},
            by_distance={band: _share(self.bands[band]) for band in BANDS if band in self.bands},
            cuts=self.cuts,
            contexts=self.sizes.together(),
            quoted_in=self.quoted_in,
        )


@dataclass(slots=True)
class _Answers:
    sizes: _Sizes
    shares: list[float] = field(default_factory=list)
    plain: list[float] = field(default_factory=list)
    evidence: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    categories: defaultdict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    asked: int = 0
    recall_over: int = 0

    def add(self, case: Case) -> None:
        marker, messages = case.marker, case.transcript.messages
        assert marker is not None
        yardstick = self.sizes.yardstick
        thread = self.sizes.system.open(self.sizes.summary_tokens)
        compacted = thread.compact(messages)
        size = self.sizes.add(compacted, messages, case.tail)
        shown = list(shown_lines(compacted.messages))
        known = lines(shown)
        for gold in marker.gold:
            recalled = ""
            if yardstick.recall_tokens and isinstance(thread, Recalling):
                recalled = thread.recall(gold.question.question, yardstick.recall_tokens)
            extra = [line for line in recalled.split("\n") if line.strip()]
            more = yardstick.count([HumanMessage(recalled)]) if recalled else 0
            self.recall_over += more > yardstick.recall_tokens + OVERHEAD
            share = marker.share(gold, [*known, *lines(extra)])
            self.shares.append(share)
            self.categories[gold.question.category].append(share)
            self.evidence.append(marker.evidence(gold, "\n".join([*shown, *extra])))
            self.tokens.append(size + more)
        thread.close()
        self.plain += case.plain
        self.asked += len(case.transcript.questions)

    def together(self, seed: int) -> Answers | None:
        gains = [ours - plain for ours, plain in zip(self.shares, self.plain, strict=True)]
        mean, plain = mean_of(self.shares, seed), mean_of(self.plain, seed)
        gain = mean_of(gains, seed)
        if mean is None or plain is None or gain is None:
            return None
        categories = {
            str(name): found
            for name, values in sorted(self.categories.items())
            if (found := mean_of(values, seed)) is not None
        }
        return Answers(
            answers=mean,
            bm25=plain,
            gain=gain,
            evidence=statistics.fmean(self.evidence),
            tokens=statistics.median(self.tokens),
            questions=len(self.shares),
            unmarked=self.asked - len(self.shares),
            by_category=categories,
            recall_over=self.recall_over,
            contexts=self.sizes.together(),
        )


def band_of(distance: int) -> str:
    """Name the band of a distance in messages.

    Example:
        >>> band_of(12)
        '10 to 29'
    """
    return next((name for end, name in DISTANCES if distance < end), FARTHEST)


def _share(kept: Sequence[bool]) -> Share:
    return Share(sum(kept), len(kept))
