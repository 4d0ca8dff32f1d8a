"""What a summariser is asked for and what it answers; the embedded one, which needs no model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from conspectus.core.policy import EMBEDDED, whole
from conspectus.core.records import Cost
from conspectus.errors import PolicyError
from conspectus.messages import Message, is_summary_message
from conspectus.notes.extraction import extract_notes
from conspectus.notes.rendering import NotesRenderer

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable

AnswerForm = Literal["findings", "whole"]
"""What an answer is. `"findings"` are lines with their sources, which become part of the notes.
`"whole"` is one text that replaces the summary so far."""


@dataclass(frozen=True, slots=True)
class LastRequest:
    """An agent's last request, as it was sent."""

    model: Runnable[Any, Any]
    messages: Sequence[Any]  # the system prompt first
    tools: Sequence[Any] = ()  # empty where the model has its own bound already
    tool_choice: Any = None
    settings: Mapping[str, Any] = field(default_factory=dict)  # of that call alone
    window: int | None = None  # tokens that the model takes; None where that is unknown
    at: float = 0.0  # when it was answered, by `time.monotonic()`
    any_model: bool = False  # a summariser may use this request whatever its own model is

    def bound(self) -> Runnable[Any, Any]:
        """Return the model with its tools and settings, as agents of LangChain call it.

        Only then does the provider find the request in its cache.
        """
        if not self.tools:
            return self.model.bind(**self.settings) if self.settings else self.model
        model: Any = self.model  # a chat model, as it has tools
        bound: Runnable[Any, Any] = model.bind_tools(
            list(self.tools), tool_choice=self.tool_choice, **self.settings
        )
        return bound


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """What a summariser is to read and how much it may write."""

    entries: Sequence[Message]  # the originals that leave, oldest first; all are to be read
    summary_so_far: str  # the notes, or in the form "whole" its last text; empty for none
    limit: int  # tokens that the text may take
    count: Callable[[str], int]  # tokens of a text
    form: AnswerForm = "whole"
    rewrites_findings: bool = False
    """The findings of the answer take the place of those in `summary_so_far`."""
    focus: str = ""  # what the caller wants kept above all
    kept: Sequence[Message] = ()  # messages that stay in view after the summary
    kept_before_last_evicted: int = 0  # how many of `kept` came before the last that leaves
    accepted_up_to: int | None = (
        None  # tokens up to which a text is used as it is; None for `limit`
    )
    archived: bool = True  # originals can be recalled
    brief_summary: str = ""
    """`summary_so_far` in less room, for a reading that could not take all entries beside it."""
    last: LastRequest | None = None  # it shows all of these, and is to be asked again
    last_tokens: int = 0  # of that request
    tokens: int = 0  # of `entries`, where they were counted

    def within(self, limit: int | None) -> SummaryRequest:
        """Return the request for a text of at most `limit` tokens; None changes nothing."""
        if limit is None or limit >= self.limit:
            return self
        accepted = self.limit if self.accepted_up_to is None else self.accepted_up_to
        return replace(self, limit=limit, accepted_up_to=accepted)


@dataclass(frozen=True, slots=True)
class Summary:
    """What a summariser answers."""

    text: str  # findings or a whole summary, as its form says
    read: tuple[str, ...]  # keys of the entries that it has read whole
    cost: Cost = field(default_factory=Cost)
    request_kind: str = ""  # to a chat model: "cached" on the agent's last request, else "smallest"
    cut: int = 0
    """Tokens known to be missing at its end, at least 1, if it ended at a limit of its caller's."""


@runtime_checkable
class Summarizer(Protocol):
    """Anything that can turn messages into a summary, without and with an event loop.

    `identity` changes with whatever changes its summaries; a draft made under another identity is
    not used. That of a function is made of its place and its code, not of what it closes over. A
    summariser may have a `form`, by default `"whole"`, and `min_tokens`, a number of tokens that
    makes any text a summary.
    """

    @property
    def name(self) -> str: ...

    @property
    def identity(self) -> str: ...

    def summarize(self, request: SummaryRequest) -> Summary:
        """Summarise; raises `SummaryError` when it cannot."""

    async def asummarize(self, request: SummaryRequest) -> Summary:
        """Summarise on an event loop."""


@dataclass(frozen=True, slots=True)
class SummarizerTraits:
    """What a summariser may have beside the methods that each one has."""

    form: AnswerForm
    """What its answers are."""

    min_tokens: int | None
    """Tokens that make any text of it a summary; None for the rule of `wrong_with`."""

    answer_limit: int | None
    """Tokens that its model can answer at most; None if nothing limits it."""

    summarize_flow: Callable[[SummaryRequest], Awaitable[Summary]] | None
    """Its steps as a coroutine: it sets a time for each of its calls, and reports them."""

    obstacle: Callable[[LastRequest, int, SummaryRequest], str] | None
    """Says why it cannot ask behind the agent's last request, or nothing. None if it never can."""

    model: Any
    """The model that it asks; None where it asks none, or one that nobody knows."""

    @classmethod
    def of(cls, summarizer: Summarizer) -> SummarizerTraits:
        """Return what a summariser has of these, by their names."""
        return cls(
            form=getattr(summarizer, "form", "whole"),
            min_tokens=getattr(summarizer, "min_tokens", None),
            answer_limit=getattr(summarizer, "answer_limit", None),
            summarize_flow=getattr(summarizer, "summarize_flow", None),
            obstacle=getattr(summarizer, "obstacle", None),
            model=getattr(summarizer, "model", None),
        )


class EmbeddedSummarizer:
    """Writes notes from the messages alone, offline; equal messages give equal notes.

    Where a model would report findings, it quotes what the agent said to the user. Use a model
    where you have one.
    """

    name = EMBEDDED
    identity = "embedded-7"
    form: AnswerForm = "findings"

    def summarize(self, request: SummaryRequest) -> Summary:
        messages = [entry for entry in request.entries if not is_summary_message(entry.source)]
        notes = NotesRenderer([extract_notes(messages, request.kept)])
        text = notes.render(request.limit, request.count, archived=request.archived)
        return Summary(text, read=tuple(entry.key for entry in request.entries))

    async def asummarize(self, request: SummaryRequest) -> Summary:
        return self.summarize(request)


def check_settings(timeout: float | None, **numbers: int | None) -> None:
    """Raise `PolicyError` for a setting out of its range; only `min_tokens` may be 0."""
    for name, value in numbers.items():
        if value is not None:
            whole(value, name, 0 if name == "min_tokens" else 1)
    if timeout is not None and (isinstance(timeout, bool) or not timeout > 0):
        raise PolicyError(f"timeout must be seconds above 0, or None, got {timeout!r}.")
