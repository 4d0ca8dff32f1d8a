"""Read the calls in an answer, whole or streamed, and write their results into a request."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

TEXTS = ("content", "refusal", "reasoning_content", "reasoning")  # of a chat message
GROWING = ("text", "thinking", "signature", "partial_json")  # fields of Anthropic's deltas
BROKEN_OFF = (None, "length", "content_filter")  # after these a call of chat may be incomplete

DONE_THERE = frozenset(
    f"{name}_call"
    for name in ("web_search", "file_search", "code_interpreter", "image_generation", "mcp")
)
"""Types of calls that an upstream of Responses carries out itself; others wait for the client."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call that waits for its result; `arguments` is JSON as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request that goes on has of an answer, and its calls; none if it was broken off."""

    messages: list[dict[str, Any]]
    calls: list[Call]


def events_in(raw: bytes, *, streamed: bool = True) -> Iterator[Any]:
    """Yield the JSON in the events of a stream, or that of a whole body."""
    if not streamed:
        yield json.loads(raw)
        return
    for line in raw.splitlines():
        if line.startswith(b"data:") and line[5:].strip() != b"[DONE]":
            yield json.loads(line[5:])


def read_answer(protocol: str, raw: bytes, *, streamed: bool, stored: bool = True) -> Answer:
    """Read an answer; `stored` by an upstream of Responses that knows its items by id.

    Raises KeyError, TypeError, AttributeError or ValueError for one that is not of the protocol.
    """
    events = events_in(raw, streamed=streamed)
    if protocol == "chat":
        return _chat(events)
    return _messages(events) if protocol == "messages" else _responses(events, stored)


def _chat(events: Iterable[Any]) -> Answer:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    calls, reason = dict[int, dict[str, Any]](), None
    for choice in (one for event in events for one in event.get("choices") or ()):
        part = choice.get("message") or choice.get("delta") or {}
        message |= {k: (message.get(k) or "") + part[k] for k in TEXTS if part.get(k)}
        for place, one in enumerate(part.get("tool_calls") or ()):
            blank = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
            call = calls.setdefault(one.get("index", place), blank)
            call["id"] = one.get("id") or call["id"]
            for key, text in (one.get("function") or {}).items():
                call["function"][key] = call["function"].get(key, "") + (text or "")
        reason = choice.get("finish_reason") or reason
    made = [] if reason in BROKEN_OFF else list(calls.values())
    message |= {"tool_calls": made} if made else {}
    return Answer(
        [message],
        [Call(one["id"], one["function"]["name"], one["function"]["arguments"]) for one in made],
    )


def _messages(events: Iterable[Any]) -> Answer:
    blocks, reason = dict[int, dict[str, Any]](), None
    for event in events:
        if "content" in event:  # a whole message
            blocks, reason = dict(enumerate(event["content"])), event.get("stop_reason")
        elif "content_block" in event:
            blocks[event["index"]] = dict(event["content_block"])
        elif event["type"] == "content_block_delta":
            block, delta = blocks[event["index"]], event["delta"]
            block |= {k: block.get(k, "") + delta[k] for k in GROWING if k in delta}
        elif event["type"] == "message_delta":
            reason = event["delta"].get("stop_reason")
    for block in blocks.values():
        if (written := block.pop("partial_json", None)) is not None:
            block["input"] = json.loads(written or "{}")
    content = [one for one in blocks.values() if one["type"] != "text" or one["text"]]
    uses = [one for one in content if one["type"] == "tool_use" and reason == "tool_use"]
    calls = [Call(one["id"], one["name"], json.dumps(one.get("input") or {})) for one in uses]
    return Answer([{"role": "assistant", "content": content}], calls)


def _responses(events: Iterable[Any], stored: bool) -> Answer:
    *_, last = events
    response = last.get("response", last)
    items = list(response["output"])
    if not stored:  # the form that the upstream accepts again
        items = [
            {key: value for key, value in one.items() if key != "id"}
            for one in items
            if one.get("type") != "reasoning" or one.get("encrypted_content")
        ]
    calls = [
        Call(str(one["call_id"]), str(one.get("name")), str(one.get("arguments")))
        for one in items
        if str(one["type"]).endswith("_call") and one["type"] not in DONE_THERE
    ]
    return Answer(items, calls if response.get("status") == "completed" else [])


def results_in(protocol: str, results: Sequence[tuple[Call, str]]) -> list[dict[str, Any]]:
    """Write the results of calls as messages of a protocol."""
    if protocol == "chat":
        return [{"role": "tool", "tool_call_id": one.id, "content": text} for one, text in results]
    if protocol == "messages":
        blocks = [
            {"type": "tool_result", "tool_use_id": one.id, "content": text} for one, text in results
        ]
        return [{"role": "user", "content": blocks}]
    return [
        {"type": "function_call_output", "call_id": one.id, "output": text} for one, text in results
    ]
