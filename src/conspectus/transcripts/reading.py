"""What every reader of a history file gets and returns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

Row = Mapping[str, Any]
"""One record of a file: a JSON object."""


class Reading(NamedTuple):
    """The conversation in the records of a file."""

    messages: list[Any]  # in the order of the conversation
    used_records: int  # the number of records that belong to it
    model: str = ""  # the model that answered last; empty if the file does not say
    window: int | None = None  # its input limit in tokens, if the file says so


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A tool call, and its result if the file has one."""

    id: object
    tool: object
    arguments: object
    result: str | None


def joined_text(parts: Sequence[Row]) -> str:
    """Return the texts of some parts of a message, joined in their order."""
    return "".join(str(part.get("text", "")) for part in parts)


def chat_messages(
    role: str,
    text: str,
    stamp: Row,
    image_urls: Sequence[str] = (),
    calls: Sequence[RecordedCall] = (),
) -> list[dict[str, Any]]:
    """Return a message in OpenAI's form, followed by the results of its calls.

    Args:
        role: who speaks.
        text: the words; may be empty.
        stamp: further keys of the message, such as its id and time.
        image_urls: addresses of its pictures, `data:` ones included.
        calls: its tool calls.

    Returns:
        The messages; none if there are no words, pictures or calls.
    """
    content: Any = text
    if image_urls:
        content = [{"type": "text", "text": text}] if text else []
        content += [{"type": "image_url", "image_url": {"url": url}} for url in image_urls]
    if not content and not calls:
        return []
    message: dict[str, Any] = {"role": role, "content": content or None, **stamp}
    if calls:
        message["tool_calls"] = [_tool_call(call) for call in calls]
    results = [
        {"role": "tool", "tool_call_id": str(call.id), "content": call.result}
        for call in calls
        if call.result is not None
    ]
    return [message, *results]


def _tool_call(call: RecordedCall) -> dict[str, Any]:
    function = {"name": str(call.tool), "arguments": json.dumps(call.arguments or {})}
    return {"id": str(call.id), "type": "function", "function": function}
