"""What one compaction takes out of the view: originals without secrets, and the notes so far."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from conspectus.core.plan_types import Compact
from conspectus.core.policy import EMBEDDED, SLACK
from conspectus.core.records import Chain, notes_number_of
from conspectus.core.summary_room import MeasuredSizes, SummaryRoom, narrowed
from conspectus.engine.clips import clip_item
from conspectus.engine.decision import CompactionDecision
from conspectus.engine.engine import Engine
from conspectus.engine.view import View, ViewItem
from conspectus.engine.viewing import messages_to_send, provisional_summary_message, remaining_items
from conspectus.errors import RedactionError
from conspectus.messages import Message
from conspectus.messages.framing import summary_body
from conspectus.notes.data import KeptBetween, Notes, texts_in, with_texts
from conspectus.observe import log
from conspectus.redaction import Redaction

ALWAYS_ALLOWED = 200
"""Tokens that a summary message may take, even if it replaces fewer."""

DAMAGED_NOTES = (TypeError, ValueError, AttributeError, KeyError)
"""Errors that reading raises for notes that are damaged or of another version."""


@dataclass(frozen=True, slots=True)
class LeavingTexts:
    """All that a compaction stores, gives to a summariser, or logs.

    `_redact_texts` removes the secrets. The view that is sent is not redacted, and not in here.
    """

    originals: Mapping[str, Message]  # messages that leave or are clipped, as first sent, by key
    kept_messages: tuple[Message, ...]  # messages that stay in view
    summary_in_force: str  # empty if there is none
    foreign_summaries: tuple[str, ...]  # summaries of other libraries that leave
    notes: Notes  # so far
    focus: str  # the subject to keep above all
    redaction: Redaction | None = None  # the redactor, with the secrets that it has recognised here
    secrets_removed: Mapping[str, int] = field(default_factory=dict)  # from originals, by kind


@dataclass(frozen=True, eq=False)
class Leaving:
    """What one compaction takes out of a view. It is complete, and is never changed.

    The evicted messages leave, and so do summaries of other libraries, because the new summary
    replaces them. All of it is in the order of the conversation.
    """

    decision: CompactionDecision
    started: float  # when it began, by `time.monotonic()`
    leaving_items: tuple[ViewItem, ...]  # the evicted messages, and the summaries that leave
    remaining_items: tuple[ViewItem, ...]  # what stays in view, without the summary; not redacted
    clips: Mapping[int, ViewItem]  # clipped messages, by their place in the view; not redacted
    texts: LeavingTexts  # all that is stored, summarised or logged, without secrets
    kept_before_last_evicted: int  # how many of `kept_messages` came before the last evicted one
    kept_between: tuple[KeptBetween, ...]  # these, and where they stood among the evicted ones
    removed_rules: tuple[str, ...]  # ids of statements that a person has taken out of the rules
    sizes: MeasuredSizes  # of what leaves and of what stays
    room: SummaryRoom  # how long the message of the summary may be

    @property
    def view(self) -> View:
        """The view that the messages leave."""
        return self.decision.view

    @property
    def plan(self) -> Compact:
        """The plan by which they leave."""
        return self.decision.plan

    @property
    def engine(self) -> Engine:
        """The engine by which the view was measured."""
        return self.view.history.engine

    @property
    def redaction(self) -> Redaction | None:
        """The redactor, with the secrets that it has recognised here; None if there is none."""
        return self.texts.redaction

    @cached_property
    def leaving_keys(self) -> tuple[str, ...]:
        """The keys of all messages that leave the view."""
        return tuple(item.key for item in self.leaving_items)

    @cached_property
    def leaving_messages(self) -> tuple[Message, ...]:
        """All messages that leave the view, as first sent."""
        return tuple(self.texts.originals[key] for key in self.leaving_keys)

    @cached_property
    def evicted_messages(self) -> tuple[Message, ...]:
        """The messages that leave the view and are no summaries, as first sent."""
        evicted = (item for item in self.leaving_items if not item.is_summary)
        return tuple(self.texts.originals[item.key] for item in evicted)

    @property
    def messages_to_archive(self) -> tuple[Message, ...]:
        """The messages that leave the view or are clipped in it, as first sent."""
        return tuple(self.texts.originals.values())

    @property
    def kept_messages(self) -> tuple[Message, ...]:
        """The messages that stay in view."""
        return self.texts.kept_messages

    @property
    def previous_summary(self) -> str:
        """The summary so far: ours, and those of other libraries that the new one replaces."""
        return "\n".join(filter(None, (self.texts.summary_in_force, *self.texts.foreign_summaries)))

    @property
    def notes_number(self) -> str:
        """The number of the notes of the record that is to be made."""
        clips = (item.recorded_clip for item in self.clips.values())
        return notes_number_of(
            self.view.head_id, self.leaving_keys, [clip.key for clip in clips if clip]
        )

    def summary_size(self, body: str) -> int:
        """Return the tokens of the message that shows a summary.

        With a caller's counter, it is what that message adds to the view that will be sent.
        """
        return measure_summary(
            self.view, body, self.remaining_items, self.sizes.without_summary, self.notes_number
        )

    def most_by(self, summarizer: str) -> int:
        """Return the most tokens of a summary by this summariser.

        It must not be longer than what it replaces. A summary that was paid for may always take
        `ALWAYS_ALLOWED` tokens.
        """
        replaced = self.sizes.replaced
        return replaced if summarizer == EMBEDDED else max(replaced, self.sizes.always_allowed)

    def room_for_text(self, tokens: int) -> int:
        """Return the tokens of text that a summary message of this size holds."""
        return max(1, tokens - self.engine.empty_summary_tokens - SLACK)

    async def clean(self, text: str) -> str:
        """Redact the text of a summary.

        Raises:
            RedactionError: the redactor failed, or left nothing.
        """
        if self.redaction is None:
            return text
        done = await self.redaction.redact_together([text])
        clean: str = done.parts[0]
        if text.strip() and not clean.strip():
            raise RedactionError(
                f"the redactor {self.redaction.identity} left nothing of the summary; let it "
                "answer with the text that may be kept"
            )
        return clean


async def gather_leaving(decision: CompactionDecision, focus: str = "") -> Leaving:
    """Gather all that a decision takes out of a view, and what stays.

    Raises:
        ArchiveError: the originals of messages that came back clipped cannot be read.
        RedactionError: secrets cannot be removed.
    """
    started = time.monotonic()
    view = decision.view
    plan = decision.plan
    engine = view.history.engine
    evicted = set(plan.evicted_places)
    leaving_items = tuple(view.items[place] for place in places_that_leave(view, plan))
    to_clip = [view.items[clip.place] for clip in plan.clips]
    originals = await _load_originals(view, [*leaving_items, *to_clip])
    # What stays in view is not redacted, so clips are made before secrets are removed.
    clips = {
        clip.place: clip_item(item, originals[item.key], clip, engine)
        for clip, item in zip(plan.clips, to_clip, strict=True)
    }
    kept = _kept_messages(view, evicted)
    texts = LeavingTexts(
        originals=originals,
        kept_messages=tuple(kept.values()),
        summary_in_force=view.head.summary if view.head else "",
        foreign_summaries=_foreign_summaries(leaving_items),
        notes=_notes_of(view.chain),
        focus=focus,
    )
    if engine.redaction is not None:
        texts = await _redact_texts(texts, engine.redaction)
    last_evicted = max(evicted, default=0)
    remaining = remaining_items(view, plan, clips)
    sizes = _measured_sizes(view, plan, remaining)
    return Leaving(
        decision=decision,
        started=started,
        leaving_items=leaving_items,
        remaining_items=remaining,
        clips=clips,
        texts=texts,
        kept_before_last_evicted=sum(place < last_evicted for place in kept),
        kept_between=tuple(_kept_between(view, kept, leaving_items)),
        removed_rules=tuple(await view.history.store.removed_rules()),
        sizes=sizes,
        room=narrowed(
            plan.summary_room,
            sizes,
            budget=plan.budget,
            planned_within=plan.planned_within,
            fits=plan.fits,
            is_callers_own=engine.caller_format.owns_summary_message,
        ),
    )


def places_that_leave(view: View, plan: Compact) -> list[int]:
    """Return the places of the evicted messages, and of other libraries' summaries.

    The latter leave if the plan makes a summary, which then replaces them.
    """
    evicted = set(plan.evicted_places)
    return [
        place
        for place, item in enumerate(view.items)
        if place in evicted or (plan.makes_summary and item.is_foreign_summary)
    ]


def _kept_messages(view: View, evicted: Collection[int]) -> dict[int, Message]:
    """Return the messages that stay in view, by their place; summaries are not among them."""
    return {
        place: item.entry
        for place, item in enumerate(view.items)
        if place not in evicted and item.entry is not None and not item.is_summary
    }


def _kept_between(
    view: View, kept: Mapping[int, Message], leaving_items: Sequence[ViewItem]
) -> Iterator[KeptBetween]:
    """Yield the messages that stay in view although later ones leave.

    Leading system messages are not among them: they never leave, so they have no position.
    """
    evicted_keys = {item.key for item in leaving_items if not item.is_summary}
    number = 0
    for place, item in enumerate(view.items):
        if number == 0 and item.role == "system":
            continue
        if item.key in evicted_keys:
            number += 1
        elif place in kept and number < len(evicted_keys):
            yield KeptBetween(item.key, number)


async def _load_originals(view: View, items: Sequence[ViewItem]) -> dict[str, Message]:
    """Return the originals of messages by their keys: from the history, or from the archive.

    If the archive has lost one, its clip is all that is left, and replaces the original.
    """
    originals = {item.key: item.entry for item in items if item.entry is not None}
    clipped_before = [item.key for item in items if item.came_clipped]
    if not clipped_before:
        return originals
    archived = await view.history.store.find_originals(clipped_before)
    for key in clipped_before:
        originals[key] = archived[key] if key in archived else replace(originals[key], key=key)
    return originals


def _foreign_summaries(items: Sequence[ViewItem]) -> tuple[str, ...]:
    """Return the texts of other libraries' summaries among these items."""
    entries = (item.entry for item in items if item.is_foreign_summary)
    return tuple(summary_body(entry.text) for entry in entries if entry)


