"""One call of a model on its way through the guard.

A request is measured as it is sent, and its overhead goes into the state for the next plan. A
record that the guard makes goes into the state as `pending`: the originals are still in the
channel, and the next `before_model` folds the record over them, so nothing is summarised twice.
What was recalled for the turn is taken out before anything is measured, planned or archived, and
put back before the request is sent. It is known by its marker and by not being in the channel, so
that no message of the history is left out because somebody marked it.
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
    """One call on its way: the request, and the state after it.

    Attributes:
        request: without the recalled originals.
        first: the record that the state holds.
        recalled: the message that shows it; None for nothing.
        dropped: it was left out for lack of room, and stays so for the rest of the turn.
    """

    request: Request
    channel: Channel
    first: HeadState
    recalled: BaseMessage | None = None
    dropped: bool = False

    @classmethod
    def of(cls, request: Request, channel: Channel) -> GuardedCall:
        """Take a call as it comes in."""
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
        """The record that the state will hold."""
        return self.channel.held

    def holding(self, held: HeadState) -> GuardedCall:
        """Put another record in force."""
        return replace(self, channel=self.channel.holding(held))

    def showing(self, view: Sequence[BaseMessage]) -> GuardedCall:
        """Show other messages."""
        messages = cast("list[AnyMessage]", list(view))
        return replace(self, request=self.request.override(messages=messages))


def kept_whole(call: GuardedCall, fitted: GuardedCall) -> bool:
    """Whether the user's newest message is still as it was."""
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
