"""What a summariser is asked for and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from conspectus._core.records import Cost
from conspectus._core.sizes import whole
from conspectus._drive import Flow, arun, run
from conspectus.messages import Entry
from conspectus.model.riding import LastRequest

Form = Literal["findings", "whole"]
"""What a summariser writes: lines with their sources, which are put into the notes; or one text
that takes the place of its last one."""


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """What a summariser is to read and how much it may write.

    Attributes:
        entries: the originals that leave the view, oldest first. All of them are to be read.
        notes: the notes so far as the model is to see them, or in the form `"whole"` its last
            summary; empty for none.
        limit: what the text is asked to take at most, in tokens.
        count: tokens of a text.
        form: what is to be written.
        anew: whether the findings in `notes` have outgrown their room, so that those of the answer
            take their place.
        focus: what the caller wants kept above all; empty for nothing in particular.
        kept: the messages that stay in view after the summary: what they say need not be said.
        ahead: of `kept`, how many were said before the last message that leaves, such as the
            user's newest request.
        spent: what earlier tries of this compaction have cost, in tokens.
        most: up to which a text that is longer than `limit` is used as it is, in tokens; a longer
            one is asked for again, shorter. None for `limit`.
        archived: whether originals can be recalled.
        last: the agent's last request, in which all of `entries` and of the notes so far stands
            unclipped, to ask with one instruction after it; None for a request of its own.
        last_tokens: of that request.
    """

    entries: Sequence[Entry]
    notes: str
    limit: int
    count: Callable[[str], int]
    form: Form = "whole"
    anew: bool = False
    focus: str = ""
    kept: Sequence[Entry] = ()
    ahead: int = 0
    spent: int = 0
    most: int | None = None
    archived: bool = True
    last: LastRequest | None = None
    last_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Summary:
    """What a summariser answers.

    Attributes:
        text: findings or a whole summary, as its form says.
        read: keys of the entries that it has read whole.
        cost: calls and tokens that it took.
        request: which request was sent: `"cached"` for the agent's last one with an instruction
            after it, `"smallest"` for one of its own; empty where no chat model was asked.
    """

    text: str
    read: tuple[str, ...]
    cost: Cost = field(default_factory=Cost)
    request: str = ""


@runtime_checkable
class Summarizer(Protocol):
    """Anything that can turn messages into a summary, without and with an event loop.

    It may have an attribute `form`; without one its text is a whole summary. Its `name` stands in
    records and events. Its `identity` says whatever changes its summaries (model, prompts, limits):
    a draft made under another identity is not used.
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


class Steps:
    """A summariser by its steps alone, for any driver: whoever stops driving stops the calls."""

    summarize_flow: Callable[[SummaryRequest], Flow[Summary]]

    def summarize(self, request: SummaryRequest) -> Summary:
        """Summarise.

        Raises `SummaryRejected` where what was written is no summary, `SummarizerTimeout` where no
        answer came in time, `SummarizerOverflow` where the span did not fit the model's window,
        not even in pieces, and `SummaryError` for any other failure.
        """
        return run(self.summarize_flow(request))

    async def asummarize(self, request: SummaryRequest) -> Summary:
        """Summarise on an event loop; a cancellation passes and leaves no call behind."""
        return await arun(self.summarize_flow(request))


def check_numbers(**numbers: int | None) -> None:
    """Raise `PolicyError` for a setting that is no whole number above 0; `min_tokens` may be 0."""
    for name, value in numbers.items():
        if value is not None:
            whole(value, name, 0 if name == "min_tokens" else 1)
