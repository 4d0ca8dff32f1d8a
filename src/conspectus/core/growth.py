"""How much a history must grow before the same thing is tried again."""

from __future__ import annotations

import math

from conspectus.core.items import Size

REARM = 1.1
"""Factor by which a history must grow after a failed summary, or after a compaction that stayed
above its trigger, before the same trigger counts again. So no step repeats without progress."""


def has_grown(now: int, before: int) -> bool:
    """Tell whether a number of tokens, or of messages, has grown enough to try again."""
    return now >= round(before * REARM, 6)  # 1,500 times 1.1 is a little more than 1,650


def scale_size(size: Size, factor: float) -> Size:
    """Return a size times a factor, rounded up."""
    return Size(math.ceil(size.tokens * factor), math.ceil(size.messages * factor))


def size_has_grown(now: Size, before: Size) -> bool:
    """Tell whether the tokens or the messages of a history have grown enough."""
    return has_grown(now.tokens, before.tokens) or has_grown(now.messages, before.messages)
