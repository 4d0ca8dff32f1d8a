"""Make the real request fit, in the last middleware."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, NoReturn, cast

from langchain.agents.middleware.internal_call_transformer import InternalCallTransformer
from langchain.agents.middleware.types import (
    AgentMiddleware,
    ContextT,
    ExtendedModelResponse,
    ModelCallResult,
    ModelRequest,
    ModelResponse,
    ResponseT,
    TracePolicy,
    omit_payload,
)
from langchain_core.messages import AnyMessage, BaseMessage
from langgraph.types import Command

from conspectus.bridge import arun, io, run
from conspectus.core.items import Window
from conspectus.engine.compaction import compact
from conspectus.engine.result import CompactionResult
from conspectus.engine.settings import window_of
from conspectus.engine.thread import Thread
from conspectus.errors import ArchiveError, PolicyError
from conspectus.langchain.channel import Channel, laid_over
from conspectus.langchain.middleware import SummarizationMiddleware
from conspectus.langchain.overflow import TRIES, Refused, StillTooLong, read_overflow
from conspectus.langchain.planner import size_of
from conspectus.langchain.requests import NO_WINDOW, Meter, Send, send_thoughtful, sending
from conspectus.langchain.state import (
    HELD,
    RECALLED,
    REQUEST,
    CompactionState,
    Recalled,
    name_messages,
    read_recalled,
    read_requested,
    turn_of,
)
from conspectus.messages.recalled import newest_user, with_recalled, without_recalled
from conspectus.model.provider_errors import is_overflow
from conspectus.observe import emit, heard_by, listening, log, observing

Request = ModelRequest[Any]
OnStuck = Literal["raise", "send"]


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
            and settings are used. Default: one of its own with the embedded summariser.
        window: input limit of the model, in tokens. Default: the one that `summarization` was
            given, for its own model; else that of the profile of the model that is called.
        reserved_tokens: tokens left for the answer. Default: the model's own limit of its output,
            if it has one, and at most half of the window.
        on_stuck: if nothing makes it fit: `"raise"` a `StuckError` with the numbers, or `"send"` it
            all the same.
        name: of this instance.
        settings: without `summarization`, parameters of `SummarizationMiddleware`, such as
            `archive`, `summarizer`, `keep` or `redact`.

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
        summarization: SummarizationMiddleware | None = None,
        *,
        window: int | None = None,
        reserved_tokens: int | None = None,
        on_stuck: OnStuck = "raise",
        name: str = "ContextGuard",
        **settings: Any,
    ) -> None:
        super().__init__()
        window_of(window, reserved_tokens or 0)
        if on_stuck not in ("raise", "send"):
            raise PolicyError(f'on_stuck must be "raise" or "send", not {on_stuck!r}')
        if summarization is not None and not isinstance(summarization, SummarizationMiddleware):
            raise PolicyError(
                "summarization must be a conspectus SummarizationMiddleware, not "
                f"{type(summarization).__name__}; leave it out to guard an agent without one"
            )
        if summarization is not None and settings:
            raise PolicyError(
                f"{', '.join(settings)} is for a guard that stands alone; pass it to the "
                "SummarizationMiddleware, whose settings are used"
            )
        self.window, self.reserved_tokens, self.on_stuck = window, reserved_tokens, on_stuck
        self.summarization = summarization or SummarizationMiddleware(None, **settings)
        self._name, self._meter = str(name), cast("Meter | None", None)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_meter": None}

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
        setup = self.summarization._setup
        return heard_by(setup.engine.listeners, self._guarded(request, send))

    async def _guarded(self, request: Request, send: Send) -> ModelCallResult[Any]:
        setup, meter = self.summarization._setup, self._meter
        if meter is None or meter.setup is not setup:
            self._meter = meter = Meter(setup, self.window, self.reserved_tokens)
        call = _Call(Channel(setup, request.state, request.runtime), request)
        await call.begin(meter)
        if call.room is None:
            setup.say_once(NO_WINDOW)
        if call.room is not None and call.tokens() > call.room.budget:
            await self._fit(call)
        refused = Refused()
        while True:
            try:
                response = await call.send(send)
                break
            except Exception as error:
                if not is_overflow(error):
                    raise
                refused = await self._rescued(call, refused, error)
        held, update = call.channel.held, dict[str, Any]()
        if held is not call.first:
            written = await self.summarization._written(held, request.state, request.runtime)
            update = {**(written or {}), HELD: held.to_json()}
        if call.dropped:
            turn = turn_of(call.channel.messages, read_recalled(request.state))
            update[RECALLED] = Recalled(turn).to_json()
        requested = call.measured.requested
        if refused.tries:
            requested = requested.having_learned(requested.overhead + refused.most)
        if requested != call.before:
            update[REQUEST] = requested.to_json()
        if not update:
            return cast("ModelCallResult[Any]", response)
        if isinstance(response, BaseMessage):
            response = ModelResponse(result=[response])
        return ExtendedModelResponse(model_response=response, command=Command(update=update))

    async def _fit(self, call: _Call) -> None:
        requested, least = call.measured.requested, call.channel.setup.reserved
        known = replace(requested, learned={}).room(least)
        over_window = known is not None and call.tokens() > known.budget
        stuck = await call.fit(call.room)
        if stuck is None:
            return
        if not over_window:
            # What was learned is an estimate: where it alone says no, the provider is asked.
            if stuck.needed:
                await call.fit(call.window(stuck.needed))
            return
        if self.on_stuck == "send":
            log("sent_too_large", "sent although it does not fit: %s", stuck.reason)
            return
        beside = requested.overhead
        raise StillTooLong(
            f"{stuck.reason} (system prompt and tools take {beside:,}; fewer tools help too)",
            needed=(stuck.needed or stuck.tokens_after) + beside,
            budget=call.room.limit if call.room is not None else 0,
        )

    async def _rescued(self, call: _Call, refused: Refused, error: Exception) -> Refused:
        """Make a request smaller that the provider has refused as too long."""
        said, size = await call.channel.redacted(error), call.tokens()
        beside = call.measured.requested.overhead
        refused = refused.and_again(size, beside, read_overflow(error))
        if refused.tries > TRIES:
            why = f"so were {TRIES} smaller ones, the last of {size + beside:,} tokens"
            self._give_up(said, why, size, beside, refused, error)
        log("request_rescued", "the request was too long (%s): compacting, sending it again", said)
        await call.again()
        budget = refused.budget
        stuck = await call.fit(call.window(budget), "rescue")
        if stuck is not None and stuck.needed and budget < stuck.needed < size:
            # So much must stay. All else can give way.
            budget = stuck.needed
            await call.again()
            stuck = await call.fit(call.window(budget), "rescue")
        if call.tokens() >= size:
            # A plan leaves room for the largest summary; the one that is written may be smaller.
            await call.again()
            await call.summarise()
        if call.tokens() >= size:
            why = f"{stuck.reason}; " if stuck is not None else ""
            self._give_up(said, f"{why}smaller it cannot be", size, beside, refused, error)
        return refused.having_tried(budget, size)

    def _give_up(
        self, said: str, why: str, size: int, beside: int, refused: Refused, error: Exception
    ) -> NoReturn:
        if self.on_stuck == "send":
            raise error
        raise StillTooLong(
            f"the provider refused the request as too long ({said}), and {why}: use a model with a "
            f"larger window, or shorten the newest message, the system prompt or the tools, which "
            f"take {beside:,} tokens",
            needed=size + beside,
            budget=refused.budget + beside,
        ) from error


class _Call:
    """One call: the messages to send, and the record in force after it, in its channel.

    A record of the guard is `pending` in the state: the next `before_model` folds it over its
    originals. What was recalled for the turn is taken out while the rest is measured and archived.
    """

    def __init__(self, channel: Channel, request: Request) -> None:
        self.channel, self._request, self.first = channel, request, channel.held
        own, self.recalled = without_recalled(request.messages, channel.messages)
        self._whole: Sequence[BaseMessage] = request.messages if self.recalled is None else own
        self.before, self.dropped = read_requested(request.state), False

    async def begin(self, meter: Meter) -> None:
        """Measure the request."""
        channel, self._count = self.channel, self.channel.setup.engine.meter.message
        if channel.held.data is not None:
            name_messages(channel.messages)
        if channel.held.pending:
            # The channel still holds what a record covers: a call before this one was rescued.
            self._whole = await channel.shown(self._whole)
        self._messages = self._whole
        recalled = 0 if self.recalled is None else self._count(self.recalled)
        own = self._with(self._messages)
        self.measured = meter.measure(own, self.first, self.before, recalled)
        self.room = self.measured.requested.room(channel.setup.reserved)
        self._size: int | None = self.measured.messages + self._ceil(recalled)

    def _ceil(self, tokens: int) -> int:
        return math.ceil(tokens * self.measured.ratio)

    def _tokens_of(self, messages: Sequence[BaseMessage]) -> int:
        return self._ceil(sum(map(self._count, messages)))

    def tokens(self) -> int:
        """Return the tokens of the messages, with the recalled originals."""
        if self._size is None:
            recalled = 0 if self.recalled is None else self._ceil(self._count(self.recalled))
            self._size = self._tokens_of(self._messages) + recalled
        return self._size

    def window(self, budget: int) -> Window:
        """Return a window with this room for messages."""
        beside = self.measured.requested.overhead
        return Window(budget + beside, beside)

    def _with(self, messages: Sequence[BaseMessage]) -> Request:
        if messages is self._request.messages:
            return self._request
        return self._request.override(messages=cast("list[AnyMessage]", list(messages)))

    def _show(self, messages: Sequence[BaseMessage]) -> None:
        self._messages, self._size = messages, None

    async def again(self) -> None:
        """Begin again with all that was to be sent, under the record that is in force now."""
        changed = self.channel.held is not self.first
        self._show(await self.channel.shown(self._whole) if changed else self._whole)

    async def send(self, send: Send) -> Any:
        channel, messages = self.channel, self._messages
        if listening():
            size, window = self.tokens(), self.measured.requested.window
            tokens = self.measured.requested.overhead + size
            share = tokens / window if window else None
            emit("request", channel.scope, tokens_after=tokens, window=window, share=share)
        if self.recalled is not None:
            messages = with_recalled(messages, self.recalled)
        request = self._with(await channel.thoughtful(messages))
        with sending(channel, request):
            return await send_thoughtful(request, send)

    async def fit(self, room: Window | None, name: str = "fit") -> CompactionResult | None:
        """Make the messages fit, without recalled originals if need be; else return why not."""
        budget = None if room is None else room.budget
        facts = {"tokens_before": self.tokens(), "budget": budget}
        with observing("guard", self.channel.scope, name=name, **facts) as seen:
            before, held = self._messages, self.channel.held
            stuck = await self._tried(room)
            if self.recalled is not None and (stuck is not None or not self._says(before)):
                said = "what was recalled for this turn is left out: there is no room for it"
                log("recall_left_out", said, level=logging.INFO)
                self.recalled, self.dropped = None, True
                self.channel.held = held  # its record may show the user's words short
                self._show(before)
                stuck = None
                if room is None or self.tokens() > room.budget:
                    stuck = await self._tried(room)
            if seen:
                over = budget is not None and self.tokens() > budget
                seen.add(tokens_after=self.tokens(), outcome="stuck" if over else "ok")
        return stuck

    def _says(self, before: Sequence[BaseMessage]) -> bool:
        """Return whether the user's newest message still stands as it was."""
        was, now = newest_user(before), newest_user(self._messages)
        return was is None or (now is not None and self._messages[now] is before[was])

    async def _tried(self, room: Window | None) -> CompactionResult | None:
        """Compact the history in the state, then what others have added, for this call alone."""
        channel, ratio = self.channel, self.measured.ratio
        recalled = 0 if self.recalled is None else self._ceil(self._count(self.recalled))
        rest = room and replace(room, reserved=room.reserved + recalled)
        try:
            own = (await channel.folded())[1]
            added = max(0, self.tokens() - self._tokens_of(own))
            tight = room and replace(room, reserved=room.reserved + added)
            await self._compacted(channel.thread(tight, ratio=ratio), own, forced=False)
            if rest is None or self.tokens() - recalled <= rest.budget:
                return None
            thread = channel.thread(rest, ratio=ratio)
            result = await compact(thread, self._messages, False, "")
        except ArchiveError as error:
            if not await self._bridged(rest, await channel.redacted(error)):
                raise
            return None
        stuck = result.outcome == "stuck"
        unreachable = result.failed == "archive" or not channel.clips
        if stuck and unreachable and await self._bridged(rest, result.reason):
            return None
        self._show(cast("list[BaseMessage]", result.messages))
        return result if stuck else None

    async def _compacted(self, thread: Thread, own: Sequence[BaseMessage], *, forced: bool) -> None:
        """Compact the history in the state, whose view is `own` until then."""
        channel = self.channel
        result = await compact(thread, channel.messages, forced, "")
        if result.record is not None:
            view = cast("list[BaseMessage]", result.messages)
            after = size_of(channel.setup, view)
            channel.held = channel.held.with_record(result.record, after, pending=True)
            self._show(laid_over(view, own, self._messages))

    async def summarise(self) -> None:
        """Summarise all but what `keep` asks for."""
        own, ratio = (await self.channel.folded())[1], self.measured.ratio
        await self._compacted(self.channel.thread(None, ratio=ratio), own, forced=True)

    async def _bridged(self, room: Window | None, trouble: str) -> bool:
        """Make this one request fit without the archive; return False if that does not help."""
        thread = self.channel.passing_thread(room, self.measured.ratio)
        if thread is None:
            return False
        result = await compact(thread, self._messages, False, "")
        if result.outcome == "stuck":
            return False
        said = "this one request was made to fit without the archive, nothing else changed: %s"
        log("request_bridged", said, trouble)
        self._show(cast("list[BaseMessage]", result.messages))
        return True
