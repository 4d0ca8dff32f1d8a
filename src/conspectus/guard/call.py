"""Follow one call of a model through the guard.

A request is measured as it is sent; its overhead goes into the state for the next plan. A record
of the guard goes into the state as `pending`: the originals are still in the channel, and the next
`before_model` folds the record over them.

The originals recalled for the turn are taken out before anything is measured or archived, and
put back before the request is sent. They are known by their marker and by not being in the
channel, so that no message of the history is taken for them.
"""

from __future__ import annotations

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

from conspectus.agents.channel import Channel
from conspectus.agents.state import (
    HELD,
    RECALLED,
    REQUEST,
    HeadState,
    Recalled,
    Requested,
    read_recalled,
    turn_of,
)
from conspectus.messages.recalled import newest_user, with_recalled, without_recalled

Request = ModelRequest[Any]


@dataclass(frozen=True, slots=True)
class GuardedCall:
    """One call: the request, and the state after it.

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
        """The request with the recalled originals."""
        if self.recalled is None:
            return self.request
        return self.showing(with_recalled(self.request.messages, self.recalled)).request

    def alone(self) -> GuardedCall:
        """Leave out the recalled originals."""
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
