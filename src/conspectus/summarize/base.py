"""What a summariser is asked for and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from conspectus._core.records import Cost
from conspectus.ledger import Ledger
from conspectus.messages import Entry
from conspectus.summarize.riding import LastRequest
from conspectus.summarize.shares import Shares

Form = Literal["notes", "findings", "whole"]
"""What a summariser's text is: the notes with all their parts; what was found and decided in the
messages alone; or a summary of all that came before, which takes the place of its last one."""


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """What a summariser is to read and how much it may write.

    Attributes:
        entries: the originals that leave the view, oldest first. All of them are to be read.
        standing: the notes so far, or for a summariser that writes a whole summary its last one;
            empty for the first one.
        ledger: exact facts known so far, those of `entries` included.
        limit: what the text is asked to take at most, in tokens.
        count: tokens of a text.
        focus: what the caller wants kept above all; empty for nothing in particular.
        kept: the messages that stay in view after the summary: what they say need not be said.
        ahead: of `kept`, the messages that were said before the last one that leaves, such as the
            user's newest request.
        spent: what earlier tries of this compaction have cost, in tokens; counts towards a cap.
        most: up to which a text that is longer than `limit` is used as it is, in tokens; a longer
            one should be asked for again, shorter. None for `limit`.
        shares: the parts of the notes.
        archived: whether originals can be recalled.
        last: the agent's last request, in which all of `entries` and of the notes so far stands
            unclipped, to ask with one instruction after it; None for a request of its own.
        last_tokens: of that request.
    """

    entries: Sequence[Entry]
    standing: str
    ledger: Ledger
    limit: int
    count: Callable[[str], int]
    focus: str = ""
    kept: Sequence[Entry] = ()
    ahead: int = 0
    spent: int = 0
    most: int | None = None
    shares: Shares = field(default_factory=Shares)
    archived: bool = True
    last: LastRequest | None = None
    last_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Summary:
    """What a summariser answers.

    Attributes:
        text: what its form says: a whole summary, unless the summariser has another `form`.
        read: keys of the entries that it has read whole.
        cost: calls and tokens that it took.
        embedded: keys that the embedded summariser read, because a spending limit asked for it.
        request: which kind of request was sent: `"cached"` for the agent's last one with an
            instruction after it, `"smallest"` for one with no more than what leaves; empty where no
            chat model was asked.
    """

    text: str
    read: tuple[str, ...]
    cost: Cost = field(default_factory=Cost)
    embedded: tuple[str, ...] = ()
    request: str = ""


@runtime_checkable
class Summarizer(Protocol):
    """Anything that can turn messages into a summary, without and with an event loop.

    It may have an attribute `form`; see `Form`. Without one its text is a whole summary.

    Attributes:
        name: what records and events call it.
        identity: whatever changes its summaries (model, prompts, limits), as one string: a draft
            made under another identity is not used.
    """

    @property
    def name(self) -> str: ...

    @property
    def identity(self) -> str: ...

    def summarize(self, request: SummaryRequest) -> Summary:
        """Summarise; raises `SummaryError` when it cannot."""
        ...

    async def asummarize(self, request: SummaryRequest) -> Summary:
        """Summarise on an event loop."""
        ...
