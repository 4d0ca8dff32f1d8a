"""What one compaction reads: the messages that leave, whole and without secrets, and the notes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from conspectus._turns import waiting
from conspectus.core.items import Compact
from conspectus.core.policy import EMBEDDED, LARGEST_SUMMARY, REARM, SLACK, SMALLEST_SUMMARY
from conspectus.core.records import Chain, Cost, Draft, mark_of
from conspectus.engine.thread import Thread
from conspectus.engine.view import History, ViewItem, clipped, sent_with, staying
from conspectus.errors import ArchiveUnconfirmed, RedactionError
from conspectus.messages import SUMMARY_LINE, Message, read_messages, summary_message, summary_text
from conspectus.messages.framing import as_notes, summary_body
from conspectus.messages.message import sendable
from conspectus.notes.segment import Segment, with_texts
from conspectus.observe import log
from conspectus.redaction import Redaction

ALWAYS = 200  # Tokens that a summary may take, even where it stands for less


@dataclass(slots=True)
class Material:
    """All that one compaction reads, without its secrets if there is a redactor."""

    thread: Thread
    history: History
    plan: Compact
    focus: str = ""
    ready: Draft | None = None  # a draft that was prepared for it
    waited: float = 0.0  # seconds that the caller has waited for that
    redaction: Redaction | None = None  # the redactor, with the secrets that it recognised here
    # messages that leave the view; `keys` and `entries` are theirs, and `to_read` those that are no
    # summaries
    leaving: tuple[ViewItem, ...] = ()
    keys: tuple[str, ...] = ()
    entries: list[Message] = field(default_factory=list)
    to_read: list[Message] = field(default_factory=list)
    # the messages that leave or are clipped, as first sent, by key
    originals: dict[str, Message] = field(default_factory=dict)
    # clipped messages, by their place in the history
    clips: dict[int, ViewItem] = field(default_factory=dict)
    remaining: list[ViewItem] = field(default_factory=list)  # the view beside the summary
    staying: list[Message] = field(default_factory=list)  # messages that stay in view
    ahead: int = 0  # how many of them came before the last one that leaves
    notes: Segment = field(default_factory=Segment)  # so far
    foreign: tuple[str, ...] = ()  # summaries of other libraries that leave
    standing: str = ""  # the summary so far: ours, and those that ours replaces
    # secrets that were taken out of the originals, by kind
    redacted: Mapping[str, int] = field(default_factory=dict)
    tokens: int = 0  # tokens of the view beside the summary
    replaced: int = 0  # tokens of what the summary replaces
    # lengths of the summary message in tokens: the one that is asked for; the one up to which two
    # fifths of the window stay free; the one above which a shorter one is asked for, so that the
    # budget keeps room; the largest
    wanted: int = 0
    paying: int = 0
    fine: int = 0
    most: int = 0
    # what tries of this compaction cost, and those that failed, in words
    spent: Cost = field(default_factory=Cost)
    failures: tuple[str, ...] = ()

    def largest_by(self, by: str) -> int:
        """Return the most tokens of a summary by what it replaces.

        One that a caller has asked a model for may take a few more than a tiny history.
        """
        return self.replaced if by == EMBEDDED else max(self.replaced, ALWAYS)

    def size(self, body: str) -> int:
        """Return the tokens of the message that shows a summary.

        By a caller's counter they are those that it adds to the view as it will be sent.
        """
        engine = self.thread.engine
        if engine.meter.counts_lists:
            view = sent_with(self.history, self.remaining, engine, body, self.mark)
            return (engine.counted(view) or 0) - self.tokens
        if engine.summary_size is not None:
            return engine.summary_size(body)
        text = summary_text(body, archived=engine.archive is not None)
        return engine.meter.message(summary_message(text, "", like=self.history.like))

    @property
    def mark(self) -> str:
        """The mark of the record that is to be made."""
        marks = (item.mark for item in self.clips.values())
        return mark_of(self.history.head_id, self.keys, [one.key for one in marks if one])

    def text_within(self, tokens: int) -> int:
        """Return the tokens of text that a summary message of this size holds."""
        return max(1, tokens - self.thread.engine.frame - SLACK)

    async def clean(self, text: str) -> str:
        """Redact the text of a summary; raise `RedactionError` if nothing is left of it."""
        if self.redaction is None:
            return text
        clean: str = (await self.redaction.together([text])).made[0]
        if text.strip() and not clean.strip():
            raise RedactionError(
                f"the redactor {self.redaction.identity} left nothing of the summary; let it "
                "answer with the text that may be kept"
            )
        return clean

    async def tell(self, event: str, *, clear: bool = False, **data: Any) -> None:
        """Call the user's `on_event`, without secrets; if it fails, log that and go on."""
        engine, scope = self.thread.engine, self.thread.scope
        if engine.on_event is None:
            return
        words = {key: value for key, value in data.items() if isinstance(value, str) and not clear}
        clean = await engine.redacted(list(words.values()), self.redaction)
        data |= dict(zip(words, clean, strict=True))
        try:
            with waiting.get()():
                names = {"thread_id": scope.thread, "session": scope.session}
                engine.on_event(event, data | names)
        except Exception:
            log("on_event_failed", "on_event failed at %r", event, exc_info=True)


