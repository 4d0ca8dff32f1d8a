"""`Summarizer`: its request and its answer; and the embedded summariser, which needs no model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from conspectus.core.policy import EMBEDDED, check_whole_number
from conspectus.core.records import Cost
from conspectus.errors import PolicyError
from conspectus.messages import Message, is_summary_message
from conspectus.notes.extraction import extract_notes
from conspectus.notes.rendering import NotesRenderer

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable

AnswerForm = Literal["findings", "whole"]
"""The form of an answer. `"findings"`: lines with the ids of their sources, which become a part of
the notes. `"whole"`: one text that replaces the summary so far."""


@dataclass(frozen=True, slots=True)
class LastRequest:
    """An agent's last request, with which a summary can use the provider's cache."""

    model: Runnable[Any, Any]
    messages: Sequence[Any]  # the system prompt comes first
    tools: Sequence[Any] = ()  # empty if the model already has its tools bound
    tool_choice: Any = None
    settings: Mapping[str, Any] = field(default_factory=dict)  # of this call only
    window: int | None = None  # the model's input limit in tokens; None if it is unknown
    at: float = 0.0  # time of its answer, or of the request without one, by `time.monotonic()`
    any_model: bool = False  # whether a summariser with another model may use this request

    def bound(self) -> Runnable[Any, Any]:
        """Return the model with its tools and settings bound, as LangChain's agents call it.

        The provider finds the request in its cache only if it is sent in this form.
        """
        if not self.tools:
            return self.model.bind(**self.settings) if self.settings else self.model
        model: Any = self.model  # a request with tools has a chat model
        bound: Runnable[Any, Any] = model.bind_tools(
            list(self.tools), tool_choice=self.tool_choice, **self.settings
        )
        return bound


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """The messages that a summariser must read, and the largest size of its text.

    Attributes:
        entries: the originals that are evicted, the oldest first. It must read all of them.
        summary_so_far: the notes so far; in the form `"whole"`, the last text of this summariser.
            Empty if there is none.
        limit: the most tokens of the text.
        count: a function that returns the tokens of a text.
        form: the form of the answer.
        rewrites_findings: whether the findings of the answer replace those in `summary_so_far`.
        focus: a subject that the text must keep; empty if the caller named none.
        kept: the messages that stay in the view after the summary.
        kept_before_last_evicted: how many of `kept` come before the last evicted message.
        accepted_up_to: the tokens up to which a text is used unchanged. None: `limit`.
        archived: whether the originals can be recalled.
        brief_summary: a shorter form of `summary_so_far`. It is used if fewer requests are needed
            with it; empty if there is none.
        last: the agent's last request, if it has all entries and the summary is asked for after it.
        last_tokens: the tokens of `last`.
        tokens: the tokens of `entries`; 0 if they were not counted.
        rules: rules of the user, word for word. They are in the notes whatever the summariser
            writes.
        complaint: why an earlier answer to the same messages was rejected. The summariser is told
            so, and asked only once. Empty if none was.
        check_summaries: whether a text that tells nothing of the messages is rejected.
    """

    entries: Sequence[Message]
    summary_so_far: str
    limit: int
    count: Callable[[str], int]
    form: AnswerForm = "whole"
    rewrites_findings: bool = False
    focus: str = ""
    kept: Sequence[Message] = ()
    kept_before_last_evicted: int = 0
    accepted_up_to: int | None = None
    archived: bool = True
    brief_summary: str = ""
    last: LastRequest | None = None
    last_tokens: int = 0
    tokens: int = 0
    rules: Sequence[str] = ()
    complaint: str = ""
    check_summaries: bool = True

    def within(self, limit: int | None) -> SummaryRequest:
        """Return the same request, for a text of at most `limit` tokens. None changes nothing."""
        if limit is None or limit >= self.limit:
            return self
        accepted = self.limit if self.accepted_up_to is None else self.accepted_up_to
        return replace(self, limit=limit, accepted_up_to=accepted)


@dataclass(frozen=True, slots=True)
class Summary:
    """The answer of a summariser.

    Attributes:
        text: findings or a whole summary, according to the form of the summariser.
        read: keys of the entries that it has read completely. All must be here.
        cost: the calls and tokens of the summariser.
        request_kind: for a chat model: `"cached"` if it answered after the agent's last request,
            else `"smallest"`.
        cut: 0 if the text is complete. If it ended at a limit that the caller had set, the tokens
            that are known to be missing, and at least 1.
        checked: whether `reason_not_a_summary` has found nothing wrong with the text.
    """

    text: str
    read: tuple[str, ...]
    cost: Cost = field(default_factory=Cost)
    request_kind: str = ""
    cut: int = 0
    checked: bool = False


@runtime_checkable
class Summarizer(Protocol):
    """An object that makes a summary of messages, with and without an event loop.

    It may also have the attributes of `SummarizerTraits`, such as `form`.
    """

    @property
    def name(self) -> str:
        """The name that results, events and the log show."""

    @property
    def identity(self) -> str:
        """A text that changes whenever something changes that affects its summaries.

        A draft that was made with another identity is not used. For a plain function, the identity
        is made from its name and its code, but not from variables that it uses.
        """

    def summarize(self, request: SummaryRequest) -> Summary:
        """Return a summary.

        Raises:
            SummaryError: no summary could be made.
        """

    async def asummarize(self, request: SummaryRequest) -> Summary:
        """`summarize` on an event loop."""


@dataclass(frozen=True, slots=True)
class SummarizerTraits:
    """Attributes that a summariser may have in addition to its name, identity and methods.

    Any summariser may have `form` and `check_summaries`. The others are for summarisers that call a
    model.
    """

    form: AnswerForm
    """The form of its answers. Default: `"whole"`."""

    check_summaries: bool
    """Whether its texts are checked by `reason_not_a_summary`. If False, any text is accepted."""

    answer_limit: int | None
    """The most tokens that its model can answer; None if nothing limits it."""

    summarize_flow: Callable[[SummaryRequest], Awaitable[Summary]] | None
    """Its work as one coroutine, for `bridge.run` or `bridge.arun`. It limits the time of each call
    by itself, and reports each. None: `summarize` is called, and limited as a whole."""

    obstacle: Callable[[LastRequest, int, SummaryRequest], str] | None
    """Takes the agent's last request, its tokens, and what is asked. Returns why the summariser
    cannot ask after that request; empty if it can. None: it never can."""

    model: Any
    """The model that it calls; None if it calls none, or an unknown one."""

    @classmethod
    def of(cls, summarizer: Summarizer) -> SummarizerTraits:
        """Return the attributes that a summariser has, and defaults for the others."""
        return cls(
            form=getattr(summarizer, "form", "whole"),
            check_summaries=getattr(summarizer, "check_summaries", True),
            answer_limit=getattr(summarizer, "answer_limit", None),
            summarize_flow=getattr(summarizer, "summarize_flow", None),
            obstacle=getattr(summarizer, "obstacle", None),
            model=getattr(summarizer, "model", None),
        )


class EmbeddedSummarizer:
    """A summariser that needs no model and no network. It quotes and shortens the messages.

    Equal messages give equal notes. A model would report findings; this summariser quotes what the
    agent said to the user instead. If you have a model, use that.
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
    """Check settings of a summariser.

    Raises:
        PolicyError: a number is too small, or `timeout` is not a number of seconds above 0.
    """
    for name, value in numbers.items():
        if value is not None:
            check_whole_number(value, name, 1)
    if timeout is not None and (isinstance(timeout, bool) or not timeout > 0):
        raise PolicyError(f"timeout must be seconds above 0, or None, got {timeout!r}.")
