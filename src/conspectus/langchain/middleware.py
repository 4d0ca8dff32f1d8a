"""Provide a drop-in for LangChain's `SummarizationMiddleware` that loses nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, Generic, Literal, Self, cast

from langchain.agents.middleware.internal_call_transformer import InternalCallTransformer
from langchain.agents.middleware.types import (
    AgentMiddleware,
    ContextT,
    ModelRequest,
    ModelResponse,
    ResponseT,
    TracePolicy,
    omit_payload,
)
from langchain_core.messages import AnyMessage, BaseMessage
from langchain_core.messages.utils import count_tokens_approximately

from conspectus.bridge import arun, io, run
from conspectus.core.policy import AnyStale, OnFailure
from conspectus.engine.background import AnyBackground, Closing, Preparations
from conspectus.engine.engine import OnEvent
from conspectus.engine.hooks import BeforeSummarization
from conspectus.engine.settings import AnyArchive, AnyListeners, AnySummarizer, Pin, warn_caller
from conspectus.errors import PolicyError
from conspectus.langchain.building import Built, built
from conspectus.langchain.channel import Channel
from conspectus.langchain.graph import GraphEngine, Send, send_thoughtful
from conspectus.langchain.identity import Tenant, name_messages
from conspectus.langchain.preview import PreviewChoice
from conspectus.langchain.settings import Model, deprecated
from conspectus.langchain.state import CompactionState, asking
from conspectus.langchain.tools import compact_tool as tool_to_compact
from conspectus.langchain.tools import recall_tool
from conspectus.notes.skills import Skills
from conspectus.notes.tools import Tool
from conspectus.observe import heard_by
from conspectus.redaction import Redact
from conspectus.tokens import TokenCounter

HistoryMode = Literal["replace", "preserve"]
Recall = Literal["off", "tool", "auto"]
RequestKind = Literal["smallest", "cached"]

NO_SETTINGS = ("self", "name", "deprecated_kwargs", "__class__")
"""Parameters of the middleware that are no settings of its engine."""

MADE = ("_built", "_earlier", "_opened", "_address", "tools")
"""What is made of the settings, and is made anew in a copy."""


class SummarizationMiddleware(
    AgentMiddleware[CompactionState, ContextT, ResponseT], Closing, Generic[ResponseT, ContextT]
):
    """Summarise the older part of a conversation when it grows; lose nothing of it.

    It takes every parameter of `langchain.agents.middleware.SummarizationMiddleware` with the same
    meaning. But nothing leaves before a summariser has read it whole; the newest user message
    stays; a summary that is empty, cut off, refused or an error is never used; originals are
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
        token_counter: the count for trigger and keep. Default: LangChain's approximation. Whether a
            history fits the window is counted by a `TokenMeter`, unless a counter is given.
        summary_prompt: instructions for a model, with `{messages}` where they go. Default: ours.
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
        on_failure, fallbacks, max_summary_tokens, notes: as for `Compactor`.
        tool_table, background: as for `Compactor`.
        pin, telemetry, redact, summarizer_timeout: as for `Compactor`.
        preview: True interrupts the graph with the finished summary before it takes effect; resume
            with `Command(resume={"type": "approve"})`, `{"type": "edit", "summary": "..."}` or
            `{"type": "reject"}`. A callable is asked instead, and returns the text or None. The
            summariser runs once. An answer to another process needs an archive: without one the
            approval is void and the history stays.
        recall: `"tool"` gives the agent a tool `recall` that finds archived originals again;
            `"auto"` also shows the model those that a user's message needs; `"off"` does neither.
            See `docs/langchain.md`.
        recall_tokens: most tokens of recalled originals at a turn; an answer of the tool takes at
            most twice that. Both take at most a quarter of the window.
        compact_tool: gives the agent a tool `compact_conversation`, which asks for a compaction.
        on_event: called with a name (`start`, `attempt_failed`, `end`, `failed`) and its data; the
            same comes as custom stream events.
        before_summarization: sync or async functions, one or several, that get the messages that
            are about to leave; see `conspectus.langchain.SummarizationEvent`. One that fails is
            logged, and nothing else changes.
        skills: which calls read skill files: a `conspectus.langchain.Skills` with the names of
            the tools. A reference to each file stays in the notes. Default: none.
        name: of this instance, so that two can stand in one agent. Default: of its class.
        window: input limit of the model, in tokens, instead of its profile's.
        reserved_tokens: tokens of the window that messages cannot have; a guard measures the real
            figure. Default: 0.
        truncate_args_settings: of Deep Agents: from `trigger` on, arguments of `write_file` and
            `edit_file` before the part to `keep` with more than `max_length` characters (default
            2,000) are shown as their first 20, `truncation_text` and a pointer to the original,
            before anything is summarised. It takes an archive, or `"preserve"`. Default: None.
        stale_results: as for `Compactor`; it takes an archive, or `"preserve"`. Default: None.
        summary_request: `"cached"` asks for a summary after the agent's last request, if possible,
            so that the provider reads it from its cache; `"smallest"` sends only what leaves. See
            `docs/cost.md`. Default: `"smallest"`.

    Each of these is an attribute, and can be set: `middleware.keep = ("messages", 5)` counts from
    the next step on. Agents and their states depend on `archive`, `history`, `recall`,
    `recall_tokens`, `compact_tool` and `name`, which cannot be set. `copy.deepcopy` shares the
    archive; `pickle` opens it again by its path or address.

    As a context manager, or with `close()`, it stops preparing notes at the end, and closes an
    archive that it has opened.

    Raises:
        PolicyError: (a `ValueError`) a setting is invalid, such as a fraction without a profile of
            the model; also when it is set later, which then changes nothing.
        ArchiveError: the archive cannot be opened.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> from langgraph.runtime import Runtime
        >>> summarize = SummarizationMiddleware(None, trigger=("messages", 3), keep=("messages", 1))
        >>> said = [HumanMessage(f"Look at module {n}.") for n in range(3)]
        >>> update = summarize.before_model({"messages": said}, Runtime())
        >>> [type(message).__name__ for message in update["messages"]]
        ['RemoveMessage', 'HumanMessage', 'HumanMessage']
    """

    state_schema = CompactionState
    transformers = (InternalCallTransformer,)
    trace_policy = TracePolicy(process_inputs=omit_payload)

    def __init__(
        self,
        model: str | Model | None,
        *,
        trigger: Any = None,
        keep: Any = ("messages", 20),
        token_counter: TokenCounter = count_tokens_approximately,
        summary_prompt: str | None = None,
        trim_tokens_to_summarize: int | None = None,
        summarizer: AnySummarizer | None = None,
        archive: AnyArchive | None = None,
        tenant: Tenant = None,
        history: HistoryMode = "replace",
        on_failure: OnFailure = "degrade",
        fallbacks: Sequence[AnySummarizer] = (),
        max_summary_tokens: int | None = None,
        notes: bool = True,
        tool_table: Sequence[Tool] = (),
        pin: Pin | None = None,
        preview: PreviewChoice = False,
        recall: Recall = "off",
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
        summarizer_timeout: float | None = 120.0,
        truncate_args_settings: Mapping[str, Any] | None = None,
        stale_results: AnyStale = None,
        background: AnyBackground = False,
        summary_request: RequestKind = "smallest",
        **deprecated_kwargs: Any,
    ) -> None:
        given = {key: value for key, value in locals().items() if key not in NO_SETTINGS}
        super().__init__()
        given["trigger"], given["keep"] = deprecated(self, deprecated_kwargs, trigger, keep)
        self._name = name if name is not None else type(self).__name__
        if not isinstance(self._name, str) or not self._name:
            raise PolicyError(f"name must be a text, not {name!r}")
        self._begin(given)
        self._warn()

    def _begin(self, given: Mapping[str, Any]) -> None:
        self._built, self._earlier = built(given), list[Preparations]()
        found, self._address = self.graph_engine.engine.archive, given["archive"]
        self._opened = found if isinstance(self._address, (str, Path)) else None
        self.tools = []
        if self.recall != "off":
            self.tools.append(recall_tool(lambda: self._built.planner, 2 * self.recall_tokens))
        if self.compact_tool:
            self.tools.append(tool_to_compact())

    def __getattr__(self, name: str) -> Any:
        made = self.__dict__.get("_built")
        if made is None or name not in made.given:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return made.read(name)

    def __setattr__(self, name: str, value: Any) -> None:
        made = self.__dict__.get("_built")
        if made is None or name not in made.given:
            super().__setattr__(name, value)
            return
        self._go_on_with(made.with_setting(name, value))
        self._warn()

    def __getstate__(self) -> dict[str, Any]:
        own = {key: value for key, value in self.__dict__.items() if key not in MADE}
        given = {**self._built.given, "archive": self._address}
        return {**own, "given": given, "written": self.graph_engine.written}

    def __setstate__(self, state: dict[str, Any]) -> None:
        rest = dict(state)
        given, written = rest.pop("given"), rest.pop("written")
        self.__dict__.update(rest)
        self._begin(given)
        self.graph_engine.written = written

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        memo[id(self)] = copied = type(self).__new__(type(self))
        state, archive = self.__getstate__(), self.graph_engine.engine.archive
        state["given"]["archive"] = archive  # it stays with the one that opened it
        shared = (archive, self.telemetry, self._address)
        memo.update((id(one), one) for one in shared if one is not None)
        copied.__setstate__(deepcopy(state, memo))
        return copied

    def _go_on_with(self, built: Built) -> None:
        self._earlier, self._built = [one for one in self._prepares() if one.busy], built

    def _prepares(self) -> Sequence[Preparations]:
        background = self.graph_engine.engine.background
        return self._earlier if background is None else [*self._earlier, background]

    def _warn(self) -> None:
        for caveat in self.graph_engine.engine.policy.caveats:
            warn_caller(caveat, UserWarning, self)

    @property
    def name(self) -> str:
        """The name of this instance, unique in its agent."""
        return self._name

    @property
    def graph_engine(self) -> GraphEngine:
        """The engine; another one once a setting has changed."""
        return self._built.planner.graph

    def go_on_as(self, other: SummarizationMiddleware) -> None:
        """Take the settings of another instance with the same archive, from the next step on.

        Records in force stay in the states. The agent's tools, and `history`, stay as they are.

        Raises:
            PolicyError: its `history` is another, so that states would be read wrongly.
        """
        if other.history != self.history:
            raise PolicyError(
                f"history cannot change from {self.history!r} to {other.history!r} while an agent "
                "runs; build the agent anew"
            )
        self._go_on_with(other._built)

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Summarise if the history asks for it; return None or an update of the state.

        A state with `messages` and a bare `Runtime()` are enough.

        Raises:
            MessageError: a message cannot be understood.
            SummaryError: no summary could be made, and `on_failure` is `"raise"`.
        """
        return run(self._heard(self._step(state, runtime)))

    async def abefore_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """`before_model` on an event loop."""
        return await arun(self._heard(self._step(state, runtime)))

    def _heard(self, flow: Awaitable[dict[str, Any] | None]) -> Awaitable[dict[str, Any] | None]:
        return heard_by(self.graph_engine.engine.listeners, flow)

    def _step(self, state: Any, runtime: Any) -> Awaitable[dict[str, Any] | None]:
        if self._built.shown["trigger"] != self._built.trigger:  # its own list was changed
            self.trigger = self._built.shown["trigger"]
        return (self._built.turn_recall or self._built.planner).step(state, runtime)

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

        Example:
            >>> from langchain_core.messages import HumanMessage
            >>> from langgraph.runtime import Runtime
            >>> said = [HumanMessage(f"Look at module {n}.") for n in range(3)]
            >>> update = SummarizationMiddleware(None, keep=("messages", 1)).compact(
            ...     {"messages": said}, Runtime(), focus="modules")
            >>> len(update["messages"])
            3
        """
        return run(self._heard(self._built.planner.step(state, runtime, focus or "")))

    async def acompact(
        self, state: Any, runtime: Any, *, focus: str | None = None
    ) -> dict[str, Any] | None:
        """`compact` on an event loop."""
        return await arun(self._heard(self._built.planner.step(state, runtime, focus or "")))

    @staticmethod
    def request_compaction(focus: str | None = None) -> dict[str, Any]:
        """Make the update of a state that asks for a compaction at the next step.

        Args:
            focus: the subject to keep above all, in plain words; at most 2,000 characters count.

        Example:
            `agent.update_state(config, SummarizationMiddleware.request_compaction("the schema"))`
        """
        return asking(focus)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Show the model the view of a preserved history, and recalled originals.

        Thoughts that a provider refuses behind another beginning are left out of the request.
        """
        return run(self._called(request, lambda shown: io(lambda: handler(shown))))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """`wrap_model_call` on an event loop."""
        send: Send = lambda shown: io(lambda: None, lambda: handler(shown))  # noqa: E731
        return await arun(self._called(request, send))

    async def _called(self, request: ModelRequest[Any], send: Send) -> Any:
        shown = await self._shown(request)
        with self.graph_engine.sending(shown):
            return await send_thoughtful(shown, send)

    async def _shown(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        self.graph_engine.engine.tools.learn(request.tools)
        channel = Channel.of(self.graph_engine, request.state, request.runtime)
        if channel.held.data is not None:  # a run may begin here, in another process
            name_messages(channel.messages)
        # With the model's turn: `before_model` has not seen what went before.
        channel = await channel.follow(turn=False)
        messages: Sequence[BaseMessage] = request.messages
        if self.history == "preserve" and channel.held.data is not None:
            messages = await channel.shown(messages)
        if self._built.turn_recall is not None:
            messages = await self._built.turn_recall.shown(channel, messages)
        messages = await channel.thoughtful(messages)
        if messages is request.messages:
            return request
        return request.override(messages=cast("list[AnyMessage]", messages))
