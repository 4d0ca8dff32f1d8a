"""Read Claude Code's sessions: the messages of the current branch, each once.

The lines of a session are a tree. A session that is opened again may repeat lines. After a rewind,
it continues from an earlier line. After a compaction, it continues from Claude Code's own summary,
whose parent may be before the summarised messages. A message of the agent has one line for each
block. Text that a user types during a turn is an attachment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conspectus.messages.blocks import at_path
from conspectus.transcripts.reading import Reading, Row

SYNTHETIC = "<synthetic>"  # the model of messages that Claude Code itself writes as the agent's

OUTSIDE = ("isSidechain", "isMeta", "isApiErrorMessage")
"""Marks of lines that do not belong to the main conversation."""


def is_record(row: Row) -> bool:
    """Tell whether a record is a line of a session of Claude Code."""
    has_session = "type" in row and not {"sessionId", "leafUuid"}.isdisjoint(row)
    return has_session or _is_message(row)


def read_session(records: Sequence[Any], around: Row) -> Reading:
    """Read a session as dicts in Anthropic's form; join the lines of one assistant message.

    These lines are left out: those outside the conversation, side chains, meta lines, errors of the
    API, repeated lines, rewound branches, and Claude Code's own summaries if their originals are in
    the file. If all messages belong to a side chain, the file is that of a subagent, and they are
    read.
    """
    rows = [_with_queued_words(row) for row in records]
    if not any(map(_is_in_conversation, rows)):
        rows = [{**row, "isSidechain": False} for row in rows]
    messages: list[dict[str, Any]] = []
    agent_messages: dict[str, dict[str, Any]] = {}  # by the provider's id
    used_records = 0
    model = ""
    for row in _current_branch(rows):
        if row.get("isCompactSummary") and messages:
            continue
        used_records += 1
        spoken = row["message"]
        if spoken.get("model") not in (None, SYNTHETIC):
            model = str(spoken["model"])
        message_id = _message_id(row)
        if message_id in agent_messages:
            joined = agent_messages[message_id]
            joined["content"] = [*_blocks(joined), *_blocks(spoken)]
            continue
        message = {"role": spoken.get("role", row["type"]), "content": spoken["content"]}
        if row.get("uuid") is not None:
            message["id"] = row["uuid"]
        if row.get("timestamp") is not None:
            message["timestamp"] = row["timestamp"]
        if message_id:
            agent_messages[message_id] = message
        messages.append(message)
    return Reading(messages, used_records, model)


def _with_queued_words(row: Row) -> Row:
    """Make a user message of text that was typed during a turn."""
    attachment: Any = row.get("attachment")
    if at_path(attachment, "type") != "queued_command":
        return row
    if attachment.get("commandMode", "prompt") != "prompt":
        return row
    message = {"role": "user", "content": attachment.get("prompt")}
    return {**row, "type": "user", "message": message}


def _current_branch(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the messages on the way to the last one, with their blocks and results.

    Parallel calls have several results, and the next line follows only one of them.
    """
    spoken, parents = _tree(rows)
    on_the_way: set[int] = set()
    index = len(spoken) - 1
    while index >= 0:
        on_the_way.add(index)
        index = parents[index]
    message_ids = {_message_id(spoken[index]) for index in on_the_way} - {""}
    calls: set[Any] = set()
    for index, row in enumerate(spoken):
        results = _ids(row, "tool_result", "tool_use_id")
        belongs = index in on_the_way or _message_id(row) in message_ids
        if belongs or (results and results <= calls):
            calls |= _ids(row, "tool_use", "id")
            yield row


def _tree(rows: Sequence[Row]) -> tuple[list[Row], list[int]]:
    """Return the messages, and for each the index of the one before it; -1 for none.

    A summary follows the last message when it was written, whatever parent it names. No later line
    goes back to a message before it.
    """
    spoken: list[Row] = []
    parents: list[int] = []
    index_of: dict[Any, int] = {}  # by the uuid of a line: its message, or the message before it
    newest_summary = -1
    for row in rows:
        uuid = row.get("uuid")
        if uuid in index_of:  # a repeated line
            continue
        is_summary = row.get("isCompactSummary")
        parent = len(spoken) - 1
        if not is_summary:
            named_parent = row.get("parentUuid") or row.get("logicalParentUuid")
            parent = index_of.get(named_parent, parent)
        parent = max(parent, newest_summary)
        index = parent
        if _is_in_conversation(row):
            index = len(spoken)
            spoken.append(row)
            parents.append(parent)
            if is_summary:
                newest_summary = index
        if uuid is not None:
            index_of[uuid] = index
    return spoken, parents


def _is_message(row: Row) -> bool:
    has_content = isinstance(at_path(row, "message.content"), (str, list))
    return has_content and row.get("type") in ("user", "assistant")


def _is_in_conversation(row: Row) -> bool:
    """Tell whether a line is a message of the main conversation, with content."""
    is_outside = any(row.get(mark) for mark in OUTSIDE)
    return _is_message(row) and bool(row["message"]["content"]) and not is_outside


def _message_id(row: Row) -> str:
    """Return the provider's id of a message of the agent; empty for others."""
    return str(row["message"].get("id") or "") if row["type"] == "assistant" else ""


def _blocks(message: Row) -> list[Any]:
    content = message["content"]
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _ids(row: Row, block_type: str, key: str) -> set[Any]:
    blocks = [block for block in _blocks(row["message"]) if isinstance(block, Mapping)]
    return {block.get(key) for block in blocks if block.get("type") == block_type}
