"""Read Codex's sessions: lines with a `type` and a `payload`.

A `response_item` is an item of OpenAI's Responses, as the model got it. An `event_msg` says what
the person saw or typed. After a compaction, earlier items stay in the file, so Codex's own summary
is needed only if nothing is before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conspectus.messages.blocks import at_path, is_item
from conspectus.transcripts.reading import Reading, Row, joined_text

LINE_TYPES = frozenset("session_meta turn_context response_item event_msg compacted".split())


def is_line(row: Row) -> bool:
    """Tell whether a record is a line of a session of Codex."""
    return row.get("type") in LINE_TYPES and isinstance(row.get("payload"), Mapping)


def read_session(records: Sequence[Any], around: Row) -> Reading:
    """Read the items. Texts that Codex writes in the user's role get the developer's."""
    lines = [record for record in records if is_line(record)]
    typed_texts = _typed_texts(lines)
    items: list[dict[str, Any]] = []
    model = ""
    window: int | None = None
    used_records = 0
    for line in lines:
        payload = line["payload"]
        if line["type"] == "turn_context":
            model = str(payload.get("model") or model)
        elif line["type"] == "event_msg":
            window = at_path(payload, "info.model_context_window") or window
            if payload.get("type") == "thread_rolled_back":
                _roll_back(items, payload["num_turns"])
        elif line["type"] == "response_item" or not items:
            items_of_line = _items_of(line)
            used_records += bool(items_of_line)
            for item in items_of_line:
                stamped = {**item, "timestamp": line.get("timestamp")}
                if typed_texts and not _is_typed(item, typed_texts):
                    stamped["role"] = "developer"
                items.append(stamped)
    return Reading(items, used_records, model, window)


def _typed_texts(lines: Sequence[Row]) -> set[str]:
    """Return the texts that the user typed, from the events."""
    events = [line["payload"] for line in lines if line["type"] == "event_msg"]
    typed = [event for event in events if event.get("type") == "user_message"]
    return {str(event.get("message", "")).strip() for event in typed}


def _items_of(line: Row) -> list[Row]:
    """Return the items in a line: one, or the history that a compaction wrote."""
    payload = line["payload"]
    items = [payload]
    if line["type"] == "compacted":
        items = payload.get("replacement_history") or []
    return [item for item in items if item.get("type") == "message" or is_item(item)]


def _roll_back(items: list[dict[str, Any]], turns: int) -> None:
    """Remove the newest turns of the user, with all that followed them."""
    if not turns:
        return
    user_positions = [i for i, item in enumerate(items) if item.get("role") == "user"]
    first_taken_back = user_positions[-turns] if turns <= len(user_positions) else 0
    del items[first_taken_back:]


def _is_typed(item: Row, typed_texts: set[str]) -> bool:
    """Tell whether an item has another role than the user's, or was typed by the user.

    Codex may put words of its own before the typed text.
    """
    if item.get("role") != "user":
        return True
    content = item.get("content") or ""
    texts = [content] if isinstance(content, str) else [joined_text([block]) for block in content]
    candidates = {"".join(texts).strip(), *(text.strip() for text in texts if text)}
    if not candidates.isdisjoint(typed_texts):
        return True
    endings = tuple(f"\n{text}" for text in typed_texts if text)
    return any(text.endswith(endings) for text in candidates)
