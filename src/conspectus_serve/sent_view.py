"""The messages that are sent for a view: the client's, the notes, and dropped ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import is_
from typing import Any

from conspectus_serve.alignment import DroppedMessages
from conspectus_serve.handling import Conversation
from conspectus_serve.work import CompactedView


@dataclass(frozen=True, slots=True)
class ViewToSend:
    messages: list[Any] | None  # None if they are the client's own
    messages_as_read: list[Any]  # the same messages in the form that the engine reads
    tokens: int


def view_to_send(
    conversation: Conversation, dropped: DroppedMessages, compacted: CompactedView
) -> ViewToSend:
    """Return the messages that are sent for a view.

    Dropped messages are sent again only if the request does not become larger than the client's, so
    that a client that sends little pays for little. Before the first compaction, none are sent.
    """
    entries = compacted.view
    tokens = compacted.result.tokens_after
    dropped_indexes = range(dropped.start, dropped.start + len(dropped.messages))
    sent_again = [index for index in entries if _is_index_in(index, dropped_indexes)]
    tokens_again = sum(dropped.fingerprints[index - dropped.start].tokens for index in sent_again)
    is_affordable = bool(compacted.head_id) and tokens_again <= conversation.measured.tokens
    if sent_again and not is_affordable:
        entries = [entry for entry in entries if not _is_index_in(entry, dropped_indexes)]
        tokens -= tokens_again
    sent = dropped.put_back(conversation.sent, dropped.messages)
    as_read = dropped.put_back(conversation.fingerprinted.messages, dropped.messages)
    messages = _resolved(entries, sent)
    has_as_many = len(messages) == len(conversation.sent)
    is_as_it_came = has_as_many and all(map(is_, messages, conversation.sent))
    return ViewToSend(
        None if is_as_it_came else messages,
        _resolved(entries, as_read),
        tokens,
    )


def _is_index_in(entry: Any, indexes: range) -> bool:
    return isinstance(entry, int) and entry in indexes


def dropped_and_uncovered(dropped: DroppedMessages, compacted: CompactedView) -> DroppedMessages:
    """Return the dropped messages that no record covers; they are in view."""
    in_view = {entry for entry in compacted.view if isinstance(entry, int)}
    positions = [at for at in range(len(dropped.messages)) if dropped.start + at in in_view]
    return replace(
        dropped,
        fingerprints=[dropped.fingerprints[at] for at in positions],
        messages=[dropped.messages[at] for at in positions],
    )


def _resolved(view: Sequence[Any], history: Sequence[Any]) -> list[Any]:
    """Return a view with the messages of a history in the place of their indexes."""
    return [history[entry] if isinstance(entry, int) else entry for entry in view]
