"""What one compaction takes out of the view: originals without secrets, and the notes so far."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from conspectus.core.plans import Compact
from conspectus.core.policy import EMBEDDED, LARGEST_SUMMARY, REARM, SLACK, SMALLEST_SUMMARY
from conspectus.core.records import Chain, notes_number_of
from conspectus.engine.engine import Engine
from conspectus.engine.planning import Decision
from conspectus.engine.view import (
    View,
    ViewItem,
    clip_item,
    messages_to_send,
    provisional_summary_message,
    remaining_items,
)
from conspectus.errors import RedactionError
from conspectus.messages import Message
from conspectus.messages.framing import summary_body
from conspectus.notes.data import Notes, with_texts
from conspectus.observe import log
from conspectus.redaction import Redaction

ALWAYS_ALLOWED = 200
"""Tokens that a summary message may take, even where it stands for less."""

DAMAGED_NOTES = (TypeError, ValueError, AttributeError, KeyError)
"""What reading notes raises that are damaged or of another version."""


@dataclass(frozen=True, slots=True)
class SummarySizes:
    """How long a summary message may be, in tokens."""

    replaced: int  # tokens of what the summary replaces
    beside: int  # tokens of the view beside it
    target: int  # what is asked for
    roomy_limit: int  # up to this size, two fifths of the window stay free
    soft_limit: int  # above it a shorter one is asked for, so that the budget keeps room
    hard_limit: int  # the largest that is used

    def most_for(self, summarizer: str) -> int:
        """Return the most tokens of a summary by this summariser: no more than what it replaces.

        One that a caller has asked a model for may take a few more than a tiny history.
        """
        return self.replaced if summarizer == EMBEDDED else max(self.replaced, ALWAYS_ALLOWED)


@dataclass(frozen=True, slots=True)
class Leaving:
    """What one compaction takes out of a view, complete, without its secrets if it is redacted.

    What leaves are the evicted messages, and the summaries of other libraries that the new one
    replaces. All of it stands in the order of the conversation. Without secrets are `messages`,
    `evicted`, `originals`, `kept`, `notes`, `focus`, `foreign_summaries`, `previous_summary` and
    what is made of them; `view`, `remaining` and `clips` are as they were sent, as what stays is
    shown as it was.
    """

    decision: Decision
    started: float  # when it began, by `time.monotonic()`
    focus: str  # the subject to keep above all
    redaction: Redaction | None  # the redactor, with the secrets that it recognised here
    keys: tuple[str, ...]  # of the messages that leave the view
    messages: tuple[Message, ...]  # these messages, as first sent
    evicted: tuple[Message, ...]  # those of them that are no summaries
    originals: tuple[Message, ...]  # the messages that leave or are clipped, as first sent
    clips: Mapping[int, ViewItem]  # clipped messages, by their place in the view
    remaining: tuple[ViewItem, ...]  # the view beside the summary
    kept: tuple[Message, ...]  # messages that stay in view
    kept_before_last_evicted: int  # how many of them came before the last one that leaves
    notes: Notes  # so far
    foreign_summaries: tuple[str, ...]  # summaries of other libraries that leave
    previous_summary: str  # the summary so far: ours, and those that ours replaces
    redacted: Mapping[str, int]  # secrets that were taken out of the originals, by kind
    sizes: SummarySizes

    @property
    def view(self) -> View:
        """The view that the messages leave."""
        return self.decision.view

    @property
    def plan(self) -> Compact:
        """The plan by which they leave."""
        assert isinstance(self.decision.plan, Compact)
        return self.decision.plan

    @property
    def engine(self) -> Engine:
        """The engine by which the view was measured."""
        return self.view.history.engine

    @property
    def notes_number(self) -> str:
        """The number of the notes of the record that is to be made."""
        clips = (item.recorded_clip for item in self.clips.values())
        return notes_number_of(self.view.head_id, self.keys, [clip.key for clip in clips if clip])

    def summary_size(self, body: str) -> int:
        """Return the tokens of the message that shows a summary.

        By a caller's counter they are those that it adds to the view as it will be sent.
        """
        return measure_summary(
            self.view, body, self.remaining, self.sizes.beside, self.notes_number
        )

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
        done = await self.redaction.together([text])
        clean: str = done.parts[0]
        if text.strip() and not clean.strip():
            raise RedactionError(
                f"the redactor {self.redaction.identity} left nothing of the summary; let it "
                "answer with the text that may be kept"
            )
        return clean


async def gather_leaving(decision: Decision, focus: str = "") -> Leaving:
    """Gather all that a decision takes out of a view, and what stays beside it.

    Raises:
        ArchiveError: the originals of messages that came back clipped cannot be read.
        RedactionError: secrets cannot be taken out.
    """
    started = time.monotonic()
    view = decision.view
    plan = decision.plan
    assert isinstance(plan, Compact), "a history that is kept loses nothing"
    engine = view.history.engine
    evicted = set(plan.evicted)
    replaces_summaries = plan.makes_summary
    leaving_items = tuple(
        item
        for place, item in enumerate(view.items)
        if place in evicted or (replaces_summaries and item.foreign)
    )
    to_clip = [view.items[clip.place] for clip in plan.clips]
    originals = await _originals_of(view, [*leaving_items, *to_clip])
    # What stays in view is shown as it was, so clips are made before secrets are taken out.
    clips = {
        clip.place: clip_item(item, originals[item.key], clip, engine)
        for clip, item in zip(plan.clips, to_clip, strict=True)
    }
    remaining = remaining_items(view, plan, clips)
    kept = _kept_messages(view, evicted)
    texts = await _redacted_texts(
        engine.redaction,
        originals=originals,
        kept=list(kept.values()),
        focus=focus,
        summary_in_force=view.head.summary if view.head else "",
        foreign_summaries=_foreign_summaries(leaving_items),
        notes=_notes_of(view.chain),
    )
    last_evicted = max(evicted, default=0)
    return Leaving(
        decision=decision,
        started=started,
        focus=texts.focus,
        redaction=texts.redaction,
        keys=tuple(item.key for item in leaving_items),
        messages=tuple(texts.originals[item.key] for item in leaving_items),
        evicted=tuple(texts.originals[item.key] for item in leaving_items if not item.summary),
        originals=tuple(texts.originals.values()),
        clips=clips,
        remaining=remaining,
        kept=texts.kept,
        kept_before_last_evicted=sum(place < last_evicted for place in kept),
        notes=texts.notes,
        foreign_summaries=texts.foreign_summaries,
        previous_summary="\n".join(
            filter(None, (texts.summary_in_force, *texts.foreign_summaries))
        ),
        redacted=texts.counts,
        sizes=_sizes_of_summary(view, plan, remaining),
    )


def _kept_messages(view: View, evicted: Collection[int]) -> dict[int, Message]:
    """Return the messages that stay in view, by their place; summaries are none."""
    return {
        place: item.entry
        for place, item in enumerate(view.items)
        if place not in evicted and item.entry is not None and not item.summary
    }


async def _originals_of(view: View, items: Sequence[ViewItem]) -> dict[str, Message]:
    """Return the originals of messages by their keys: from the history, or from the archive.

    Where the archive has lost one, its clip is all that is left, and takes the original's place.
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
    """Return the texts of other libraries' summaries among these."""
    entries = (item.entry for item in items if item.foreign)
    return tuple(summary_body(entry.text) for entry in entries if entry)


