"""Read Claude Code's sessions: trees of lines; messages of the current branch, once.

A resumed session repeats its lines under new uuids; a rewound one continues from an earlier line; a
compacted one continues from a summary of its own. A message of the agent has as many lines as
blocks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conspectus.cli.placed import Placed

PRECISE = 20
"""Least characters of a timestamp with fractions of a second, such as Claude Code's: equal texts
with equal timestamps are one."""

AHEAD = 20  # Lines after a user's message that are searched for the answer


def is_claude_code(data: Any) -> bool:
    """Tell whether a line is a message in a session of Claude Code."""
    if not isinstance(data, Mapping) or data.get("type") not in ("user", "assistant"):
        return False
    message = data.get("message")
    return isinstance(message, Mapping) and "content" in message


def claude_code_messages(placed: Sequence[Placed]) -> tuple[list[Placed], int]:
    """Read a session as Anthropic-style dicts; also count the lines left out.

    Lines of one assistant message are joined. Left out are lines outside the conversation, side
    chains, meta lines, errors of the API, repeated lines, rewound branches, and Claude Code's own
    summaries if their originals are in the file. If all messages are of a side chain, that is the
    conversation: the file is a subagent's own.
    """
    if not any(_speaks(part.data) for part in placed):
        placed = [replace(part, data={**part.data, "isSidechain": False}) for part in placed]
    messages: list[Placed] = []
    by_message: dict[str, dict[str, Any]] = {}
    used = 0
    for line in _in_force(_read(placed)):
        data, said = line.part.data, line.part.data["message"]
        if data.get("isCompactSummary") and messages:
            continue
        used += 1
        whole = by_message.get(line.message_id)
        if whole is not None:
            whole["content"] = [*_blocks(whole["content"]), *line.blocks]
            continue
        content = said["content"]
        if isinstance(content, list):
            content = line.blocks
        message = {"role": said.get("role", data["type"]), "content": content}
        for key, name in (("id", "uuid"), ("timestamp", "timestamp")):
            if data.get(name) is not None:
                message[key] = data[name]
        if line.message_id:
            by_message[line.message_id] = message
        messages.append(Placed(message, line.part.index, line.part.line))
    return messages, len(placed) - used


@dataclass(eq=False, slots=True)
class _Line:
    """A message, or a part of one, that is no copy of an earlier one.

    `before` is the line that it follows, `blocks` are those that no earlier line of its message
    has.
    """

    part: Placed
    before: _Line | None
    blocks: list[Any]

    @property
    def message_id(self) -> str:
        """The id of its agent message; empty for none."""
        return _message_id(self.part.data)


def _read(placed: Sequence[Placed]) -> list[_Line]:
    """Return the lines that are no copies, in the order of the file.

    A line is a copy if its blocks were in a message of the same id, its results under the ids of
    the same calls, its text at the same time; or if an earlier line has the same content after the
    same line; or if the lines after both are copies.
    """
    lines: list[_Line] = []
    by_uuid: dict[str, _Line | None] = {}
    said: dict[tuple[str, ...], _Line] = {}
    after: dict[tuple[int, str], _Line] = {}
    for place, part in enumerate(placed):
        data = part.data
        uuid = data.get("uuid")
        if isinstance(uuid, str) and uuid in by_uuid:
            continue
        named = data.get("parentUuid") or data.get("logicalParentUuid")
        starts = named is None and "parentUuid" in data
        before = lines[-1] if lines and not starts else None
        if isinstance(named, str) and named in by_uuid:
            before = by_uuid[named]
            starts = before is None
        same = before  # a line that is no message stands for the one that it follows
        if _speaks(data):
            names, text = _names(data), _text(data)
            same = said[names[-1]] if names and all(name in said for name in names) else None
            same = same or after.get((id(before), text)) or _asked_again(placed, place, said)
            if same is None:
                blocks = _blocks(data["message"]["content"])
                if len(names) == len(blocks):
                    pairs = zip(names, blocks, strict=True)
                    blocks = [block for name, block in pairs if name not in said]
                same = _Line(part, lines[-1] if starts and lines else before, blocks)
                lines.append(same)
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
        path.add(id(at))
        at = at.before
    messages = {line.message_id for line in lines if id(line) in path} - {""}
    calls: set[Any] = set()
    for line in lines:
        results = {block.get("tool_use_id") for block in _typed(line.blocks, "tool_result")}
        if id(line) in path or line.message_id in messages or (results and results <= calls):
            calls |= {block.get("id") for block in _typed(line.blocks, "tool_use")}
            yield line


def _asked_again(
    placed: Sequence[Placed], place: int, said: Mapping[tuple[str, ...], _Line]
) -> _Line | None:
    """Find the original of a copied user's message by the copied answer after it."""
    asked = 0
    for part in placed[place : place + AHEAD]:
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
        same = line is not None and _text(line.part.data) == _text(placed[place].data)
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
        return [("summary", _written(content))]
    time = data.get("timestamp")
    if isinstance(time, str) and len(time) >= PRECISE:
        return [("asked", time, _written(content))]
    return []


def _block_name(block: Any) -> str:
    call = isinstance(block, Mapping) and block.get("type") == "tool_use" and block.get("id")
    return f"call {call}" if call else _written(block)


def _text(data: Mapping[str, Any]) -> str:
    """Hash the content of a message, without its uuid and its time."""
    return _written([data["type"], _message_id(data), data["message"]["content"]])


def _message_id(data: Mapping[str, Any]) -> str:
    return str(data["message"].get("id") or "") if data["type"] == "assistant" else ""


def _speaks(data: Any) -> bool:
    """Tell whether a line is a message of the main conversation, with content."""
    return (
        is_claude_code(data)
        and bool(data["message"]["content"])
        and not any(data.get(key) for key in ("isSidechain", "isMeta", "isApiErrorMessage"))
    )


def _blocks(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


def _typed(blocks: Sequence[Any], kind: str) -> list[Mapping[str, Any]]:
    return [one for one in blocks if isinstance(one, Mapping) and one.get("type") == kind]


def _written(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