async def collect(material: Material) -> None:
    """Read the originals of all that leaves or is clipped, and the notes so far."""
    thread, history, plan = material.thread, material.history, material.plan
    engine, items, gone = thread.engine, history.items, set(plan.evicted)
    summarised, last = bool(plan.summary_tokens), max(gone, default=0)
    material.notes, material.redaction = _notes_of(history.chain), engine.redaction
    material.leaving = tuple(
        item for i, item in enumerate(items) if i in gone or (summarised and item.foreign)
    )
    material.keys = tuple(item.key for item in material.leaving)
    await _find_originals(material)
    material.foreign = tuple(
        summary_body(item.entry.text) for item in material.leaving if item.foreign and item.entry
    )
    for clip in plan.clips:  # what stays in view is shown as it was
        item = items[clip.index]
        material.clips[clip.index] = clipped(item, material.originals[item.key], clip, engine)
    for i, item in enumerate(items):
        if i not in gone and item.entry is not None and not item.summary:
            material.staying.append(item.entry)
            material.ahead += i < last
        if i in gone or (item.summary and summarised):
            material.replaced += item.tokens
    material.remaining = staying(history, plan, material.clips)
    counted = engine.counted(sent_with(history, material.remaining, engine))
    beside = sum(item.tokens for item in material.remaining)
    material.tokens = beside if counted is None else counted
    if material.redaction is not None:
        await _redact(material, material.redaction)
    material.entries = [material.originals[key] for key in material.keys]
    notes = history.head.summary if history.head else ""
    material.standing = "\n".join(filter(None, (notes, *material.foreign)))
    material.to_read = [
        material.originals[item.key] for item in material.leaving if not item.summary
    ]
    # A summary in a tiny budget need only fit by itself where its message is the caller's own.
    cap, budget = plan.summary_cap, plan.budget
    # A list may count for many times as much as its texts.
    always = math.ceil(ALWAYS * max(1.0, engine.meter.ratio))
    most = max(always if engine.meter.counts_lists else ALWAYS, material.replaced)
    most = most if cap is None else min(most, cap)
    fine = most if cap is not None else min(most, LARGEST_SUMMARY)
    if budget is not None and plan.at_most > budget:  # nothing fits: the least useful summary
        most = fine = min(most, plan.summary_tokens)
    elif budget is not None:
        most = min(most, budget - material.tokens)
        fine = min(fine, int(budget / REARM) - material.tokens)
        if engine.summary_size is not None and budget < SMALLEST_SUMMARY:
            most = fine = max(most, budget)
    # Clips may be larger than planned: the summary then gets what is left.
    material.most = max(1, most)
    material.wanted = min(plan.summary_tokens, material.most)
    material.fine = max(material.wanted, fine)
    paying = material.most if plan.room is None else plan.room - material.tokens
    material.paying = min(material.most, max(material.wanted, paying))


async def _find_originals(material: Material) -> None:
    """Take the originals of what leaves or is clipped from the history, or from the archive."""
    archive, scope = material.thread.engine.archive, material.thread.scope
    items = [
        *material.leaving,
        *(material.history.items[clip.index] for clip in material.plan.clips),
    ]
    material.originals = {item.key: item.entry for item in items if item.entry is not None}
    back = [item.key for item in items if item.back]
    if back and archive is not None:
        archived = await archive.flow(archive.find, scope, back)
        for key, original in archived.items():
            [entry] = read_messages([original.message])
            entry.key, entry.id = key, original.id
            material.originals[key] = entry
        if lost := len(set(back) - set(archived)):
            log("originals_lost", "%s clipped messages have expired or were forgotten", lost)


async def confirm(material: Material) -> None:
    """Archive what leaves or is truncated, and read it back: a store may forget.

    Raise `ArchiveError` if the archive has not confirmed it.
    """
    archive, scope = material.thread.engine.archive, material.thread.scope
    originals = list(material.originals.values())
    if archive is None or not originals:
        return
    if missing := await archive.flow(archive.put, scope, originals):
        raise ArchiveUnconfirmed(
            f"the store took {len(originals)} messages and did not give {len(missing)} of them "
            "back; check its disk, its quota and its time to live"
        )


@lru_cache(maxsize=4)
def body_of(text: str) -> str:
    """Frame the text of a summary as data, without the line that marks it."""
    return as_notes(sendable(text).strip().removeprefix(SUMMARY_LINE).strip())


async def _redact(material: Material, redaction: Redaction) -> None:
    """Take the secrets out of all that is stored, read or logged from here on."""
    count, notes, texts = len(material.originals), material.notes.to_json(), list[str]()

    def noted(text: str) -> str:
        texts.append(text)
        return text

    with_texts(notes, noted)
    entries = (*material.originals.values(), *material.staying)
    done = await redaction.together([*entries, material.focus, *material.foreign, *texts])
    material.originals = dict(zip(material.originals, done.made, strict=False))
    material.staying = done.made[count : len(entries)]
    material.redacted = dict(sum(done.counts[:count], Counter[str]()))
    material.focus, *texts = done.made[len(entries) :]
    clean = iter(texts)
    material.foreign = tuple(next(clean) for _ in material.foreign)
    closed = with_texts(notes, lambda _: next(clean))
    if closed != notes:
        material.notes = Segment.from_json(closed)
    # Summaries and errors may repeat a secret that was recognised here.
    material.redaction = replace(redaction, values=done.values)


def _notes_of(chain: Chain) -> Segment:
    """Read the notes of the newest record that has some, or its summary if they are damaged."""
    record = next((one for one in reversed(chain) if one.segment or one.by), None)
    if record is None:
        return Segment()
    try:
        if record.segment:
            return Segment.from_json(record.segment)
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        said = "The notes of record %s are damaged, and its summary is used as it is: %s"
        log("notes_damaged", said, record.id, error)
    return Segment(text=record.summary, edited=True)
