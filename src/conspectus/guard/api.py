"""`ContextGuard`: stands last, sees what is really sent, and makes it fit."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, cast, runtime_checkable

from langchain.agents.middleware.internal_call_transformer import InternalCallTransformer
from langchain.agents.middleware.types import (
    AgentMiddleware,
    ExtendedModelResponse,
    ModelCallResult,
    ModelRequest,
    ModelResponse,
)
from langchain_core.messages import AnyMessage, BaseMessage
from langgraph.types import Command

from conspectus._core.flow import OnFailure
from conspectus._core.items import Size, Window
from conspectus._core.policy import Policy
from conspectus._drive import Flow, Io, arun, run
from conspectus.compactor.agent_state import (
    HELD,
    REQUEST,
    CompactionState,
    Held,
    Requested,
    Tenant,
    read_held,
    read_requested,
)
from conspectus.compactor.engine import AnyArchive, AnySummarizer, Engine, Pin, window_of
from conspectus.compactor.graph_engine import GraphEngine
from conspectus.compactor.result import CompactionResult
from conspectus.compactor.work import OnEvent
from conspectus.errors import ArchiveError, PolicyError, StuckError
from conspectus.guard.measuring import Measured, Measuring, model_name
from conspectus.guard.overflow import read_overflow
from conspectus.summarize.provider_errors import is_overflow
from conspectus.tokens import TokenCounter, TokenMeter

logger = logging.getLogger("conspectus")

RESCUE = 0.8
"""Share of what was too much that a request may take when it is sent again: the provider counts
in another way than the estimate, or it would not have been sent."""

Request = ModelRequest[Any]
Send = Callable[[Request], Io]
OnStuck = Literal["raise", "send"]


@runtime_checkable
class HasGraphEngine(Protocol):
    """A `SummarizationMiddleware`: what it compacts with, the guard compacts with."""

    graph_engine: GraphEngine


class ContextGuard(AgentMiddleware[CompactionState, Any, Any]):
    """Measures the request that is really sent, makes it fit, and rescues a call that overflowed.

    Put it last in the list of middleware: what stands after it would change the request unseen. It
    leaves the size of system prompt, tools and output where the next plan of
    `SummarizationMiddleware` finds it. A request that does not fit its window is compacted at
    once; so is one that the provider refused as too long, and that is sent again, once. What was
    summarised here is in the state, and is not paid for again.

    Args:
        summarization: the `SummarizationMiddleware` of the same agent, whose summariser, archive
            and settings are used. Default: the embedded summariser, and the settings below.
        window: input limit of the model, in tokens. Default: that of the profile of the model
            that is called, which other middleware may have changed.
        reserved_tokens: tokens left for the answer. Default: the model's own limit of its output,
            where it has one, and at most half of the window.
        on_stuck: where nothing can make it fit: `"raise"` a `StuckError` with the numbers, or
            `"send"` it all the same.
        summarizer, archive, keep, token_counter, tenant, pin, on_failure, on_event: as for
            `SummarizationMiddleware`, without which they are used.
        name: of this instance.

    Raises:
        PolicyError: a setting that cannot mean anything.

    Example:
        >>> from conspectus.middleware import SummarizationMiddleware
        >>> summarization = SummarizationMiddleware(None, trigger=("tokens", 4_000))
        >>> middleware = [summarization, ContextGuard(summarization, window=8_000)]
    """

    state_schema = CompactionState
    transformers = (InternalCallTransformer,)

    def __init__(
        self,
        summarization: HasGraphEngine | None = None,
        *,
        window: int | None = None,
        reserved_tokens: int | None = None,
        on_stuck: OnStuck = "raise",
        summarizer: AnySummarizer | None = None,
        archive: AnyArchive | None = None,
        keep: Any = ("messages", 20),
        token_counter: TokenCounter | str | None = None,
        tenant: Tenant = None,
        pin: Pin | None = None,
        on_failure: OnFailure = "degrade",
        on_event: OnEvent | None = None,
        name: str = "ContextGuard",
    ) -> None:
        super().__init__()
        window_of(window, reserved_tokens or 0)
        if on_stuck not in ("raise", "send"):
            raise PolicyError(f'on_stuck must be "raise" or "send", not {on_stuck!r}')
        if summarization is not None and not isinstance(summarization, HasGraphEngine):
            raise PolicyError(
                "summarization must be a conspectus SummarizationMiddleware, not "
                f"{type(summarization).__name__}; leave it out to guard an agent without one"
            )
        if summarization is None:
            engine = Engine.build(
                summarizer,
                Policy.build(keep=keep),
                TokenMeter(token_counter),
                archive=archive,
                pin=pin,
                on_failure=on_failure,
                on_event=on_event,
            )
            graph = GraphEngine(engine, tenant)
        else:
            graph = summarization.graph_engine
        self._graph, self._on_stuck, self._name = graph, on_stuck, name
        self._measuring = Measuring(graph.engine.tools.meter, window, reserved_tokens)

    @property
    def name(self) -> str:
        """The name of this instance; no two in one agent may have the same."""
        return self._name

    def wrap_model_call(
        self, request: Request, handler: Callable[[Request], ModelResponse[Any]]
    ) -> ModelCallResult[Any]:
        """Send a request that fits.

        Raises:
            StuckError: nothing makes it fit, and `on_stuck` is `"raise"`.
        """
        return run(self._guarded(request, lambda fitted: Io(lambda: handler(fitted))))

    async def awrap_model_call(
        self, request: Request, handler: Callable[[Request], Awaitable[ModelResponse[Any]]]
    ) -> ModelCallResult[Any]:
        """`wrap_model_call` on an event loop."""
        send: Send = lambda fitted: Io(lambda: None, lambda: handler(fitted))  # noqa: E731
        return await arun(self._guarded(request, send))

    def _guarded(self, request: Request, send: Send) -> Flow[ModelCallResult[Any]]:
        channel = request.state["messages"]
        held = read_held(request.state, request.runtime, channel)
        before = read_requested(request.state)
        call = _Call(request, held, held)
        if held.pending:
            # The channel still holds what a record covers: a call before this one was rescued.
            view = yield from self._graph.shown(held, channel, request.messages, request.runtime)
            call = call.showing(view)
        if held.data is not None:
            call = replace(call, view=self._graph.views.find(held, channel) or ())
        measured = self._measuring.measure(call.request, held, before)
        if measured.over:
            call = yield from self._fitted(call, measured, measured.room)
        try:
            response = yield send(call.request)
        except Exception as error:
            if not is_overflow(error):
                raise
            call, measured = yield from self._rescued(call, measured, error)
            response = yield send(call.request)
        return _answered(response, call, before, measured.requested)

    def _fitted(self, call: _Call, measured: Measured, room: Window | None) -> Flow[_Call]:
        """The call with a request that fits the room."""
        request = call.request
        session = self._graph.session(
            call.held, request.runtime, room, ratio=measured.ratio, preview=True
        )
        try:
            result = yield from session.compact(request.messages, False, "")
            trouble = result.reason if result.failed == "archive" else ""
        except ArchiveError as error:
            if self._graph.engine.tools.on_failure == "raise":
                raise
            result, trouble = None, str(error)
        if result is None or (trouble and result.outcome == "stuck"):
            passing = yield from self._passing(call, measured, room)
            if passing is not None and passing.outcome != "stuck":
                logger.warning(
                    "this one request was made to fit without the archive, and nothing else was "
                    "changed: %s",
                    trouble,
                )
                return call.showing(passing.messages)
            if result is None:
                raise StuckError(
                    f"the archive failed, and the request does not fit without it: {trouble}",
                    needed=measured.messages + measured.requested.overhead,
                    budget=room.limit if room else 0,
                )
        if result.outcome == "stuck":
            if self._on_stuck == "raise":
                needed = (result.needed or result.tokens_after) + measured.requested.overhead
                raise StuckError(
                    f"{result.reason} ({measured.requested.overhead:,} tokens are taken by the "
                    "system prompt and the tools)",
                    needed=needed,
                    budget=room.limit if room else 0,
                )
            logger.warning("sent although it does not fit: %s", result.reason)
        return call.compacted(result, self._counted(result))

    def _passing(
        self, call: _Call, measured: Measured, room: Window | None
    ) -> Flow[CompactionResult | None]:
        """The request made to fit without the archive, for this once; None where it may not be."""
        request = call.request
        session = self._graph.passing_session(call.held, request.runtime, room, measured.ratio)
        if session is None:
            return None
        return (yield from session.compact(request.messages, False, ""))

    def _counted(self, result: CompactionResult) -> int:
        sizes = self._graph.sizes
        return result.tokens_after if sizes is None else sum(map(sizes, result.messages))

    def _rescued(
        self, call: _Call, measured: Measured, error: Exception
    ) -> Flow[tuple[_Call, Measured]]:
        """A smaller request, after the provider has refused this one as too long."""
        told = read_overflow(error)
        seen = measured.requested
        whole = measured.messages + seen.overhead
        limit = whole
        if told.limit is not None:
            # The provider's tokens are not the estimate's: its limit in ours.
            limit = min(whole, told.limit * whole // max(told.sent or told.limit, 1))
        limit = max(1, int(limit * RESCUE))
        logger.warning("the request was too long (%s): compacting, and sending it again", error)
        try:
            fitted = yield from self._fitted(call, measured, Window(limit, seen.overhead))
        except StuckError as stuck:
            raise stuck from error
        if fitted.request is call.request:
            raise error
        learned = replace(seen, model=model_name(call.request.model), learned=limit)
        return fitted, replace(measured, requested=learned)


@dataclass(frozen=True, slots=True)
class _Call:
    """One call on its way: the request as it stands, and what the state will hold.

    Attributes:
        request: as it would be sent now.
        held: what the state will hold of us.
        first: what it held before the call.
        view: messages that we have made of the channel's, clips among them.
    """

    request: Request
    held: Held
    first: Held
    view: Sequence[BaseMessage] = ()

    def showing(self, view: list[BaseMessage]) -> _Call:
        return replace(self, request=self.request.override(messages=cast("list[AnyMessage]", view)))

    def compacted(self, result: CompactionResult, tokens: int) -> _Call:
        if result.record is None:
            return self
        call = replace(self.showing(result.messages), view=result.messages)
        own = {id(message) for message in (*self.request.state["messages"], *self.view)}
        if not all(id(m) in own for m in self.request.messages if not _summary(m)):
            return call  # other middleware has changed what is sent: the state knows nothing of it
        after = Size(tokens, len(result.messages))
        return replace(call, held=self.held.with_record(result.record, after, pending=True))


def _summary(message: BaseMessage) -> bool:
    return message.additional_kwargs.get("lc_source") == "summarization"


def _answered(
    response: Any, call: _Call, before: Requested, seen: Requested
) -> ModelCallResult[Any]:
    """The response, with what the state has to learn of it."""
    update: dict[str, Any] = {}
    if call.held is not call.first:
        update[HELD] = call.held.to_json()
    if seen != before:
        update[REQUEST] = seen.to_json()
    if not update:
        return cast("ModelCallResult[Any]", response)
    if isinstance(response, BaseMessage):
        response = ModelResponse(result=[response])
    return ExtendedModelResponse(model_response=response, command=Command(update=update))
