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

    parts: list[int | BaseMessage]  # the place of a message that is shown as it is, or another one
    chain: Chain
    keys: frozenset[str]


class VainPlan(NamedTuple):
    """A history for which a plan changed nothing."""

    head: str  # the record in force
    exceeded_window: bool
    messages: int


class SessionCache:
    """What this process remembers of one session."""

    def __init__(self) -> None:
        self.stored_head: str | None = None  # what the head in the archive is known to name
        self.vain_plan = VainPlan("", False, -1)  # the latest one
        # A head, and what its records make of messages.
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
        """Return whether the content of a message is blocks, such as thoughts, and no text."""
        with self._lock:
            sizes = self._sizes.get("view")
            if sizes is not None and are_equal(sizes.messages, messages):
                return sizes.blocks
        return any(type(message.content) is list for message in messages)

    def counted(self, count: MessageCount) -> MessageCount:
        """Return a way to count that knows the tokens of the messages in view."""
        sizes = self._sizes.get("view")
        return count if sizes is None else sizes.counted(0, count)

    def view(self, head: str, messages: Sequence[BaseMessage]) -> tuple[int, CachedView | None]:
        """Return what `keep_view` was given under this head, and for how many of the messages."""
        kept_head, kept, view = self._view
        if kept_head != head or not are_equal(kept, messages[: len(kept)]):
            return 0, None
        self._view = (head, messages[: len(kept)], view)
        return len(kept), view

    def keep_view(self, head: str, messages: Sequence[BaseMessage], view: CachedView) -> None:
        """Keep what the records of a head made of messages, while these only grow."""
        self._view = (head, messages[:], view)
