"""Claude Code's sessions: trees of lines; messages of the current branch, once.

A session that is opened again may repeat its lines; a rewound one continues from an earlier line; a
compacted one continues from a summary of its own, whose parent may lead past what it sums up. A
message of the agent has as many lines as blocks. What is typed during a turn is an attachment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conspectus.messages.blocks import at_path

SYNTHETIC = "<synthetic>"  # the model of what Claude Code says in the agent's name

Row = Mapping[str, Any]


def is_message(row: Row) -> bool:
    """Return whether a line is a message."""
    said = isinstance(at_path(row, "message.content"), (str, list))
    return said and row.get("type") in ("user", "assistant")


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
    for row in _in_force(rows):
        spoken, name = row["message"], _message_id(row)
        if row.get("isCompactSummary") and messages:
            continue
        used += 1
        if spoken.get("model") not in (None, SYNTHETIC):
            model = str(spoken["model"])
        if name in by_id:
            by_id[name]["content"] = [*_blocks(by_id[name]), *_blocks(spoken)]
            continue
        message = {"role": spoken.get("role", row["type"]), "content": spoken["content"]}
        stamp = {"id": row.get("uuid"), "timestamp": row.get("timestamp")}
        message |= {key: value for key, value in stamp.items() if value is not None}
        if name:
            by_id[name] = message
        messages.append(message)
    return messages, used, model


def _with_queued(row: Row) -> Row:
    """Make a user's message of what was typed during a turn."""
    more: Any = row.get("attachment")
    if at_path(more, "type") != "queued_command" or more.get("commandMode", "prompt") != "prompt":
        return row
    return {**row, "type": "user", "message": {"role": "user", "content": more.get("prompt")}}


def _in_force(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the messages on the way to the last one, with their blocks and results.

    A summary follows all that was in force when it was written, and no later line goes back behind
    it, whatever parent it names. Parallel calls fan out: the next line follows only one of their
    results.
    """
    said: list[Row] = []
    before: list[int] = []  # the place of the message that each one follows; -1 for none
    places: dict[Any, int] = {}  # by the uuid of a line: the message that it is or stands behind
    floor = -1
    for row in rows:
        uuid, summary, at = row.get("uuid"), row.get("isCompactSummary"), len(said) - 1
        if uuid in places:  # a repeated line
            continue
        if not summary:
            at = places.get(row.get("parentUuid") or row.get("logicalParentUuid"), at)
        at = max(at, floor)
        if _speaks(row):
            said.append(row)
            before.append(at)
            at = len(said) - 1
            floor = at if summary else floor
        if uuid is not None:
            places[uuid] = at
    path, at = set[int](), len(said) - 1
    while at >= 0:
        path.add(at)
        at = before[at]
    messages = {_message_id(said[at]) for at in path} - {""}
    calls: set[Any] = set()
    for at, row in enumerate(said):
        results = _ids(row, "tool_result", "tool_use_id")
        if at in path or _message_id(row) in messages or (results and results <= calls):
            calls |= _ids(row, "tool_use", "id")
            yield row


def _speaks(row: Row) -> bool:
    """Tell whether a line is a message of the main conversation, with content."""
    aside = any(row.get(key) for key in ("isSidechain", "isMeta", "isApiErrorMessage"))
    return is_message(row) and bool(row["message"]["content"]) and not aside


def _message_id(row: Row) -> str:
    return str(row["message"].get("id") or "") if row["type"] == "assistant" else ""


def _blocks(message: Row) -> list[Any]:
    content = message["content"]
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _ids(row: Row, kind: str, key: str) -> set[Any]:
    blocks = [block for block in _blocks(row["message"]) if isinstance(block, Mapping)]
    return {block.get(key) for block in blocks if block.get("type") == kind}
