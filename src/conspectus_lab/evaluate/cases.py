"""Find cases to measure: cuts of transcripts with later needs, and questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage

from conspectus_lab.evaluate.answers import Marker, lines, shown_lines
from conspectus_lab.evaluate.bm25 import Bm25
from conspectus_lab.evaluate.future_use import Need, cut_places, held_by, needs, quoted
from conspectus_lab.evaluate.langchain_system import tail_of
from conspectus_lab.evaluate.results import Noted
from conspectus_lab.evaluate.texts import TokenCount
from conspectus_lab.evaluate.transcripts import Transcript

SLACK, FIXED_SLACK = 1.05, 40
"""Tolerance of a context's size beyond its tail and summary: a factor, and tokens."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A history up to a cut, and the agent's needs afterwards.

    Attributes:
        prefix: the messages before the cut.
        tail: those of them that stay.
        far: needs that stand neither in the tail nor in the first message.
    """

    prefix: tuple[BaseMessage, ...]
    tail: tuple[BaseMessage, ...]
    far: tuple[Need, ...]

    def kept(self, view: Sequence[BaseMessage]) -> tuple[set[str], set[str]]:
        """Return the far identifiers that stand in a view, and those of them that are quoted."""
        present = held_by(view) & {need.value for need in self.far}
        return present, quoted(present, view, self.prefix)


@dataclass(frozen=True, slots=True)
class Case:
    """One transcript with all that can be measured in it.

    Attributes:
        cuts: for future use.
        marker: for answers; None if no question can be marked.
        tail: the messages of the whole that stay, for answers.
        plain: for each marked question, the share that the tail and BM25 keep.
    """

    transcript: Transcript
    cuts: tuple[Cut, ...]
    marker: Marker | None
    tail: tuple[BaseMessage, ...]
    plain: tuple[float, ...]
    noted: Noted


@dataclass(frozen=True, slots=True)
class Yardstick:
    """Settings that are the same for all systems.

    Attributes:
        keep: the tail that counts as near.
        minimum_tokens: transcripts smaller than this are left out of future use.
    """

    keep: tuple[str, int]
    count: TokenCount
    recall_tokens: int
    minimum_tokens: int

    def case(self, transcript: Transcript) -> Case:
        """Find the cuts and questions of a transcript that can be measured.

        Future use needs an agent that goes on; of plain talk with questions only the answers are
        measured.
        """
        size = self.count(transcript.messages)
        marker = Marker(transcript) if transcript.questions else None
        cuts: list[Cut] = []
        why = "there are questions, and none of them can be marked"
        if marker is None or transcript.acts:
            cuts, why = self._cuts(transcript, size)
        if marker is not None and not marker.gold:
            marker = None
        tail: tuple[BaseMessage, ...] = ()
        plain: tuple[float, ...] = ()
        if marker is not None:
            tail = tuple(tail_of(transcript.messages, self.keep, self.count))
            plain = self._plain(transcript, marker, tail)
        noted = Noted(
            name=transcript.name,
            digest=transcript.digest,
            messages=len(transcript.messages),
            tokens=size,
            cuts=len(cuts),
            questions=len(plain),
            skipped="" if cuts or plain else why,
        )
        return Case(transcript, tuple(cuts), marker, tail, plain, noted)

    def allowed(
        self, prefix: Sequence[BaseMessage], tail: Sequence[BaseMessage], summary_tokens: int
    ) -> float:
        """Return the largest comparable size of a context, in tokens."""
        first = prefix[0]
        opening = 0 if any(message.id == first.id for message in tail) else self.count([first])
        return SLACK * (self.count(tail) + opening + summary_tokens) + FIXED_SLACK

    def _cuts(self, transcript: Transcript, size: int) -> tuple[list[Cut], str]:
        """Return the cuts that can be measured, and the reason if there are none."""
        messages = transcript.messages
        if size < self.minimum_tokens:
            return [], f"it has fewer than {self.minimum_tokens:,} tokens"
        found: list[Cut] = []
        why = "the agent does not act often enough after any cut"
        for place in cut_places(messages, self.count):
            prefix = messages[:place]
            tail = tail_of(prefix, self.keep, self.count)
            if len(tail) == len(prefix):
                why = "all that stands before the cuts is kept"
                continue
            near = held_by([prefix[0], *tail])
            far = tuple(need for need in needs(messages, place) if need.value not in near)
            if not far:
                why = "nothing that has left is needed again"
                continue
            found.append(Cut(prefix, tuple(tail), far))
        return found, why

    def _plain(
        self, transcript: Transcript, marker: Marker, tail: Sequence[BaseMessage]
    ) -> tuple[float, ...]:
        search = Bm25(transcript.messages)
        stays = lines(shown_lines(tail))
        shares = []
        for gold in marker.gold:
            asked = gold.question.question
            found = search.recall(asked, self.recall_tokens) if self.recall_tokens else ""
            shares.append(marker.share(gold, [*stays, *lines(found.split("\n"))]))
        return tuple(shares)
