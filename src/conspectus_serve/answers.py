"""Read and write the answers of each protocol, where the endpoint makes them itself.

An answer with calls of the endpoint's own tool is joined from several; one that is a compaction
and nothing else has no upstream. Each is made whole, and written as a stream where the client wants
one. The bytes of any other answer never come here.

For each protocol, `lookups` lists the calls of the tool that are looked up before the answer goes
on: none if the answer also calls a tool of the client's, as only the client can answer that, or was
broken off. `exchange` returns an answer's calls and their results as messages for the next request,
`joined` the client's answer of those to all requests, without calls of the tool, and `events` an
answer as a stream. They raise KeyError, TypeError, AttributeError, IndexError or ValueError for an
answer that is not of the protocol.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

Body = Mapping[str, Any]

CALLS = ("tool_use", "function_call")
THOUGHTS = ("thinking", "redacted_thinking", "reasoning")
"""Types of blocks that belong to the block after them, and leave with a call of our tool."""

TEXTS = ("content", "refusal", "reasoning_content", "reasoning")
"""Texts of a chat message; some providers want them back."""

BROKEN_OFF = (None, "length", "content_filter")
"""Finish reasons of chat after which a call may be incomplete, so that nothing is looked up."""

GROWS = {"text": ("text",), "thinking": ("thinking", "signature")}
"""Fields of a block of Anthropic's that a stream brings behind its beginning, by type."""

DONE_THERE = frozenset(
    f"{name}_call"
    for name in ("web_search", "file_search", "code_interpreter", "image_generation", "mcp")
)
"""Types of calls that an upstream of Responses carries out itself; others wait for the client."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """A call of the endpoint's own tool; `arguments` is JSON as the model wrote it."""

    id: str
    arguments: str


@dataclass(frozen=True, slots=True)
class LookupResult:
    """The result of a call: text for the model; `failed` if nothing was looked up."""

    text: str
    failed: bool = False


Results = Sequence[tuple[Lookup, LookupResult]]


def visible(bodies: Sequence[Body], field: str, tool: str) -> list[dict[str, Any]]:
    """List the blocks of several answers that the client sees.

    Thoughts before calls of the tool leave with these.
    """
    made: list[dict[str, Any]] = []
    for body in bodies:
        thoughts: list[dict[str, Any]] = []
        for one in body[field]:
            if one.get("type") in THOUGHTS:
                thoughts.append(dict(one))
            elif one.get("type") not in CALLS or one.get("name") != tool:
                made, thoughts = [*made, *thoughts, dict(one)], []
        made += thoughts if body is bodies[-1] else []
    return made


def total(bodies: Sequence[Body]) -> dict[str, Any]:
    """Return the usage of all answers together."""
    return reduce(_summed, (one.get("usage") or {} for one in bodies), dict[str, Any]())


def _summed(one: Body, other: Body) -> dict[str, Any]:
    """Add two reports of usage: numbers add up, of other values the later one counts."""
    made = dict(one)
    for key, value in other.items():
        known = made.get(key)
        if isinstance(known, Mapping) and isinstance(value, Mapping):
            made[key] = _summed(known, value)
        elif isinstance(known, (int, float)) and isinstance(value, (int, float)):
            made[key] = known + value
        elif value is not None or key not in made:
            made[key] = value
    return made


def _events(events: Iterable[Body], *, named: bool = True) -> bytes:
    return b"".join(
        f"{'event: ' + one['type'] + chr(10) if named else ''}data: {json.dumps(one)}\n\n".encode()
        for one in events
    )


