"""Read Gemini CLI's sessions: one object; or lines, where a later line may replace a message.

A message of the agent has its calls with their results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conspectus.messages.blocks import at_path
from conspectus.messages.message import as_text
from conspectus.transcripts.reading import (
    Reading,
    RecordedCall,
    Row,
    chat_messages,
    joined_text,
)


def is_record(row: Row) -> bool:
    """Tell whether a record, or the object around the records, is Gemini CLI's."""
    return row.get("type") == "gemini" or {"sessionId", "projectHash"} <= row.keys()


def read_session(records: Sequence[Any], around: Row) -> Reading:
    """Read the messages, without notices, thoughts and removed messages."""
    turns: dict[Any, Row] = {}
    for row in records:
        if "$rewindTo" in row and row["$rewindTo"] in turns:
            _rewind(turns, row["$rewindTo"])
        elif row.get("type") in ("user", "gemini"):
            turns[_name_of(row, len(turns))] = row
        elif not turns:  # otherwise it is a compressed history whose originals are in the file
            compressed = at_path(row, "$set.messages") or ()
            turns = {_name_of(turn, place): turn for place, turn in enumerate(compressed)}
    models = [str(turn["model"]) for turn in turns.values() if turn.get("model")]
    messages = [message for turn in turns.values() for message in _messages_of(turn)]
    return Reading(messages, len(turns), models[-1] if models else "")


def _name_of(turn: Row, place: int) -> Any:
    """Return the id of a turn, or its place if it has none."""
    name = turn.get("id")
    return place if name is None else name


def _rewind(turns: dict[Any, Row], to: object) -> None:
    names = list(turns)
    for name in names[names.index(to) :]:
        del turns[name]


def _messages_of(turn: Row) -> list[dict[str, Any]]:
    stamp = {key: turn[key] for key in ("id", "timestamp") if key in turn}
    parts = _parts(turn.get("content"))
    if turn.get("type") == "user":
        inline = [part["inlineData"] for part in parts if "inlineData" in part]
        urls = [f"data:{data.get('mimeType')};base64,{data.get('data')}" for data in inline]
        # A message that has only results repeats what the agent's message has.
        return chat_messages("user", joined_text(parts), stamp, image_urls=urls)
    calls = [
        RecordedCall(
            id=call.get("id"),
            tool=call.get("name"),
            arguments=call.get("args"),
            result=_result_text(call.get("result")),
        )
        for call in turn.get("toolCalls") or ()
    ]
    return chat_messages("assistant", joined_text(parts), stamp, calls=calls)


def _result_text(result: Any) -> str | None:
    texts = []
    for part in _parts(result):
        output = part.get("functionResponse", {}).get("response", part.get("text"))
        if isinstance(output, Mapping) and len(output) == 1:
            output = output.get("output", output.get("error", output))
        texts.append(as_text(output))
    return "\n".join(texts) if texts else None


def _parts(content: Any) -> list[Row]:
    """Return the parts of a content, which may be a text, a part, or a list of both."""
    listed = content if isinstance(content, list) else [content]
    parts = [{"text": part} if isinstance(part, str) else part for part in listed]
    return [part for part in parts if isinstance(part, Mapping)]
