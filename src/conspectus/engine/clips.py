"""Clip messages of a view, and recognise clips that an older record has made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from conspectus.core.plan_types import PlannedClip
from conspectus.core.records import RecordedClip
from conspectus.engine.engine import Engine
from conspectus.engine.folding import clip_hash
from conspectus.engine.view import ViewItem
from conspectus.messages import (
    Message,
    Source,
    read_messages,
)
from conspectus.messages.shortening import ARCHIVED, clip_message, smallest_clip

MessageCount = Callable[[Source], int]
"""A function that counts the tokens of one message."""


def clip_by_record(recorded: RecordedClip, original: Message, engine: Engine) -> Source | None:
    """Clip a message as its record did; None if the result would be another one.

    It is another one if tokens are counted in another way now. It would not be recognised when it
    comes back.
    """
    return clip_again(recorded, original, engine.meter.scaled(1.0).count_message)


def clip_again(recorded: RecordedClip, original: Message, count: MessageCount) -> Source | None:
    """Clip a message as its record did, by a count of tokens; None if the result is another one."""
    short = clip_message(original, recorded.limit, count, recorded.pointer or ARCHIVED)
    if recorded.text_hash and clip_hash(read_messages([short])[0]) != recorded.text_hash:
        return None
    return short


def is_outdated_clip(item: ViewItem) -> bool:
    """Tell whether a message came back as an older record clipped it, not as the newest does."""
    if item.entry is None or item.recorded_clip is None or not item.came_clipped:
        return False
    return (
        bool(item.recorded_clip.text_hash) and clip_hash(item.entry) != item.recorded_clip.text_hash
    )


def clip_item_again(item: ViewItem, original: Message, engine: Engine) -> ViewItem:
    """Clip a message as the newest record does that came back as an older record clipped it."""
    short = (
        None if item.recorded_clip is None else clip_by_record(item.recorded_clip, original, engine)
    )
    if short is None:
        return item
    return replace(item, source=short, tokens=engine.meter.count_message(short))


def clip_item(
    item: ViewItem, original: Message, planned_clip: PlannedClip, engine: Engine
) -> ViewItem:
    """Clip an item, from its whole original, and describe the clip so that it is recognised."""
    meter = engine.meter
    pointer = engine.clip_pointer
    assert pointer is not None, "a message is clipped only if its original is kept"
    # A clip is made again whenever its history comes back whole, and it must then be the same. So
    # its limit is in tokens of the estimate, without the corrections of the meantime.
    limit = int(planned_clip.tokens / meter.ratio)
    count = meter.scaled(1.0).count_message
    if item.media_stay:  # in less room they would become descriptions
        limit = max(limit, smallest_clip(original, count, pointer, media_stay=True))
    short = clip_message(original, limit, count, pointer)
    [read] = read_messages([short])
    if pointer.replace("{cite}", original.cite) not in read.reading:
        return item  # the clip would not name its original
    if pointer == ARCHIVED:
        recorded = RecordedClip(item.key, clip_hash(read), limit)
    else:
        recorded = RecordedClip(item.key, "", limit, pointer)
    return replace(
        item, source=short, tokens=meter.count_message(short), clipped=True, recorded_clip=recorded
    )
