"""`SummarizationMiddleware`, which replaces LangChain's middleware with the same name.

With an archive, no message is lost.
"""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, cast

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

from conspectus._arguments import documented, takes
from conspectus.archive import Scope
from conspectus.bridge import arun, await_call, call_either_way, run
from conspectus.core.policy import check_text, names_embedded
from conspectus.engine.building import model_of
from conspectus.engine.closing import Closing
from conspectus.engine.preparations import Preparations
from conspectus.engine.settings import KEEP
from conspectus.errors import Attributes, PolicyError
from conspectus.langchain.agent_step import AgentStep
from conspectus.langchain.middleware_changes import with_message_objects
from conspectus.langchain.recall import (
    add_recalled_for_turn,
    recall_for_turn,
    recall_tool,
    tool_to_compact,
)
from conspectus.langchain.sending import Handler, send
from conspectus.langchain.settings import (
    KEPT,
    Setup,
    SummarizationSettings,
    read_deprecated,
)
from conspectus.langchain.state import (
    CompactionState,
    RequestedCompaction,
    RequestedUndo,
    name_messages,
)
from conspectus.langchain.step_update import Update, compact_step, is_quiet
from conspectus.model.prompts import DEFAULT_SUMMARY_PROMPT
from conspectus.observe import heard_by
from conspectus.tokens import TokenCounter

NAMES = tuple(field.name for field in fields(SummarizationSettings) if field.name != "name")
"""Settings that are attributes. The attribute `name` is LangChain's."""

FIXED = ("archive", "history", "recall", "recall_tokens", "compact_tool")
"""Settings that cannot change later, because agents and their states depend on them."""

STACKLEVEL = 4
"""Frames from a warning of `_build` to the line that makes the middleware."""

GUARDED = ContextVar("conspectus-guarded", default=False)
"""Whether a guard further out has measured the request already."""

GUARD_IS_FIRST = (
    "ContextGuard stands before SummarizationMiddleware and measures requests that are changed "
    "after it: put it last in the list of middleware"
)


class WrapsCalls(Attributes, AgentMiddleware[CompactionState, ContextT, ResponseT]):
    """A middleware around each call of the model, with and without an event loop."""

    state_schema = CompactionState
    transformers = (InternalCallTransformer,)
    trace_policy = TracePolicy(process_inputs=omit_payload)

    _name: str
    _call_model: Callable[[ModelRequest[Any], Handler], Awaitable[Any]]

    @property
    def name(self) -> str:
        """The name of this instance, unique in its agent."""
        return self._name

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., Any]) -> Any:
        """Call the model with the request as this middleware changes it."""
        return run(self._call_model(request, lambda sent: call_either_way(partial(handler, sent))))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[..., Awaitable[Any]]
    ) -> Any:
        """`wrap_model_call` on an event loop."""

        def await_handler(sent: ModelRequest[Any]) -> Awaitable[Any]:
            return await_call(partial(handler, sent))

        return await arun(self._call_model(request, await_handler))


