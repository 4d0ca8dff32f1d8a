"""`ContextGuard`: stands last, sees what is really sent, and makes it fit."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
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
    RECALLED,
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
from conspectus.compactor.turn_state import Recalled, read_recalled, turn_of
from conspectus.compactor.work import OnEvent
from conspectus.errors import PolicyError, StuckError
from conspectus.guard.measuring import Measured, Measuring, model_name
from conspectus.guard.overflow import read_overflow
from conspectus.messages.recalled import newest_user, with_recalled, without_recalled
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
        held = read_held(request.state, request.runtime, request.messages)
        before = read_requested(request.state)
        call = _Call.of(request, held)
        if held.pending:
            # The channel still holds what a record covers: a call before this one was rescued.
            view = yield from self._graph.view(held, call.request.messages, request.runtime)
            call = call.showing(view)
        measured = self._measuring.measure(call.request, held, before, call.recalled)
        if measured.over:
            call = yield from self._fitted(call, measured, measured.room)
        try:
            response = yield send(call.sent)
        except Exception as error:
            if not is_overflow(error):
                raise
            call, measured = yield from self._rescued(call, measured, error)
            response = yield send(call.sent)
        return _answered(response, call, before, measured.requested)

    def _fitted(self, call: _Call, measured: Measured, room: Window | None) -> Flow[_Call]:
        """The call with a request that fits the room.

        What was recalled is no part of the history: it is not archived and not summarised, and it
        is the first to go when a compaction alone does not help.
        """
        result = yield from self._compacted(call, measured, room, measured.recalled)
        if call.recalled is not None and not _helped(result, call.request):
            logger.info("what was recalled for this turn is left out: there is no room for it")
            call = call.alone()
            if room is not None and measured.history <= room.budget:
                return call
            result = yield from self._compacted(call, measured, room, 0)
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

    def _compacted(
        self, call: _Call, measured: Measured, room: Window | None, recalled: int
    ) -> Flow[CompactionResult]:
        """The history brought to what the room has beside what was recalled, in tokens."""
        if room is not None:
            room = replace(room, reserved=room.reserved + recalled)
        session = self._graph.session(
            call.held, call.request.runtime, room, ratio=measured.ratio, preview=True
        )
        return (yield from session.compact(call.request.messages, False, ""))

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
        if fitted.request is call.request and fitted.recalled is call.recalled:
            raise error
        learned = replace(seen, model=model_name(call.request.model), learned=limit)
        return fitted, replace(measured, requested=learned)


@dataclass(frozen=True, slots=True)
class _Call:
    """One call on its way: the request as it stands, and what the state will hold.

    Attributes:
        request: without what was recalled.
        recalled: the message that shows it; None for nothing.
        dropped: it was left out for lack of room, and stays so for the rest of the turn.
    """

    request: Request
    held: Held
    first: Held
    recalled: BaseMessage | None = None
    dropped: bool = False

    @classmethod
    def of(cls, request: Request, held: Held) -> _Call:
        own, recalled = without_recalled(request.messages, request.state["messages"])
        call = cls(request, held, held, recalled)
        return call if recalled is None else call.showing(own)

    @property
    def sent(self) -> Request:
        """The request with what was recalled."""
        if self.recalled is None:
            return self.request
        return self._with(with_recalled(self.request.messages, self.recalled))

    def alone(self) -> _Call:
        """This without what was recalled."""
        return replace(self, recalled=None, dropped=True)

    def showing(self, view: list[BaseMessage]) -> _Call:
        return replace(self, request=self._with(view))

    def _with(self, messages: list[BaseMessage]) -> Request:
        return self.request.override(messages=cast("list[AnyMessage]", messages))

    def compacted(self, result: CompactionResult, tokens: int) -> _Call:
        if result.record is None:
            return self
        call = self.showing(result.messages)
        channel = {id(message) for message in self.request.state["messages"]}
        own = all(id(m) in channel for m in self.request.messages if not _summary(m))
        if not own:
            return call  # other middleware has changed what is sent: the state knows nothing of it
        after = Size(tokens, len(result.messages))
        return replace(call, held=self.held.with_record(result.record, after, pending=True))


def _helped(result: CompactionResult, request: Request) -> bool:
    """Whether it fits now, and what the user has just said was not shown short for that."""
    before, after = newest_user(request.messages), newest_user(result.messages)
    if result.outcome == "stuck" or before is None or after is None:
        return result.outcome != "stuck"
    return result.messages[after] is request.messages[before]


def _summary(message: BaseMessage) -> bool:
    return message.additional_kwargs.get("lc_source") == "summarization"


def _answered(
    response: Any, call: _Call, before: Requested, seen: Requested
) -> ModelCallResult[Any]:
    """The response, with what the state has to learn of it."""
    update: dict[str, Any] = {}
    if call.held is not call.first:
        update[HELD] = call.held.to_json()
    if call.dropped:
        state = call.request.state
        turn = turn_of(state["messages"], read_recalled(state))
        update[RECALLED] = Recalled(turn).to_json()
    if seen != before:
        update[REQUEST] = seen.to_json()
    if not update:
        return cast("ModelCallResult[Any]", response)
    if isinstance(response, BaseMessage):
        response = ModelResponse(result=[response])
    return ExtendedModelResponse(model_response=response, command=Command(update=update))
