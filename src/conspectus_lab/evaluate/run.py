"""Measure what survives a compaction on some transcripts, for each system."""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.messages.utils import count_tokens_approximately

from conspectus.errors import PolicyError
from conspectus.messages import Source
from conspectus_lab.evaluate.future_use import (
    cut_places,
    held_by,
    lines_of,
    needs,
    quoted,
)
from conspectus_lab.evaluate.results import Evaluation, Lost, Measured, Result, Settings
from conspectus_lab.evaluate.systems import (
    Compacted,
    ConspectusSystem,
    Keep,
    LangChainSystem,
    System,
)
from conspectus_lab.pairs import broken_pairs
from conspectus_lab.recording import Recording

SLACK_SHARE, SLACK_TOKENS = 1.05, 40
"""Allowance of a summary above its limit, for its frame."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a transcript, with its evidence.

    Attributes:
        evidence: groups of texts; one of each group must be in view.
        kind: its subject, such as `goal`, `rule`, `done` or `next`; `answer` is for people.
    """

    question: str
    evidence: tuple[tuple[str, ...], ...]
    kind: str = "question"
    answer: str = ""

    def missing(self, text: str) -> list[str]:
        """List the first text of each group of which none is in a text that `plain` wrote."""
        return [
            group[0] for group in self.evidence if not any(plain(each) in text for each in group)
        ]


