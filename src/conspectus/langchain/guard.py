"""Make the real request fit, in the last middleware."""

from __future__ import annotations

import math
from collections.abc import Awaitable
from dataclasses import replace
from typing import Any, Literal

from langchain.agents.middleware.types import (
    ContextT,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    ResponseT,
)
from langchain_core.messages import BaseMessage
from langgraph.types import Command

from conspectus.core.items import Window
from conspectus.engine.settings import window_of
from conspectus.errors import PolicyError
from conspectus.langchain.middleware import SummarizationMiddleware
from conspectus.langchain.overflow import TRIES, Refused, StillTooLong
from conspectus.langchain.requests import Call, Send, WrapsCalls
from conspectus.langchain.state import Recalled
from conspectus.model.provider_errors import is_overflow
from conspectus.observe import heard_by, log

NO_WINDOW = (
    "the window of the model is not known, so that requests are not measured by it: give "
    "ContextGuard(window=...). What the provider refuses as too long is made smaller all the same"
)

OnStuck = Literal["raise", "send"]


class ContextGuard(WrapsCalls[ContextT, ResponseT]):
    """Measure the request that is really sent, make it fit, and rescue overflows.

    Put it last in the list of middleware: later ones would change the request unseen. It tells the
    next plan of `SummarizationMiddleware` the size of system prompt, tools and output. A request
    that does not fit its window is compacted at once. One that the provider refused as too long is
    sent again, smaller each time, at most five times. The size that was taken is remembered for
    that model. What was summarised here is in the state, and is not paid for again. Without an
    archive large results of tools are truncated for one request only, and stay whole in the
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
        StuckError: from a call of the model: nothing makes it fit, and `on_stuck` is `"raise"`; it
            is LangChain's `ContextOverflowError`, too.

    Example:
        >>> from conspectus.langchain import SummarizationMiddleware
        >>> summarization = SummarizationMiddleware(None, trigger=("tokens", 4_000))
        >>> middleware = [summarization, ContextGuard(summarization, window=8_000)]
    """

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
                f"{type(summarization)}; leave it out to guard an agent without one"
            )
        if summarization is not None and settings:
            raise PolicyError(
                f"{', '.join(settings)} is for a guard that stands alone; pass it to the "
                "SummarizationMiddleware, whose settings are used"
            )
        self.window, self.reserved_tokens, self.on_stuck = window, reserved_tokens, on_stuck
        self.summarization = summarization or SummarizationMiddleware(None, **settings)
        self._name, self._is_built = str(name), True

    def _called(self, request: ModelRequest[Any], send: Send) -> Awaitable[Any]:
        setup = self.summarization._setup
        return heard_by(setup.engine.listeners, self._guarded(request, send))

    async def _guarded(self, request: ModelRequest[Any], send: Send) -> Any:
        call = Call(self.summarization._setup, request)
        await call.begin(self.window, self.reserved_tokens)
        if call.room is None:
            call.channel.setup.say_once(NO_WINDOW)
        elif call.tokens > call.room.budget:
            await self._fit(call, call.room)
        refused = Refused()
        while True:
            try:
                response = await call.send(send)
                break
            except Exception as error:
                if not is_overflow(error):
                    raise
                refused = await self._rescued(call, refused, error)
        update = dict[str, Any]()
        if call.channel.held is not call.first:
            written = await self.summarization._written(call.channel)
            update = {**written, **call.channel.held.update()}
        if call.dropped:
            update |= Recalled(turn=call.channel.turn).update()
        requested = call.requested
        if refused.tries:
            learned = {**requested.learned, requested.model: requested.overhead + refused.most}
            requested = replace(requested, learned=learned)
        if requested != call.before:
            update |= requested.update()
        if not update:
            return response
        if isinstance(response, BaseMessage):
            response = ModelResponse(result=[response])
        return ExtendedModelResponse(model_response=response, command=Command(update=update))

    async def _fit(self, call: Call, room: Window) -> None:
        # What was learned is an estimate: where it alone says no, the provider is asked.
        known = replace(call.requested, learned={}).room(call.channel.setup.reserved)
        stuck = await call.fit(room, most=math.inf if known is None else known.budget)
        if stuck is None or known is None or call.tokens <= known.budget:
            return
        if self.on_stuck == "send":
            log("sent_too_large", "sent although it does not fit: %s", stuck.reason)
            return
        beside = call.requested.overhead
        raise StillTooLong(
            f"{stuck.reason} (system prompt and tools take {beside:,}; fewer tools help too)",
            needed=(stuck.needed or stuck.tokens_after) + beside,
            budget=room.limit,
        )

    async def _rescued(self, call: Call, refused: Refused, error: Exception) -> Refused:
        """Make a request smaller that the provider has refused as too long."""
        size, beside = call.tokens, call.requested.overhead
        refused = refused.and_again(size, beside, error)
        budget, said = refused.budget, await call.channel.redacted(error)
        if refused.tries <= TRIES:
            log("request_rescued", "the request was too long (%s): compacted, sent again", said)
            await call.begin_again()
            await call.fit(call.window(budget), "rescue", most=size - 1)
            if call.tokens >= size:
                # A plan leaves room for the largest summary; the one written may be smaller.
                await call.begin_again()
                await call.compacted()
            if call.tokens < size:
                return refused.having_tried(max(budget, call.tokens), size)
        if self.on_stuck == "send":
            raise error
        raise StillTooLong(
            f"the provider refused the request as too long ({said}), the last of {refused.tries}, "
            f"with {size + beside:,} tokens, and smaller it cannot be: use a model with a larger "
            "window, or shorten the newest message, the system prompt or the tools, which take "
            f"{beside:,} tokens",
            needed=size + beside,
            budget=budget + beside,
        ) from error
