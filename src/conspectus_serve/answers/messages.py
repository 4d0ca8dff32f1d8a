"""Read answers of Anthropic's messages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from conspectus_serve.answers.events import data_of, written
from conspectus_serve.answers.reading import AnswerReader, Lookup, LookupResult
from conspectus_serve.compacted import events_of_block

GROWS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
"""Fields that hold a piece, by the type of delta."""

TOKENS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
"""Fields of usage in each iteration."""


class MessagesAnswer(AnswerReader):
    """Read one answer of Anthropic's messages.

    Args:
        tool: name of the endpoint's own tool.
        lead: a block before the answer.
        iterations: usage before the answer, in Anthropic's form.
    """

    place_field = "index"

    def __init__(
        self,
        tool: str,
        lead: Mapping[str, Any] | None = None,
        iterations: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        super().__init__(tool)
        self._lead, self._iterations = lead, list(iterations)
        self._seen += [] if lead is None else [dict(lead)]
        self._count = len(self._seen)

    def _begin(self) -> None:
        super()._begin()
        self._held: list[dict[str, Any]] = []
        self._reason: str | None = None

    @property
    def asks(self) -> Sequence[Lookup]:
        uses = [one for one in self._blocks.values() if one.get("type") == "tool_use"]
        answerable = all(self._is_ours(one) and one.get("id") for one in uses)
        if self._reason != "tool_use" or not answerable:
            return []
        return [Lookup(str(one["id"]), json.dumps(_input(one))) for one in uses]

    def event(self, raw: bytes) -> list[bytes]:
        data = data_of(raw)
        kind = data.get("type") if isinstance(data, dict) else None
        if kind == "message_start":
            self._usage = dict(data["message"].get("usage") or {})
            lead = [] if self._lead is None else events_of_block(self._lead)
            return [] if self._round else [raw, *map(written, lead)]
        if kind == "message_delta":
            self._reason = data["delta"].get("stop_reason")
            reported = {k: v for k, v in (data.get("usage") or {}).items() if v is not None}
            self._usage = {**(self._usage or {}), **reported}
        if kind in ("message_delta", "message_stop"):
            self._held.append(data)
            return []
        if kind in ("content_block_start", "content_block_delta", "content_block_stop"):
            at = data["index"]
            if kind == "content_block_start":
                self._blocks[at] = dict(data["content_block"])
            elif kind == "content_block_delta":
                _grow(self._blocks.setdefault(at, {}), data["delta"])
            return [raw if one == data else written(one) for one in self._shown(data)]
        return [raw]

    def whole(self, body: Mapping[str, Any]) -> None:
        self._last = dict(body)
        self._blocks = {place: dict(one) for place, one in enumerate(body["content"])}
        self._reason = body.get("stop_reason")
        self._usage = body.get("usage")

    def exchange(self, found: Sequence[LookupResult]) -> list[dict[str, Any]]:
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": one.text}
            | ({"is_error": True} if one.failed else {})
            for call, one in zip(self.asks, found, strict=True)
        ]
        said = []
        for _, one in sorted(self._blocks.items()):
            if one.get("type") != "text" or one.get("text"):
                made = {key: value for key, value in one.items() if key != "partial_json"}
                said.append({**made, "input": _input(one)} if "input" in one else made)
        self._iterations.append(self._iteration())
        self._next()
        return [{"role": "assistant", "content": said}, {"role": "user", "content": results}]

    def _iteration(self) -> dict[str, Any]:
        used = self._usage or {}
        return {"type": "message", **{name: used.get(name) or 0 for name in TOKENS}}

    def _reported(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return the usage that the client sees."""
        if not self._iterations:
            return dict(own)
        listed = own.get("iterations")
        last = listed if isinstance(listed, list) and listed else [self._iteration()]
        return {**own, **self._total(), "iterations": [*self._iterations, *last]}

    def _ended(self) -> str | None:
        uses = [one for one in self._blocks.values() if one.get("type") == "tool_use"]
        only_ours = bool(uses) and all(map(self._is_ours, uses))
        return "end_turn" if only_ours and self._reason == "tool_use" else self._reason

    def end(self) -> list[bytes]:
        made = [*map(written, self._released())]
        for one in self._held:
            if one["type"] == "message_delta":
                delta = {**one["delta"], "stop_reason": self._ended()}
                one = {**one, "delta": delta, "usage": self._reported(one.get("usage") or {})}
            made.append(written(one))
        return made

    def body(self) -> dict[str, Any]:
        content = [*self._seen, *self._visible()]
        usage = self._reported(self._last.get("usage") or {})
        return {**self._last, "content": content, "stop_reason": self._ended(), "usage": usage}

    def failed(self, said: Any) -> bytes:
        known = isinstance(said, Mapping) and said.get("type") == "error"
        error = {"type": "api_error", "message": "the upstream has refused to go on"}
        return written(dict(said) if known else {"type": "error", "error": error})


def _grow(block: dict[str, Any], delta: Mapping[str, Any]) -> None:
    field = GROWS.get(str(delta.get("type")))
    if field is not None:
        block[field] = (block.get(field) or "") + str(delta.get(field) or "")
    elif delta.get("type") == "citations_delta":
        block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]


def _input(block: Mapping[str, Any]) -> Any:
    """Return the input of a tool call; a stream brings it in pieces."""
    if not block.get("partial_json"):
        return block.get("input") or {}
    try:
        return json.loads(block["partial_json"])
    except ValueError:
        return {}
