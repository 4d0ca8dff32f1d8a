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
    """Lay other middleware's changes of a channel over its view.

    Messages are known by their ids; an equal copy is no change.
    """
    if len(sent) == len(channel) and all(map(is_, sent, channel)):
        return view
    if any(message.id is None for message in sent):  # rebuilt without ids, as from dicts
        sent = _with_ids(sent, channel)
    shown = {message.id: message for message in view}
    originals = {message.id: message for message in channel}
    messages: list[BaseMessage] = []
    for message in sent:
        original = originals.get(message.id)
        in_view = shown.get(message.id)
        changed = original is None or (message is not original and message != original)
        if original is None or (in_view is not None and changed):
            messages.append(message)
        elif in_view is not None:  # else it has left
            messages.append(in_view)
    sent_ids = {message.id for message in sent}  # it may be a view already
    summaries = [m for m in view if m.id not in originals and m.id not in sent_ids]
    no_system = (n for n, message in enumerate(messages) if message.type != "system")
    start = next(no_system, len(messages))
    return [*messages[:start], *summaries, *messages[start:]]


def _with_ids(sent: Sequence[BaseMessage], channel: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Give messages without ids those of the same messages in the channel."""
    used = {message.id for message in sent}
    free: dict[str, list[BaseMessage]] = {}
    for original in reversed(channel):
        if original.id not in used:
            free.setdefault(said_in(original), []).append(original)
    named: list[BaseMessage] = []
    for message in sent:
        same = free.get(said_in(message)) if message.id is None else None
        named.append(message.model_copy(update={"id": same.pop().id}) if same else message)
    return named
