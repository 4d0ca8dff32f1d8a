"""What a summariser is asked for and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from conspectus.core.records import Cost
from conspectus.core.sizes import whole
from conspectus.errors import PolicyError
from conspectus.messages import Entry
from conspectus.model.riding import LastRequest

Form = Literal["findings", "whole"]
"""Lines with their sources, which are put into the notes; or one text in place of its last one."""


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """What a summariser is to read and how much it may write."""

    entries: Sequence[Entry]  # the originals that leave the view, oldest first; all are to be read
    notes: str  # so far, or in the form "whole" its last summary; empty for none
    limit: int  # tokens that the text may take
    count: Callable[[str], int]  # tokens of a text
    form: Form = "whole"
    anew: bool = False  # the findings of the answer take the place of those in `notes`
    focus: str = ""  # what the caller wants kept above all
    kept: Sequence[Entry] = ()  # messages that stay in view after the summary
    ahead: int = 0  # how many of `kept` were said before the last message that leaves
    most: int | None = None  # tokens up to which a text is used as it is; None for `limit`
    archived: bool = True  # originals can be recalled
    last: LastRequest | None = None  # it shows `entries` and `notes`, and is to be asked again
    last_tokens: int = 0  # of that request


@dataclass(frozen=True, slots=True)
class Summary:
    """What a summariser answers."""

    text: str  # findings or a whole summary, as its form says
    read: tuple[str, ...]  # keys of the entries that it has read whole
    cost: Cost = field(default_factory=Cost)
    request: str = ""  # to a chat model: "cached" on the agent's last request, else "smallest"


@runtime_checkable
class Summarizer(Protocol):
    """Anything that can turn messages into a summary, without and with an event loop.

    `identity` says whatever changes its summaries: a draft made under another one is not used. It
    may have a `form`, by default `"whole"`, and `min_tokens`, which make any text a summary.
    """

    @property
    def name(self) -> str: ...

    @property
    def identity(self) -> str: ...

    def summarize(self, request: SummaryRequest) -> Summary:
        """Summarise; raises `SummaryError` when it cannot."""

    async def asummarize(self, request: SummaryRequest) -> Summary:
        """Summarise on an event loop."""


def check_settings(timeout: float | None, **numbers: int | None) -> None:
    """Raise `PolicyError` for a setting out of its range; only `min_tokens` may be 0."""
    for name, value in numbers.items():
        if value is not None:
            whole(value, name, 0 if name == "min_tokens" else 1)
    if timeout is not None and (isinstance(timeout, bool) or not timeout > 0):
        raise PolicyError(f"timeout must be seconds above 0, or None, got {timeout!r}.")
