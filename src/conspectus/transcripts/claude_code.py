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

SYNTHETIC = "<synthetic>"  # the model of what Claude Code says in the agent's name

Name = tuple[Any, ...]


@dataclass(eq=False, slots=True)
class _Line:
    """A message, or a part of one, that is no copy of an earlier one."""

    part: Record
    index: int
    before: _Line | None  # the line that it follows
    blocks: list[Any]  # those that no earlier line of its message has


def _knows(data: Mapping[str, Any]) -> bool:
    return _is_message(data) or ("type" in data and not {"sessionId", "leafUuid"}.isdisjoint(data))


def _read(parsed: Parsed) -> Reading:
    """Read a session as Anthropic-style dicts; lines of one assistant message are joined.

    Left out are lines outside the conversation, side chains, meta lines, errors of the API,
    repeated lines, rewound branches, and Claude Code's own summaries if their originals are in the
    file. If all messages are of a side chain, the file is a subagent's own.
    """
    parts = [replace(part, data=_with_queued(part.data)) for part in parsed.records]
    if not any(_speaks(part.data) for part in parts):
        parts = [replace(part, data={**part.data, "isSidechain": False}) for part in parts]
    messages: list[Record] = []
    by_message: dict[str, dict[str, Any]] = {}
    used, model = 0, ""
    for line in _in_force(_lines(parts)):
        data, said = line.part.data, line.part.data["message"]
        if data.get("isCompactSummary") and messages:
            continue
        used += 1
        if said.get("model") not in (None, SYNTHETIC):
            model = str(said["model"])
        whole = by_message.get(_message_id(data))
        if whole is not None:
            whole["content"] = [*_blocks(whole["content"]), *line.blocks]
            continue
        content = line.blocks if isinstance(said["content"], list) else said["content"]
        message = {"role": said.get("role", data["type"]), "content": content}
        names = {"id": "uuid", "timestamp": "timestamp"}.items()
        message |= {key: data[name] for key, name in names if data.get(name) is not None}
        if _message_id(data):
            by_message[_message_id(data)] = message
        messages.append(Record(message, line.part.index, line.part.line))
    return Reading(messages, len(parts) - used, model)


def _with_queued(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Make a user's message of what was typed during a turn."""
    more: Any = data.get("attachment")
    more = more if isinstance(more, Mapping) else {}
    if more.get("type") != "queued_command" or more.get("commandMode", "prompt") != "prompt":
        return data
    return {**data, "type": "user", "message": {"role": "user", "content": more.get("prompt")}}


def _lines(parts: Sequence[Record]) -> list[_Line]:
    """Return the lines that are no copies, in the order of the file.

    A summary follows all that was in force when it was written, and no later line goes back behind
    it, whatever parent it names.
    """
    lines: list[_Line] = []
    by_uuid: dict[Any, _Line | None] = {}
    known: dict[Name, _Line] = {}
    floor = 0
    for part, names in zip(parts, _names(parts), strict=True):
        data = part.data
        uuid, summary = data.get("uuid"), data.get("isCompactSummary")
        if isinstance(uuid, str) and uuid in by_uuid:
            continue
        last = lines[-1] if lines else None
        parent = str(data.get("parentUuid") or data.get("logicalParentUuid"))
        line = (None if summary else by_uuid.get(parent)) or last
        if line is not None and line.index < floor:
            line = lines[floor]
        if names and all(name in known for name in names):
            line = known[names[-1]]
        elif names:  # a line that says nothing stands for the one that it follows
            blocks = _blocks(data["message"]["content"])
            if len(names) == len(blocks):
                pairs = zip(names, blocks, strict=True)
                blocks = [block for name, block in pairs if name not in known]
            line = _Line(part, len(lines), line, blocks)
            lines.append(line)
            floor = line.index if summary else floor
            for name in names:
                known.setdefault(name, line)
        by_uuid[uuid] = line
    return lines


def _names(parts: Sequence[Record]) -> list[list[Name]]:
    """Name what each line says, a name for each block or one for all; copies have equal names.

    Words without an id of their own are known by the answer that comes next, and how far it is.
    """
    names: list[list[Name]] = []
    answer, ahead = "", 0
    for part in reversed(parts):
        data, own = part.data, list[Name]()
        if _speaks(data):
            content, message = data["message"]["content"], _message_id(data)
            blocks = _blocks(content)
            results = [block.get("tool_use_id") for block in _typed(blocks, "tool_result")]
            if message:
                answer, ahead = message, 0
                own = [(message, _block_name(block)) for block in blocks]
            elif results:
                own = [("results", *results)]
            else:
                ahead += 1
                behind = () if data.get("isCompactSummary") else (answer, ahead)
                own = [("said", _hash(content), *behind)]
        names.append(own)
    return names[::-1]


def _in_force(lines: Sequence[_Line]) -> Iterator[_Line]:
    """Yield the messages on the way to the last one, with their blocks and results.

    Parallel calls fan out: the next line follows only one of their results.
    """
    path: set[int] = set()
    at = lines[-1] if lines else None
    while at is not None:
        path.add(at.index)
        at = at.before
    messages = {_message_id(line.part.data) for line in lines if line.index in path} - {""}
    calls: set[Any] = set()
    for line in lines:
        results = {block.get("tool_use_id") for block in _typed(line.blocks, "tool_result")}
        joined = _message_id(line.part.data) in messages
        if line.index in path or joined or (results and results <= calls):
            calls |= {block.get("id") for block in _typed(line.blocks, "tool_use")}
            yield line


def _is_message(data: Mapping[str, Any]) -> bool:
    message = data.get("message")
    return (
        data.get("type") in ("user", "assistant")
        and isinstance(message, Mapping)
        and isinstance(message.get("content"), str | list)
    )


def _speaks(data: Mapping[str, Any]) -> bool:
    """Tell whether a line is a message of the main conversation, with content."""
    aside = any(data.get(key) for key in ("isSidechain", "isMeta", "isApiErrorMessage"))
    return _is_message(data) and bool(data["message"]["content"]) and not aside


def _message_id(data: Mapping[str, Any]) -> str:
    return str(data["message"].get("id") or "") if data["type"] == "assistant" else ""


def _block_name(block: Any) -> str:
    call = isinstance(block, Mapping) and block.get("type") == "tool_use" and block.get("id")
    return f"call {call}" if call else _hash(block)


def _blocks(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _typed(blocks: Sequence[Any], kind: str) -> list[Mapping[str, Any]]:
    return [one for one in blocks if isinstance(one, Mapping) and one.get("type") == kind]


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


FORM = Form("claude-code", _knows, _read, True, ("id", "timestamp"))
