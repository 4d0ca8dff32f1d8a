"""Apply what other middleware has changed in the messages of a request."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any, cast

from langchain.agents.middleware.types import ModelRequest
from langchain_core.messages import AnyMessage, BaseMessage, convert_to_messages

from conspectus._langchain import is_message
from conspectus.langchain.history_sizes import are_equal
from conspectus.langchain.state import said_in


def with_message_objects(request: ModelRequest[Any]) -> ModelRequest[Any]:
    """Return a request whose messages are objects. Other middleware may have put dicts into it."""
    sent = request.messages
    if are_equal(sent, request.state.get("messages")) or all(map(is_message, sent)):
        return request
    return request.override(messages=cast("list[AnyMessage]", convert_to_messages(sent)))


def apply_changes(
    view: list[BaseMessage], history: Sequence[BaseMessage], sent: Sequence[BaseMessage]
) -> list[BaseMessage]:
    """Return the view of a history, with the changes that other middleware has made in the history.

    Messages are compared by their ids. An equal copy is no change.

    Args:
        view: what the records in force make of the history.
        history: the messages in the state.
        sent: the messages with the changes of other middleware.
    """
    if len(sent) == len(history) and all(map(is_, sent, history)):
        return view
    if any(message.id is None for message in sent):  # rebuilt without ids, for example from dicts
        sent = _with_ids(sent, history)
    shown = {message.id: message for message in view}
    originals = {message.id: message for message in history}
    messages: list[BaseMessage] = []
    for message in sent:
        original = originals.get(message.id)
        in_view = shown.get(message.id)
        if original is None:
            messages.append(message)  # added
        elif in_view is not None:  # else it was evicted
            is_changed = message is not original and message != original
            messages.append(message if is_changed else in_view)
    sent_ids = {message.id for message in sent}  # `sent` may be a view already
    summaries = [m for m in view if m.id not in originals and m.id not in sent_ids]
    no_system = (n for n, message in enumerate(messages) if message.type != "system")
    start = next(no_system, len(messages))
    return [*messages[:start], *summaries, *messages[start:]]


def _with_ids(sent: Sequence[BaseMessage], history: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Give messages without ids the ids of the equal messages in the history."""
    used = {message.id for message in sent}
    free: dict[str, list[BaseMessage]] = {}
    for original in reversed(history):
        if original.id not in used:
            free.setdefault(said_in(original), []).append(original)
    named: list[BaseMessage] = []
    for message in sent:
        same = free.get(said_in(message)) if message.id is None else None
        named.append(message.model_copy(update={"id": same.pop().id}) if same else message)
    return named
