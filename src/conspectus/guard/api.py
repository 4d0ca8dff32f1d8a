"""`ContextGuard`: stands last, sees what is really sent, and makes it fit."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Literal, Protocol, cast, runtime_checkable

from langchain.agents.middleware.internal_call_transformer import InternalCallTransformer
from langchain.agents.middleware.types import (
    AgentMiddleware,
    ModelCallResult,
    ModelRequest,
    ModelResponse,
)
from langchain_core.messages import BaseMessage

from conspectus._core.flow import OnFailure
from conspectus._core.items import Size, Window
from conspectus._core.policy import Policy
from conspectus._drive import Flow, Io, arun, run
from conspectus.archive.redactor import Redact
from conspectus.compactor.agent_state import (
    CompactionState,
    Tenant,
    read_held,
    read_requested,
    scope_of,
)
from conspectus.compactor.engine import (
    AnyArchive,
    AnyListeners,
    AnySummarizer,
    Engine,
    Pin,
    window_of,
)
from conspectus.compactor.graph_engine import GraphEngine
from conspectus.compactor.naming import name_messages
from conspectus.compactor.observed import whose_of
from conspectus.compactor.result import CompactionResult
from conspectus.compactor.tools import OnEvent
from conspectus.compactor.views import laid_over
from conspectus.errors import ArchiveError, PolicyError, StuckError
from conspectus.events import Whose, heard_by, listening
from conspectus.events.notes import noted
from conspectus.guard.call import Call, answered, kept_whole
from conspectus.guard.measuring import Measured, Measuring
from conspectus.guard.observed import fitting, tell_sent
from conspectus.guard.overflow import read_overflow
from conspectus.summarize.provider_errors import is_overflow
from conspectus.tokens import TokenCounter, TokenMeter

logger = logging.getLogger("conspectus")

RESCUE = 0.8
"""Share of what was too much that messages may take when they are sent again: the provider counts
in another way than the estimate, or they would not have been sent."""

LEARNED = 0.9
"""Share of what was too much that they may grow to again."""

_INSIDE: ContextVar[bool] = ContextVar("inside a guard", default=False)
"""Of two guards around one call, the outer one alone tells the state of it."""

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
        window: input limit of the model, in tokens. Default: the one that `summarization` was
            given, for its own model; else that of the profile of the model that is called.
        reserved_tokens: tokens left for the answer. Default: the model's own limit of its output,
            where it has one, and at most half of the window.
        on_stuck: where nothing can make it fit: `"raise"` a `StuckError` with the numbers, or
            `"send"` it all the same.
        summarizer, archive, keep, token_counter, tenant, pin, on_failure, on_event, telemetry,
            redact: as for `SummarizationMiddleware`, without which they are used.
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
        redact: Redact = None,
        telemetry: AnyListeners = None,
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
        if summarization is not None and redact is not None:
            raise PolicyError(
                "redact is for a guard that stands alone; pass it to the SummarizationMiddleware, "
                "whose settings are used"
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
                redact=redact,
                telemetry=telemetry,
            )
            self._own = GraphEngine(engine, tenant)
        self._summarization, self._on_stuck, self._name = summarization, on_stuck, name
        self._window, self._reserved = window, reserved_tokens
        self._measured_with = self._graph, self._measuring_with(self._graph)

    @property
    def _graph(self) -> GraphEngine:
        """What compactions work with: the middleware's, whose settings may change."""
        return self._own if self._summarization is None else self._summarization.graph_engine

    @property
    def _measuring(self) -> Measuring:
        graph, (known, measuring) = self._graph, self._measured_with
        if graph is not known:
            measuring = self._measuring_with(graph)
            self._measured_with = graph, measuring
        return measuring

    def _measuring_with(self, graph: GraphEngine) -> Measuring:
        return Measuring(graph.engine.tools.meter, self._window, self._reserved, graph)

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
        return run(self._heard(request, lambda fitted: Io(lambda: handler(fitted))))

    async def awrap_model_call(
        self, request: Request, handler: Callable[[Request], Awaitable[ModelResponse[Any]]]
    ) -> ModelCallResult[Any]:
        """`wrap_model_call` on an event loop."""
        send: Send = lambda fitted: Io(lambda: None, lambda: handler(fitted))  # noqa: E731
        return await arun(self._heard(request, send))

    def _heard(self, request: Request, send: Send) -> Flow[ModelCallResult[Any]]:
        return heard_by(self._graph.engine.tools.listeners, self._guarded(request, send))

    def _guarded(self, request: Request, send: Send) -> Flow[ModelCallResult[Any]]:
        channel, runtime = request.state["messages"], request.runtime
        held = read_held(request.state, runtime, channel)
        if held.data is not None:
            name_messages(channel)
        before = read_requested(request.state)
        call = Call.of(request, held)
        if held.pending:
            # The channel still holds what a record covers: a call before this one was rescued.
            view = yield from self._graph.shown(held, channel, call.request.messages, runtime)
            call = call.showing(view)
        measured = self._measuring.measure(call.request, held, before, call.recalled)
        if measured.over:
            call = yield from self._fit(call, measured, measured.room)
        inside = _INSIDE.get()
        _INSIDE.set(True)
        try:
            if not inside:
                self._tell_sent(call, measured)
            response = yield send(call.sent)
        except Exception as error:
            if not is_overflow(error):
                raise
            call, measured = yield from self._rescued(call, measured, error)
            if not inside:
                self._tell_sent(call, measured)
            response = yield send(call.sent)
        finally:
            _INSIDE.set(inside)
        if inside:
            return cast("ModelCallResult[Any]", response)
        return answered(response, call, before, measured.requested)

    def _fitted(self, call: Call, measured: Measured, room: Window | None) -> Flow[Call]:
        """The call with a request that fits the room.

        What was recalled is no part of the history: it is neither archived nor summarised. It goes
        where a compaction alone does not help, and before the user's own words are shown short.
        """
        fitted, stuck = yield from self._tried(call, measured, room)
        if call.recalled is not None and (stuck is not None or not kept_whole(call, fitted)):
            logger.info(
                "what was recalled for this turn is left out: there is no room for it",
                extra=noted("recall_left_out"),
            )
            call = call.alone()
            measured = replace(measured, messages=measured.messages - measured.recalled, recalled=0)
            if room is not None and measured.messages <= room.budget:
                return call
            fitted, stuck = yield from self._tried(call, measured, room)
        if stuck is not None and room is not None:
            self._stuck(stuck, measured, room)
        return fitted

    def _tried(
        self, call: Call, measured: Measured, room: Window | None
    ) -> Flow[tuple[Call, CompactionResult | None]]:
        """The call as far as a compaction makes it fit, and what it was stuck with if it does not.

        The history in the state is compacted, and what other middleware has changed of it on the
        way is laid over the result: so the state can hold what was done, and it is done once. What
        others have added is not in the state; if that is too much, it is made to fit for this call.
        """
        rest = room and replace(room, reserved=room.reserved + measured.recalled)
        try:
            own = yield from self._graph.now(call.held, call.channel, call.runtime)
            sent: Sequence[BaseMessage] = call.request.messages
            added = measured.messages - self._measuring.size(own, measured.ratio)
            tight = room and replace(room, reserved=room.reserved + max(0, added))
            result = yield from self._compacted(call, tight, measured, call.channel)
            if result.record is not None:
                held = call.held.with_record(result.record, self._after(result), pending=True)
                call = replace(call, held=held)
                sent = laid_over(result.messages, own, sent)
                call = call.showing(sent)
            if rest is None or self._measuring.size(sent, measured.ratio) <= rest.budget:
                return call, None
            result = yield from self._compacted(call, rest, measured, sent)
        except ArchiveError as error:
            trouble = yield from self._graph.told(error)
            bridged = yield from self._bridged(call, measured, rest, trouble)
            if bridged is None:
                raise
            return bridged, None
        if result.outcome == "stuck" and result.failed == "archive":
            bridged = yield from self._bridged(call, measured, rest, result.reason)
            if bridged is not None:
                return bridged, None
        # The records in force may be all that it takes: then there is no new one.
        if result.record is not None or [*map(id, result.messages)] != [*map(id, sent)]:
            call = call.showing(result.messages)
        return call, result if result.outcome == "stuck" else None

    def _bridged(
        self, call: Call, measured: Measured, room: Window | None, trouble: str
    ) -> Flow[Call | None]:
        """While the archive cannot be reached: a request that fits, for this once.

        Nothing is put in force, so nothing leaves the history that the archive has not confirmed.
        None where that is not wanted, or does not help.
        """
        session = self._graph.passing_session(call.held, call.runtime, room, measured.ratio)
        if session is None:
            return None
        result = yield from session.compact(call.request.messages, False, "")
        if result.outcome == "stuck":
            return None
        logger.warning(
            "this one request was made to fit without the archive, nothing else changed: %s",
            trouble,
            extra=noted("request_bridged"),
        )
        return call.showing(result.messages)

    def _compacted(
        self,
        call: Call,
        room: Window | None,
        measured: Measured,
        messages: Sequence[BaseMessage],
    ) -> Flow[CompactionResult]:
        session = self._graph.session(
            call.held, call.runtime, room, ratio=measured.ratio, preview=True
        )
        result = yield from session.compact(messages, False, "")
        self._graph.tell_failures(result)
        return result

    # What is told of it

    def _fit(
        self, call: Call, measured: Measured, room: Window | None, rescue: bool = False
    ) -> Flow[Call]:
        steps = self._fitted(call, measured, room)
        if not listening():
            return steps
        return fitting(
            steps,
            lambda fitted: self._size(fitted, measured),
            self._whose(call),
            measured,
            room,
            rescue,
        )

    def _tell_sent(self, call: Call, measured: Measured) -> None:
        tell_sent(lambda: self._size(call, measured), lambda: self._whose(call), measured)

    def _size(self, call: Call, measured: Measured) -> int:
        return self._measuring.size(call.sent.messages, measured.ratio)

    def _whose(self, call: Call) -> Whose:
        return whose_of(scope_of(call.held, self._graph.tenant, call.runtime))

    def _stuck(self, result: CompactionResult, measured: Measured, room: Window) -> None:
        overhead = measured.requested.overhead
        if self._on_stuck == "send":
            logger.warning(
                "sent although it does not fit: %s", result.reason, extra=noted("sent_too_large")
            )
            return
        raise StuckError(
            f"{result.reason} (system prompt and tools take {overhead:,}; fewer tools help too)",
            needed=(result.needed or result.tokens_after) + overhead,
            budget=room.limit,
        )

    def _after(self, result: CompactionResult) -> Size:
        count = self._graph.sizes
        tokens = result.tokens_after if count is None else sum(map(count, result.messages))
        return Size(tokens, len(result.messages))

    def _rescued(
        self, call: Call, measured: Measured, error: Exception
    ) -> Flow[tuple[Call, Measured]]:
        """A smaller request, after the provider has refused this one as too long."""
        told = read_overflow(error)
        seen, messages = measured.requested, measured.messages
        budget = messages
        if told.limit is not None:
            # The provider's tokens are not the estimate's: its limit in ours.
            whole = messages + seen.overhead
            limit = told.limit * whole // max(told.sent or told.limit, 1)
            budget = min(messages, limit - seen.overhead)
        # Where the tools alone seem to be too much, the estimate of them is not to be trusted.
        budget = int(budget * RESCUE) if budget > 0 else messages // 2
        said = yield from self._graph.told(error)
        logger.warning(
            "the request was too long (%s): compacting, and sending it again",
            said,
            extra=noted("request_rescued"),
        )
        room = Window(budget + seen.overhead, seen.overhead)
        try:
            fitted = yield from self._fit(call, measured, room, rescue=True)
        except StuckError as stuck:
            why = f"the provider refused the request as too long ({said}), and smaller it cannot be"
            raise StuckError(f"{why}: {stuck}", needed=stuck.needed, budget=stuck.budget) from error
        if fitted.request is call.request and fitted.recalled is call.recalled:
            raise error
        most = int(messages * LEARNED) if told.limit is None else int(budget / RESCUE * LEARNED)
        learned = seen.having_learned(seen.overhead + max(budget, most))
        return fitted, replace(measured, requested=learned)