@dataclass(frozen=True, slots=True)
class Transcript:
    """One conversation to measure.

    Attributes:
        name: its name in results.
        messages: each with an id. System messages at the start are left out: they always stay.
        questions: about its end.
    """

    name: str
    messages: tuple[BaseMessage, ...]
    questions: tuple[Question, ...] = ()

    @classmethod
    def of(
        cls, name: str, messages: Sequence[Source], questions: Iterable[Question] = ()
    ) -> Transcript:
        """Convert messages of any kind that the library reads.

        Args:
            name: its name in results.
            messages: LangChain messages, or dicts in OpenAI's or Anthropic's form.
            questions: about it.

        Raises:
            MessageError: a message cannot be understood.
            InputError: no assistant speaks in it.

        Example:
            >>> said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes?"}]
            >>> Transcript.of("a", said).messages[0].id
            'm0'
        """
        return cls(name, Recording.of(messages).messages, tuple(questions))

    @property
    def digest(self) -> str:
        """Hash the conversation and its questions."""
        rows = [f"{message.type} {message.id} {message.text}" for message in self.messages]
        rows += [str(asdict(question)) for question in self.questions]
        return hashlib.sha256("\0".join(rows).encode("utf-8", "replace")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class _Cut:
    """A history up to a cut, and the identifiers that only a summary of it can hold."""

    prefix: Sequence[BaseMessage]
    far: Sequence[str]


@dataclass(slots=True)
class _Tally:
    """Figures of one system and one size of summary, gathered."""

    made: list[Compacted] = field(default_factory=list)
    quoted: list[float] = field(default_factory=list)
    needed: int = 0
    asked: int = 0
    in_view: int = 0
    with_recall: int = 0
    lost: list[Lost] = field(default_factory=list)


def evaluate(
    transcripts: Sequence[Transcript],
    systems: Sequence[System] | None = None,
    *,
    keep: Keep = ("messages", 20),
    summary_tokens: Sequence[int] = (1_024,),
    recall_tokens: int = 512,
    minimum: int = 10_000,
    step: Callable[[str], None] = lambda name: None,
) -> Evaluation:
    """Measure what survives a compaction, with one result for each system and size of summary.

    Each transcript is cut at 40, 60 and 80 % of its tokens, and what stands before the cut is
    compacted; the identifiers that the agent needs after it are looked for. Where it has questions,
    it is compacted at its end too, and their evidence is looked for.

    Args:
        transcripts: conversations.
        systems: Default: `ConspectusSystem` and `LangChainSystem`.
        keep: the newest history that stays.
        summary_tokens: limits of the summary in tokens, each measured by itself.
        recall_tokens: of what a question may recall.
        minimum: tokens; smaller transcripts are measured by their questions alone.
        step: called with the name of each transcript before it is measured.

    Raises:
        PolicyError: a setting is invalid, or two systems have one name.
        SummaryError: our summariser failed.

    Example:
        >>> said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes?"}]
        >>> evaluate([Transcript.of("a", said)]).transcripts[0].skipped
        'fewer than 10,000 tokens'
    """
    usual: list[System] = [ConspectusSystem(), LangChainSystem()]
    chosen = usual if systems is None else systems
    names = [system.name for system in chosen]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise PolicyError(f"two systems are called {repeated[0]!r}; give each a name of its own")
    for value in (*summary_tokens, minimum + 1, recall_tokens):
        if type(value) is not int or value < 1:
            raise PolicyError(f"sizes must be whole numbers of tokens from 1 on, not {value!r}")
    for system in chosen:
        if isinstance(system, ConspectusSystem):
            system.compactor(keep, summary_tokens[0]).close()
    measured = [_prepared(transcript, keep, minimum) for transcript in transcripts]
    results, lost = [], list[Lost]()
    for system in chosen:
        for limit in summary_tokens:
            tally = _Tally()
            for transcript, (cuts, _) in zip(transcripts, measured, strict=True):
                if cuts or transcript.questions:
                    step(transcript.name)
                    _measure(tally, system, transcript, cuts, (keep, limit, recall_tokens))
            if tally.made:
                results.append(_result(tally, system, limit))
                lost += tally.lost
    return Evaluation(
        Settings(f"{keep[0]}:{keep[1]}", recall_tokens, minimum),
        tuple(noted for _, noted in measured),
        tuple(results),
        tuple(lost),
    )


def _prepared(transcript: Transcript, keep: Keep, minimum: int) -> tuple[list[_Cut], Measured]:
    """Find the cuts of a transcript; without any, say why."""
    messages = transcript.messages
    tokens = count_tokens_approximately(messages)
    cuts: list[_Cut] = []
    if tokens >= minimum:
        for place in cut_places(messages, count_tokens_approximately):
            prefix = messages[:place]
            near = held_by([*prefix[:1], *_tail(prefix, keep)])
            if far := [value for value in needs(messages, place) if value not in near]:
                cuts.append(_Cut(prefix, far))
    why = f"fewer than {minimum:,} tokens" if tokens < minimum else "nothing far is needed again"
    skipped = "" if cuts or transcript.questions else why
    return cuts, Measured(transcript.name, transcript.digest, len(messages), tokens, skipped)


def _tail(messages: Sequence[BaseMessage], keep: Keep) -> Sequence[BaseMessage]:
    """Return the newest messages that `keep` asks for."""
    kind, amount = keep
    if kind == "messages":
        return messages[-amount:]
    start, spent = len(messages), 0
    while start > 0 and spent < amount:
        start -= 1
        spent += count_tokens_approximately([messages[start]])
    return messages[start:]


def _measure(
    tally: _Tally,
    system: System,
    transcript: Transcript,
    cuts: Sequence[_Cut],
    sizes: tuple[Keep, int, int],
) -> None:
    """Add one transcript to the figures of a system."""
    keep, limit, recall_tokens = sizes
    shares = []
    for cut in cuts:
        with system.compacted(cut.prefix, keep, limit) as done:
            kept = quoted(cut.far, done.messages, cut.prefix)
        tally.made.append(done)
        tally.needed += len(cut.far)
        shares.append(len(kept) / len(cut.far))
    if shares:
        tally.quoted.append(statistics.fmean(shares))
    if not transcript.questions:
        return
    with system.compacted(transcript.messages, keep, limit) as done:
        tally.made.append(done)
        view = plain("\n".join(lines_of(done.messages)))
        for asked in transcript.questions:
            missing = asked.missing(view)
            recalled = not missing
            if missing:
                more = done.recall(asked.question, recall_tokens)
                recalled = not asked.missing(f"{view}\n{plain(more)}")
                tally.lost.append(
                    Lost(system.name, transcript.name, asked.question, tuple(missing), recalled)
                )
            tally.asked += 1
            tally.in_view += not missing
            tally.with_recall += recalled


def _result(tally: _Tally, system: System, limit: int) -> Result:
    made = tally.made
    evicted = sum(done.evicted for done in made)
    allowed = limit * SLACK_SHARE + SLACK_TOKENS
    return Result(
        name=system.name,
        ours=system.ours,
        summary_tokens=limit,
        contexts=len(made),
        quoted=statistics.fmean(tally.quoted) if tally.quoted else None,
        needed=tally.needed,
        in_view=tally.in_view / tally.asked if tally.asked else None,
        with_recall=tally.with_recall / tally.asked if tally.asked else None,
        asked=tally.asked,
        read=sum(done.read for done in made) / evicted if evicted else None,
        recoverable=sum(done.recoverable for done in made) / evicted if evicted else None,
        over=sum(done.summary_tokens > allowed for done in made),
        broken=sum(len(broken_pairs(done.messages)) for done in made),
        tokens=round(statistics.median(count_tokens_approximately(d.messages) for d in made)),
        seconds=statistics.fmean(done.seconds for done in made),
    )


def plain(text: str) -> str:
    """Write a text so that case, quotation marks, markup and white space do not matter.

    Example:
        >>> plain('At most  "3 retries"')
        'at most 3 retries'
    """
    return " ".join(text.casefold().translate(_MARKS).split())


_MARKS: dict[int, Any] = str.maketrans(dict.fromkeys("\"'`*“”‘’", ""))
