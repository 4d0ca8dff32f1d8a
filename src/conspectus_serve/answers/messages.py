"""Join answers of Anthropic's messages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from conspectus_serve.answers.events import written
from conspectus_serve.answers.joining import Lookup, LookupResult, total, visible

TOKENS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
"""Fields of usage in each iteration."""

GROWS = {
    "text": ("text",),
    "thinking": ("thinking", "signature"),
}
"""Fields of a block that a stream brings behind its beginning, by type."""


class MessagesAnswers:
    """Answers of messages; see `Answers`.

    Args:
        lead: a block before the answer.
        iterations: usage before the answer, in Anthropic's form.
    """

    def __init__(
        self,
        lead: Mapping[str, Any] | None = None,
        iterations: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self._lead, self._iterations = lead, iterations

    def lookups(self, body: Mapping[str, Any], tool: str) -> list[Lookup]:
        uses = [one for one in body["content"] if one.get("type") == "tool_use"]
        ours = all(one.get("name") == tool and one.get("id") for one in uses)
        if not ours or body.get("stop_reason") != "tool_use":
            return []
        return [Lookup(str(one["id"]), json.dumps(one.get("input") or {})) for one in uses]

    def exchange(
        self, body: Mapping[str, Any], results: Sequence[tuple[Lookup, LookupResult]]
    ) -> list[dict[str, Any]]:
        said = [one for one in body["content"] if one.get("type") != "text" or one.get("text")]
        answers = [
            {"type": "tool_result", "tool_use_id": call.id, "content": result.text}
            | ({"is_error": True} if result.failed else {})
            for call, result in results
        ]
        return [{"role": "assistant", "content": said}, {"role": "user", "content": answers}]

    def joined(self, bodies: Sequence[Mapping[str, Any]], tool: str) -> dict[str, Any]:
        last = bodies[-1]
        earlier = [
            block for one in bodies[:-1] for block in visible(one["content"], tool, last=False)
        ]
        content = [*earlier, *visible(last["content"], tool)]
        if self._lead is not None:
            content.insert(0, dict(self._lead))
        uses = [one for one in last["content"] if one.get("type") == "tool_use"]
        reason = last.get("stop_reason")
        if reason == "tool_use" and uses and all(one.get("name") == tool for one in uses):
            reason = "end_turn"
        usage = dict(last.get("usage") or {})
        if self._iterations or len(bodies) > 1:
            each = [
                {
                    "type": "message",
                    **{name: (one.get("usage") or {}).get(name) or 0 for name in TOKENS},
                }
                for one in bodies
            ]
            usage = {**usage, **total(bodies), "iterations": [*self._iterations, *each]}
        return {**last, "content": content, "stop_reason": reason, "usage": usage}

    def events(self, body: Mapping[str, Any]) -> list[bytes]:
        usage = body.get("usage") or {}
        begun = {**body, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 0}}
        ends = {"stop_reason": body.get("stop_reason"), "stop_sequence": body.get("stop_sequence")}
        made: list[dict[str, Any]] = [
            {"type": "message_start", "message": begun},
            *(one for place, block in enumerate(body["content"]) for one in _grown(block, place)),
            {"type": "message_delta", "delta": ends, "usage": usage},
            {"type": "message_stop"},
        ]
        return [*map(written, made)]


def _grown(block: Mapping[str, Any], place: int) -> list[dict[str, Any]]:
    """Write a block as its beginning, what it grows by, and its end."""
    kind = str(block["type"])
    begun = dict(block)
    deltas: list[dict[str, Any]] = []
    if kind == "compaction":
        begun = {"type": kind, "content": None}
        deltas = [{**block, "type": "compaction_delta"}]
    elif kind == "tool_use":
        begun["input"] = {}
        deltas = [
            {"type": "input_json_delta", "partial_json": json.dumps(block.get("input") or {})}
        ]
    else:
        for name in GROWS.get(kind, ()):
            if block.get(name):
                begun[name] = ""
                deltas.append({"type": f"{name}_delta", name: block[name]})
    return [
        {"type": "content_block_start", "index": place, "content_block": begun},
        *({"type": "content_block_delta", "index": place, "delta": one} for one in deltas),
        {"type": "content_block_stop", "index": place},
    ]