def _notes_of(chain: Chain) -> Notes:
    """Read the notes of the newest record that has some; its summary if they are damaged."""
    record = next((record for record in reversed(chain) if record.notes or record.by), None)
    if record is None:
        return Notes()
    try:
        if record.notes:
            return Notes.from_json(record.notes)
    except DAMAGED_NOTES as error:
        damaged = "The notes of record %s are damaged, and its summary is used as it is: %s"
        log("notes_damaged", damaged, record.id, error)
    return Notes(text=record.summary, edited=True)


async def _redact_texts(texts: LeavingTexts, redaction: Redaction) -> LeavingTexts:
    """Remove the secrets from all texts, in one call of the redactor.

    Raises:
        RedactionError: the redactor failed.
    """
    messages = [*texts.originals.values(), *texts.kept_messages]
    plain_notes = texts.notes.to_json()
    others = [texts.focus, texts.summary_in_force]
    others += texts.foreign_summaries
    others += texts_in(plain_notes)
    done = await redaction.redact_together([*messages, *others])

    clean_messages = done.parts[: len(messages)]
    clean_focus, clean_summary, *clean_texts = done.parts[len(messages) :]
    foreign_count = len(texts.foreign_summaries)
    clean_notes = with_texts(plain_notes, iter(clean_texts[foreign_count:]))
    originals_count = len(texts.originals)
    return LeavingTexts(
        originals=dict(zip(texts.originals, clean_messages[:originals_count], strict=True)),
        kept_messages=tuple(clean_messages[originals_count:]),
        summary_in_force=clean_summary,
        foreign_summaries=tuple(clean_texts[:foreign_count]),
        notes=texts.notes if clean_notes == plain_notes else Notes.from_json(clean_notes),
        focus=clean_focus,
        # Summaries and errors may repeat a secret that was recognised here.
        redaction=replace(redaction, values=done.values),
        secrets_removed=dict(sum(done.counts[:originals_count], Counter[str]())),
    )


