"""Clear old tool results as Anthropic's edit does, for upstreams that do not know it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from conspectus_serve.answers.events import events_of
from conspectus_serve.asked import CLEAR_EDIT, value_of

CLEAR_FROM, CLEAR_KEEPS = 100_000, 3
"""Default input tokens from which Anthropic clears tool results, and default number of tool uses
that stay (its guide to context editing)."""

CLEARED = "[An old tool result was cleared from view, as context_management asks.]"


def cleared(
    view: Sequence[Any], edit: Mapping[str, Any], tokens: int
) -> tuple[list[Any], list[dict[str, Any]]]:
    """Clear old tool results in a view, and return it with the edits as Anthropic reports them.

    Args:
        view: the messages to send; their originals stay with the client.
        edit: as the client sent it.
        tokens: of the request.
    """
    uses = {
        block["id"]: str(block.get("name"))
        for message in view
        for block in _blocks(message)
        if block.get("type") == "tool_use" and isinstance(block.get("id"), str)
    }
    trigger = edit.get("trigger")
    counts = isinstance(trigger, Mapping) and trigger.get("type") == "tool_uses"
    if (len(uses) if counts else tokens) < value_of(trigger, CLEAR_FROM):
        return list(view), []
    given = edit.get("exclude_tools")
    excluded = given if isinstance(given, list) else ()
    names = [one for one, name in uses.items() if name not in excluded]
    gone = set(names[: max(0, len(names) - value_of(edit.get("keep"), CLEAR_KEEPS))])
    made, count, characters = [], 0, 0
    for message in view:
        blocks = message.get("content") if isinstance(message, Mapping) else None
        if not isinstance(blocks, list):
            made.append(message)
            continue
        new = []
        for block in blocks:
            answers = isinstance(block, Mapping) and block.get("type") == "tool_result"
            old = block.get("content") if answers else None
            if answers and block.get("tool_use_id") in gone and old not in (None, "", CLEARED):
                count, characters = count + 1, characters + len(json.dumps(old))
                block = {**block, "content": CLEARED}
            new.append(block)
        made.append({**message, "content": new})
    saved = characters // 4
    if not count or saved < value_of(edit.get("clear_at_least"), 0):
        return list(view), []
    applied = {"type": CLEAR_EDIT, "cleared_tool_uses": count, "cleared_input_tokens": saved}
    return made, [applied]


def _blocks(message: Any) -> Iterator[Mapping[str, Any]]:
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, list):
        yield from (block for block in content if isinstance(block, Mapping))


async def with_edits(
    pieces: AsyncIterator[bytes], edits: Sequence[Mapping[str, Any]], streamed: bool
) -> AsyncIterator[bytes]:
    """Yield the pieces of an answer, with the applied edits where Anthropic reports them."""
    if not streamed:
        yield _reported_in(b"".join([piece async for piece in pieces]), edits)
        return
    async for event in events_of(pieces):
        head, mark, data = event.partition(b"data:")
        if mark and b'"message_delta"' in data:
            event = head + b"data: " + _reported_in(data.rstrip(), edits) + b"\n\n"
        yield event


def _reported_in(data: bytes, edits: Sequence[Mapping[str, Any]]) -> bytes:
    try:
        body = json.loads(data)
        if body.get("type") not in ("message", "message_delta"):
            return data
        known = (body.get("context_management") or {}).get("applied_edits") or []
        body["context_management"] = {"applied_edits": [*known, *edits]}
    except (ValueError, AttributeError, TypeError, RecursionError):
        return data
    return json.dumps(body).encode()