class ChatAnswers:
    """Answers of OpenAI's chat completions."""

    def lookups(self, body: Body, tool: str) -> list[Lookup]:
        choice = body["choices"][0]
        calls = choice["message"].get("tool_calls") or []
        ours = all(one["function"]["name"] == tool for one in calls)
        if not ours or choice.get("finish_reason") in BROKEN_OFF:
            return []
        return [Lookup(str(one["id"]), one["function"]["arguments"]) for one in calls]

    def exchange(self, body: Body, results: Results) -> list[dict[str, Any]]:
        message = body["choices"][0]["message"]
        texts = {name: message[name] for name in TEXTS if message.get(name)}
        calls = {"role": "assistant", "content": None, **texts, "tool_calls": message["tool_calls"]}
        answers = [
            {"role": "tool", "tool_call_id": call.id, "content": result.text}
            for call, result in results
        ]
        return [calls, *answers]

    def joined(self, bodies: Sequence[Body], tool: str) -> dict[str, Any]:
        choice = bodies[-1]["choices"][0]
        message, reason = dict(choice["message"]), choice.get("finish_reason")
        for name in TEXTS:
            texts = [one["choices"][0]["message"].get(name) for one in bodies]
            if text := "\n\n".join(filter(None, texts)):
                message[name] = text
        calls = message.pop("tool_calls", None) or []
        if kept := [one for one in calls if one["function"]["name"] != tool]:
            message["tool_calls"] = kept
        elif calls and reason == "tool_calls":
            reason = "stop"
        made = {**bodies[-1], "id": bodies[0].get("id"), "usage": total(bodies)}
        return {**made, "choices": [{**choice, "message": message, "finish_reason": reason}]}

    def events(self, body: Body) -> bytes:
        frame = {**body, "object": "chat.completion.chunk"}
        usage, choice = frame.pop("usage", None), frame.pop("choices")[0]
        delta = {"role": "assistant", **choice["message"]}
        if calls := delta.pop("tool_calls", None):
            delta["tool_calls"] = [{**one, "index": place} for place, one in enumerate(calls)]
        text = {"index": 0, "delta": delta, "finish_reason": None}
        end = {"index": 0, "delta": {}, "finish_reason": choice.get("finish_reason")}
        made = [{**frame, "choices": [one]} for one in (text, end)]
        made += [{**frame, "choices": [], "usage": usage}] if usage else []
        return _events(made, named=False) + b"data: [DONE]\n\n"


class MessagesAnswers:
    """Answers of Anthropic's messages."""

    def lookups(self, body: Body, tool: str) -> list[Lookup]:
        uses = [one for one in body["content"] if one.get("type") == "tool_use"]
        ours = all(one.get("name") == tool and one.get("id") for one in uses)
        if not ours or body.get("stop_reason") != "tool_use":
            return []
        return [Lookup(str(one["id"]), json.dumps(one.get("input") or {})) for one in uses]

    def exchange(self, body: Body, results: Results) -> list[dict[str, Any]]:
        blocks = [one for one in body["content"] if one.get("type") != "text" or one.get("text")]
        answers = [
            {"type": "tool_result", "tool_use_id": call.id, "content": result.text}
            | ({"is_error": True} if result.failed else {})
            for call, result in results
        ]
        return [{"role": "assistant", "content": blocks}, {"role": "user", "content": answers}]

    def joined(self, bodies: Sequence[Body], tool: str) -> dict[str, Any]:
        content, reason = visible(bodies, "content", tool), bodies[-1].get("stop_reason")
        if reason == "tool_use" and not any(one.get("type") == "tool_use" for one in content):
            reason = "end_turn"
        made = {**bodies[-1], "content": content, "stop_reason": reason}
        return {**made, "usage": total(bodies)}

    def events(self, body: Body) -> bytes:
        usage = body.get("usage") or {}
        begun = {**body, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 0}}
        ends = {"stop_reason": body.get("stop_reason"), "stop_sequence": body.get("stop_sequence")}
        return _events([
            {"type": "message_start", "message": begun},
            *(one for place, block in enumerate(body["content"]) for one in _grown(block, place)),
            {"type": "message_delta", "delta": ends, "usage": usage},
            {"type": "message_stop"},
        ])  # fmt: skip


