"""What the core plans over: messages in view by their sizes and calls, and the window for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["system", "user", "assistant", "tool", "other"]


@dataclass(slots=True)
class Item:
    """One message in view, as far as plans go by it; never changed, but slow to make if frozen."""

    key: str  # identity and version of the original; equal keys mean equal bytes
    role: Role
    tokens: int
    # calls, answers, needs: ids of calls that it makes, answers, or needs before it
    calls: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    # it continues the reply in the message before it; a provider takes both or none
    continues_reply: bool = False
    # it stays in view: by `pin`, as its provider alone can read it, or as what a host has stated
    pinned: bool = False
    summary: bool = False  # it is a summary of earlier messages, ours or another library's
    clipped: bool = False  # it is a clip already
    tokens_for_keep: int | None = None  # by the caller's count; None where `tokens` is that
    # it bears a summary's label: nobody takes it for the user's, even where it is planned as an
    # ordinary message
    labelled: bool = False
    by_host: bool = False  # it stands in the user's role, and a host wrote it
    # a host's statement about what a newer one states anew, such as yesterday's date
    superseded: bool = False
    tools: tuple[str, ...] = ()  # names of the tools whose results it holds
    expendable: bool = False  # a tool marked its result as not needed again

    @property
    def least(self) -> int:
        """The fewest tokens that it can take in view; an item that may be clipped returns fewer."""
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
