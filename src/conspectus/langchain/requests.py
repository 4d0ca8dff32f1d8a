"""Measure one request of an agent, make it fit, and send it."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from operator import is_
from typing import Any, cast, get_args

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

from conspectus.bridge import arun, io, run
from conspectus.core.items import Window
from conspectus.engine.cached_request import sending as remembering
from conspectus.engine.cached_request import tools_size
from conspectus.engine.compaction import compact
from conspectus.engine.result import CompactionResult
from conspectus.engine.thread import Thread
from conspectus.errors import ArchiveError, Attributes
from conspectus.langchain.channel import Channel, laid_over
from conspectus.langchain.settings import Setup, model_name
from conspectus.langchain.state import CompactionState, HeadState, Requested, Run, name_messages
from conspectus.messages.requests import (
    refuses_thoughts,
    with_recalled,
    without_recalled,
    without_stale_thoughts,
)
from conspectus.model.base import LastRequest
from conspectus.model.calls import profile_window
from conspectus.model.windows import reserved_for_answer
from conspectus.observe import emit, listening, log, observing
from conspectus.tokens import correction

Send = Callable[[ModelRequest[Any]], Awaitable[Any]]


class WrapsCalls(Attributes, AgentMiddleware[CompactionState, ContextT, ResponseT]):
    """A middleware around each call of the model, the same with and without an event loop."""

    state_schema = CompactionState
    transformers = (InternalCallTransformer,)
    trace_policy = TracePolicy(process_inputs=omit_payload)

    _name: str
    _called: Callable[[ModelRequest[Any], Send], Awaitable[Any]]

    @property
    def name(self) -> str:
        """The name of this instance, unique in its agent."""
        return self._name

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., Any]) -> Any:
        """Call the model with what this middleware makes of its request."""
        return run(self._called(request, lambda sent: io(lambda: handler(sent))))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[..., Awaitable[Any]]
    ) -> Any:
        """`wrap_model_call` on an event loop."""

        def send(sent: ModelRequest[Any]) -> Awaitable[Any]:
            return io(lambda: None, lambda: handler(sent))  # the first is for no loop

        return await arun(self._called(request, send))


def is_sent_as_it_is(request: ModelRequest[Any], setup: Setup) -> bool:
    """Return whether there is no record to show, to follow, or to ask for in this request."""
    if setup.engine.cached or request.state.get(HeadState.CHANNEL):
        return False
    return setup.archive(request.runtime) is None or not Run.of(request.runtime).saved


async def deliver(
    channel: Channel, request: ModelRequest[Any], messages: Sequence[BaseMessage], send: Send
) -> Any:
    """Send messages without stale thoughts; without any if the provider refuses the others too."""
    messages = await channel.thoughtful(messages)
    if messages is not request.messages:
        request = request.override(messages=cast("list[AnyMessage]", [*messages]))
    with _remembered(channel, request):
        try:
            return await send(request)
        except Exception as error:
            fresh = without_stale_thoughts(messages, 0, all_of_them=True)
            if not refuses_thoughts(error) or all(map(is_, fresh, messages)):
                raise
        log("thoughts_refused", "the provider refused thoughts of the model: sent without them")
        return await send(request.override(messages=cast("list[AnyMessage]", fresh)))


def _remembered(channel: Channel, request: ModelRequest[Any]) -> AbstractContextManager[None]:
    """Wrap the call of a model: remember its request, for a summary that uses its cache."""
    setup = channel.setup
    if not setup.engine.cached:
        return nullcontext()
    last: LastRequest | None = None
    # A model that must answer in a form, or must call a tool, would do so again, and without that
    # the provider's cache does not know the request.
    forced = request.tool_choice not in (None, "auto") or "tool_choice" in request.model_settings
    if request.response_format is None and not forced:
        system = [request.system_message] if request.system_message is not None else []
        last = LastRequest(
            model=request.model,
            messages=(*system, *request.messages),
            tools=tuple(request.tools),
            tool_choice=request.tool_choice,
            settings=dict(request.model_settings),
            window=setup.window or profile_window(request.model),
        )
    return remembering(setup.engine.memory.of(channel.scope), last)


def _beside(request: ModelRequest[Any], setup: Setup) -> int:
    """Return the tokens of system prompt, tools and response format."""
    meter, system = setup.engine.meter, request.system_message
    # The schemas of a structured answer are each about as large as a tool's.
    schema: Any = getattr(request.response_format, "schema", None)
    schemas = get_args(schema) or ([] if schema is None else [schema])
    things = [*request.tools, *schemas]
    key = tuple(map(id, things))
    # The things are held, so that no id is used again.
    _, size = setup.tools.get_or_make(key, lambda: (things, tools_size(meter, things)))
    return int(size) + (meter.message(system) if system is not None else 0)


class Call:
    """One call: the messages to send, and the record in force after it, in its channel.

    A record of the guard is `pending` in the state: the next `before_model` folds it over its
    originals. What was recalled for the turn is taken out while the rest is measured and archived.
    """

    def __init__(self, setup: Setup, request: ModelRequest[Any]) -> None:
        self.channel = Channel(setup, request.state, request.runtime)
        self._request, self.first, self.dropped = request, self.channel.held, False
        self._whole: Sequence[BaseMessage] = request.messages
        self.recalled: BaseMessage | None = None
        if setup.recalled:
            own, self.recalled = without_recalled(request.messages, self.channel.messages)
            self._whole = request.messages if self.recalled is None else own
        self.before = Requested.of(request.state)

    async def begin(self, window: int | None, answer: int | None) -> None:
        """Measure the request; window and tokens of the answer are known, or the model's."""
        channel, request, setup = self.channel, self._request, self.channel.setup
        if channel.held.head is not None:
            name_messages(channel.messages)
        if channel.held.pending:
            # The channel still holds what a record covers: a call before this one was rescued.
            self._whole = await channel.shown(self._whole)
        meter, self._count = setup.engine.meter, setup.engine.meter.message
        window = window or setup.given["window"] or profile_window(request.model)
        if answer is None:
            answer = reserved_for_answer((request.model_settings, request.model), window)
        self.requested = replace(
            self.before,
            overhead=_beside(request, setup),
            reserved=answer,
            window=window,
            model=model_name(request.model),
        )
        sizes = channel.history.follow("request", self._whole, meter.message)
        # Each turn was sent with about as much recalled as this one.
        recalled = 0 if self.recalled is None else self._count(self.recalled)
        reports = sizes.reports(self.first.messages_after, 0)
        beside = self.requested.overhead + recalled
        self._ratio = 1.0 if meter.exact else correction(reports, beside, window)
        self.room = self.requested.room(setup.reserved)
        self._send, self._size = self._whole, math.ceil(sizes.total() * self._ratio)

    def _tokens_of(self, messages: Sequence[BaseMessage]) -> int:
        return math.ceil(sum(map(self._count, messages)) * self._ratio)

    @property
    def tokens(self) -> int:
        """The tokens of the messages, with the recalled originals."""
        return self._size + (0 if self.recalled is None else self._tokens_of([self.recalled]))

    def window(self, budget: int) -> Window:
        """Return a window with this room for messages."""
        beside = self.requested.overhead
        return Window(budget + beside, beside)

    def _show(self, messages: Sequence[Any]) -> None:
        self._send, self._size = messages, self._tokens_of(messages)

    async def begin_again(self) -> None:
        """Begin again with all that was to be sent, under the record that is in force now."""
        changed = self.channel.held is not self.first
        self._show(await self.channel.shown(self._whole) if changed else self._whole)

    async def send(self, send: Send) -> Any:
        channel, messages = self.channel, self._send
        if listening():
            tokens, window = self.requested.overhead + self.tokens, self.requested.window
            share = tokens / window if window else None
            emit("request", channel.scope, tokens_after=tokens, window=window, share=share)
        if self.recalled is not None:
            messages = with_recalled(messages, self.recalled)
        return await deliver(channel, self._request, messages, send)

    async def fit(self, room: Window, name: str = "fit", *, most: float) -> CompactionResult | None:
        """Make the messages fit, without the recalled originals; return the result if stuck.

        Where so much must stay that the room is too small, `most` tokens will do.
        """
        facts = {"tokens_before": self.tokens, "budget": room.budget}
        with observing("guard", self.channel.scope, name=name, **facts) as seen:
            if self.recalled is not None:
                said = "what was recalled for this turn is left out: there is no room for it"
                log("recall_left_out", said, level=logging.INFO)
                self.recalled, self.dropped = None, True
            stuck = await self._tried(room) if self._size > room.budget else None
            if stuck is not None and stuck.needed and room.budget < stuck.needed <= most:
                await self.begin_again()
                stuck = await self._tried(self.window(stuck.needed))
            over = self._size > room.budget
            seen.add(tokens_after=self._size, outcome="stuck" if over else "ok")
        return stuck

    async def _tried(self, room: Window) -> CompactionResult | None:
        """Compact the history in the state, then all that is sent, for this call alone."""
        channel, passing = self.channel, self.channel.passing_thread(room, self._ratio)
        try:
            view = (await channel.folded()).view
            added = max(0, self._size - self._tokens_of(view))
            tight = replace(room, reserved=room.reserved + added)
            await self.compacted(channel.thread(tight, self._ratio))
        except ArchiveError as error:
            if passing is None:
                raise
            said = "this one request is made to fit without the archive: %s"
            log("request_bridged", said, await channel.redacted(error))
        if self._size <= room.budget:
            return None
        thread = passing or channel.thread(room, self._ratio)
        result = await compact(thread, self._send, False, "")
        self._show(result.messages)
        return result if result.outcome == "stuck" else None

    async def compacted(self, thread: Thread | None = None) -> None:
        """Compact the history in the state; without a thread, all but what `keep` asks for."""
        channel, view = self.channel, (await self.channel.folded()).view
        forced = thread is None
        thread = thread or channel.thread(None, self._ratio)
        result = await compact(thread, channel.messages, forced, "")
        if result.record is not None:
            new = cast("list[BaseMessage]", result.messages)
            channel.put_in_force(result.record, new, pending=True)
            self._show(laid_over(new, view, self._send))
