"""What other middleware has made of the messages of a request."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any, cast

from langchain.agents.middleware.types import ModelRequest
from langchain_core.messages import AnyMessage, BaseMessage, convert_to_messages

from conspectus._langchain import is_message
from conspectus.langchain.cache import are_equal
from conspectus.langchain.state import said_in


def of_objects(request: ModelRequest[Any]) -> ModelRequest[Any]:
    """Return a request whose messages are objects: other middleware may have put dicts there."""
    sent = request.messages
    if are_equal(sent, request.state.get("messages")) or all(map(is_message, sent)):
        return request
    return request.override(messages=cast("list[AnyMessage]", convert_to_messages(sent)))


def laid_over(
    view: list[BaseMessage], channel: Sequence[BaseMessage], sent: Sequence[BaseMessage]
) -> list[BaseMessage]:
    """Lay other middleware's changes of a channel, known by id, over its view; copies are none."""
    if len(sent) == len(channel) and all(map(is_, sent, channel)):
        return view
    if any(one.id is None for one in sent):  # rebuilt without ids, as from dicts
        named = {one.id for one in sent}
        same: dict[str, list[BaseMessage]] = {}
        for one in reversed(channel):
            if one.id not in named:
                same.setdefault(said_in(one), []).append(one)
        sent = [
            one.model_copy(update={"id": same[said].pop().id})
            if one.id is None and same.get(said := said_in(one))
            else one
            for one in sent
        ]
    kept = {message.id: message for message in view}
    own = {message.id: message for message in channel}
    out = []
    for message in sent:
        original, short = own.get(message.id), kept.get(message.id)
        changed = original is None or (message is not original and message != original)
        if original is None or (short is not None and changed):
            out.append(message)
        elif short is not None:  # else it has left
            out.append(short)
    there = {message.id for message in sent}  # it may be a view already
    summary = [one for one in view if one.id not in own and one.id not in there]
    first = next((n for n, one in enumerate(out) if one.type != "system"), len(out))
    return [*out[:first], *summary, *out[first:]]
