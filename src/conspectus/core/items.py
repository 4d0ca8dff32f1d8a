"""The input of the core: the messages in view, by their sizes and calls, and the window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["system", "user", "assistant", "tool", "other"]


@dataclass(slots=True)
class Item:
    """One message in view, as plans need it. It is never changed; freezing it would be slow."""

    key: str  # identity and version of the original; equal keys mean equal bytes
    role: Role
    tokens: int
    # ids of the calls that it makes, that it answers, and that must come before it
    calls: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    # it continues the reply of the message before it; a provider accepts both or neither
    continues_reply: bool = False
    # it stays in view: by `pin`, or because only its provider can read it, or because a host has
    # stated it
    pinned: bool = False
    is_summary: bool = False  # it is a summary of earlier messages, ours or another library's
    clipped: bool = False  # it is a clip already
    tokens_for_keep: int | None = None  # by the caller's count; None if `tokens` is that count
    # it has the mark of a summary, so it is never the user's newest message, even if it is planned
    # as an ordinary message
    is_marked_summary: bool = False
    by_host: bool = False  # it is in the user's role, but a host wrote it
    # a host's statement that a newer one replaces, such as yesterday's date
    superseded: bool = False
    tools: tuple[str, ...] = ()  # names of the tools whose results it holds
    expendable: bool = False  # a tool marked its result as not needed again

    @property
    def least(self) -> int:
        """The fewest tokens that it can take; `ViewItem` returns fewer if it may be clipped."""
        return self.tokens


@dataclass(frozen=True, slots=True)
class Window:
    """The room for one request: the input limit of the model that answers, and reserved tokens."""

    limit: int
    reserved: int = 0

    @property
    def budget(self) -> int:
        """Tokens left for messages."""
        return self.limit - self.reserved


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a history: tokens and messages."""

    tokens: int
    messages: int
