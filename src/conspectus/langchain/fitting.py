"""Follow one call through the guard, and make its request fit."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from langchain.agents.middleware.types import (
    ExtendedModelResponse,
    ModelCallResult,
    ModelRequest,
    ModelResponse,
)
from langchain_core.messages import AnyMessage, BaseMessage
from langgraph.types import Command

from conspectus.core.items import Size, Window
from conspectus.engine.calls import compact_flow
from conspectus.engine.result import CompactionResult
from conspectus.errors import ArchiveError
from conspectus.langchain.channel import Channel
from conspectus.langchain.graph import GraphEngine
from conspectus.langchain.measuring import Measured, Measuring
from conspectus.langchain.state import (
    HELD,
    RECALLED,
    REQUEST,
    HeadState,
    Recalled,
    Requested,
    read_recalled,
    turn_of,
)
from conspectus.langchain.views import laid_over
from conspectus.messages.recalled import newest_user, with_recalled, without_recalled
from conspectus.observe import emit, listening, log, observing

Request = ModelRequest[Any]


@dataclass(frozen=True, slots=True)
class GuardedCall:
    """One call: the request, and the state after it.

    A record of the guard goes into the state as `pending`: its originals are still in the channel,
    and the next `before_model` folds it over them. Originals recalled for the turn are taken out
    before anything is measured or archived, and put back before the request is sent. They are known
    by their marker and by not being in the channel.

    Attributes:
        request: without the recalled originals.
        first: the record in the state at its beginning.
        recalled: the message that shows the recalled originals; None for none.
        dropped: that message was left out for lack of room, for the rest of the turn.
    """

    request: Request
    channel: Channel
    first: HeadState
    recalled: BaseMessage | None = None
    dropped: bool = False

    @classmethod
    def of(cls, request: Request, channel: Channel) -> GuardedCall:
        own, recalled = without_recalled(request.messages, channel.messages)
        call = cls(request, channel, channel.held, recalled)
        return call if recalled is None else call.showing(own)

    @property
    def sent(self) -> Request:
        if self.recalled is None:
            return self.request
        return self.showing(with_recalled(self.request.messages, self.recalled)).request

    def alone(self) -> GuardedCall:
        return replace(self, recalled=None, dropped=True)

    @property
    def held(self) -> HeadState:
        """The record in the state after the call."""
        return self.channel.held

    def holding(self, held: HeadState) -> GuardedCall:
        return replace(self, channel=self.channel.holding(held))

    def showing(self, view: Sequence[BaseMessage]) -> GuardedCall:
        messages = cast("list[AnyMessage]", list(view))
        return replace(self, request=self.request.override(messages=messages))


def kept_whole(call: GuardedCall, fitted: GuardedCall) -> bool:
    """Return whether the user's newest message is unchanged."""
    before, after = call.request.messages, fitted.request.messages
    one, other = newest_user(before), newest_user(after)
    return one is None or (other is not None and after[other] is before[one])


def answered(
    response: Any,
    call: GuardedCall,
    before: Requested,
    seen: Requested,
    written: Mapping[str, Any] | None = None,
) -> ModelCallResult[Any]:
    """Return the response with the update of the state."""
    update: dict[str, Any] = dict(written or {})
    if call.held is not call.first:
        update[HELD] = call.held.to_json()
    if call.dropped:
        turn = turn_of(call.channel.messages, read_recalled(call.request.state))
        update[RECALLED] = Recalled(turn).to_json()
    if seen != before:
        update[REQUEST] = seen.to_json()
    if not update:
        return cast("ModelCallResult[Any]", response)
    if isinstance(response, BaseMessage):
        response = ModelResponse(result=[response])
    return ExtendedModelResponse(model_response=response, command=Command(update=update))


Fitted = tuple[GuardedCall, CompactionResult | None]
"""A call, and the stuck result if it does not fit."""


