"""The content of a message: text, media, tool calls and answers, block by block."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from conspectus.messages.blocks import TOOL_USE, asked, first_id, kind_name, kind_of, opened
from conspectus.messages.codec import to_json
from conspectus.messages.media import UNTYPED

NO_TEXT = frozenset(
    "computer_screenshot image_generation_call redacted_thinking container_upload".split()
)
"""Kinds of blocks beside the table's media whose bytes are no text."""

FUNCTION = "function:"
"""Opens the id of a call in OpenAI's first form, which had none; the function's name follows."""


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call: its id, the tool's name, and its arguments as text."""

    id: str
    name: str
    args: str

    @property
    def reading(self) -> str:
        """The call in plain text, with plain line breaks."""
        try:
            values = json.loads(self.args)
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict):
            return f"{self.name} {self.args}".strip()
        shown = [
            (key, part if isinstance(part, str) else as_text(part)) for key, part in values.items()
        ]
        rest = [f"{key}: {part}" for key, part in shown[1:]]
        return "\n".join([f"{self.name} {shown[0][1]}" if shown else self.name, *rest])


class Result(NamedTuple):
    """The answer to one call; a message may hold several."""

    call: str
    text: str
    failed: bool


@dataclass(slots=True)
class Parts:
    """The content of a message, taken apart.

    `own` are the speaker's own words in `text`, `needs` ids of calls that must stand before the
    message, `media` blocks without text, and `known` ids of calls, which some providers list twice.
    """

    text: list[str] = field(default_factory=list)
    own: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)
    media: list[Mapping[str, Any]] = field(default_factory=list)
    known: set[str] = field(default_factory=set)

    def say(self, text: str) -> None:
        """Add words of the speaker."""
        self.text.append(text)
        self.own.append(text)

    def call(self, call_id: object, name: object, args: Any) -> None:
        """Add a call; one without an id pairs with nothing and is text."""
        call = Call(str(call_id or ""), str(name or ""), as_text(args))
        if not call.id:
            self.say(call.reading)
        elif call.id not in self.known:
            self.known.add(call.id)
            self.calls.append(call)


def read_content(content: Any, parts: Parts) -> None:
    """Read the content of a message: text, or a list of blocks of any provider."""
    if content is None:
        return
    if not isinstance(content, list):
        parts.say(as_text(content))
        return
    for block in content:
        if isinstance(block, str):
            parts.say(block)
        elif isinstance(block, Mapping):
            read_block(block, parts)
        else:
            parts.say(as_text(block))


def read_block(block: Mapping[str, Any], parts: Parts) -> None:
    """Read one block of any provider; an item of OpenAI's Responses is one."""
    block = opened(block)
    name, kind = kind_name(block), kind_of(block)
    source = block.get("source")
    if kind is not None and (needed := first_id(block, kind.needs)):
        parts.needs.append(needed)
    if kind is not None and kind.asks:
        parts.call(first_id(block, kind.asks), *asked(block, kind))
    elif kind is not None and kind.answers:
        inner = Parts()
        _result(block, inner)
        if answered := first_id(block, kind.answers):
            parts.answers.append(answered)
            told = "\n".join(part for part in inner.text if part)
            parts.results.append(Result(answered, told, _is_error(block)))
        parts.text.extend(inner.text)
        parts.media.extend(inner.media)
    elif isinstance(block.get("text"), str):
        parts.say(block["text"])
    elif isinstance(thought := block.get("thinking", block.get("reasoning")), str):
        parts.say(thought)
    elif name == "reasoning":
        read_content(block.get("summary") or block.get("content"), parts)
    elif isinstance(source, Mapping) and source.get("type") == "text":
        parts.say(str(source.get("data", "")))
    elif isinstance(source, Mapping) and source.get("type") == "content":
        read_content(source.get("content"), parts)
    elif name in UNTYPED and (text := _bedrock_text(block.get(name))) is not None:
        parts.say(text)
    elif (kind is not None and kind.media) or name in NO_TEXT:
        parts.media.append(block)
        parts.say(describe(name, block))
    elif isinstance(block.get("content"), (str, list)):
        read_content(block["content"], parts)
    else:  # nothing that we know: all of it, as it stands
        parts.say(as_text(block))


def _result(block: Mapping[str, Any], parts: Parts) -> None:
    """Read the content of an answer; without any, all the rest of its block."""
    content = block.get("content", block.get("output"))
    if isinstance(content, Mapping) and "type" in content:
        read_block(content, parts)
    elif content is None:
        ids = ("type", "id", "call_id", "is_error", "status", *TOOL_USE, "approval_request_id")
        if told := {key: part for key, part in block.items() if key not in ids}:
            parts.say(as_text(told))
    else:
        read_content(content, parts)


def _is_error(block: Mapping[str, Any]) -> bool:
    """Tell whether a result is marked as an error, by any provider."""
    failed = block.get("status") in ("error", "failed", "incomplete")
    return block.get("is_error") is True or failed or bool(block.get("error"))


def _bedrock_text(document: Any) -> str | None:
    """Return the text of a Bedrock document; None for bytes or a link."""
    source = document.get("source") if isinstance(document, Mapping) else None
    text = source.get("text") if isinstance(source, Mapping) else None
    return text if isinstance(text, str) else None


def describe(kind: str, block: Mapping[str, Any]) -> str:
    """Describe an image or a document in a few words, without its bytes."""
    source = block.get("source")
    inner: Mapping[str, Any] = source if isinstance(source, Mapping) else {}
    image = block.get("image_url")
    url = image.get("url") if isinstance(image, Mapping) else image
    url = url or block.get("url") or inner.get("url") or block.get("file_id") or ""
    data = block.get("data") or block.get("base64") or inner.get("data") or ""
    mime = block.get("mime_type") or inner.get("media_type") or ""
    if isinstance(url, str) and url.startswith("data:"):
        mime, url, data = url[5:].split(";")[0], "", url
    size = f"{len(data) * 3 // 4:,} bytes" if isinstance(data, (str, bytes)) and data else ""
    details = ", ".join(str(part) for part in (mime, block.get("filename"), url, size) if part)
    return f"[{kind or 'block'}: {details}]" if details else f"[{kind or 'block'}]"


def openai_calls(calls: Any, parts: Parts) -> None:
    """Read `tool_calls` of a chat completion."""
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, Mapping):
            function = call.get("function") or call.get("custom") or call
            if not isinstance(function, Mapping):
                function = {"name": as_text(function)}
            args = function.get("arguments", function.get("input", ""))
            parts.call(call.get("id"), function.get("name"), args)


def function_call(call: Any, parts: Parts) -> None:
    """Read `function_call`, OpenAI's first form of a call, which has no id."""
    if isinstance(call, Mapping):
        name = str(call.get("name", ""))
        parts.call(FUNCTION + name, name, call.get("arguments", ""))


def as_text(value: Any) -> str:
    """Return a value as text: JSON where it is none."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return _unusual(value)


def _unusual(value: Any) -> str:
    """Write values that JSON cannot: other keys, enormous numbers, endless nesting."""
    try:
        plain = to_json({"value": value})[1]
        return json.dumps(plain["value"], ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return f"[{type(value).__name__} nested too deeply to be read]"
