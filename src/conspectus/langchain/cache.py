"""What this process remembers of a session, so that a step need not compute it again."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Literal, NamedTuple

from langchain_core.messages import BaseMessage

from conspectus.core.records import Chain
from conspectus.langchain.history_sizes import HistorySizes, MessageCount, are_equal

Measured = Literal["view", "request"]


class CachedView(NamedTuple):
    """What the records of a head made of messages."""

    parts: list[int | BaseMessage]  # a place of `messages`, or a message that is shown instead
    chain: Chain
    keys: frozenset[str]


class VainPlan(NamedTuple):
    """A history for which a plan changed nothing."""

    head_id: str  # the record in force
    exceeds_window: bool
    messages: int


class SessionCache:
    """What this process remembers of one session."""

    def __init__(self) -> None:
        self.stored_head_id: str | None = None  # the head in the archive, if it is known
        self.vain_plan = VainPlan("", False, -1)  # the latest one
        # A head, messages, and what its records make of them.
        self._view: tuple[str, Sequence[BaseMessage], CachedView | None] = ("", (), None)
        self._sizes: dict[Measured, HistorySizes] = {}
        self._lock = threading.Lock()
        self.characters = 0

    def sizes(
        self, measured: Measured, messages: Sequence[BaseMessage], *counts: MessageCount
    ) -> HistorySizes:
        """Return the sizes of the view, or of a request."""
        with self._lock:
            sizes = self._sizes.get(measured)
            if sizes is None or len(sizes.sums) != len(counts):
                sizes = HistorySizes([], [[0] for _ in counts], [])
            sizes = sizes.extended(messages, counts)
            self._sizes[measured] = sizes
            self.characters = sizes.characters
            return sizes

    def has_blocks(self, messages: Sequence[BaseMessage]) -> bool:
        """Tell whether any content is a list of blocks, which may be thoughts, and not a text."""
        with self._lock:
            sizes = self._sizes.get("view")
            if sizes is not None and are_equal(sizes.messages, messages):
                return sizes.blocks
        return any(type(message.content) is list for message in messages)

    def reusing_counts(self, count: MessageCount) -> MessageCount:
        """Return a way to count that need not count the messages in view again."""
        sizes = self._sizes.get("view")
        return count if sizes is None else sizes.reusing_counts(0, count)

    def view(self, head_id: str, messages: Sequence[BaseMessage]) -> tuple[int, CachedView | None]:
        """Return the view kept for a head, and the number of messages that it is for."""
        kept_head, kept, view = self._view
        if kept_head != head_id or not are_equal(kept, messages[: len(kept)]):
            return 0, None
        self._view = (head_id, messages[: len(kept)], view)
        return len(kept), view

    def keep_view(self, head_id: str, messages: Sequence[BaseMessage], view: CachedView) -> None:
        """Keep what the records of a head made of messages, as long as messages are only added."""
        self._view = (head_id, messages[:], view)
