"""Claude Code's sessions: trees of lines; messages of the current branch, once.

A resumed session repeats its lines under new uuids; a rewound one continues from an earlier line; a
compacted one continues from a summary of its own, whose parent may lead past what it sums up. A
message of the agent has as many lines as blocks. What is typed during a turn is an attachment.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conspectus.transcripts.records import Form, Parsed, Reading, Record

PRECISE = 20
"""Least characters of a timestamp with fractions of a second, such as Claude Code's: equal texts
with equal timestamps are one."""

AHEAD = 20  # Lines after a user's message that are searched for the answer
SYNTHETIC = "<synthetic>"  # The model of what Claude Code says in the agent's name


def _knows(data: Mapping[str, Any]) -> bool:
    return _is_message(data) or ("type" in data and not {"sessionId", "leafUuid"}.isdisjoint(data))


def _is_message(data: Mapping[str, Any]) -> bool:
    """Tell whether a line is a message."""
    message = data.get("message")
    return (
        data.get("type") in ("user", "assistant")
        and isinstance(message, Mapping)
        and isinstance(message.get("content"), str | list)
    )


def _read(parsed: Parsed) -> Reading:
    """Read a session as Anthropic-style dicts.

    Lines of one assistant message are joined. Left out are lines outside the conversation, side
    chains, meta lines, errors of the API, repeated lines, rewound branches, and Claude Code's own
    summaries if their originals are in the file. If all messages are of a side chain, that is the
    conversation: the file is a subagent's own.
    """
    lines = [replace(part, data=_with_queued(part.data)) for part in parsed.records]
    if not any(_speaks(part.data) for part in lines):
        lines = [replace(part, data={**part.data, "isSidechain": False}) for part in lines]
    messages: list[Record] = []
    by_message: dict[str, dict[str, Any]] = {}
    used, model = 0, ""
    for line in _in_force(_lines(lines)):
        data, said = line.part.data, line.part.data["message"]
        if data.get("isCompactSummary") and messages:
            continue
        used += 1
        if said.get("model") not in (None, SYNTHETIC):
            model = str(said["model"])
        whole = by_message.get(line.message_id)
        if whole is not None:
            whole["content"] = [*_blocks(whole["content"]), *line.blocks]
            continue
        content = line.blocks if isinstance(said["content"], list) else said["content"]
        message = {"role": said.get("role", data["type"]), "content": content}
        for key, name in (("id", "uuid"), ("timestamp", "timestamp")):
            if data.get(name) is not None:
                message[key] = data[name]
        if line.message_id:
            by_message[line.message_id] = message
        messages.append(Record(message, line.part.index, line.part.line))
    return Reading(messages, len(lines) - used, model)


def _with_queued(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Make a user's message of what was typed during a turn."""
    more = data.get("attachment")
    if (
        data.get("type") != "attachment"
        or not isinstance(more, Mapping)
        or more.get("type") != "queued_command"
        or more.get("commandMode", "prompt") != "prompt"
    ):
        return data
    return {**data, "type": "user", "message": {"role": "user", "content": more.get("prompt")}}


@dataclass(eq=False, slots=True)
class _Line:
    """A message, or a part of one, that is no copy of an earlier one.

    `before` is the line that it follows, `blocks` are those that no earlier line of its message
    has. `place` counts the lines.
    """

    part: Record
    place: int
    before: _Line | None
    blocks: list[Any]

    @property
    def message_id(self) -> str:
        """The id of its agent message; empty for none."""
        return _message_id(self.part.data)


