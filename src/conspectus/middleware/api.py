"""`SummarizationMiddleware`: a drop-in for LangChain's, which loses nothing."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

from langchain.agents.middleware.internal_call_transformer import InternalCallTransformer
from langchain.agents.middleware.types import (
    AgentMiddleware,
    ModelRequest,
    ModelResponse,
)
from langchain_core.messages import AnyMessage, BaseMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.runnables import Runnable

from conspectus._core.flow import OnFailure
from conspectus._core.policy import Policy
from conspectus._drive import Flow, arun, run
from conspectus.archive.redactor import Redact
from conspectus.compactor.agent_state import CompactionState, Tenant, read_held
from conspectus.compactor.engine import (
    AnyArchive,
    AnyListeners,
    AnySummarizer,
    Engine,
    Pin,
    window_of,
)
from conspectus.compactor.graph_engine import GraphEngine
from conspectus.compactor.leaving import BeforeSummarization
from conspectus.compactor.models import model_name, profile_window
from conspectus.compactor.naming import name_messages
from conspectus.compactor.tools import OnEvent
from conspectus.compactor.turn_state import asking
from conspectus.errors import PolicyError
from conspectus.events import heard_by
from conspectus.ledger.skills import Skills
from conspectus.middleware.counting import Counting, meter_for
from conspectus.middleware.planner import Planner
from conspectus.middleware.preview import PreviewChoice, asked_of
from conspectus.middleware.recalling import Recalling
from conspectus.middleware.settings import (
    Model,
    built_model,
    copied,
    deprecated,
    read_recall,
    read_summarizer,
)
from conspectus.middleware.tools import compact_tool as tool_to_compact
from conspectus.middleware.tools import recall_tool
from conspectus.summarize import ChatModelSummarizer
from conspectus.tokens import TokenCounter

History = Literal["replace", "preserve"]
Recall = Literal["off", "tool", "auto"]


class SummarizationMiddleware(AgentMiddleware[CompactionState, Any, Any]):
    """Summarises the older part of a conversation when it grows, and loses nothing of it.

    Everything that `langchain.agents.middleware.SummarizationMiddleware` takes is taken, and means
    the same. What differs: nothing leaves before a summariser has read it whole; the newest user
    message stays; a summary that is empty, cut off, refused or an error is never used; originals
    are archived first, where there is an archive.

    It sees the messages only. The system prompt, the tools and what other middleware adds to a
    request are seen by `ContextGuard`, placed last; without it, leave room for them with
    `reserved_tokens`.

    Args:
        model: whose window is managed, as a model or a `provider:model` string; it also writes the
            summaries unless `summarizer` does. None for the embedded summariser and no profile.
        trigger: when to summarise: `("tokens", N)`, `("messages", N)`, `("fraction", F)` of the
            model's window; a dict for conditions that must all hold; a list for alternatives.
            Default: never.
        keep: how much of the newest history stays, as one such tuple. Default: 20 messages.
        token_counter: what trigger and keep count with. Default: LangChain's approximation. Whether
            a history fits the window is told by a `TokenMeter`, unless a counter is given.
        summary_prompt: instructions for a model, with `{messages}` where they go. Default: ours.
        trim_tokens_to_summarize: the size of one reading, in tokens; what is above it is read in
            further calls, never dropped. Default: what the summariser's own window takes.
        summarizer: what writes the summaries instead of `model`: a model, a string, a Runnable, a
            sync or async callable that takes messages and returns text, a `Summarizer`, or
            `"embedded"`.
        archive: where originals go: a LangGraph store, an `Archive`, a path or a URL. Default: the
            store given to `create_agent(store=...)`, else none.
        tenant: whose conversations these are: a text, or a callable over the runtime. Default: the
            authenticated user, else `"local"`.
        history: `"replace"` rewrites the messages in the state; `"preserve"` leaves them there and
            shows the model the summary in their place.
        on_failure: when no summary can be made: `"degrade"` keeps the history while it fits the
            window and uses the embedded summariser when it does not; `"keep"` keeps it; `"raise"`
            raises.
        fallbacks: summarisers to try in turn when the first one fails.
        max_summary_tokens: the most that the text of a summary takes.
        max_summarizer_tokens: the most that one compaction may spend on a model, in tokens; the
            embedded summariser reads what that cannot pay for.
        pin: says of a message whether it must stay; or the name of a marker in its
            `additional_kwargs`.
        preview: True interrupts the graph with the finished summary before it takes effect; resume
            with `Command(resume={"type": "approve"})`, `{"type": "edit", "summary": "..."}` or
            `{"type": "reject"}`. A callable is asked instead, and returns the text or None. The
            summariser runs once; where the answer may come to another process, that takes an
            archive, without which an approval there is void and the history stays.
        recall: `"tool"` gives the agent a tool `recall` that finds archived originals again;
            `"auto"` also puts those that a user's message needs before the model, unasked; `"off"`
            does neither. See `docs/middleware.md`.
        recall_tokens: the most that is put before the model at a turn, in tokens; an answer of the
            tool takes at most twice that. Both take at most a quarter of the window.
        compact_tool: gives the agent a tool `compact_conversation`, which asks for a compaction.
        on_event: called with a name (`start`, `attempt_failed`, `end`, `failed`) and its data; the
            same comes as custom stream events.
        telemetry: a listener, or several, that hear of this instance only, such as
            `conspectus.telemetry.UsageTally()`; see `docs/telemetry.md`. Default: those of the
            process alone, if any.
        before_summarization: a function, sync or async, or several, that get what is about to
            leave, for a memory of their own; see `conspectus.middleware.SummarizationEvent`. One
            that fails is logged, and nothing else changes.
        skills: which calls read skill files: a `conspectus.middleware.Skills` with the names of
            the tools. A reference to each file and the rules in it are carried. Default: none.
        redact: takes secrets out of all that is archived, indexed, summarised, carried as a fact or
            told to hooks and listeners; messages in view stay as they are. True or `"secrets"` for
            the default redactor, a function from text to text, or a `Redactor`. What cannot be
            redacted is not archived, and the history stays as it is. Default: None, for off. See
            `docs/redaction.md`.
        name: of this instance, so that two can stand in one agent. Default: of its class.
        window: input limit of the model, in tokens, instead of its profile's.
        reserved_tokens: tokens of the window that messages cannot have. Default: 0; where there is
            a guard, it says the real figure.
        summarizer_timeout: seconds for one call of a summariser. Default: 120.

    Raises:
        PolicyError: (a `ValueError`) a setting that cannot mean anything, such as a fraction where
            the model has no profile.
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
        history: History = "replace",
        on_failure: OnFailure = "degrade",
        fallbacks: Sequence[AnySummarizer] = (),
        max_summary_tokens: int | None = None,
        max_summarizer_tokens: int | None = None,
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
        **deprecated_kwargs: Any,
    ) -> None:
        super().__init__()
        trigger, keep = deprecated(deprecated_kwargs, trigger, keep)
        self.model = built_model(model)
        self.trigger, self.keep = copied(trigger), keep
        counting = Counting(token_counter, self.model)
        self.token_counter, self.summary_prompt = counting.whole, summary_prompt
        self.trim_tokens_to_summarize = trim_tokens_to_summarize
        self.summarizer = read_summarizer(summarizer)
        self._name = name if name is not None else type(self).__name__
        # Thresholds and cuts are those that LangChain's users have chosen: nothing is clipped, and
        # nothing more is cut than asked, as long as that fits the window with room to grow.
        policy = Policy.build(
            trigger=None if self.trigger == [] else self.trigger,
            keep=keep,
            max_summary_tokens=max_summary_tokens,
            clip_over=None,
            keep_first=True,
        )
        policy = replace(policy, keep_base=counting.base)
        known = window if window is not None else profile_window(self.model)
        if policy.needs_window and known is None:
            raise PolicyError(
                "Model profile information is required to use fractional token limits, and is "
                "unavailable for the specified model: pass window=<its input limit in tokens> or "
                'a model with profile={"max_input_tokens": ...}, or use tokens or messages'
            )
        for caveat in policy.caveats:
            warnings.warn(caveat, stacklevel=2)
        if history not in ("replace", "preserve"):
            raise PolicyError(f'history must be "replace" or "preserve", not {history!r}')
        if not isinstance(self._name, str) or not self._name:
            raise PolicyError(f"name must be a text, not {name!r}")
        self.history: History = history
        read_recall(recall, recall_tokens)
        writes: AnySummarizer | None = summarizer if summarizer is not None else self.model
        if writes is self.model and isinstance(writes, Runnable):
            # Whatever stands for the model answers prompts, and is no function of messages.
            writes = ChatModelSummarizer(
                writes,
                prompt=summary_prompt,
                trim_tokens_to_summarize=trim_tokens_to_summarize,
                max_summarizer_tokens=max_summarizer_tokens,
                timeout=summarizer_timeout,
            )
        engine = Engine.build(
            writes,
            policy,
            meter_for(token_counter, self.model),
            archive=archive,
            prompt=summary_prompt,
            max_summarizer_tokens=max_summarizer_tokens,
            trim_tokens_to_summarize=trim_tokens_to_summarize,
            fallbacks=fallbacks,
            on_failure=on_failure,
            pin=pin,
            summarizer_timeout=summarizer_timeout,
            on_event=on_event,
            hooks=before_summarization,
            telemetry=telemetry,
            skills=skills,
            redact=redact,
        )
        self.graph_engine = GraphEngine(
            engine,
            tenant,
            window_of(known, reserved_tokens),
            model_name(self.model) if window is None else "",
            counting.message,
            asked_of(preview),
        )
        shown = recall_tokens if recall == "auto" else 0
        self._planner = Planner(self.graph_engine, counting, history == "preserve", shown)
        self._recalling = Recalling(self.graph_engine, self._planner, shown) if shown else None
        self.tools = []
        if recall != "off":
            self.tools.append(
                recall_tool(lambda: (self.graph_engine, self._planner), 2 * recall_tokens)
            )
        if compact_tool:
            self.tools.append(tool_to_compact())

    @property
    def name(self) -> str:
        """The name of this instance; no two in one agent may have the same."""
        return self._name

    def go_on_as(self, other: SummarizationMiddleware) -> None:
        """Take the settings of another instance, from the next step on.

        A step under way ends with what it began with. Threads go on: what is in force stands in
        their states. The tools that the agent was given, and `history`, stay as they are.

        Args:
            other: with the same `history`, and the same archive.

        Raises:
            PolicyError: its `history` is another, so that states would be read wrongly.
        """
        if other.history != self.history:
            raise PolicyError(
                f"history cannot change from {self.history!r} to {other.history!r} while an agent "
                "runs; build the agent anew"
            )
        self.model, self.trigger, self.keep = other.model, other.trigger, other.keep
        self.token_counter, self.summary_prompt = other.token_counter, other.summary_prompt
        self.trim_tokens_to_summarize = other.trim_tokens_to_summarize
        self.summarizer = other.summarizer
        self.graph_engine, self._planner = other.graph_engine, other._planner
        self._recalling = other._recalling

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Summarise if the history asks for it.

        Args:
            state: of the graph; a dict with `messages` is enough.
            runtime: of the run; a bare `Runtime()` is enough.

        Returns:
            None, or an update of the state.

        Raises:
            MessageError: a message cannot be understood.
            SummaryError: no summary could be made, and `on_failure` is `"raise"`.
        """
        return run(self._heard(self._step(state, runtime)))

    async def abefore_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """`before_model` on an event loop."""
        return await arun(self._heard(self._step(state, runtime)))

    def _heard(self, flow: Flow[dict[str, Any] | None]) -> Flow[dict[str, Any] | None]:
        return heard_by(self.graph_engine.engine.tools.listeners, flow)

    def _step(self, state: Any, runtime: Any) -> Flow[dict[str, Any] | None]:
        update = yield from self._planner.step(state, runtime)
        if self._recalling is None:
            return update
        return (yield from self._recalling.step(state, update, runtime))

    def compact(
        self, state: Any, runtime: Any, *, focus: str | None = None
    ) -> dict[str, Any] | None:
        """Summarise now, whatever the trigger says.

        For a node or a tool of one's own, where the state and the runtime are at hand. From
        outside, `agent.update_state(config, request_compaction())` asks the next step for it.

        Args:
            state: of the graph; a dict with `messages` is enough.
            runtime: of the run; a bare `Runtime()` is enough.
            focus: what to keep above all, in plain words.

        Returns:
            An update of the state; None where nothing can leave it.

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
        return run(self._heard(self._planner.step(state, runtime, focus or "")))

    async def acompact(
        self, state: Any, runtime: Any, *, focus: str | None = None
    ) -> dict[str, Any] | None:
        """`compact` on an event loop."""
        return await arun(self._heard(self._planner.step(state, runtime, focus or "")))

    @staticmethod
    def request_compaction(focus: str | None = None) -> dict[str, Any]:
        """An update of the state that asks for a compaction before the next call of the model.

        Args:
            focus: what to keep above all, in plain words; at most 2,000 characters of it count.

        Example:
            `agent.update_state(config, SummarizationMiddleware.request_compaction("the schema"))`
        """
        return asking(focus)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Show the model the view, where the state keeps every message, and what was recalled."""
        return handler(run(self._shown(request)))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """`wrap_model_call` on an event loop."""
        return await handler(await arun(self._shown(request)))

    def _shown(self, request: ModelRequest[Any]) -> Flow[ModelRequest[Any]]:
        channel, runtime, graph = request.state["messages"], request.runtime, self.graph_engine
        found = read_held(request.state, runtime, channel)
        if found.data is not None:  # a run may begin here, in another process
            name_messages(channel)
        # With the model's turn: `before_model` has not seen what went before.
        held = yield from graph.follow(found, channel, runtime, turn=False)
        messages: Sequence[BaseMessage] = request.messages
        if self.history == "preserve" and held.data is not None:
            messages = yield from graph.shown(held, channel, messages, runtime)
        if self._recalling is not None:
            messages = yield from self._recalling.shown(request.state, held, messages, runtime)
        if messages is request.messages:
            return request
        return request.override(messages=cast("list[AnyMessage]", messages))
