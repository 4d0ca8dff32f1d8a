"""Read and write OpenAI's Chat Completions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from fault_server.faults import Answer, HttpError, ToolCall, Usage

CONTENT = "choices"
"""The field of a body with the answer."""

REASONS = {"refusal": "stop"}
"""OpenAI's reasons for the end of an answer, if they differ."""


def torn(body: Mapping[str, Any]) -> Iterator[str]:
    """Find calls without results right behind them, and results without calls."""
    waiting: set[str] = set()
    for message in body["messages"]:
        if message["role"] == "tool":
            name = str(message.get("tool_call_id"))
            if name not in waiting:
                yield f"messages with role 'tool' must be a response to a call: {name}"
            waiting.discard(name)
            continue
        yield from _unanswered(waiting)
        waiting = {str(call["id"]) for call in message.get("tool_calls") or ()}
    yield from _unanswered(waiting)


def _unanswered(waiting: set[str]) -> Iterator[str]:
    if waiting:
        names = ", ".join(sorted(waiting))
        yield f"these tool_call_ids did not have response messages: {names}"


def error(fault: HttpError, number: int) -> tuple[int, dict[str, Any]]:
    """Return status and body of a refusal."""
    said = {
        "message": fault.message,
        "type": fault.openai_type,
        "param": fault.openai_param,
        "code": fault.openai_code,
    }
    return fault.status, {"error": said}


def whole(answer: Answer, body: Mapping[str, Any], number: int, usage: Usage) -> dict[str, Any]:
    """Write the body of an answer that is not streamed."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
    if answer.ends == "refusal":
        message |= {"content": None, "refusal": answer.text}
    if answer.calls:
        message["tool_calls"] = [_call(one, number, k) for k, one in enumerate(answer.calls)]
        message["content"] = answer.text or None
    choice = {"index": 0, "message": message, "finish_reason": _reason(answer), "logprobs": None}
    made = _frame(body, number, "chat.completion", [choice])
    return {**made, "usage": _usage(usage)}


def stream(
    answer: Answer, body: Mapping[str, Any], number: int, usage: Usage, nothing: bool = False
) -> Iterator[bytes]:
    """Write the events of a streamed answer, without a choice if `nothing`."""
    asked = bool((body.get("stream_options") or {}).get("include_usage"))
    more: dict[str, Any] = {"usage": None} if asked else {}

    def event(delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
        return _data(_frame(body, number, "chat.completion.chunk", [choice]) | more)

    if not nothing:
        yield event({"role": "assistant", "content": "", "refusal": None})
        field = "refusal" if answer.ends == "refusal" else "content"
        for piece in re.findall(r"\S+\s*|\s+", answer.text):
            yield event({field: piece})
        for place, one in enumerate(answer.calls):
            call = _call(one, number, place)
            arguments = call["function"]["arguments"]
            head = {**call, "index": place, "function": {"name": one.name, "arguments": ""}}
            yield event({"tool_calls": [head]})
            for at in range(0, len(arguments), 16):
                part = {"arguments": arguments[at : at + 16]}
                yield event({"tool_calls": [{"index": place, "function": part}]})
        yield event({}, _reason(answer))
    if asked:
        last = _frame(body, number, "chat.completion.chunk", [])
        yield _data(last | {"usage": _usage(usage)})
    yield b"data: [DONE]\n\n"


def error_event(fault: HttpError, number: int) -> bytes:
    """Write an error within a stream."""
    return _data(error(fault, number)[1])


def bad_event() -> bytes:
    """Write an event with incomplete JSON."""
    return b'data: {"id": "chatcmpl", "choices": [{"index": 0, "delta": {"conte\n\n'


def _reason(answer: Answer) -> str:
    return REASONS.get(answer.ends, answer.ends)


def _call(call: ToolCall, number: int, place: int) -> dict[str, Any]:
    function = {"name": call.name, "arguments": json.dumps(dict(call.args))}
    name = call.id or f"call_{number}_{place}"
    return {"id": name, "type": "function", "function": function}


def _frame(body: Mapping[str, Any], number: int, kind: str, choices: list[Any]) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{number}",
        "object": kind,
        "created": 0,
        "model": body.get("model", ""),
        "choices": choices,
    }


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
    }


def _data(value: object) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()