@dataclass(frozen=True, slots=True)
class RequestFitter:
    graph: GraphEngine
    measuring: Measuring

    async def fit(
        self, call: GuardedCall, measured: Measured, room: Window | None, rescue: bool = False
    ) -> Fitted:
        if not listening():
            return await self._fitted(call, measured, room)
        budget = None if room is None else room.budget
        facts = {"tokens_before": measured.messages, "budget": budget}
        name = "rescue" if rescue else "fit"
        with observing("guard", call.channel.scope, name=name, **facts) as seen:
            fitted = await self._fitted(call, measured, room)
            if seen:
                tokens = self.size(fitted[0], measured)
                over = budget is not None and tokens > budget
                seen.add(tokens_after=tokens, outcome="stuck" if over else "ok")
        return fitted

    def tell_sent(self, call: GuardedCall, measured: Measured) -> None:
        """Announce a request that is sent; count nothing without listeners."""
        if not listening():
            return
        size, window = self.size(call, measured), measured.requested.window
        tokens = measured.requested.overhead + size
        share = tokens / window if window else None
        emit("request", call.channel.scope, tokens_after=tokens, window=window, share=share)

    async def summarised(self, call: GuardedCall, measured: Measured) -> GuardedCall:
        """Summarise all but what `keep` asks for."""
        own = await call.channel.view()
        session = call.channel.session(None, ratio=measured.ratio)
        result = await compact_flow(session, call.channel.messages, True, "")
        if result.record is None:
            return call
        held = call.held.with_record(result.record, self._after(result), pending=True)
        return call.holding(held).showing(laid_over(result.messages, own, call.request.messages))

    def size(self, call: GuardedCall, measured: Measured) -> int:
        return self.measuring.size(call.sent.messages, measured.ratio)

    async def _fitted(self, call: GuardedCall, measured: Measured, room: Window | None) -> Fitted:
        """Make a request fit the room, or return the stuck result.

        Recalled originals are no part of the history. They go if a compaction alone does not help,
        and before the user's own words are shown short.
        """
        fitted, stuck = await self._tried(call, measured, room)
        if call.recalled is not None and (stuck is not None or not kept_whole(call, fitted)):
            said = "what was recalled for this turn is left out: there is no room for it"
            log("recall_left_out", said, level=logging.INFO)
            call = call.alone()
            measured = replace(measured, messages=measured.messages - measured.recalled, recalled=0)
            if room is not None and measured.messages <= room.budget:
                return call, None
            fitted, stuck = await self._tried(call, measured, room)
        return fitted, stuck

    async def _tried(self, call: GuardedCall, measured: Measured, room: Window | None) -> Fitted:
        """Make a request fit as far as a compaction can.

        The history in the state is compacted, and other middleware's changes are laid over the
        result, so that the state can hold the record. Messages that others have added are made to
        fit for this call alone.
        """
        rest = room and replace(room, reserved=room.reserved + measured.recalled)
        try:
            own = await call.channel.view()
            sent: Sequence[BaseMessage] = call.request.messages
            added = measured.messages - self.measuring.size(own, measured.ratio)
            tight = room and replace(room, reserved=room.reserved + max(0, added))
            result = await self._compacted(call, tight, measured, call.channel.messages)
            if result.record is not None:
                held = call.held.with_record(result.record, self._after(result), pending=True)
                call = call.holding(held)
                sent = laid_over(result.messages, own, sent)
                call = call.showing(sent)
            if rest is None or self.measuring.size(sent, measured.ratio) <= rest.budget:
                return call, None
            result = await self._compacted(call, rest, measured, sent)
        except ArchiveError as error:
            trouble = await self.graph.redacted_error(error)
            bridged = await self._bridged(call, measured, rest, trouble)
            if bridged is None:
                raise
            return bridged, None
        short = self.graph.clips(call.channel.runtime)
        if result.outcome == "stuck" and (result.failed == "archive" or not short):
            bridged = await self._bridged(call, measured, rest, result.reason)
            if bridged is not None:
                return bridged, None
        # The records in force may be all that it takes: then there is no new one.
        if result.record is not None or [*map(id, result.messages)] != [*map(id, sent)]:
            call = call.showing(result.messages)
        return call, result if result.outcome == "stuck" else None

    async def _bridged(
        self, call: GuardedCall, measured: Measured, room: Window | None, trouble: str
    ) -> GuardedCall | None:
        """Make one request fit while no archive can be reached, and put nothing in force.

        Return None if that is not wanted, or does not help.
        """
        session = call.channel.passing_session(room, measured.ratio)
        if session is None:
            return None
        result = await compact_flow(session, call.request.messages, False, "")
        if result.outcome == "stuck":
            return None
        log(
            "request_bridged",
            "this one request was made to fit without the archive, nothing else changed: %s",
            trouble,
        )
        return call.showing(result.messages)

    async def _compacted(
        self,
        call: GuardedCall,
        room: Window | None,
        measured: Measured,
        messages: Sequence[BaseMessage],
    ) -> CompactionResult:
        session = call.channel.session(room, ratio=measured.ratio)
        return await compact_flow(session, messages, False, "")

    def _after(self, result: CompactionResult) -> Size:
        count = self.graph.engine.sizes
        tokens = result.tokens_after if count is None else sum(map(count, result.messages))
        return Size(tokens, len(result.messages))