def _notes_of(chain: Chain) -> Notes:
    """Read the notes of the newest record that has some, or its summary if they are damaged."""
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


# Without secrets


@dataclass(frozen=True, slots=True)
class _Texts:
    """All that is stored, read or logged from here on."""

    redaction: Redaction | None
    originals: Mapping[str, Message]
    kept: tuple[Message, ...]
    focus: str
    summary_in_force: str
    foreign_summaries: tuple[str, ...]
    notes: Notes
    counts: Mapping[str, int]  # secrets that were taken out of the originals, by kind


async def _redacted_texts(
    redaction: Redaction | None,
    *,
    originals: Mapping[str, Message],
    kept: Sequence[Message],
    focus: str,
    summary_in_force: str,
    foreign_summaries: tuple[str, ...],
    notes: Notes,
) -> _Texts:
    """Take the secrets out of all that is stored, read or logged from here on."""
    if redaction is None:
        return _Texts(
            redaction=None,
            originals=originals,
            kept=tuple(kept),
            focus=focus,
            summary_in_force=summary_in_force,
            foreign_summaries=foreign_summaries,
            notes=notes,
            counts={},
        )
    plain_notes = notes.to_json()
    noted: list[str] = []

    def collected(text: str) -> str:
        noted.append(text)
        return text

    with_texts(plain_notes, collected)
    messages = [*originals.values(), *kept]
    texts = [focus, summary_in_force, *foreign_summaries, *noted]
    done = await redaction.together([*messages, *texts])
    redacted_messages = done.parts[: len(messages)]
    clean_focus, clean_summary, *clean = done.parts[len(messages) :]
    clean_texts: Iterator[Any] = iter(clean)
    clean_foreign_summaries = tuple(next(clean_texts) for _ in foreign_summaries)
    clean_notes = with_texts(plain_notes, lambda _: next(clean_texts))
    return _Texts(
        # Summaries and errors may repeat a secret that was recognised here.
        redaction=replace(redaction, values=done.values),
        originals=dict(zip(originals, redacted_messages, strict=False)),
        kept=tuple(redacted_messages[len(originals) :]),
        focus=clean_focus,
        summary_in_force=clean_summary,
        foreign_summaries=clean_foreign_summaries,
        notes=notes if clean_notes == plain_notes else Notes.from_json(clean_notes),
        counts=dict(sum(done.counts[: len(originals)], Counter[str]())),
    )