@documented
class SummarizationMiddleware(
    WrapsCalls[ContextT, ResponseT], Closing, Generic[ResponseT, ContextT]
):
    """Replace the older part of a conversation by a summary when the trigger is reached.

    This class takes every parameter of `langchain.agents.middleware.SummarizationMiddleware` with
    the same meaning, except for `trim_tokens_to_summarize`. It differs from LangChain's class in
    these points. A summariser reads every message whole before the message is evicted. The newest
    user message stays. A summary that is empty, cut off, refused or an error text is never used. If
    there is an archive, the originals are stored in it first.

    The middleware knows only the messages. Add a `ContextGuard` as the last middleware: it also
    measures the system prompt, the tools and what other middleware adds. Without a guard, leave
    room for them with `reserved_tokens`.

    Each parameter is an attribute, and is read at each step. For example,
    `middleware.keep = ("messages", 5)` takes effect at the next step. You cannot change `archive`,
    `history`, `recall`, `recall_tokens`, `compact_tool` and `name` in this way, because agents and
    their states depend on them; build a new middleware and a new agent.

    `copy.deepcopy` makes a second middleware that shares the archive. `pickle` stores the settings;
    the archive is opened again. At the end of a `with` block, or with `close()`, the middleware
    stops preparing summaries, and closes the archive if the middleware has opened it.

    Raises:
        PolicyError: a setting is invalid. For example, `trigger` is a fraction, and the model has
            no profile. `PolicyError` is a `ValueError`. If you set an invalid attribute later, the
            next step raises the error.
        AttributeError: you set an attribute that is not a parameter.
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

    if TYPE_CHECKING:  # the settings, which are attributes

        def __getattr__(self, name: str) -> Any: ...

    @takes(SummarizationSettings)
    def __init__(self, settings: SummarizationSettings, **deprecated_kwargs: Any) -> None:
        self._build(settings, deprecated_kwargs)

    def _build(self, settings: SummarizationSettings, old: Mapping[str, Any]) -> None:
        """Check the settings, build what they describe, and warn of settings without effect.

        `old` are arguments under LangChain's old names.
        """
        renamed = read_deprecated(old, NAMES, stacklevel=STACKLEVEL + 1)
        trigger = renamed.get("trigger") if settings.trigger is None else settings.trigger
        keep = renamed.get("keep", settings.keep) if settings.keep == KEEP else settings.keep
        model = model_of(settings.model, settings.summarizer)
        settings = replace(
            settings,
            model=None if names_embedded(settings.model) else model,
            trigger=deepcopy(trigger),
            keep=keep,
            summary_prompt=settings.summary_prompt or DEFAULT_SUMMARY_PROMPT,
        )
        self._name = settings.name or type(self).__name__
        vars(self).update({name: getattr(settings, name) for name in NAMES})
        self._make_unshared(settings)
        of_subclass = {*dir(type(self))} - {*dir(SummarizationMiddleware)}
        for caveat in self._setup.caveats(of_subclass):
            warnings.warn(caveat, UserWarning, stacklevel=STACKLEVEL)

    def _make_unshared(self, settings: SummarizationSettings) -> None:
        """Make what copies do not share: the archive of an address, and the tools."""
        self._address = settings.archive
        self._made = Setup(settings, self._location)
        self._has_changed = False
        archive = self._made.engine.archive
        self._opened = archive if isinstance(settings.archive, (str, Path)) else None
        tools = [tool_to_compact()] if settings.compact_tool else []
        if settings.recall != "off":
            tools = [recall_tool(lambda: self._setup, 2 * settings.recall_tokens), *tools]
        vars(self).update(archive=archive, tools=tools, _is_built=True)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in NAMES:
            vars(self)["_has_changed"] = True

    @property
    def token_counter(self) -> TokenCounter:
        """The function that counts the tokens of a list of messages for the trigger."""
        counter = vars(self)["token_counter"]
        if callable(counter) and counter is not count_tokens_approximately:
            return cast("TokenCounter", counter)
        return cast("TokenCounter", self._setup.counting.count)

    @token_counter.setter
    def token_counter(self, value: TokenCounter | str) -> None:
        vars(self)["token_counter"] = value

    @property
    def _setup(self) -> Setup:
        """The setup for the settings as they are now."""
        if not self._has_changed:
            return self._made
        built = self._made.settings
        settings = self._settings()
        for name in FIXED:
            built_value = getattr(built, name)
            value = getattr(settings, name)
            if value is not built_value and value != built_value:
                vars(self)[name] = built_value
                raise PolicyError(f"{name} cannot change later; build middleware and agent anew")
        setup = Setup(settings, self._location)
        if settings.background is built.background:
            engine = replace(setup.engine, preparations=self._made.engine.preparations)
            setup = setup.with_engine(engine)
        self._made = setup
        self._has_changed = False
        return setup

    def _settings(self) -> SummarizationSettings:
        """Return the settings, read from the attributes."""
        return SummarizationSettings(**{name: vars(self)[name] for name in NAMES})

    @property
    def _preparations(self) -> Preparations | None:  # type: ignore[override]
        return self._made.engine.preparations

    def __getstate__(self) -> dict[str, Any]:
        built = ("_made", "_has_changed", "_address", "_opened", "tools")
        state = {name: value for name, value in vars(self).items() if name not in built}
        return {**state, "archive": self._address}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._make_unshared(self._settings())

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copy = type(self).__new__(type(self))
        memo[id(self)] = copy
        # The copy shares the archive; the middleware that opened it closes it.
        shared = [part for part in (self.archive, self.telemetry) if part is not None]
        memo.update((id(part), part) for part in shared)
        copy.__setstate__(deepcopy({**self.__getstate__(), "archive": self.archive}, memo))
        return copy

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Compact the history if a trigger is set, and it is reached or the window is full."""
        step = AgentStep.of(self._setup, state, runtime)
        return None if self._is_quiet(step) else run(self._take_step(step))

    async def abefore_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """`before_model` on an event loop."""
        step = AgentStep.of(self._setup, state, runtime)
        return None if self._is_quiet(step) else await arun(self._take_step(step))

    def _take_step(
        self, step: AgentStep, requested: RequestedCompaction | None = None
    ) -> Awaitable[Update | None]:
        return heard_by(
            step.setup.engine.listeners, self._take_step_with_additions(step, requested)
        )

    async def _take_step_with_additions(
        self, step: AgentStep, requested: RequestedCompaction | None
    ) -> Update | None:
        """Take a step; add originals recalled for the turn, and copies for readers of files."""
        step, update = await compact_step(step, requested)
        additions = await self._write_copies(step)
        if self.recall == "auto" and requested is None:
            if update and "messages" in update:
                _removal, *messages = update["messages"]
                step = replace(step, messages=messages)
            additions |= await recall_for_turn(step)
        return {**(update or {}), **additions} if additions else update

    def compact(
        self, state: Any, runtime: Any, *, focus: str | None = None
    ) -> dict[str, Any] | None:
        """Compact now, also if the trigger is not reached.

        Call it in a node or a tool that has the state and the runtime. From outside of the graph,
        call `agent.update_state(config, middleware.request_compaction())`; then the next step
        compacts.

        Args:
            state: the state of the graph. A dict with `messages` is enough.
            runtime: the runtime of the run. `Runtime()` is enough.
            focus: a subject, in plain words, that a model's summary must keep.

        Returns:
            An update of the state; None if no message may be evicted or the compaction failed.

        Raises:
            MessageError: a message has an unknown form.
            SummaryError: every summariser failed, and `on_failure` is `"raise"`.
        """
        requested = RequestedCompaction(focus=check_text(focus, "focus"))
        return run(self._take_step(AgentStep.of(self._setup, state, runtime), requested))

    async def acompact(
        self, state: Any, runtime: Any, *, focus: str | None = None
    ) -> dict[str, Any] | None:
        """`compact` on an event loop."""
        requested = RequestedCompaction(focus=check_text(focus, "focus"))
        return await arun(self._take_step(AgentStep.of(self._setup, state, runtime), requested))

    @staticmethod
    def request_compaction(focus: str | None = None) -> dict[str, Any]:
        """Return an update of the state, after which the next step compacts.

        Args:
            focus: a subject, in plain words, that a model's summary must keep. Only its first 2,000
                characters are used.

        Example:
            `agent.update_state(config, SummarizationMiddleware.request_compaction("the schema"))`
        """
        return RequestedCompaction.of(focus)

    @staticmethod
    def request_undo(to: str | None = None) -> dict[str, Any]:
        """Return an update of the state, after which the next step takes a compaction back.

        That step shows the model the history as it was before the compaction. A later step may
        compact again, if the trigger is reached. If a compaction is requested, too, it follows in
        the same step: `request_undo() | request_compaction("the schema")`.

        If the undo fails, for example because the originals have expired, the history stays as it
        is, and the log says why. With `on_failure="raise"` the step raises the error.

        Args:
            to: the id of the record that is to be in force; all records after it are taken back.
                With the id of a record that was taken back, it is in force again. `""` or
                `"start"`: none is to be in force. Default: the record before the newest.

        Example:
            `agent.update_state(config, SummarizationMiddleware.request_undo())`
        """
        return RequestedUndo(to=to).as_update()

    async def _call_model(self, request: ModelRequest[Any], handler: Handler) -> Any:
        setup = self._setup
        if GUARDED.get():
            setup.say_once(GUARD_IS_FIRST)
        setup.engine.tools.learn(request.tools)
        step = AgentStep.of(setup, request.state, request.runtime)
        if step.held.head_id:
            request = with_message_objects(request)
        if not self._shows_all(step, request):
            step, request = await self._request_in_view(step, request)
        return await send(step, request, request.messages, handler)

    def _shows_all(self, step: AgentStep, request: ModelRequest[Any]) -> bool:
        """Tell whether a request can be sent as it is: no record changes what it shows."""
        return step.shows_all()

    async def _request_in_view(
        self, step: AgentStep, request: ModelRequest[Any]
    ) -> tuple[AgentStep, ModelRequest[Any]]:
        """Return a request that shows the view, and the step with the record it is made by."""
        if step.held.head_id:  # a run may begin here, in another process
            name_messages(step.messages)
        # The state may have changed after `before_model`.
        step = await step.bring_archive_along(turn=False)
        messages: Sequence[BaseMessage] = request.messages
        if step.preserve and step.held.head_id:
            step, messages = await step.view_with_changes(messages)
        if self.recall == "auto":
            messages = await add_recalled_for_turn(step, messages)
        if messages is not request.messages:
            request = request.override(messages=cast("list[AnyMessage]", messages))
        return step, request

    def _location(self, scope: Scope) -> str:
        """Return what a clip says of the place of its original, if no archive has it."""
        return KEPT

    def _is_quiet(self, step: AgentStep) -> bool:
        """Tell whether a step has nothing to do."""
        return is_quiet(step)

    async def _write_copies(self, step: AgentStep) -> dict[str, Any]:
        """Write copies of originals that a subclass offers; return an update of the state."""
        return {}