# The size of the summary


def measure_summary(
    view: View, body: str, remaining: Sequence[ViewItem], kept_tokens: int, number: str
) -> int:
    """Return the tokens of the message that shows a summary next to these messages.

    `kept_tokens` is the size of the view without it.
    """
    history = view.history
    engine = history.engine
    if engine.meter.counts_lists:
        return (
            engine.count_as_sent(messages_to_send(view, remaining, body, number)) or 0
        ) - kept_tokens
    if engine.caller_format.summary_size is not None:
        return engine.caller_format.summary_size(body)
    return engine.meter.count_message(provisional_summary_message(view, body))


def _measured_sizes(view: View, plan: Compact, remaining: Sequence[ViewItem]) -> MeasuredSizes:
    """Measure what leaves a view by a plan, and what stays."""
    engine = view.history.engine
    evicted = set(plan.evicted_places)
    replaced = sum(
        item.tokens
        for place, item in enumerate(view.items)
        if place in evicted or (item.is_summary and plan.makes_summary)
    )
    counted = engine.count_as_sent(messages_to_send(view, remaining))
    kept_tokens = sum(item.tokens for item in remaining) if counted is None else counted
    always_allowed = ALWAYS_ALLOWED
    if engine.meter.counts_lists:  # a list may count for many times as much as its texts
        always_allowed = math.ceil(ALWAYS_ALLOWED * max(1.0, engine.meter.ratio))
    return MeasuredSizes(
        replaced=replaced, without_summary=kept_tokens, always_allowed=always_allowed
    )