# The size of the summary


def measure_summary(
    view: View, body: str, remaining: Sequence[ViewItem], beside: int, number: str
) -> int:
    """Return the tokens of the message that shows a summary beside these messages.

    `beside` are the tokens of the view without it.
    """
    history = view.history
    engine = history.engine
    if engine.meter.counts_lists:
        return (engine.count_as_sent(messages_to_send(view, remaining, body, number)) or 0) - beside
    if engine.surface.summary_size is not None:
        return engine.surface.summary_size(body)
    return engine.meter.message(provisional_summary_message(view, body))


def _sizes_of_summary(view: View, plan: Compact, remaining: Sequence[ViewItem]) -> SummarySizes:
    """Return how long the summary message of a plan may be."""
    engine = view.history.engine
    evicted = set(plan.evicted)
    replaces_summaries = plan.makes_summary
    replaced = sum(
        item.tokens
        for place, item in enumerate(view.items)
        if place in evicted or (item.summary and replaces_summaries)
    )
    counted = engine.count_as_sent(messages_to_send(view, remaining))
    beside = sum(item.tokens for item in remaining) if counted is None else counted
    limits = _limits(plan, engine, replaced, beside)
    # Clips may be larger than planned: the summary then gets what is left.
    hard_limit = max(1, limits.hard)
    target = min(plan.summary_tokens, hard_limit)
    roomy_limit = hard_limit if plan.planned_within is None else plan.planned_within - beside
    return SummarySizes(
        replaced=replaced,
        beside=beside,
        target=target,
        roomy_limit=min(hard_limit, max(target, roomy_limit)),
        soft_limit=max(target, limits.soft),
        hard_limit=hard_limit,
    )


class _Limits(NamedTuple):
    """The most tokens of a summary message."""

    hard: int  # a longer one is not used
    soft: int  # a longer one is asked for once more, shorter


def _limits(plan: Compact, engine: Engine, replaced: int, beside: int) -> _Limits:
    """Return the limits of the summary of a plan; `beside` are the tokens of what stays."""
    cap = plan.summary_cap
    always_allowed = ALWAYS_ALLOWED
    if engine.meter.counts_lists:  # a list may count for many times as much as its texts
        always_allowed = math.ceil(ALWAYS_ALLOWED * max(1.0, engine.meter.ratio))
    hard = max(always_allowed, replaced)
    hard = hard if cap is None else min(hard, cap)
    soft = hard if cap is not None else min(hard, LARGEST_SUMMARY)
    if plan.budget is None:
        return _Limits(hard, soft)
    if plan.at_most > plan.budget:  # nothing fits: the least useful summary
        least = min(hard, plan.summary_tokens)
        return _Limits(least, least)
    hard = min(hard, plan.budget - beside)
    soft = min(soft, int(plan.budget / REARM) - beside)
    if engine.surface.summary_size is not None and plan.budget < SMALLEST_SUMMARY:
        # A summary in a tiny budget need only fit by itself where its message is the caller's own.
        largest = max(hard, plan.budget)
        return _Limits(largest, largest)
    return _Limits(hard, soft)
