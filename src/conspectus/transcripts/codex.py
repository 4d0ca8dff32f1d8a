"""Codex's rollouts: lines with a `type` and a `payload`.

`response_item` is an item of OpenAI's Responses, as the model had it; `event_msg` is what the
person saw. A compaction (`compacted`) leaves the items before it in the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conspectus.messages.blocks import is_item
from conspectus.transcripts.records import Form, Parsed, Reading, Record

LINES = frozenset("session_meta turn_context response_item event_msg compacted".split())


def _knows(data: Mapping[str, Any]) -> bool:
    return data.get("type") in LINES and isinstance(data.get("payload"), Mapping)


def _read(parsed: Parsed) -> Reading:
    """Read the items; what the program says in the user's name is the developer's."""
    rows = [(part, part.data["payload"]) for part in parsed.records if _knows(part.data)]
    events = [payload for part, payload in rows if part.data["type"] == "event_msg"]
    typed = [str(e.get("message", "")) for e in events if e.get("type") == "user_message"]
    items: list[Record] = []
    asked: list[int] = []  # where the user's messages stand among the items
    model, window, used = "", None, 0
    for part, payload in rows:
        kind = part.data["type"]
        if kind == "turn_context":
            model = str(payload.get("model") or model)
        elif kind == "event_msg":
            info = payload.get("info") or payload
            size = info.get("model_context_window") if isinstance(info, Mapping) else None
            window = size if isinstance(size, int) and size > 0 else window
            turns = payload.get("num_turns")
            if payload.get("type") == "thread_rolled_back" and isinstance(turns, int) and turns > 0:
                start = asked[-turns] if turns <= len(asked) else 0
                del items[start:], asked[-turns:]
        elif kind == "response_item" or not items:
            rest = payload.get("replacement_history") if kind == "compacted" else [payload]
            made = [_item(one, part, typed) for one in rest or () if isinstance(one, Mapping)]
            for item in filter(None, made):
                if item["type"] == "message" and item["role"] == "user":
                    asked.append(len(items))
                items.append(Record(item, len(items), part.line))
            used += any(made)
    return Reading(items, len(parsed.records) - used, model, window)


def _item(payload: Mapping[str, Any], part: Record, typed: list[str]) -> dict[str, Any] | None:
    """Return an item with the time of its line; None for other payloads."""
    if payload.get("type") != "message" and not is_item(payload):
        return None
    item = {**payload, "timestamp": part.data.get("timestamp")}
    if item.get("role") == "user" and typed:
        text = "".join(str(block.get("text", "")) for block in item.get("content") or ())
        if not any(said == text or (said and said in text) for said in typed):
            item["role"] = "developer"
    if isinstance(output := item.get("output"), Mapping):  # in older files
        item["output"] = str(output.get("content", ""))
    return item


FORM = Form("codex", _knows, _read, session=True, added=("timestamp",))
