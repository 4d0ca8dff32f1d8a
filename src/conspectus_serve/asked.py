"""What a client asks of its server beside an answer: compaction, and edits of the context."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conspectus._core.records import Cost
from conspectus.errors import InputError
from conspectus_serve.items import CONTENT

TRIGGER = {"type": "compaction_trigger"}
"""The item with which Codex asks for a compaction, as the last of its input."""

COMPACT_PATH = "/v1/responses/compact"
COMPACT_EDIT = "compact_20260112"
CLEAR_EDIT = "clear_tool_uses_20250919"
COMPACT_FROM = 150_000
"""Input tokens from which Anthropic's compaction edit acts where none are set
(`BetaCompact20260112EditParam`)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for.

    Attributes:
        body: what is left of it for the upstream.
        compact: `now`, or from how many tokens on; None for never.
        alone: the compaction is all of the answer.
        focus: what it is to keep above all.
        clear: Anthropic's edit that clears tool results; None for none.
    """

    body: dict[str, Any]
    compact: int | None = None
    alone: bool = False
    focus: str = ""
    clear: Mapping[str, Any] | None = None


def asked_of(path: str, body: dict[str, Any]) -> Asked:
    """What a request asks for.

    Raises:
        InputError: a trigger stands where none may.
    """
    if path == COMPACT_PATH:
        return Asked(body, 0, True)
    if path == "/v1/responses":
        given = body.get("input")
        at = [i for i, one in enumerate(given) if one == TRIGGER] if isinstance(given, list) else []
        if not at:
            return Asked(body)
        assert isinstance(given, list)
        if at != [len(given) - 1]:
            raise InputError("a compaction_trigger must be the last item of the input, once")
        return Asked({**body, "input": given[:-1]}, 0, True)
    if path != "/v1/messages":
        return Asked(body)
    wanted = body.get("compaction")
    if isinstance(wanted, Mapping) and wanted.get("type") == "summarize":
        rest = {key: value for key, value in body.items() if key != "compaction"}
        return Asked(rest, 0, True, str(wanted.get("instructions") or ""))
    return _edits(body)


def _edits(body: dict[str, Any]) -> Asked:
    management = body.get("context_management")
    edits = management.get("edits") if isinstance(management, Mapping) else None
    if not isinstance(management, Mapping) or not isinstance(edits, list):
        return Asked(body)
    known = {str(one.get("type")): one for one in edits if isinstance(one, Mapping)}
    compact, clear = known.get(COMPACT_EDIT), known.get(CLEAR_EDIT)
    if compact is None and clear is None:
        return Asked(body)
    left = [one for one in edits if one is not compact and one is not clear]
    rest = {key: value for key, value in body.items() if key != "context_management"}
    if left:
        rest["context_management"] = {**management, "edits": left}
    if compact is None:
        return Asked(rest, clear=clear)
    return Asked(
        rest,
        value_of(compact.get("trigger"), COMPACT_FROM),
        compact.get("pause_after_compaction") is True,
        str(compact.get("instructions") or ""),
        clear,
    )


def value_of(given: Any, usual: int) -> int:
    """The number in `{"type": ..., "value": ...}`; the usual one where there is none."""
    value = given.get("value") if isinstance(given, Mapping) else None
    known = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if isinstance(value, int) and known else usual


# Answers that are a compaction and nothing else


def compacted(path: str, model: str, content: str, notes: str, cost: Cost, stream: bool) -> bytes:
    """The body of an answer that is one compaction item, in the protocol of its path.

    Args:
        path: of the request.
        model: that was asked for.
        content: of the item, signed.
        notes: its notes, for people.
        cost: of a model that wrote them; nothing where none did.
        stream: as events.
    """
    if path == "/v1/messages":
        return _message(model, content, notes, cost, stream)
    item = {"id": f"cmp_{secrets.token_hex(12)}", "type": "compaction", CONTENT: content}
    usage = {
        "input_tokens": cost.input_tokens,
        "input_tokens_details": {"cached_tokens": cost.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": cost.output_tokens,
        "output_tokens_details": {"reasoning_tokens": cost.reasoning_tokens},
        "total_tokens": cost.tokens,
    }
    frame: dict[str, Any] = {
        "id": f"resp_{secrets.token_hex(16)}",
        "created_at": int(time.time()),
        "model": model,
    }
    if path == COMPACT_PATH:
        made = {**frame, "object": "response.compaction", "output": [item], "usage": usage}
        return json.dumps(made).encode()
    begun = {
        **frame,
        "object": "response",
        "status": "in_progress",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    whole = {**begun, "status": "completed", "output": [item], "usage": usage}
    if not stream:
        return json.dumps(whole).encode()
    at = {"output_index": 0, "item": item}
    return _events(
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", **at},
        {"type": "response.output_item.done", **at},
        {"type": "response.completed", "response": whole},
    )


def _message(model: str, content: str, notes: str, cost: Cost, stream: bool) -> bytes:
    block = {"type": "compaction", "content": notes or "Nothing was left out.", CONTENT: content}
    usage = {"input_tokens": cost.input_tokens, "output_tokens": cost.output_tokens}
    begun: dict[str, Any] = {
        "id": f"msg_{secrets.token_hex(12)}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": 0},
    }
    if not stream:
        ends = {"content": [block], "stop_reason": "compaction", "usage": usage}
        return json.dumps({**begun, **ends}).encode()
    delta = {**block, "type": "compaction_delta"}
    return _events(
        {"type": "message_start", "message": begun},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "compaction", "content": None},
        },
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "compaction", "stop_sequence": None},
            "usage": usage,
        },
        {"type": "message_stop"},
    )


def _events(*events: dict[str, Any]) -> bytes:
    made = [
        f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': number})}\n\n"
        for number, event in enumerate(events)
    ]
    return "".join(made).encode()
