"""Read answers, whole or streamed: the calls in them, their usage, and where they end."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conspectus_serve.protocols import CHAT, MESSAGES, Protocol

TEXTS = ("content", "refusal", "reasoning_content", "reasoning")  # of a chat message
GROWING = ("text", "thinking", "signature", "partial_json")  # fields of Anthropic's deltas
BROKEN_OFF = (None, "length", "content_filter")  # after these a call of chat may be incomplete
ENDED = ("completed", "incomplete", None)  # statuses of a response; in the background it has others
HEAD, TAIL = 8_192, 16_384  # bytes at both ends of an answer in which usage is looked for

DONE_THERE = frozenset(
    f"{name}_call"
    for name in ("web_search", "file_search", "code_interpreter", "image_generation", "mcp")
)
"""Types of calls that an upstream of Responses carries out itself; others wait for the client."""

EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")

_COUNTS = re.compile(
    rb'"(prompt_tokens|input_tokens|cache_read_input_tokens|cache_creation_input_tokens)": ?(\d+)'
)
_COMPLETE = re.compile(rb'"response\.(?:completed|incomplete)"')


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


def events_in(raw: bytes, *, streamed: bool) -> Iterator[Any]:
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
    messages, calls = READERS[protocol](events_in(raw, streamed=streamed))
    if protocol == "responses" and not stored:  # the form that the upstream accepts again
        messages = [
            {key: value for key, value in one.items() if key != "id"}
            for one in messages
            if one.get("type") != "reasoning" or one.get("encrypted_content")
        ]
    return Answer(messages, [Call(*map(str, call)) for call in calls])


Read = tuple[list[dict[str, Any]], list[tuple[Any, Any, Any]]]


def _chat(events: Iterable[Any]) -> Read:
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
    functions = [(one["id"], one["function"]) for one in made]
    return [message], [(id_, of["name"], of["arguments"]) for id_, of in functions]


def _messages(events: Iterable[Any]) -> Read:
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
    calls = [(one["id"], one["name"], json.dumps(one.get("input") or {})) for one in uses]
    return [{"role": "assistant", "content": content}], calls


def _responses(events: Iterable[Any]) -> Read:
    *_, last = events
    response = last.get("response", last)
    items = list(response["output"])
    waiting = [
        (one["call_id"], one.get("name"), one.get("arguments"))
        for one in items
        if str(one["type"]).endswith("_call") and one["type"] not in DONE_THERE
    ]
    return items, waiting if response.get("status") == "completed" else []


READERS: Mapping[str, Callable[[Iterable[Any]], Read]] = {
    "chat": _chat,
    "messages": _messages,
    "responses": _responses,
}


def results_in(protocol: str, results: Sequence[tuple[Call, str]]) -> list[dict[str, Any]]:
    """Write the results of calls as messages of a protocol."""
    if protocol == "chat":
        return [{"role": "tool", "tool_call_id": one.id, "content": text} for one, text in results]
    if protocol == "messages":
        kind, id_, content = "tool_result", "tool_use_id", "content"
    else:
        kind, id_, content = "function_call_output", "call_id", "output"
    blocks = [{"type": kind, id_: one.id, content: text} for one, text in results]
    return [{"role": "user", "content": blocks}] if protocol == "messages" else blocks


class Passing:
    """Read an answer's pieces as they go by.

    Attributes:
        ended: a stream holds its last event.
        complete: its end has begun, from which on a client may name the response.
    """

    def __init__(self, protocol: Protocol, streamed: bool) -> None:
        self._protocol, self._streamed, self._raw = protocol, streamed, bytearray()
        self._ending = -1  # the place of the last event
        self.ended, self.complete = False, not streamed

    def see(self, piece: bytes) -> None:
        """Add a piece."""
        start = max(0, len(self._raw) - 64)
        self._raw += piece
        if not self._streamed:
            return
        self.complete = self.complete or _COMPLETE.search(self._raw, start) is not None
        if self._ending < 0 and (match := self._protocol.ends.search(self._raw, start)):
            self._ending = match.start() + 1
        if self._ending >= 0:
            chat, event = self._protocol is CHAT, EVENT_END.search(self._raw, self._ending)
            self.ended = b"\n" in self._raw[self._ending :] if chat else event is not None

    def reported(self) -> int | None:
        """Return the input tokens that the upstream reports; None if it reports none."""
        text = self._raw[:HEAD] + b" " + self._raw[HEAD:][-TAIL:]
        counts = {match[1]: int(match[2]) for match in _COUNTS.finditer(text)}
        if self._protocol is not MESSAGES:
            return counts.get(b"prompt_tokens") or counts.get(b"input_tokens")
        return sum(n for name, n in counts.items() if name != b"prompt_tokens") or None

    def response(self) -> tuple[str, list[Any]] | None:
        """Return the id and output of a response of Responses; None if it is not complete."""
        try:
            *_, last = events_in(bytes(self._raw), streamed=self._streamed)
            body = last["response"] if self._streamed else last
            name, output, status = body["id"], body["output"], body.get("status")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        named = status in ENDED and isinstance(name, str) and isinstance(output, list)
        return (name, output) if named else None
