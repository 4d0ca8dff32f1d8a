"""Read and write OpenAI's Responses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from fault_server import openai_wire
from fault_server.faults import Answer, HttpError, Usage
from fault_server.response_rules import torn

__all__ = ["CONTENT", "bad_event", "error", "error_event", "stream", "torn", "whole"]

CONTENT = "output"
"""The field of a body with the answer."""

INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Reasons of an incomplete answer."""

USUAL: dict[str, Any] = {
    "background": False,
    "frequency_penalty": 0,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": False,
    "temperature": 1,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "top_logprobs": 0,
    "top_p": 1,
    "truncation": "disabled",
}
"""Default settings that a response repeats."""

REPEATED = ("instructions", "max_output_tokens", "metadata", "prompt_cache_key", "tool_choice")

UNSET = {"description": None, "parameters": None, "strict": None}
"""Default fields of a tool that a response repeats."""

TOO_LONG = (
    "Your input exceeds the context window of this model. Please adjust your input and try again."
)
"""The words of this protocol; unlike those of Chat Completions, they name no limit."""


def error(fault: HttpError, number: int) -> tuple[int, dict[str, Any]]:
    """Return status and body of a refusal."""
    if fault.openai_code == "context_length_exceeded":
        fault = replace(fault, message=TOO_LONG, openai_param="input")
    return openai_wire.error(fault, number)


def whole(answer: Answer, body: Mapping[str, Any], number: int, usage: Usage) -> dict[str, Any]:
    """Write the body of an answer that is not streamed."""
    reason = INCOMPLETE.get(answer.ends)
    return _frame(body, number) | {
        "status": "incomplete" if reason else "completed",
        "completed_at": None if reason else 0,
        "incomplete_details": {"reason": reason} if reason else None,
        "output": _items(answer, number),
        "usage": {
            "input_tokens": usage.input,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": usage.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.input + usage.output,
        },
    }


def stream(
    answer: Answer, body: Mapping[str, Any], number: int, usage: Usage, nothing: bool = False
) -> Iterator[bytes]:
    """Write the events of a streamed answer, without output if `nothing`."""
    last = whole(answer, body, number, usage) | ({CONTENT: []} if nothing else {})
    begun = _frame(body, number)
    made = [
        ("response.created", {"response": begun}),
        ("response.in_progress", {"response": begun}),
    ]
    for place, item in enumerate(last["output"]):
        made += _item_events(item, place)
    made.append((f"response.{last['status']}", {"response": last}))
    for sequence, (kind, fields) in enumerate(made):
        yield _event(kind, sequence, fields)


def error_event(fault: HttpError, number: int) -> bytes:
    """Write an error within a stream, and the failed response."""
    said = error(fault, number)[1]["error"]
    failed = _frame({}, number) | {
        "status": "failed",
        "error": {"code": said["code"] or said["type"], "message": said["message"]},
    }
    fields = {name: said[name] for name in ("code", "message", "param")}
    first = _event("error", 0, fields)
    return first + _event("response.failed", 0, {"response": failed})


def bad_event() -> bytes:
    """Write an event with incomplete JSON."""
    kind = "response.output_text.delta"
    return f'event: {kind}\ndata: {{"type": "{kind}", "delta": "conte\n\n'.encode()


def _item_events(item: dict[str, Any], place: int) -> list[tuple[str, dict[str, Any]]]:
    at = {"output_index": place, "item_id": item["id"]}
    if item["type"] == "function_call":
        begun: dict[str, Any] = {**item, "status": "in_progress", "arguments": ""}
        inner = [
            ("response.function_call_arguments.delta", {**at, "delta": piece})
            for piece in re.findall(r"(?s).{1,16}", item["arguments"])
        ]
        done = {**at, "name": item["name"], "arguments": item["arguments"]}
        inner.append(("response.function_call_arguments.done", done))
    else:
        begun = {**item, "status": "in_progress", "content": []}
        inner = [one for k, part in enumerate(item["content"]) for one in _part_events(part, at, k)]
    return [
        ("response.output_item.added", {"output_index": place, "item": begun}),
        *inner,
        ("response.output_item.done", {"output_index": place, "item": item}),
    ]


def _part_events(
    part: dict[str, Any], at: dict[str, Any], place: int
) -> list[tuple[str, dict[str, Any]]]:
    field = "refusal" if part["type"] == "refusal" else "text"
    kind = f"response.{'refusal' if field == 'refusal' else 'output_text'}"
    at = {**at, "content_index": place}
    more: dict[str, Any] = {"logprobs": []} if field == "text" else {}
    pieces = re.findall(r"\S+\s*|\s+", part[field])
    return [
        ("response.content_part.added", {**at, "part": {**part, field: ""}}),
        *((f"{kind}.delta", {**at, "delta": piece, **more}) for piece in pieces),
        (f"{kind}.done", {**at, field: part[field], **more}),
        ("response.content_part.done", {**at, "part": part}),
    ]


def _items(answer: Answer, number: int) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if answer.text or not answer.calls:
        part = (
            {"type": "refusal", "refusal": answer.text}
            if answer.ends == "refusal"
            else {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
        )
        said = {"type": "message", "id": f"msg_{number}", "role": "assistant"}
        status = "incomplete" if answer.ends in INCOMPLETE else "completed"
        items.append({**said, "status": status, "content": [part]})
    for place, call in enumerate(answer.calls):
        name = {"id": f"fc_{number}_{place}", "call_id": call.id or f"call_{number}_{place}"}
        function = {"name": call.name, "arguments": json.dumps(dict(call.args))}
        items.append({"type": "function_call", **name, **function, "status": "completed"})
    return items


def _frame(body: Mapping[str, Any], number: int) -> dict[str, Any]:
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 0,
        "completed_at": None,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "model": body.get("model", ""),
        "output": [],
        "usage": None,
        **USUAL,
        **{field: body[field] for field in REPEATED if body.get(field) is not None},
        "tools": [{**UNSET, **tool} for tool in body.get("tools") or []],
    }


def _event(kind: str, sequence: int, fields: Mapping[str, Any]) -> bytes:
    data = json.dumps({"type": kind, "sequence_number": sequence, **fields})
    return f"event: {kind}\ndata: {data}\n\n".encode()
