"""Provide a drop-in for LangChain's `SummarizationMiddleware` that loses nothing."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import replace
from operator import is_
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, cast

from langchain.agents.middleware.internal_call_transformer import InternalCallTransformer
from langchain.agents.middleware.types import (
    AgentMiddleware,
    ContextT,
    ModelRequest,
    ResponseT,
    TracePolicy,
    omit_payload,
)
from langchain_core.messages import AnyMessage, BaseMessage
from langchain_core.messages.utils import count_tokens_approximately

from conspectus.archive import Scope
from conspectus.bridge import arun, io, run
from conspectus.core.policy import AnyStale, OnFailure, names_embedded, plain_words
from conspectus.engine.background import Closing, Preparations
from conspectus.engine.hooks import BeforeSummarization
from conspectus.engine.settings import (
    AnyArchive,
    AnyListeners,
    AnySummarizer,
    OnEvent,
    Pin,
    Settings,
    model_of,
)
from conspectus.errors import Attributes, PolicyError
from conspectus.langchain.channel import Channel, Handler
from conspectus.langchain.others import of_objects
from conspectus.langchain.planner import Update, is_quiet, step
from conspectus.langchain.recall import (
    recall_tool,
    recalled_for_turn,
    shown_in_turn,
    tool_to_compact,
)
from conspectus.langchain.settings import KEPT, Model, PreviewChoice, Setup, deprecated
from conspectus.langchain.state import (
    Asked,
    CompactionState,
    Tenant,
    name_messages,
)
from conspectus.messages.alternation import AlternateRoles
from conspectus.model.prompts import DEFAULT_SUMMARY_PROMPT
from conspectus.notes.tools import Skills, Tool
from conspectus.observe import heard_by
from conspectus.redaction import Redact
from conspectus.tokens import TokenCounter

FIXED = ("archive", "history", "recall", "recall_tokens", "compact_tool")
"""Parameters that agents and their states depend on."""

GUARDED = ContextVar("conspectus-guarded", default=False)
"""Whether a guard has measured the request already, further out."""

GUARD_IS_FIRST = (
    "ContextGuard stands before SummarizationMiddleware and measures requests that are changed "
    "after it: put it last in the list of middleware"
)


class WrapsCalls(Attributes, AgentMiddleware[CompactionState, ContextT, ResponseT]):
    """A middleware around each call of the model, the same with and without an event loop."""

    state_schema = CompactionState
    transformers = (InternalCallTransformer,)
    trace_policy = TracePolicy(process_inputs=omit_payload)

    _name: str
    _called: Callable[[ModelRequest[Any], Handler], Awaitable[Any]]

    @property
    def name(self) -> str:
        """The name of this instance, unique in its agent."""
        return self._name

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., Any]) -> Any:
        """Call the model with what this middleware makes of its request."""
        return run(self._called(request, lambda sent: io(lambda: handler(sent))))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[..., Awaitable[Any]]
    ) -> Any:
        """`wrap_model_call` on an event loop."""

        def send(sent: ModelRequest[Any]) -> Awaitable[Any]:
            return io(lambda: None, lambda: handler(sent))  # the first is for no loop

        return await arun(self._called(request, send))


class SummarizationMiddleware(
    WrapsCalls[ContextT, ResponseT], Closing, Generic[ResponseT, ContextT]
):
    """Summarise the older part of a conversation when it grows; lose nothing of it.

    It takes every parameter of `langchain.agents.middleware.SummarizationMiddleware` with the same
    meaning. But nothing leaves before a summariser has read it whole; the newest user message
    stays; a summary that is empty, broken off, refused or an error is never used; originals are
    archived first, if there is an archive.

    It sees only the messages. `ContextGuard`, placed last, sees the system prompt, the tools and
    other middleware's additions; without it, leave room for them with `reserved_tokens`.

    Args:
        model: whose window is managed, as a model or a `provider:model` string; it also writes the
            summaries unless `summarizer` does. None for the embedded summariser and no profile.
        trigger: when to summarise: `("tokens", N)`, `("messages", N)`, `("fraction", F)` of the
            model's window; a dict for conditions that must all hold; a list for alternatives.
            Default: never.
        keep: how much of the newest history stays in view, as one such tuple. Default: 20 messages.
        token_counter: the count for trigger and keep: a function, or a vocabulary such as
            `"tiktoken:o200k_base"`. Default: LangChain's approximation. Whether a history fits the
            window is estimated, unless a counter is given.
        summary_prompt: instructions for a model, with `{messages}` where they go. Default, also for
            None: ours, which is `conspectus.langchain.DEFAULT_SUMMARY_PROMPT` and may be extended.
        trim_tokens_to_summarize: the size of one reading, in tokens; more is read in further
            calls, never dropped. Default: what the summariser's own window takes.
        summarizer: the summariser instead of `model`: a model, a string, a Runnable, a sync or
            async callable that takes messages and returns text, a `Summarizer`, or `"embedded"`.
        archive: where originals go: a LangGraph store, an `Archive`, a path or a URL. Default: the
            store given to `create_agent(store=...)`, else none.
        tenant: the owner of the conversations: a text, or a callable over the runtime. Default: the
            authenticated user, else `"local"`.
        history: `"replace"` rewrites the messages in the state; `"preserve"` leaves them there and
            shows the model the summary in their place.
        preview: True interrupts the graph with the finished summary before it takes effect; resume
            with `Command(resume={"type": "approve"})`, `{"type": "edit", "summary": "..."}` or
            `{"type": "reject"}`. A callable is asked instead, and returns the text or None. An
            answer to another process needs an archive: else the approval is void.
        recall: `"tool"` gives the agent a tool `recall` that finds archived originals again;
            `"auto"` also shows the model those that a user's message needs; `"off"` does neither.
        recall_tokens: most tokens of recalled originals at a turn; an answer of the tool takes at
            most twice that. Both take at most a quarter of the window.
        compact_tool: gives the agent a tool `compact_conversation`, which asks for a compaction.
        on_event: called with a name (`start`, `attempt_failed`, `end`, `failed`) and its data; the
            same comes as custom stream events.
        before_summarization: sync or async functions, one or several, that get the messages that
            are about to leave; see `conspectus.langchain.SummarizationEvent`.
        skills: a `conspectus.langchain.Skills` with the names of the tools that read skill files; a
            reference to each file stays in the notes. Default: none.
        name: of this instance, so that two can stand in one agent. Default: of its class.
        window: input limit of the model, in tokens, instead of its profile's.
        reserved_tokens: tokens of the window that messages cannot have, also of one that the guard
            was given; a guard measures the real figure. Default: 0.
        summary_request: `"cached"` asks for a summary after the agent's last request, if possible,
            so that the provider reads it from its cache (`docs/cost.md`). Default: `"smallest"`.
        alternate_roles: whether messages of the user in a row are one message in requests, as the
            templates of Mistral and Gemma demand: `"on"`, `"off"`, or `"auto"`: by the name of the
            model that is called, by what its provider has refused, which is then sent again, and
            for an unknown one if no model has answered two in a row. The state keeps each as it is.
            Default: `"auto"`.

    `on_failure`, `fallbacks`, `max_summary_tokens`, `notes`, `tool_table`, `pin`, `telemetry`,
    `redact`, `summarizer_timeout`, `background` and `stale_results` are as for `Compactor`; but
    `stale_results` is off by default, as LangChain's middleware truncates nothing.

    Each is an attribute, read at each step: `middleware.keep = ("messages", 5)` counts from the
    next one on. Agents and their states depend on `archive`, `history`, `recall`, `recall_tokens`,
    `compact_tool` and `name`: build both anew instead. `copy.deepcopy` shares the archive; `pickle`
    opens it again. As a context manager, or with `close()`, it stops preparing notes at the end,
    and closes an archive that it has opened.

    Raises:
        PolicyError: (a `ValueError`) a setting is invalid, such as a fraction without a profile of
            the model; of one that is set later, at the next step.
        AttributeError: a name that is set later is no parameter.
        ArchiveError: the archive cannot be opened.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> from langgraph.runtime import Runtime
        >>> summarize = SummarizationMiddleware(None, trigger=("messages", 3), keep=("messages", 1))
        >>> said = [HumanMessage(f"Look at module {n}. " * 9) for n in range(3)]
        >>> update = summarize.before_model({"messages": said}, Runtime())
        >>> [type(message).__name__ for message in update["messages"]]
        ['RemoveMessage', 'HumanMessage', 'HumanMessage']
    """

    if TYPE_CHECKING:  # the parameters

        def __getattr__(self, name: str) -> Any: ...

    def __init__(
        self,
        model: str | Model | None,
        *,
        trigger: Any = None,
        keep: Any = Settings.keep,
        token_counter: TokenCounter | str = count_tokens_approximately,
        summary_prompt: str | None = DEFAULT_SUMMARY_PROMPT,
        trim_tokens_to_summarize: int | None = None,
        summarizer: AnySummarizer | None = None,
        archive: AnyArchive | None = None,
        tenant: Tenant = None,
        history: Literal["replace", "preserve"] = "replace",
        on_failure: OnFailure = Settings.on_failure,
        fallbacks: Sequence[AnySummarizer] = (),
        max_summary_tokens: int | None = None,
        notes: bool = True,
        tool_table: Sequence[Tool] = (),
        pin: Pin | None = None,
        preview: PreviewChoice = False,
        recall: Literal["off", "tool", "auto"] = "off",
        recall_tokens: int = 512,
        compact_tool: bool = False,
        on_event: OnEvent | None = None,
        telemetry: AnyListeners = None,
        before_summarization: BeforeSummarization | Sequence[BeforeSummarization] | None = None,
        skills: Skills | None = None,
        redact: Redact = None,
        name: str | None = None,
        window: int | None = None,
        reserved_tokens: int = 0,
        summarizer_timeout: float | None = Settings.summarizer_timeout,
        stale_results: AnyStale = None,
        background: bool = False,
        summary_request: Literal["smallest", "cached"] = "smallest",
        alternate_roles: AlternateRoles = "auto",
        **deprecated_kwargs: Any,
    ) -> None:
        given = dict(locals())
        for other in ("self", "name", "deprecated_kwargs", "__class__"):
            given.pop(other, None)
        if name is not None and not (isinstance(name, str) and name):
            raise PolicyError(f"name must be a text, not {name!r}")
        self._name = name or type(self).__name__
        old = deprecated(deprecated_kwargs, given)
        given["summary_prompt"] = summary_prompt or DEFAULT_SUMMARY_PROMPT
        given["trigger"] = deepcopy(old.get("trigger") if trigger is None else trigger)
        given["keep"] = old.get("keep", keep) if keep == Settings.keep else keep
        given["model"] = None if names_embedded(model) else model_of(model, summarizer)
        self._parameters = tuple(given)
        vars(self).update(given)
        self._open()
        for caveat in self._setup.caveats({*dir(type(self))} - {*dir(SummarizationMiddleware)}):
            warnings.warn(caveat, UserWarning, stacklevel=2)

    @property
    def token_counter(self) -> TokenCounter:
        """The count of a list of messages by which the trigger goes, as a function."""
        given = vars(self)["token_counter"]
        if callable(given) and given is not count_tokens_approximately:
            return cast("TokenCounter", given)
        return cast("TokenCounter", self._setup.counting.of)

    @token_counter.setter
    def token_counter(self, value: TokenCounter | str) -> None:
        vars(self)["token_counter"] = value

    def _open(self) -> None:
        """Make what no copy has: the archive of an address, and the tools."""
        own, self._made, self._address = vars(self), cast("Setup | None", None), self.archive
        made = self._setup
        own["archive"] = made.given["archive"] = made.engine.archive
        self._opened = self.archive if isinstance(self._address, (str, Path)) else None
        tools = [tool_to_compact()] if self.compact_tool else []
        if self.recall != "off":
            tools = [recall_tool(lambda: self._setup, 2 * self.recall_tokens), *tools]
        own.update(tools=tools, _is_built=True)

    @property
    def _setup(self) -> Setup:
        """What the parameters make as they are now."""
        made, now = self._made, [*map(vars(self).__getitem__, self._parameters)]
        if made is not None and all(map(is_, now, made.given.values())):
            return made
        given = dict(zip(self._parameters, now, strict=True))
        before = given if made is None else made.given
        for name in FIXED:
            if given[name] is not before[name] and given[name] != before[name]:
                vars(self)[name] = before[name]
                raise PolicyError(f"{name} cannot change later; build middleware and agent anew")
        setup = Setup(given, self._where)
        if made is not None and setup.given["background"] is made.given["background"]:
            setup.engine = replace(setup.engine, background=made.engine.background)
        self._made = setup
        return setup

    @property
    def _background(self) -> Preparations | None:  # type: ignore[override]
        return self._made.engine.background if self._made is not None else None

    def __getstate__(self) -> dict[str, Any]:
        made = ("_made", "_address", "_opened", "tools")
        own = {key: value for key, value in vars(self).items() if key not in made}
        return {**own, "archive": self._address}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        memo[id(self)] = copy = type(self).__new__(type(self))
        # The archive stays with the one that opened it.
        memo.update((id(one), one) for one in (self.archive, self.telemetry) if one is not None)
        copy.__setstate__(deepcopy({**self.__getstate__(), "archive": self.archive}, memo))
        return copy

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Compact the history if the settings ask for it."""
        channel = Channel(self._setup, state, runtime)
        return None if self._is_quiet(channel) else run(self._step(channel))

    async def abefore_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """`before_model` on an event loop."""
        channel = Channel(self._setup, state, runtime)
        return None if self._is_quiet(channel) else await arun(self._step(channel))

    def _step(self, channel: Channel, focus: str | None = None) -> Awaitable[Update | None]:
        return heard_by(channel.setup.engine.listeners, self._stepped(channel, focus))

    async def _stepped(self, channel: Channel, focus: str | None) -> Update | None:
        update = await step(channel, focus)
        more = await self._written(channel)
        if self.recall == "auto" and focus is None:
            if update and "messages" in update:
                channel.messages = update["messages"][1:]
            more |= await recalled_for_turn(channel)
        return {**(update or {}), **more} if more else update

    def compact(
        self, state: Any, runtime: Any, *, focus: str | None = None
    ) -> dict[str, Any] | None:
        """Summarise now, whatever the trigger says.

        For a node or a tool with the state and the runtime at hand. From outside,
        `agent.update_state(config, request_compaction())` asks the next step for it.

        Args:
            state: of the graph; a dict with `messages` is enough.
            runtime: of the run; a bare `Runtime()` is enough.
            focus: the subject to keep above all, in plain words.

        Returns:
            An update of the state; None if nothing can leave it.

        Raises:
            MessageError: a message cannot be understood.
            SummaryError: no summary could be made, and `on_failure` is `"raise"`.
        """
        words = plain_words(focus, "focus")
        return run(self._step(Channel(self._setup, state, runtime), words))

    async def acompact(
        self, state: Any, runtime: Any, *, focus: str | None = None
    ) -> dict[str, Any] | None:
        """`compact` on an event loop."""
        words = plain_words(focus, "focus")
        return await arun(self._step(Channel(self._setup, state, runtime), words))

    @staticmethod
    def request_compaction(focus: str | None = None) -> dict[str, Any]:
        """Make the update of a state that asks for a compaction at the next step.

        Args:
            focus: the subject to keep above all, in plain words; at most 2,000 characters count.

        Example:
            `agent.update_state(config, SummarizationMiddleware.request_compaction("the schema"))`
        """
        return Asked.of(focus)

    async def _called(self, request: ModelRequest[Any], handler: Handler) -> Any:
        setup = self._setup
        if GUARDED.get():
            setup.say_once(GUARD_IS_FIRST)
        setup.engine.tools.learn(request.tools)
        channel = Channel(setup, request.state, request.runtime)
        if channel.held.head is not None:
            request = of_objects(request)
        if not self._shows_all(channel, request):
            request = await self._shown(channel, request)
        return await channel.send(request, request.messages, handler)

    def _shows_all(self, channel: Channel, request: ModelRequest[Any]) -> bool:
        """Return whether a request shows what it should already."""
        return channel.shows_all()

    async def _shown(self, channel: Channel, request: ModelRequest[Any]) -> ModelRequest[Any]:
        if channel.held.head is not None:  # a run may begin here, in another process
            name_messages(channel.messages)
        # With the model's turn: `before_model` has not seen what went before.
        await channel.follow(turn=False)
        messages: Sequence[BaseMessage] = request.messages
        if channel.preserve and channel.held.head is not None:
            messages = await channel.shown(messages)
        if self.recall == "auto":
            messages = await shown_in_turn(channel, messages)
        if messages is not request.messages:
            request = request.override(messages=cast("list[AnyMessage]", messages))
        return request

    def _where(self, scope: Scope) -> str:
        """Return the location of originals in a clip, where no archive has them."""
        return KEPT

    def _is_quiet(self, channel: Channel) -> bool:
        """Return whether a step has nothing to do."""
        return is_quiet(channel)

    async def _written(self, channel: Channel) -> dict[str, Any]:
        """Write what the record in force asks for; return an update of the state."""
        return {}
