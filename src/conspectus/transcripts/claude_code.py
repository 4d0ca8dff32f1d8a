"""Claude Code's sessions: trees of lines; messages of the current branch, once.

A resumed session repeats its lines under new uuids; a rewound one continues from an earlier line; a
compacted one continues from a summary of its own, whose parent may lead past what it sums up. A
message of the agent has as many lines as blocks. What is typed during a turn is an attachment.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SYNTHETIC = "<synthetic>"  # the model of what Claude Code says in the agent's name

Name = tuple[Any, ...]
Row = Mapping[str, Any]


@dataclass(eq=False, slots=True)
class _Line:
    """A message, or a part of one, that is no copy of an earlier one."""

    row: Row
    index: int
    before: _Line | None  # the line that it follows
    blocks: list[Any]  # those that no earlier line of its message has


def is_message(row: Row) -> bool:
    """Return whether a line is a message."""
    message = row.get("message")
    typed = row.get("type") in ("user", "assistant") and isinstance(message, Mapping)
    return typed and isinstance(message.get("content"), (str, list))  # type: ignore[union-attr]


def read_session(rows: Sequence[Row]) -> tuple[list[dict[str, Any]], int, str]:
    """Read a session as Anthropic-style dicts; lines of one assistant message are joined.

    Left out are lines outside the conversation, side chains, meta lines, errors of the API,
    repeated lines, rewound branches, and Claude Code's own summaries if their originals are in the
    file. If all messages are of a side chain, the file is a subagent's own. Return also the number
    of lines that were used, and the model that answered last.
    """
    rows = list(map(_with_queued, rows))
    if not any(map(_speaks, rows)):
        rows = [{**row, "isSidechain": False} for row in rows]
    messages: list[dict[str, Any]] = []
    by_id: dict[str, dict[str, Any]] = {}
    used, model = 0, ""
    for line in _in_force(_lines(rows)):
        row, spoken = line.row, line.row["message"]
        if row.get("isCompactSummary") and messages:
            continue
        used += 1
        if spoken.get("model") not in (None, SYNTHETIC):
            model = str(spoken["model"])
        name = _message_id(row)
        if name in by_id:
            by_id[name]["content"] = [*_blocks(by_id[name]["content"]), *line.blocks]
            continue
        content = line.blocks if isinstance(spoken["content"], list) else spoken["content"]
        message = {"role": spoken.get("role", row["type"]), "content": content}
        stamp = {"id": row.get("uuid"), "timestamp": row.get("timestamp")}
        message |= {key: value for key, value in stamp.items() if value is not None}
        if name:
            by_id[name] = message
        messages.append(message)
    return messages, used, model


def _with_queued(row: Row) -> Row:
    """Make a user's message of what was typed during a turn."""
    more = row.get("attachment")
    typed = isinstance(more, Mapping) and more.get("type") == "queued_command"
    if not typed or more.get("commandMode", "prompt") != "prompt":  # type: ignore[union-attr]
        return row
    prompt = more.get("prompt")  # type: ignore[union-attr]
    return {**row, "type": "user", "message": {"role": "user", "content": prompt}}


def _lines(rows: Sequence[Row]) -> list[_Line]:
    """Return the lines that are no copies, in the order of the file.

    A summary follows all that was in force when it was written, and no later line goes back behind
    it, whatever parent it names.
    """
    lines: list[_Line] = []
    by_uuid: dict[Any, _Line | None] = {}
    known: dict[Name, _Line] = {}
    floor = 0
    for row, names in zip(rows, _names(rows), strict=True):
        uuid, summary = row.get("uuid"), row.get("isCompactSummary")
        if isinstance(uuid, str) and uuid in by_uuid:
            continue
        last = lines[-1] if lines else None
        parent = str(row.get("parentUuid") or row.get("logicalParentUuid"))
        line = (None if summary else by_uuid.get(parent)) or last
        if line is not None and line.index < floor:
            line = lines[floor]
        if names and all(name in known for name in names):
            line = known[names[-1]]
        elif names:  # a line that says nothing stands for the one that it follows
            blocks = _blocks(row["message"]["content"])
            if len(names) == len(blocks):
                pairs = zip(names, blocks, strict=True)
                blocks = [block for name, block in pairs if name not in known]
            line = _Line(row, len(lines), line, blocks)
            lines.append(line)
            floor = line.index if summary else floor
            for name in names:
                known.setdefault(name, line)
        by_uuid[uuid] = line
    return lines


def _names(rows: Sequence[Row]) -> list[list[Name]]:
    """Name what each line says, a name for each block or one for all; copies have equal names.

    Words without an id of their own are known by the answer that comes next, and how far it is.
    """
    names: list[list[Name]] = []
    answer, ahead = "", 0
    for row in reversed(rows):
        row_names: list[Name] = []
        if _speaks(row):
            content, message = row["message"]["content"], _message_id(row)
            results = _ids(_blocks(content), "tool_result", "tool_use_id")
            if message:
                answer, ahead = message, 0
                calls = [_ids([block], "tool_use", "id") for block in _blocks(content)]
                parts = zip(_blocks(content), calls, strict=True)
                row_names = [(message, *(call or [_hash(block)])) for block, call in parts]
            elif results:
                row_names = [("results", *results)]
            else:
                ahead += 1
                behind = () if row.get("isCompactSummary") else (answer, ahead)
                row_names = [("said", _hash(content), *behind)]
        names.append(row_names)
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
    messages = {_message_id(lines[index].row) for index in path} - {""}
    calls: set[Any] = set()
    for line in lines:
        results = set(_ids(line.blocks, "tool_result", "tool_use_id"))
        joined = _message_id(line.row) in messages
        if line.index in path or joined or (results and results <= calls):
            calls.update(_ids(line.blocks, "tool_use", "id"))
            yield line


def _speaks(row: Row) -> bool:
    """Tell whether a line is a message of the main conversation, with content."""
    aside = any(row.get(key) for key in ("isSidechain", "isMeta", "isApiErrorMessage"))
    return is_message(row) and bool(row["message"]["content"]) and not aside


def _message_id(row: Row) -> str:
    return str(row["message"].get("id") or "") if row["type"] == "assistant" else ""


def _blocks(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _ids(blocks: Sequence[Any], kind: str, key: str) -> list[Any]:
    rows = [block for block in blocks if isinstance(block, Mapping)]
    return [row.get(key) for row in rows if row.get("type") == kind]


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
