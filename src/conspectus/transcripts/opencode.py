"""Read files of `opencode export`: messages, each with an `info` and `parts`.

A tool's part has a call and its result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from conspectus.messages.blocks import at_path
from conspectus.transcripts.reading import (
    Reading,
    RecordedCall,
    Row,
    chat_messages,
    joined_text,
)


def is_record(row: Row) -> bool:
    """Tell whether a record is a message of opencode's."""
    return isinstance(row.get("info"), Mapping) and isinstance(row.get("parts"), list)


def read_session(records: Sequence[Any], around: Row) -> Reading:
    """Read the messages, up to the one that the user went back to."""
    reverted_to = at_path(around, "info.revert.messageID")
    messages: list[dict[str, Any]] = []
    model = ""
    used_records = 0
    for row in filter(is_record, records):
        info = row["info"]
        if reverted_to is not None and info.get("id") == reverted_to:
            break
        model = str(info.get("modelID") or at_path(info, "model.modelID") or model)
        if messages and info.get("summary") is True:  # its originals are in the file
            continue
        messages_of_row = _messages_of(info, row["parts"])
        used_records += bool(messages_of_row)
        messages += messages_of_row
    return Reading(messages, used_records, model)


def _messages_of(info: Row, parts: Sequence[Row]) -> list[dict[str, Any]]:
    created = at_path(info, "time.created")
    time: str | None = None
    if isinstance(created, int):
        time = datetime.fromtimestamp(created / 1000, UTC).isoformat(timespec="seconds")
    if info.get("role") == "user":
        return _user_messages(info, parts, time)
    return _agent_messages(info, parts, time)


def _user_messages(info: Row, parts: Sequence[Row], time: str | None) -> list[dict[str, Any]]:
    """Make the user's message, and after it the developer's, with what the program added."""
    texts = [part for part in parts if part["type"] == "text" and not part.get("ignored")]
    typed = joined_text([part for part in texts if not part.get("synthetic")])
    added = joined_text([part for part in texts if part.get("synthetic")])
    images = [part for part in parts if str(part.get("mime", "")).startswith("image/")]
    urls = [str(part["url"]) for part in images]
    messages = chat_messages("user", typed, _stamp(info, time), image_urls=urls)
    if added.strip():
        messages += chat_messages("developer", added, {"timestamp": time})
    return messages


def _agent_messages(info: Row, parts: Sequence[Row], time: str | None) -> list[dict[str, Any]]:
    """Make a message for each step of the agent, followed by the results of its calls."""
    messages: list[dict[str, Any]] = []
    text = ""
    calls: list[RecordedCall] = []
    for part in [*parts, {"type": "step-start"}]:
        if part["type"] == "step-start":
            # Only the first message has the id, because ids are unique.
            stamp = {"timestamp": time} if messages else _stamp(info, time)
            messages += chat_messages("assistant", text, stamp, calls=calls)
            text = ""
            calls = []
        elif part["type"] == "text":
            text += str(part["text"])
        elif part["type"] == "tool":
            state = part["state"]
            result = state.get("output", state.get("error"))
            calls.append(RecordedCall(part["callID"], part["tool"], state.get("input"), result))
    return messages


def _stamp(info: Row, time: str | None) -> Row:
    return {"id": info.get("id"), "timestamp": time}
