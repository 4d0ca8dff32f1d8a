"""Read and write Anthropic's Messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from fault_server.faults import Answer, HttpError, Usage

CONTENT = "content"
"""The field of a body with the answer."""

REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
    "refusal": "refusal",
}
"""Anthropic's reasons for the end of an answer."""


def torn(body: Mapping[str, Any]) -> Iterator[str]:
    """Find calls that the next message does not answer, and results without a call."""
    waiting: set[str] = set()
    for message in body["messages"]:
        blocks = message["content"] if isinstance(message["content"], list) else []
        results = {str(b.get("tool_use_id")) for b in blocks if b.get("type") == "tool_result"}
        if results - waiting:
            names = ", ".join(sorted(results - waiting))
            yield f"unexpected `tool_use_id` found in `tool_result` blocks: {names}"
        if waiting - results:
            yield _unanswered(waiting - results)
        waiting = {str(b["id"]) for b in blocks if b.get("type") == "tool_use"}
    if waiting:
        yield _unanswered(waiting)


def _unanswered(waiting: set[str]) -> str:
    names = ", ".join(sorted(waiting))
    return f"`tool_use` ids were found without `tool_result` blocks immediately after: {names}"


def error(fault: HttpError, number: int) -> tuple[int, dict[str, Any]]:
    """Return status and body of a refusal."""
    said = {"type": fault.type, "message": fault.anthropic_message or fault.message}
    body = {"type": "error", "error": said, "request_id": f"req_{number}"}
    return fault.anthropic_status or fault.status, body


def whole(answer: Answer, body: Mapping[str, Any], number: int, usage: Usage) -> dict[str, Any]:
    """Write the body of an answer that is not streamed."""
    return {
        **_frame(body, number),
        "content": _blocks(answer, number),
        "stop_reason": REASONS[answer.ends],
        "usage": {"input_tokens": usage.input, "output_tokens": usage.output},
    }


def stream(
    answer: Answer, body: Mapping[str, Any], number: int, usage: Usage, nothing: bool = False
) -> Iterator[bytes]:
    """Write the events of a streamed answer, without content if `nothing`."""
    begun = {"input_tokens": usage.input, "output_tokens": 1}
    yield _event("message_start", message={**_frame(body, number), "usage": begun})
    yield _event("ping")
    for index, block in enumerate([] if nothing else _blocks(answer, number)):
        text = block["type"] == "text"
        start = {**block, "text": ""} if text else {**block, "input": {}}
        yield _event("content_block_start", index=index, content_block=start)
        for piece in _pieces(block):
            delta = (
                {"type": "text_delta", "text": piece}
                if text
                else {"type": "input_json_delta", "partial_json": piece}
            )
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    ends = {"stop_reason": REASONS[answer.ends], "stop_sequence": None}
    reported = {"input_tokens": usage.input, "output_tokens": usage.output}
    yield _event("message_delta", delta=ends, usage=reported)
    yield _event("message_stop")


def error_event(fault: HttpError, number: int) -> bytes:
    """Write an error within a stream."""
    return _named("error", error(fault, number)[1])


def bad_event() -> bytes:
    """Write an event with incomplete JSON."""
    return b'event: content_block_delta\ndata: {"type": "content_block_delta", "ind\n\n'


def _blocks(answer: Answer, number: int) -> list[dict[str, Any]]:
    text = [{"type": "text", "text": answer.text}] if answer.text else []
    calls = [
        {
            "type": "tool_use",
            "id": call.id or f"toolu_{number}_{place}",
            "name": call.name,
            "input": dict(call.args),
        }
        for place, call in enumerate(answer.calls)
    ]
    return [*text, *calls]


def _pieces(block: Mapping[str, Any]) -> list[str]:
    if block["type"] == "text":
        return re.findall(r"\S+\s*|\s+", block["text"])
    raw = json.dumps(block["input"])
    return [raw[at : at + 16] for at in range(0, len(raw), 16)]


def _frame(body: Mapping[str, Any], number: int) -> dict[str, Any]:
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", ""),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _event(kind: str, **more: Any) -> bytes:
    return _named(kind, {"type": kind, **more})


def _named(kind: str, data: object) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode()
