"""Make the real request fit, in the last middleware."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import replace
from typing import Any, Literal, NoReturn, Protocol, Self, cast, runtime_checkable

from langchain.agents.middleware.internal_call_transformer import InternalCallTransformer
from langchain.agents.middleware.types import (
    AgentMiddleware,
    ContextT,
    ModelCallResult,
    ModelRequest,
    ModelResponse,
    ResponseT,
    TracePolicy,
    omit_payload,
)
from langchain_core.messages import AnyMessage, BaseMessage

from conspectus.bridge import arun, io, run
from conspectus.core.items import Window
from conspectus.core.policy import OnFailure, Policy
from conspectus.engine.engine import OnEvent
from conspectus.engine.result import CompactionResult
from conspectus.engine.settings import (
    AnyArchive,
    AnyListeners,
    AnySummarizer,
    EngineSettings,
    Pin,
    window_of,
)
from conspectus.errors import PolicyError
from conspectus.langchain.channel import Channel
from conspectus.langchain.fitting import GuardedCall, RequestFitter, answered
from conspectus.langchain.graph import GraphEngine, Send, send_thoughtful
from conspectus.langchain.identity import Tenant, name_messages
from conspectus.langchain.measuring import (
    TRIES,
    Measured,
    Measuring,
    Refused,
    StillTooLong,
    read_overflow,
)
from conspectus.langchain.state import CompactionState, read_requested
from conspectus.model.provider_errors import is_overflow
from conspectus.observe import heard_by, log
from conspectus.redaction import Redact
from conspectus.tokens import TokenCounter, TokenMeter

_INSIDE: ContextVar[bool] = ContextVar("inside a guard", default=False)
"""Of two guards around one call, only the outer one updates the state."""

Request = ModelRequest[Any]
OnStuck = Literal["raise", "send"]


@runtime_checkable
class HasGraphEngine(Protocol):
    @property
    def graph_engine(self) -> GraphEngine: ...


class ContextGuard(AgentMiddleware[CompactionState, ContextT, ResponseT]):
    """Measure the request that is really sent, make it fit, and rescue overflows.

    Put it last in the list of middleware: later ones would change the request unseen. It tells the
    next plan of `SummarizationMiddleware` the size of system prompt, tools and output. A request
    that does not fit its window is compacted at once. One that the provider refused as too long is
    sent again, smaller each time, at most five times. The size that was taken is remembered for
    that model. What was summarised here is in the state, and is not paid for again. Without an
    archive large results of tools are shown short for one request only, and stay whole in the
    state.

    Args:
        summarization: the `SummarizationMiddleware` of the same agent, whose summariser, archive
            and settings are used. Default: the embedded summariser, and the settings below.
        window: input limit of the model, in tokens. Default: the one that `summarization` was
            given, for its own model; else that of the profile of the model that is called.
        reserved_tokens: tokens left for the answer. Default: the model's own limit of its output,
            if it has one, and at most half of the window.
        on_stuck: if nothing makes it fit: `"raise"` a `StuckError` with the numbers, or `"send"` it
            all the same.
        summarizer, archive, keep, token_counter, tenant, pin: as for
            `SummarizationMiddleware`; used only without one.
        on_failure, on_event, telemetry, redact: likewise.
        name: of this instance.

    Raises:
        PolicyError: a setting is invalid.

    Example:
        >>> from conspectus.langchain import SummarizationMiddleware
        >>> summarization = SummarizationMiddleware(None, trigger=("tokens", 4_000))
        >>> middleware = [summarization, ContextGuard(summarization, window=8_000)]
    """

    state_schema = CompactionState
    transformers = (InternalCallTransformer,)
    trace_policy = TracePolicy(process_inputs=omit_payload)

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
        given = {key: value for key, value in locals().items() if key not in ("self", "__class__")}
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
        self._begin(given)

    def _begin(self, given: dict[str, Any]) -> None:
        self._given, self._summarization = given, given["summarization"]
        if self._summarization is None:
            meter = TokenMeter(given["token_counter"])
            engine = EngineSettings.of(given).engine(Policy.build(keep=given["keep"]), meter)
            self._own = GraphEngine(engine, given["tenant"])
        self._on_stuck, self._name = given["on_stuck"], str(given["name"])
        self._known: RequestFitter | None = None

    def __getstate__(self) -> dict[str, Any]:
        made = ("_own", "_known", "_summarization")
        return {key: value for key, value in self.__dict__.items() if key not in made}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin(state["_given"])

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        memo[id(self)] = copied = type(self).__new__(type(self))
        shared = (self._graph.engine.archive, self._given["archive"], self._given["telemetry"])
        memo.update((id(one), one) for one in shared if one is not None)
        state = self.__getstate__()
        if self._summarization is None:
            state["_given"] = {**self._given, "archive": self._own.engine.archive}
        copied.__setstate__(deepcopy(state, memo))
        return copied

    @property
    def _graph(self) -> GraphEngine:
        return self._own if self._summarization is None else self._summarization.graph_engine

    @property
    def _fitter(self) -> RequestFitter:
        graph = self._graph
        if self._known is None or self._known.graph is not graph:
            window, reserved = self._given["window"], self._given["reserved_tokens"]
            measuring = Measuring(graph.engine.meter, window, reserved, graph)
            self._known = RequestFitter(graph, measuring)
        return self._known

    @property
    def name(self) -> str:
        """The name of this instance, unique in its agent."""
        return self._name

    def wrap_model_call(
        self, request: Request, handler: Callable[[Request], ModelResponse[Any]]
    ) -> ModelCallResult[Any]:
        """Send a request that fits.

        Raises:
            StuckError: nothing makes it fit, and `on_stuck` is `"raise"`; also LangChain's
                `ContextOverflowError`.
        """
        return run(self._heard(request, lambda fitted: io(lambda: handler(fitted))))

    async def awrap_model_call(
        self, request: Request, handler: Callable[[Request], Awaitable[ModelResponse[Any]]]
    ) -> ModelCallResult[Any]:
        """`wrap_model_call` on an event loop."""
        send: Send = lambda fitted: io(lambda: None, lambda: handler(fitted))  # noqa: E731
        return await arun(self._heard(request, send))

    def _heard(self, request: Request, send: Send) -> Awaitable[ModelCallResult[Any]]:
        return heard_by(self._graph.engine.listeners, self._guarded(request, send))

    async def _guarded(self, request: Request, send: Send) -> ModelCallResult[Any]:
        channel = Channel.of(self._graph, request.state, request.runtime)
        if channel.held.data is not None:
            name_messages(channel.messages)
        before = read_requested(request.state)
        call = GuardedCall.of(request, channel)
        if channel.held.pending:
            # The channel still holds what a record covers: a call before this one was rescued.
            call = call.showing(await channel.shown(call.request.messages))
        measured = self._fitter.measuring.measure(call.request, channel.held, before, call.recalled)
        whole = call
        if measured.over:
            call, stuck = await self._fitter.fit(call, measured, measured.room)
            if stuck is not None and measured.over_window:
                self._stuck(stuck, measured)
            elif stuck is not None and stuck.needed:
                # What was learned is an estimate: where it alone says no, the provider is asked.
                beside = measured.requested.overhead
                least = Window(stuck.needed + beside, beside)
                call, _ = await self._fitter.fit(call, measured, least)
        inside, refused = _INSIDE.get(), Refused()
        _INSIDE.set(True)
        try:
            while True:
                if not inside:
                    self._fitter.tell_sent(call, measured)
                try:
                    sent = call.sent
                    shown = cast("list[AnyMessage]", await call.channel.thoughtful(sent.messages))
                    sent = sent if shown is sent.messages else sent.override(messages=shown)
                    with self._graph.sending(sent):
                        response = await send_thoughtful(sent, send)
                    break
                except Exception as error:
                    if not is_overflow(error):
                        raise
                    call, refused = await self._rescued(whole, call, measured, refused, error)
        finally:
            _INSIDE.set(inside)
        if inside:
            return cast("ModelCallResult[Any]", response)
        written: Mapping[str, Any] | None = None
        if call.held is not call.first and self._graph.written is not None:
            written = await self._graph.written(call.held, request.state, request.runtime)
        seen = refused.learned(measured.requested)
        return answered(response, call, before, seen, written)

    def _stuck(self, result: CompactionResult, measured: Measured) -> None:
        overhead, room = measured.requested.overhead, measured.room
        if self._on_stuck == "send":
            log("sent_too_large", "sent although it does not fit: %s", result.reason)
            return
        raise StillTooLong(
            f"{result.reason} (system prompt and tools take {overhead:,}; fewer tools help too)",
            needed=(result.needed or result.tokens_after) + overhead,
            budget=room.limit if room is not None else 0,
        )

    async def _rescued(
        self,
        whole: GuardedCall,
        call: GuardedCall,
        measured: Measured,
        refused: Refused,
        error: Exception,
    ) -> tuple[GuardedCall, Refused]:
        said = await self._graph.redacted_error(error)
        size, beside = self._fitter.size(call, measured), measured.requested.overhead
        refused = refused.and_again(size, beside, read_overflow(error))
        if refused.tries > TRIES:
            why = f"so were {TRIES} smaller ones, the last of {size + beside:,} tokens"
            self._give_up(said, why, size, measured, refused, error)
        log("request_rescued", "the request was too long (%s): compacting, sending it again", said)
        whole, measured = await self._again(whole, call, measured)
        budget = refused.budget
        fitted, stuck = await self._fitter.fit(
            whole, measured, Window(budget + beside, beside), True
        )
        if stuck is not None and stuck.needed and budget < stuck.needed < size:
            # So much must stay. All else can give way.
            budget = stuck.needed
            room = Window(budget + beside, beside)
            fitted, stuck = await self._fitter.fit(whole, measured, room, True)
        if self._fitter.size(fitted, measured) >= size:
            # A plan leaves room for the largest summary; the one that is written may be smaller.
            fitted = await self._fitter.summarised(whole, measured)
        if self._fitter.size(fitted, measured) >= size:
            why = f"{stuck.reason}; " if stuck is not None else ""
            why += "smaller it cannot be"
            self._give_up(said, why, size, measured, refused, error)
        return fitted, refused.having_tried(budget, size)

    async def _again(
        self, whole: GuardedCall, call: GuardedCall, measured: Measured
    ) -> tuple[GuardedCall, Measured]:
        messages: Sequence[BaseMessage] = whole.request.messages
        if call.held is not whole.held:
            messages = await call.channel.shown(messages)
        whole = call.showing(messages)
        size, recalled = self._fitter.size(whole, measured), measured.recalled
        return whole, replace(
            measured, messages=size, recalled=recalled if whole.recalled is not None else 0
        )

    def _give_up(
        self, said: str, why: str, size: int, measured: Measured, refused: Refused, error: Exception
    ) -> NoReturn:
        if self._on_stuck == "send":
            raise error
        beside = measured.requested.overhead
        raise StillTooLong(
            f"the provider refused the request as too long ({said}), and {why}: use a model with a "
            f"larger window, or shorten the newest message, the system prompt or the tools, which "
            f"take {beside:,} tokens",
            needed=size + beside,
            budget=refused.budget + beside,
        ) from error
