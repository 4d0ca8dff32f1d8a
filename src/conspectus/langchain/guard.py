"""`ContextGuard`: make each request fit, as the last middleware."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, cast, get_args

from langchain.agents.middleware.types import (
    ContextT,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    ResponseT,
)
from langchain_core.messages import AnyMessage, BaseMessage
from langgraph.types import Command

from conspectus._arguments import documented, takes
from conspectus.core.items import Window
from conspectus.core.planner import STUCK
from conspectus.engine.building import window_of
from conspectus.engine.cached_request import tools_size
from conspectus.engine.entry import compact_messages
from conspectus.engine.result import CompactionResult
from conspectus.engine.settings import ReservedTokens, Tokens
from conspectus.errors import ArchiveError, PolicyError
from conspectus.langchain.agent_step import AgentStep
from conspectus.langchain.middleware import GUARDED, SummarizationMiddleware, WrapsCalls
from conspectus.langchain.middleware_changes import apply_changes, with_message_objects
from conspectus.langchain.overflow import StillTooLong, check_not_empty
from conspectus.langchain.refused_features import model_name
from conspectus.langchain.sending import Handler, send
from conspectus.langchain.settings import MiddlewareSettings, Setup
from conspectus.langchain.state import HeadState, Recalled, RequestSizes, name_messages
from conspectus.messages.alternation import with_parts
from conspectus.messages.recalled import with_recalled, without_recalled
from conspectus.model.answer_limits import reserved_for_answer
from conspectus.model.calls import profile_window
from conspectus.model.overflow import FURTHER_TRIES, RefusedRequests
from conspectus.model.provider_errors import is_overflow
from conspectus.observe import emit, heard_by, listening, log, observing
from conspectus.tokens import correction

NO_WINDOW = (
    "the window of the model is not known, so that requests are not measured by it: give "
    "ContextGuard(window=...). What the provider refuses as too long is made smaller all the same"
)

DEFAULTS = {field.name: field.default for field in fields(MiddlewareSettings)}


@dataclass(frozen=True, kw_only=True)
class GuardSettings(MiddlewareSettings):
    """The settings of a `ContextGuard`. Most are for a guard without a middleware."""

    summarization: SummarizationMiddleware[Any, Any] | None = field(default=None, kw_only=False)
    """The `SummarizationMiddleware` of the same agent.

    The guard uses its summariser, archive and settings. Default: the guard makes one of its own,
    with the embedded summariser and the settings that you pass to the guard.
    """
    window: Tokens | None = None
    """The input limit of the model, in tokens.

    Default: the `window` that `summarization` was given; without one, the limit in the profile of
    the model that is called.
    """
    reserved_tokens: ReservedTokens | None = None
    """Tokens of the window for the answer only; the guard measures system prompt and tools itself.

    Default: the model's own output limit, if it has one, but at most half of the window.
    """
    on_stuck: Literal["raise", "send"] = "raise"
    """What happens if a request cannot be made to fit.

    `"raise"` raises a `StuckError` with the numbers. `"send"` evicts all that may be evicted, and
    sends the request.
    """
    name: str = "ContextGuard"
    """The name of this instance."""


@documented
class ContextGuard(WrapsCalls[ContextT, ResponseT]):
    """Measure each request as it is sent, and make it fit the window of its model.

    Put the guard last in the list of middleware, because it does not see what later middleware
    changes. It measures the messages, the system prompt and the tools, and leaves room for the
    answer; `SummarizationMiddleware` uses these sizes at its next step.

    If a request does not fit, the guard compacts it at once. If the provider refuses a request as
    too long, the guard sends it again, smaller each time, at most five times. It stores the limit
    that it has learned for that model in the state. A summary that the guard has made is stored in
    the state, too, so it is not made again. Without an archive, the guard may clip a large tool
    result for one request; the result stays whole in the state.

    Raises:
        PolicyError: a setting is invalid.
        StuckError: a request cannot be made to fit, and `on_stuck` is `"raise"`. The call of the
            model raises it. It is also LangChain's `ContextOverflowError`.

    Example:
        >>> from conspectus.langchain import SummarizationMiddleware
        >>> summarization = SummarizationMiddleware(None, trigger=("tokens", 4_000))
        >>> middleware = [summarization, ContextGuard(summarization, window=8_000)]
    """

    @takes(GuardSettings)
    def __init__(self, settings: GuardSettings) -> None:
        super().__init__()
        window_of(settings.window, settings.reserved_tokens or 0)
        summarization = settings.summarization
        if summarization is not None and not isinstance(summarization, SummarizationMiddleware):
            raise PolicyError(
                "summarization must be a conspectus SummarizationMiddleware, not "
                f"{type(summarization)}; leave it out to guard an agent without one"
            )
        alone = {field.name: getattr(settings, field.name) for field in fields(MiddlewareSettings)}
        if summarization is None:
            summarization = SummarizationMiddleware(None, **alone)
        elif ignored := [name for name in alone if alone[name] != DEFAULTS[name]]:
            raise PolicyError(
                f"{', '.join(ignored)} is for a guard that stands alone; pass it to the "
                "SummarizationMiddleware, whose settings are used"
            )
        self.summarization = summarization
        self.window = settings.window
        self.reserved_tokens = settings.reserved_tokens
        self.on_stuck = settings.on_stuck
        self._name = str(settings.name)
        self._is_built = True

    async def _call_model(self, request: ModelRequest[Any], handler: Handler) -> Any:
        call = GuardedCall(self, with_message_objects(request))
        token = GUARDED.set(True)
        try:
            return await heard_by(call.setup.engine.listeners, call.call_model(handler))
        finally:
            GUARDED.reset(token)


@dataclass(frozen=True, kw_only=True)
class Outgoing:
    """The messages that a call is to send, and their tokens."""

    messages: Sequence[BaseMessage]
    tokens: int
    recalled: BaseMessage | None = None  # shows the originals that were recalled for the turn
    recalled_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        return self.tokens + self.recalled_tokens

    def without_recalled(self) -> Outgoing:
        return replace(self, recalled=None, recalled_tokens=0)


@dataclass(frozen=True, kw_only=True)
class MeasuredRequest:
    """The sizes of a request as it came."""

    sizes: RequestSizes
    ratio: float  # of what the model counts to what is estimated
    tokens: int  # of the messages, without recalled originals


class GuardedCall:
    """One call of the model: the request as it came, its sizes, and the record in force.

    A record of the guard is `pending` in the state: the next `before_model` removes the messages
    that it covers. Originals that were recalled for the turn are taken out while the other messages
    are measured and archived.
    """

    def __init__(self, guard: ContextGuard[Any, Any], request: ModelRequest[Any]) -> None:
        # Another middleware may have joined user messages already.
        parts = cast("list[AnyMessage]", with_parts(request.messages))
        if parts is not request.messages:
            request = request.override(messages=parts)
        self._guard = guard
        self._request = request
        self.setup = guard.summarization._setup
        self._step = AgentStep.of(self.setup, request.state, request.runtime)
        self._held_at_first: HeadState = self._step.held
        # All messages that the caller wanted to send, and the originals recalled for their turn.
        self._whole: Sequence[BaseMessage] = request.messages
        self._recalled: BaseMessage | None = None
        if self.setup.recall_tokens:
            self._whole, self._recalled = without_recalled(request.messages, self._step.messages)
        self._last_request_sizes = RequestSizes.of(request.state)
        # Until the request is measured.
        self._request_sizes = self._last_request_sizes
        self._ratio = 1.0

    async def call_model(self, handler: Handler) -> Any:
        """Call the model; return its answer, with an update of the state."""
        outgoing = await self._measure()
        window = self._request_sizes.window_for_messages(self.setup.reserved)
        if window is None:
            self.setup.say_once(NO_WINDOW)
        elif outgoing.total_tokens > window.budget:
            outgoing = await self._make_fit_or_raise(outgoing, window)
        refusals = RefusedRequests()
        while True:
            try:
                response = await self._deliver(outgoing, handler)
                check_not_empty(response)
                break
            except Exception as error:
                if not is_overflow(error, self._request.model_settings, self._request.model):
                    raise
                outgoing, refusals = await self._rescue(outgoing, refusals, error)
        update = await self._state_update(outgoing, refusals)
        if not update:
            return response
        if isinstance(response, BaseMessage):
            response = ModelResponse(result=[response])
        return ExtendedModelResponse(model_response=response, command=Command(update=update))

    async def _state_update(self, sent: Outgoing, refusals: RefusedRequests) -> dict[str, Any]:
        """Return the update of the state after a call."""
        step = self._step
        update: dict[str, Any] = {}
        if step.held is not self._held_at_first:
            update |= await self._guard.summarization._write_copies(step)
            update |= step.held.as_update()
        if self._recalled is not None and sent.recalled is None:  # there was no room for it
            update |= Recalled(turn=step.turn).as_update()
        sizes = self._request_sizes
        if refusals.tries:
            largest = sizes.overhead + refusals.learned
            learned = {**sizes.learned, sizes.model: largest}
            sizes = replace(sizes, learned=learned)
        refused: list[str] = sorted(self.setup.refused.features_of(self._request.model))
        if refused:
            by_model = {**sizes.refused, sizes.model: refused}
            sizes = replace(sizes, refused=by_model)
        if sizes != self._last_request_sizes:
            update |= sizes.as_update()
        return update

    async def _measure(self) -> Outgoing:
        """Measure the request. Window and room for the answer are the guard's, or the model's.

        Returns:
            All messages that the caller wanted to send.
        """
        step = self._step
        if step.held.head_id:
            name_messages(step.messages)
        if step.held.pending:
            # An earlier call was rescued: the state still holds the messages that a record covers.
            self._step, self._whole = await step.view_with_changes(self._whole)
        measured = self._measured_request()
        self._request_sizes = measured.sizes
        self._ratio = measured.ratio
        recalled_tokens = 0
        if self._recalled is not None:
            recalled_tokens = math.ceil(
                self.setup.engine.meter.count_message(self._recalled) * self._ratio
            )
        return Outgoing(
            messages=self._whole,
            tokens=measured.tokens,
            recalled=self._recalled,
            recalled_tokens=recalled_tokens,
        )

    def _measured_request(self) -> MeasuredRequest:
        """Return the sizes of the request: estimates, corrected by reported usage."""
        sizes = self._sizes_beside_messages()
        meter = self.setup.engine.meter
        if meter.counts_lists:
            return MeasuredRequest(sizes=sizes, ratio=1.0, tokens=self._tokens_of(self._whole))
        ratio = 1.0
        held = self._held_at_first
        message_sizes = self._step.sizes("request", self._whole, meter.count_message)
        if not meter.exact:
            # Earlier turns were sent with about as many recalled tokens as this one.
            recalled = 0 if self._recalled is None else meter.count_message(self._recalled)
            ratio = correction(
                message_sizes.reports(held.messages_after, 0),
                sizes.overhead + recalled,
                sizes.window,
                known=meter.known_ratio(held.corrections),
            )
        tokens = math.ceil(message_sizes.total() * ratio)
        return MeasuredRequest(sizes=sizes, ratio=ratio, tokens=tokens)

    def _sizes_beside_messages(self) -> RequestSizes:
        """Return the sizes of all but the messages; read from the state what the model refuses."""
        setup = self.setup
        request = self._request
        name = model_name(request.model)
        window = self._guard.window or setup.settings.window or profile_window(request.model)
        answer = self._guard.reserved_tokens
        if answer is None:
            answer = reserved_for_answer((request.model_settings, request.model), window)
        setup.refused.remember(request.model, self._last_request_sizes.refused.get(name, ()))
        return replace(
            self._last_request_sizes,
            overhead=_overhead_of(request, setup),
            reserved=answer,
            window=window,
            model=name,
        )

    def _tokens_of(self, messages: Sequence[BaseMessage]) -> int:
        """Return the tokens of messages.

        A caller's counter is called with the whole list as it is sent, the prompt included. The
        tokens of the prompt are then subtracted.
        """
        meter = self.setup.engine.meter
        if not meter.counts_lists:
            return math.ceil(meter.count_messages(messages) * self._ratio)
        request = self._request.override(messages=cast("list[AnyMessage]", [*messages]))
        request = self.setup.refused.without_refused(request, compacted=self._step.held)
        prompt = request.system_message
        sent = request.messages if prompt is None else [prompt, *request.messages]
        return max(0, meter.count_list(sent) - self._prompt_tokens)

    @property
    def _prompt_tokens(self) -> int:
        prompt = self._request.system_message
        return 0 if prompt is None else self.setup.engine.meter.count_message(prompt)

    def _tokens_without_prompt(self, messages: Sequence[BaseMessage]) -> int:
        """Return the tokens of messages as a compaction counts them."""
        meter = self.setup.engine.meter
        return meter.count_list(messages) if meter.counts_lists else self._tokens_of(messages)

    def _window_with(self, budget: int) -> Window:
        """Return a window with this budget for messages."""
        overhead = self._request_sizes.overhead
        return Window(budget + overhead, overhead)

    def _with_messages(self, outgoing: Outgoing, messages: Sequence[Any]) -> Outgoing:
        """Return the outgoing request with other messages."""
        return replace(outgoing, messages=messages, tokens=self._tokens_of(messages))

    async def _restore_whole(self, outgoing: Outgoing) -> Outgoing:
        """Return all messages that the caller wanted to send, under the record now in force."""
        messages = self._whole
        if self._step.held is not self._held_at_first:
            self._step, messages = await self._step.view_with_changes(messages)
        return self._with_messages(outgoing, messages)

    async def _deliver(self, outgoing: Outgoing, handler: Handler) -> Any:
        step = self._step
        if listening():
            tokens = self._request_sizes.overhead + outgoing.total_tokens
            window = self._request_sizes.window
            share = tokens / window if window else None
            emit("request", step.scope, tokens_after=tokens, window=window, share=share)
        messages = outgoing.messages
        if outgoing.recalled is not None:
            messages = with_recalled(messages, outgoing.recalled)
        return await send(step, self._request, messages, handler)

    async def _make_fit_or_raise(self, outgoing: Outgoing, window: Window) -> Outgoing:
        """Make a request fit; with `on_stuck="send"` it is sent even if it does not.

        Raises:
            StillTooLong: nothing makes it fit.
        """
        # A learned window is an estimate: if the request fits without it, the provider is asked.
        known_window = replace(self._request_sizes, learned={}).window_for_messages(
            self.setup.reserved
        )
        hard_limit = math.inf if known_window is None else known_window.budget
        outgoing, stuck = await self._fit_within(outgoing, window, hard_limit=hard_limit)
        if outgoing.total_tokens <= hard_limit:
            return outgoing
        needed = outgoing.total_tokens
        reason = STUCK.format(needed=needed, budget=window.budget)
        if stuck is not None:
            needed = max(needed, stuck.needed or stuck.tokens_after)
            reason = stuck.reason
        if self._guard.on_stuck == "send":
            log("sent_too_large", "sent although it does not fit: %s", reason)
            return outgoing
        raise StillTooLong(
            self._why_stuck(reason, window),
            needed=needed + self._request_sizes.overhead,
            budget=window.limit,
        )

    def _why_stuck(self, reason: str, window: Window) -> str:
        """Say why nothing makes a request fit, beginning with what takes most of the window."""
        overhead = self._request_sizes.overhead
        if overhead <= window.limit // 2:
            hint = "fewer tools help too"
            return f"{reason} (system prompt and tools take {overhead:,}; {hint})"
        prompt = self._prompt_tokens
        tools = overhead - prompt
        if prompt >= tools:
            largest = f"the system prompt alone takes {prompt:,}"
            cure = "shorten the system prompt"
        else:
            largest = f"the tools alone take {tools:,}"
            cure = "give the agent fewer tools"
        left = max(0, window.limit - overhead)
        return (
            f"{largest} of the window's {window.limit:,} tokens, and system prompt and tools "
            f"{overhead:,}, which leaves {left:,} for messages and the answer: {cure}, or use a "
            f"model with a larger window; {reason}"
        )

    async def _rescue(
        self, refused: Outgoing, refusals: RefusedRequests, error: Exception
    ) -> tuple[Outgoing, RefusedRequests]:
        """Make a request smaller that the provider has refused as too long.

        Raises:
            StillTooLong: it cannot be smaller, or all tries are used up.
        """
        size = refused.total_tokens
        overhead = self._request_sizes.overhead
        refusals = refusals.after_refusal(size, overhead, error)
        answer = await self._step.redact_error(error)
        if refusals.tries <= FURTHER_TRIES:
            log("request_rescued", "the request was too long (%s): compacted, sent again", answer)
            window = self._window_with(refusals.budget)
            smaller = await self._restore_whole(refused)
            smaller, _ = await self._fit_within(smaller, window, "rescue", hard_limit=size - 1)
            if smaller.total_tokens >= size:
                # A plan leaves room for the largest summary. The summary that is written may be
                # smaller.
                smaller = await self._restore_whole(smaller)
                smaller = await self._compact_state_by_force(smaller)
            if smaller.total_tokens < size:
                budget = max(refusals.budget, smaller.total_tokens)
                return smaller, refusals.with_learned_limit(budget, size)
        if self._guard.on_stuck == "send":
            raise error
        raise StillTooLong(
            f"the provider refused the request as too long ({answer}), the last of "
            f"{refusals.tries}, with {size + overhead:,} tokens, and smaller it cannot be: use a "
            "model with a larger window, or shorten the newest message, the system prompt or the "
            f"tools, which take {overhead:,} tokens",
            needed=size + overhead,
            budget=refusals.budget + overhead,
        ) from error

    async def _fit_within(
        self, outgoing: Outgoing, window: Window, name: str = "fit", *, hard_limit: float
    ) -> tuple[Outgoing, CompactionResult | None]:
        """Make the messages fit a window, without the recalled originals.

        If the messages that must stay do not fit, a size up to `hard_limit` tokens is accepted.

        Returns:
            The outgoing request, and the result of the compaction if that is stuck.
        """
        facts = {"tokens_before": outgoing.total_tokens, "budget": window.budget}
        with observing("guard", self._step.scope, name=name, **facts) as observation:
            if outgoing.recalled is not None:
                text = "what was recalled for this turn is left out: there is no room for it"
                log("recall_left_out", text, level=logging.INFO)
                outgoing = outgoing.without_recalled()
            stuck: CompactionResult | None = None
            if outgoing.tokens > window.budget:
                outgoing, stuck = await self._compact_state_then_request(outgoing, window)
            if stuck is not None and stuck.needed and window.budget < stuck.needed <= hard_limit:
                outgoing = await self._restore_whole(outgoing)
                larger_window = self._window_with(stuck.needed)
                outgoing, stuck = await self._compact_state_then_request(outgoing, larger_window)
            outcome = "stuck" if outgoing.tokens > window.budget else "ok"
            observation.add(tokens_after=outgoing.tokens, outcome=outcome)
        return outgoing, stuck

    async def _compact_state_then_request(
        self, outgoing: Outgoing, window: Window
    ) -> tuple[Outgoing, CompactionResult | None]:
        """Compact the history in the state. If that is not enough, compact this one request.

        Returns:
            The outgoing request, and the result of the last compaction if that is stuck.
        """
        step = self._step
        for_one_request = step.history_for_one_request(window, self._ratio)
        try:
            outgoing = await self._compact_state(outgoing, window)
        except ArchiveError as error:
            if for_one_request is None:
                raise
            text = "this one request is made to fit without the archive: %s"
            log("request_bridged", text, await step.redact_error(error))
        if outgoing.tokens <= window.budget:
            return outgoing, None
        history = for_one_request
        if history is None:
            history = step.prepare_history(window, self._ratio)
        added = max(0, outgoing.tokens - self._tokens_without_prompt(outgoing.messages))
        history = replace(history, window=replace(window, reserved=window.reserved + added))
        result = await compact_messages(history, outgoing.messages)
        outgoing = self._with_messages(outgoing, result.messages)
        return outgoing, result if result.outcome == "stuck" else None

    async def _compact_state(self, outgoing: Outgoing, window: Window) -> Outgoing:
        """Compact the history in the state to fit a window; return the outgoing request."""
        folded = await self._step.fold_view()
        self._step = folded.step
        view = folded.messages
        added = max(0, outgoing.tokens - self._tokens_without_prompt(view))
        window = replace(window, reserved=window.reserved + added)
        history = self._step.prepare_history(window, self._ratio)
        result = await compact_messages(history, self._step.messages)
        return self._put_compacted_in_force(outgoing, view, result)

    async def _compact_state_by_force(self, outgoing: Outgoing) -> Outgoing:
        """Compact the history in the state to what `keep` asks for; return the outgoing request."""
        folded = await self._step.fold_view()
        self._step = folded.step
        view = folded.messages
        history = self._step.prepare_history(None, self._ratio)
        result = await compact_messages(history, self._step.messages, force=True)
        return self._put_compacted_in_force(outgoing, view, result)

    def _put_compacted_in_force(
        self, outgoing: Outgoing, view: list[BaseMessage], result: CompactionResult
    ) -> Outgoing:
        """Put the record of a compaction in force; return the request with its messages.

        `view` has the messages before the compaction. Changes of other middleware are kept.
        """
        if result.record is None:
            return outgoing
        compacted = cast("list[BaseMessage]", result.messages)
        self._step = self._step.put_in_force(result.record, compacted, pending=True)
        return self._with_messages(outgoing, apply_changes(compacted, view, outgoing.messages))


def _overhead_of(request: ModelRequest[Any], setup: Setup) -> int:
    """Return the tokens of system prompt, tools and response format."""
    meter = setup.engine.meter
    # Each schema of a structured answer is about as large as the schema of a tool.
    schema: Any = getattr(request.response_format, "schema", None)
    schemas = get_args(schema) or ([] if schema is None else [schema])
    tools = [*request.tools, *schemas]
    key = tuple(map(id, tools))
    # The cache holds the tools, so that no other object gets their ids.
    _, size = setup.tool_sizes.get_or_make(key, lambda: (tools, tools_size(meter, tools)))
    prompt = request.system_message
    return int(size) + (meter.count_message(prompt) if prompt is not None else 0)
