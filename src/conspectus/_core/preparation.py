"""The first half of a compaction, for notes that are prepared beside the agent.

It ends where a history would change: the originals are archived and read back, the summary is made,
checked and stored as a draft. No one is asked about it, and no record is made.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from conspectus._core.flow import Effect, Failed, Order, archived, summary
from conspectus._core.records import Cost, Draft
from conspectus.errors import ArchiveError


def preparation(order: Order) -> Generator[Effect, Any, Draft | Failed]:
    """Make the draft of a plan, or say why there is none."""
    if order.archived:
        try:
            yield from archived(order.keys)
        except ArchiveError as error:
            return Failed(str(error), error, Cost())
    found = yield from summary(order)
    return found if isinstance(found, Failed) else found[0].draft
