"""Gather the messages, notes and facts that one compaction reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from conspectus.archive import Scope
from conspectus.core.items import Compact
from conspectus.core.policy import LARGEST_SUMMARY, REARM, SMALLEST_SUMMARY
from conspectus.core.records import ClipMark, Draft, Record
from conspectus.engine.engine import Engine
from conspectus.engine.hooks import SummarizationEvent, copied, tell_flow
from conspectus.engine.view import History, Place, clipped
from conspectus.messages import Entry, read_messages, summary_message, summary_text
from conspectus.messages.summary import summary_body
from conspectus.model.checks import FLOOR, problems
from conspectus.notes.segment import Segment, with_texts
from conspectus.observe import log
from conspectus.redaction import Redaction, for_view


@dataclass(frozen=True, slots=True)
class Lengths:
    """The lengths of a summary message, in tokens.

    Attributes:
        asked: the limit that the summariser is given.
        fine: the size above which a shorter one is asked for, so that the budget keeps room and
            summaries of summaries fit their summariser.
        most: its largest size, by what it replaces, the budget and a caller's limit.
        replaced: tokens of the messages that it replaces.
        may_be_cut: a caller has set a length, and prefers a cut summary to none.
    """

    asked: int
    fine: int
    most: int
    replaced: int
    may_be_cut: bool

    @classmethod
    def of(cls, plan: Compact, replaced: int, stays: int, alone: bool = False) -> Lengths:
        """Set the lengths of one compaction.

        With `alone`, a summary in a tiny budget need only fit by itself, as in LangMem.
        """
        asked = min(plan.summary_tokens, max(FLOOR, replaced))
        most = max(FLOOR, replaced)
        if plan.summary_cap is not None:
            most = min(most, plan.summary_cap)
        fine = most if plan.summary_cap is not None else min(most, LARGEST_SUMMARY)
        if plan.budget is not None:
            most = min(most, plan.budget - stays)
            fine = min(fine, int(plan.budget / REARM) - stays)
            if alone and plan.budget < SMALLEST_SUMMARY:
                most = fine = max(most, plan.budget)
        cut = plan.summary_cap is not None
        return cls(asked, max(asked, fine), max(asked, most), replaced, cut)

    def problems(self, draft: Draft, tokens: int, entries: Sequence[Entry] = ()) -> tuple[str, ...]:
        return problems(draft, entries, tokens=tokens, replaced=self.replaced, limit=self.most)


@dataclass(slots=True)
class Material:
    """All that one compaction reads, without its secrets if there is a redactor.

    Attributes:
        adopted: the summary by another library of the messages that leave; None for none.
        originals: the messages that leave or are clipped, as first sent, by key.
        to_show: the redacted text of messages that are clipped, by key.
        clips: clipped messages, by their place in the history.
        segments: the notes so far.
        rewritten: whether a secret was taken out of them, so that the next record holds them anew.
        foreign: summaries of other libraries that leave.
        places: the view after the compaction, without its summary.
        redacted: secrets that were taken out of the originals, by kind.
        lost: clipped messages whose originals are no longer in the archive.
    """

    engine: Engine
    history: History
    plan: Compact
    focus: str
    adopted: Draft | None = None
    redaction: Redaction | None = None
    leaving: tuple[Place, ...] = ()
    originals: dict[str, Entry] = field(default_factory=dict)
    to_show: dict[str, Entry] = field(default_factory=dict)
    clips: dict[int, Place] = field(default_factory=dict)
    staying: list[Entry] = field(default_factory=list)
    segments: tuple[Segment, ...] = ()
    rewritten: bool = False
    foreign: tuple[str, ...] = ()
    places: list[Place] = field(default_factory=list)
    lengths: Lengths = field(init=False)
    redacted: Mapping[str, int] = field(default_factory=dict)
    lost: int = 0

    def __post_init__(self) -> None:
        self.redaction = self.engine.redaction

    def size(self, body: str) -> int:
        if self.engine.size is not None:
            return self.engine.size(body)
        text = summary_text(body, archived=self.engine.archive is not None)
        return self.engine.meter.message(summary_message(text, "", like=self.history.like))

    def read(self) -> list[Entry]:
        """Return the messages that leave, without summaries."""
        return [self.originals[p.item.key] for p in self.leaving if not p.item.summary]

    @property
    def standing(self) -> str:
        """The summary so far: ours, and those of other libraries that ours replaces."""
        head = self.history.head
        return "\n".join(filter(None, (head.summary if head else "", *self.foreign)))

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(place.item.key for place in self.leaving)

    @property
    def entries(self) -> list[Entry]:
        return [self.originals[key] for key in self.keys]

    @property
    def marks(self) -> tuple[ClipMark, ...]:
        return tuple(place.mark for place in self.clips.values() if place.mark is not None)

    @property
    def tokens(self) -> int:
        """Tokens that stay in view beside the summary."""
        return sum(place.item.tokens for place in self.places)

    @property
    def ahead(self) -> int:
        """Of what stays, the number of messages before the last one that leaves."""
        gone = set(self.plan.evicted)
        return sum(
            i not in gone and place.entry is not None and not place.item.summary
            for i, place in enumerate(self.history.places[: max(gone, default=0)])
        )

    def among(self) -> tuple[str, ...]:
        """Return the keys of what leaves, and of what stays before the last of it.

        The latter leave later, and the archive must know where they stood.
        """
        items, leaving = self.history.items, set(self.keys)
        known = {key for record in self.history.chain for key in record.order}
        last = max((i for i, item in enumerate(items) if item.key in leaving), default=-1)
        among = tuple(
            item.key
            for item in items[: last + 1]
            if item.key in leaving
            or not (item.summary or item.role == "system" or item.key in known)
        )
        return () if leaving.issuperset(among) else among

    async def gather_flow(self, scope: Scope) -> None:
        """Read the originals of all that leaves or is clipped, and the notes so far."""
        places = self.history.places
        gone = set(self.plan.evicted)
        self.leaving = tuple(
            place
            for i, place in enumerate(places)
            if i in gone or (self.plan.summary_tokens and _foreign(place))
        )
        wanted = [*self.leaving, *(places[clip.index] for clip in self.plan.clips)]
        short = [place for place in wanted if place.back]
        found: dict[str, Entry] = {}
        if short and self.engine.archive is not None:
            keys = [place.item.key for place in short]
            archived = await self.engine.archive.flow(self.engine.archive.find, scope, keys)
            for key, original in archived.items():
                entry = read_messages([original.message])[0]
                entry.key, entry.id = key, original.id
                found[key] = entry
            self.lost = len(set(keys) - set(found))
        for place in wanted:
            assert place.entry is not None
            self.originals[place.item.key] = found.get(place.item.key, place.entry)
        self.staying = [
            place.entry
            for i, place in enumerate(places)
            if i not in gone and place.entry is not None and not place.item.summary
        ]
        self.foreign = tuple(
            summary_body(p.entry.text) for p in self.leaving if _foreign(p) and p.entry
        )
        chain = self.history.chain or self.history.before
        self.segments = tuple(map(_segment_of, chain))
        if self.redaction is not None:
            await self._redact(self.redaction)
        for clip in self.plan.clips:
            place, where = places[clip.index], self.engine.where
            assert where is not None
            shown = clipped(place, self._to_show(place), clip, self.engine.meter, where)
            self.clips[clip.index] = shown
        self.places = [
            self.clips.get(i, place)
            for i, place in enumerate(places)
            if i not in gone and not (place.item.summary and self.plan.summary_tokens)
        ]
        items = self.history.items
        replaced = sum(item.tokens for item in items if item.summary)
        replaced += sum(items[i].tokens for i in self.plan.evicted)
        alone = self.engine.size is not None
        self.lengths = Lengths.of(self.plan, replaced, self.tokens, alone=alone)

    def _to_show(self, place: Place) -> Entry:
        key = place.item.key
        original = self.to_show.get(key) or self.originals[key]
        if not original.redacted or place.entry is None:
            return original
        return for_view(original, place.entry)

    async def _redact(self, redaction: Redaction) -> None:
        """Take the secrets out of all that is stored, read or logged from here on."""
        # A clip must be the same whenever it is made again, so it goes by its own message only.
        keys = [self.history.places[clip.index].item.key for clip in self.plan.clips]
        short = {key: self.originals[key] for key in keys}
        alone = await redaction.entries(list(short.values()))
        self.to_show = dict(zip(short, alone, strict=True))
        adopted, count = self.adopted, len(self.originals)
        segments, texts = [one.to_json() for one in self.segments], list[str]()

        def noted(text: str) -> str:
            texts.append(text)
            return text

        with_texts(segments, noted)
        done = await redaction.together(
            [*self.originals.values(), *self.staying],
            [self.focus, adopted.text if adopted else "", *self.foreign, *texts],
        )
        self.originals = dict(zip(self.originals, done.entries[:count], strict=True))
        self.staying = done.entries[count:]
        self.redacted = dict(sum(map(Counter, done.counts[:count]), Counter[str]()))
        self.focus, text, *texts = done.texts
        if adopted is not None and text != adopted.text:
            segment = Segment(text=text, alone=True).to_json()
            self.adopted = replace(adopted, text=text, tokens=self.size(text), segment=segment)
        clean = iter(texts)
        self.foreign = tuple(next(clean) for _ in self.foreign)
        closed = with_texts(segments, lambda _: next(clean))
        self.rewritten = closed != segments
        if self.rewritten:
            self.segments = tuple(map(Segment.from_json, closed))
        # Summaries and errors may repeat a secret that was recognised here.
        self.redaction = replace(redaction, values=done.values)


def _segment_of(record: Record) -> Segment:
    """Read the segment of a record; where it is gone or damaged, its summary takes its place."""
    if not record.segment and record.by:
        return Segment(text=record.summary, alone=True)
    try:
        return Segment.from_json(record.segment)
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        log(
            "notes_damaged",
            "The notes of record %s are damaged, and its summary is used as it is: %s",
            record.id,
            error,
        )
        return Segment(text=record.summary, alone=True)


def _foreign(place: Place) -> bool:
    return place.item.summary and place.entry is not None


async def tell_hooks_flow(material: Material, scope: Scope) -> None:
    engine, left = material.engine, material.read()
    if not engine.hooks or not left:
        return
    closed = engine.redaction is not None
    leave, stay = (tuple(copied(e, closed=closed) for e in es) for es in (left, material.staying))
    cause, session = material.plan.cause, scope.session
    event = SummarizationEvent(leave, stay, scope.thread, session, scope.tenant, cause)
    await tell_flow(engine.hooks, event, engine.timeout)