def _grown(block: Body, place: int) -> list[dict[str, Any]]:
    """Write a block of Anthropic's as its beginning, what it grows by, and its end."""
    kind, begun, deltas = str(block["type"]), dict(block), list[dict[str, Any]]()
    if kind == "compaction":
        begun = {"type": kind, "content": None}
        deltas = [{**block, "type": "compaction_delta"}]
    elif kind == "tool_use":
        begun["input"] = {}
        arguments = json.dumps(block.get("input") or {})
        deltas = [{"type": "input_json_delta", "partial_json": arguments}]
    for name in GROWS.get(kind, ()):
        if block.get(name):
            begun[name] = ""
            deltas.append({"type": f"{name}_delta", name: block[name]})
    return [
        {"type": "content_block_start", "index": place, "content_block": begun},
        *({"type": "content_block_delta", "index": place, "delta": one} for one in deltas),
        {"type": "content_block_stop", "index": place},
    ]


class ResponsesAnswers:
    """Answers of OpenAI's Responses; `stored` by an upstream that knows their items by id."""

    def __init__(self, stored: bool = True) -> None:
        self._stored = stored

    def lookups(self, body: Body, tool: str) -> list[Lookup]:
        calls = [one for one in body["output"] if _is_clients(str(one.get("type")))]
        ours = all(one.get("name") == tool and one.get("call_id") for one in calls)
        if not ours or body.get("status") != "completed":
            return []
        return [Lookup(str(one["call_id"]), str(one.get("arguments"))) for one in calls]

    def exchange(self, body: Body, results: Results) -> list[dict[str, Any]]:
        items = list(body["output"])
        if not self._stored:  # the form that the upstream accepts again
            items = [
                {key: value for key, value in one.items() if key != "id"}
                for one in items
                if one.get("type") != "reasoning" or one.get("encrypted_content")
            ]
        answers = [
            {"type": "function_call_output", "call_id": call.id, "output": result.text}
            for call, result in results
        ]
        return [*items, *answers]

    def joined(self, bodies: Sequence[Body], tool: str) -> dict[str, Any]:
        made = {**bodies[-1], "id": bodies[0].get("id"), "usage": total(bodies)}
        if isinstance(made.get("tools"), list):
            made["tools"] = [one for one in made["tools"] if one.get("name") != tool]
        return {**made, "output": visible(bodies, "output", tool)}

    def events(self, body: Body) -> bytes:
        begun = {**body, "status": "in_progress", "output": [], "usage": None}
        made: list[dict[str, Any]] = [
            {"type": "response.created", "response": begun},
            *(one for place, item in enumerate(body["output"]) for one in _added(item, place)),
            {"type": f"response.{body.get('status') or 'completed'}", "response": dict(body)},
        ]
        return _events({**one, "sequence_number": number} for number, one in enumerate(made))


def _added(item: Body, place: int) -> Iterator[dict[str, Any]]:
    """Write an item of Responses as its beginning, its parts, and its end."""
    at = {"output_index": place, "item_id": item.get("id")}
    parts = item.get("content") if item.get("type") == "message" else None
    begun = {**item, "content": []} if parts is not None else item
    yield {"type": "response.output_item.added", "output_index": place, "item": begun}
    for number, part in enumerate(one for one in parts or () if isinstance(one.get("text"), str)):
        inner, text = {**at, "content_index": number}, part["text"]
        yield {"type": "response.content_part.added", **inner, "part": {**part, "text": ""}}
        yield {"type": "response.output_text.delta", **inner, "delta": text, "logprobs": []}
        yield {"type": "response.output_text.done", **inner, "text": text, "logprobs": []}
        yield {"type": "response.content_part.done", **inner, "part": part}
    if isinstance(arguments := item.get("arguments"), str):
        name = "response.function_call_arguments"
        yield {"type": f"{name}.delta", **at, "delta": arguments}
        yield {"type": f"{name}.done", **at, "arguments": arguments, "name": item.get("name")}
    yield {"type": "response.output_item.done", "output_index": place, "item": item}


def _is_clients(kind: str) -> bool:
    """Return whether an item waits for the client or the endpoint."""
    return kind == "mcp_approval_request" or (kind.endswith("_call") and kind not in DONE_THERE)


Answers = ChatAnswers | MessagesAnswers | ResponsesAnswers


def answers_of(protocol: str, *, stored: bool = True) -> Answers:
    """Return the reader and writer of a protocol's answers."""
    if protocol == "chat":
        return ChatAnswers()
    return MessagesAnswers() if protocol == "messages" else ResponsesAnswers(stored)