def _lines(records: Sequence[Record]) -> list[_Line]:
    """Return the lines that are no copies, in the order of the file.

    A line is a copy if its blocks were in a message of the same id, its results under the ids of
    the same calls, its text at the same time; or if an earlier line has the same content after the
    same line; or if the lines after both are copies.

    A summary follows all that was in force when it was written, and no later line goes back behind
    it, whatever parent it names.
    """
    lines: list[_Line] = []
    by_uuid: dict[str, _Line | None] = {}
    said: dict[tuple[str, ...], _Line] = {}
    after: dict[tuple[int, str], _Line] = {}
    floor: _Line | None = None
    for at, part in enumerate(records):
        data = part.data
        uuid = data.get("uuid")
        if isinstance(uuid, str) and uuid in by_uuid:
            continue
        parent = data.get("parentUuid") or data.get("logicalParentUuid")
        starts = parent is None and "parentUuid" in data
        before = lines[-1] if lines and not starts else None
        if isinstance(parent, str) and parent in by_uuid:
            before = by_uuid[parent]
            starts = before is None
        same = before  # a line that is no message stands for the one that it follows
        if _speaks(data):
            names, text = _names(data), _text(data)
            same = said[names[-1]] if names and all(name in said for name in names) else None
            same = same or after.get((id(before), text)) or _asked_again(records, at, said)
            if same is None:
                blocks = _blocks(data["message"]["content"])
                if len(names) == len(blocks):
                    pairs = zip(names, blocks, strict=True)
                    blocks = [block for name, block in pairs if name not in said]
                follows = lines[-1] if starts and lines else before
                if data.get("isCompactSummary") and lines:
                    follows = lines[-1]
                elif floor is not None and (follows is None or follows.place < floor.place):
                    follows = floor
                same = _Line(part, len(lines), follows, blocks)
                lines.append(same)
                floor = same if data.get("isCompactSummary") else floor
                after[id(before), text] = same
                for name in names:
                    said.setdefault(name, same)
        if isinstance(uuid, str):
            by_uuid[uuid] = same
    return lines


def _in_force(lines: Sequence[_Line]) -> Iterator[_Line]:
    """Yield the messages on the way to the last one, with their blocks and results.

    Parallel calls fan out: the next line follows only one of their results.
    """
    path: set[int] = set()
    at = lines[-1] if lines else None
    while at is not None:
        path.add(at.place)
        at = at.before
    messages = {line.message_id for line in lines if line.place in path} - {""}
    calls: set[Any] = set()
    for line in lines:
        results = {block.get("tool_use_id") for block in _typed(line.blocks, "tool_result")}
        if line.place in path or line.message_id in messages or (results and results <= calls):
            calls |= {block.get("id") for block in _typed(line.blocks, "tool_use")}
            yield line


def _asked_again(
    records: Sequence[Record], at: int, said: Mapping[tuple[str, ...], _Line]
) -> _Line | None:
    """Find the original of a copied user's message by the copied answer after it."""
    asked = 0
    for part in records[at : at + AHEAD]:
        if not _speaks(part.data):
            continue
        if part.data["type"] == "user":
            asked += 1
            continue
        names = _names(part.data)
        if not names or not all(name in said for name in names):
            return None
        line: _Line | None = said[names[0]]
        for _ in range(asked):
            line = line.before if line is not None else None
        same = line is not None and _text(line.part.data) == _text(records[at].data)
        return line if same and asked else None
    return None


def _names(data: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Name the content of a line: a name for each block, or one for all."""
    content = data["message"]["content"]
    blocks, message = _blocks(content), _message_id(data)
    if data["type"] == "assistant":
        return [(message, _block_name(block)) for block in blocks] if message else []
    if results := [str(block.get("tool_use_id")) for block in _typed(blocks, "tool_result")]:
        return [("results", *results)]
    if data.get("isCompactSummary"):
        return [("summary", _hash(content))]
    time = data.get("timestamp")
    if isinstance(time, str) and len(time) >= PRECISE:
        return [("asked", time, _hash(content))]
    return []


def _block_name(block: Any) -> str:
    call = isinstance(block, Mapping) and block.get("type") == "tool_use" and block.get("id")
    return f"call {call}" if call else _hash(block)


def _text(data: Mapping[str, Any]) -> str:
    """Hash the content of a message, without its uuid and its time."""
    return _hash([data["type"], _message_id(data), data["message"]["content"]])


def _message_id(data: Mapping[str, Any]) -> str:
    return str(data["message"].get("id") or "") if data["type"] == "assistant" else ""


def _speaks(data: Mapping[str, Any]) -> bool:
    """Tell whether a line is a message of the main conversation, with content."""
    return (
        _is_message(data)
        and bool(data["message"]["content"])
        and not any(data.get(key) for key in ("isSidechain", "isMeta", "isApiErrorMessage"))
    )


def _blocks(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


def _typed(blocks: Sequence[Any], kind: str) -> list[Mapping[str, Any]]:
    return [one for one in blocks if isinstance(one, Mapping) and one.get("type") == kind]


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


FORM = Form("claude-code", _knows, _read, True, ("id", "timestamp"))
