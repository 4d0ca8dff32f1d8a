"""Measure one request of an agent, make it fit, and send it."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from operator import is_
from types import UnionType
from typing import Any, cast, get_args

from langchain.agents.middleware.types import ModelRequest
from langchain_core.messages import AnyMessage, BaseMessage

from conspectus._newest import Newest
from conspectus.bridge import io
from conspectus.core.items import Window
from conspectus.engine.cached_request import sending as remembering
from conspectus.engine.cached_request import tools_size
from conspectus.engine.compaction import compact
from conspectus.engine.result import CompactionResult
from conspectus.engine.thread import Thread
from conspectus.errors import ArchiveError
from conspectus.langchain.channel import Channel, laid_over
from conspectus.langchain.planner import size_of
from conspectus.langchain.settings import Setup, model_name
from conspectus.langchain.state import HeadState, Requested, Run, name_messages
from conspectus.messages.recalled import with_recalled, without_recalled
from conspectus.messages.thoughts import refuses_thoughts, without_stale_thoughts
from conspectus.model.base import LastRequest
from conspectus.model.calls import profile_window
from conspectus.model.windows import reserved_for_answer
from conspectus.observe import emit, listening, log, observing
from conspectus.tokens import TokenMeter, correction

Send = Callable[[ModelRequest[Any]], Awaitable[Any]]


def awaiting(handler: Callable[[ModelRequest[Any]], Awaitable[Any]]) -> Send:
    """Return how a request is sent on an event loop."""
    return lambda request: io(lambda: None, lambda: handler(request))


def is_sent_as_it_is(request: ModelRequest[Any], setup: Setup) -> bool:
    """Return whether there is no record to show, to follow, or to ask for in this request."""
    if setup.engine.cached or request.state.get(HeadState.CHANNEL):
        return False
    return setup.archive(request.runtime) is None or not Run.of(request.runtime).saved


async def send_thoughtful(request: ModelRequest[Any], send: Send) -> Any:
    """Send a request; once more without thoughts if the provider refuses those."""
    try:
        return await send(request)
    except Exception as error:
        if not refuses_thoughts(error):
            raise
        fresh = without_stale_thoughts(request.messages, 0, all_of_them=True)
        if all(map(is_, fresh, request.messages)):
            raise
    log("thoughts_refused", "the provider refused thoughts of the model: sent without them")
    return await send(request.override(messages=fresh))


def sending(channel: Channel, request: ModelRequest[Any]) -> AbstractContextManager[None]:
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


def _beside(
    request: ModelRequest[Any], meter: TokenMeter, sizes: Newest[tuple[int, ...], Any]
) -> int:
    """Return the tokens of system prompt, tools and response format."""
    system = request.system_message
    size = meter.message(system) if system is not None else 0
    things = [*request.tools, *_schemas(request.response_format)]
    key = tuple(map(id, things))
    known = sizes.get(key)
    if known is None:
        known = things, tools_size(meter, things)
        sizes.put(key, known)  # the things are held, so that no id is used again
    return size + int(known[1])


def _schemas(response_format: object) -> Sequence[Any]:
    """Return the schemas of a structured answer, each about as large as a tool's."""
    alone = [getattr(response_format, "schema_spec", None)]
    specs = getattr(response_format, "schema_specs", None) or alone
    if schemas := [schema for spec in specs if (schema := getattr(spec, "json_schema", None))]:
        return schemas
    kind: Any = getattr(response_format, "schema", None)
    if kind is None:
        return []
    return get_args(kind) if isinstance(kind, UnionType) or get_args(kind) else [kind]


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
        channel, request = self.channel, self._request
        setup, meter = channel.setup, channel.setup.engine.meter
        if channel.held.head is not None:
            name_messages(channel.messages)
        if channel.held.pending:
            # The channel still holds what a record covers: a call before this one was rescued.
            self._whole = await channel.shown(self._whole)
        self._count, name = meter.message, model_name(request.model)
        own = setup.window if setup.model in ("", name) else None
        window = window or own or profile_window(request.model)
        if answer is None:
            answer = reserved_for_answer((request.model_settings, request.model), window)
        beside = _beside(request, meter, setup.tools)
        sizes = channel.history("request").follow(self._whole, 1)
        # Each turn was sent with about as much recalled as this one.
        recalled = 0 if self.recalled is None else self._count(self.recalled)
        reports = sizes.reports(self.first.messages_after, 1)
        self._ratio = 1.0 if meter.exact else correction(reports, beside + recalled, window)
        learned = self.before.learned
        self.requested = Requested(
            overhead=beside, reserved=answer, window=window, model=name, learned=learned
        )
        self.room = self.requested.room(setup.reserved)
        self._send, self._size = self._whole, self._ceil(sizes.total(1))

    def _ceil(self, tokens: int) -> int:
        return math.ceil(tokens * self._ratio)

    @property
    def tokens(self) -> int:
        """The tokens of the messages, with the recalled originals."""
        recalled = 0 if self.recalled is None else self._ceil(self._count(self.recalled))
        return self._size + recalled

    def window(self, budget: int) -> Window:
        """Return a window with this room for messages."""
        beside = self.requested.overhead
        return Window(budget + beside, beside)

    def _show(self, messages: Sequence[BaseMessage]) -> None:
        self._send, self._size = messages, self._tokens_of(messages)

    def _tokens_of(self, messages: Sequence[BaseMessage]) -> int:
        return self._ceil(sum(map(self._count, messages)))

    async def _begin_again(self) -> None:
        """Begin again with all that was to be sent, under the record that is in force now."""
        changed = self.channel.held is not self.first
        self._show(await self.channel.shown(self._whole) if changed else self._whole)

    async def send(self, send: Send) -> Any:
        channel, messages, request = self.channel, self._send, self._request
        if listening():
            tokens, window = self.requested.overhead + self.tokens, self.requested.window
            share = tokens / window if window else None
            emit("request", channel.scope, tokens_after=tokens, window=window, share=share)
        if self.recalled is not None:
            messages = with_recalled(messages, self.recalled)
        messages = await channel.thoughtful(messages)
        if messages is not request.messages:
            request = request.override(messages=cast("list[AnyMessage]", list(messages)))
        with sending(channel, request):
            return await send_thoughtful(request, send)

    async def fit(
        self, room: Window, name: str = "fit", *, again: bool = False
    ) -> CompactionResult | None:
        """Make the messages fit, without the recalled originals; return the result if stuck."""
        if again:
            await self._begin_again()
        facts = {"tokens_before": self.tokens, "budget": room.budget}
        with observing("guard", self.channel.scope, name=name, **facts) as seen:
            if self.recalled is not None:
                said = "what was recalled for this turn is left out: there is no room for it"
                log("recall_left_out", said, level=logging.INFO)
                self.recalled, self.dropped = None, True
            stuck = await self._tried(room) if self._size > room.budget else None
            over = self._size > room.budget
            seen.add(tokens_after=self._size, outcome="stuck" if over else "ok")
        return stuck

    async def _tried(self, room: Window) -> CompactionResult | None:
        """Compact the history in the state, then what others have added, for this call alone."""
        channel = self.channel
        try:
            own = (await channel.folded()).view
            added = max(0, self._size - self._tokens_of(own))
            tight = replace(room, reserved=room.reserved + added)
            await self._compacted(channel.thread(tight, ratio=self._ratio), own, forced=False)
            if self._size <= room.budget:
                return None
            thread = channel.thread(room, ratio=self._ratio)
            result = await compact(thread, self._send, False, "")
        except ArchiveError as error:
            if not await self._bridged(room, await channel.redacted(error)):
                raise
            return None
        stuck = result.outcome == "stuck"
        unreachable = result.failed == "archive" or not channel.clips
        if stuck and unreachable and await self._bridged(room, result.reason):
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
            self._show(laid_over(view, own, self._send))

    async def summarise(self) -> None:
        """Summarise all but what `keep` asks for."""
        await self._begin_again()
        own = (await self.channel.folded()).view
        await self._compacted(self.channel.thread(None, ratio=self._ratio), own, forced=True)

    async def _bridged(self, room: Window, trouble: str) -> bool:
        """Make this one request fit without the archive; return False if that does not help."""
        thread = self.channel.passing_thread(room, self._ratio)
        if thread is None:
            return False
        result = await compact(thread, self._send, False, "")
        if result.outcome == "stuck":
            return False
        said = "this one request was made to fit without the archive, nothing else changed: %s"
        log("request_bridged", said, trouble)
        self._show(cast("list[BaseMessage]", result.messages))
        return True
