"""A caller's messages as entries: what each says, who says it, which calls it makes or answers.

LangChain messages, OpenAI-style dicts and Anthropic-style dicts are read as they are and handed
back as they are: an entry keeps the caller's own object.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, ToolMessage
from langchain_core.messages.function import FunctionMessage

from conspectus._core.items import Role
from conspectus.errors import MessageError
from conspectus.messages.codec import Encoded, encode

Source = BaseMessage | Mapping[str, Any]
"""A message as callers have it."""

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
}
SHORT_ID = 12
"""An id of up to so many characters is cited as it is; a longer one by the start of its key."""

DATE_KEYS = ("timestamp", "created_at", "date", "session_time", "time")


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call: its id, the tool's name, and its arguments as text."""

    id: str
    name: str
    args: str

    @property
    def reading(self) -> str:
        """The call as a person would note it: line breaks as such, not escaped."""
        try:
            values = json.loads(self.args)
        except ValueError:
            values = None
        if not isinstance(values, dict):
            return f"{self.name} {self.args}".strip()
        shown = [
            (key, part if isinstance(part, str) else _as_text(part)) for key, part in values.items()
        ]
        rest = [f"{key}: {part}" for key, part in shown[1:]]
        return "\n".join([f"{self.name} {shown[0][1]}" if shown else self.name, *rest])


@dataclass(slots=True)
class Entry:
    """One message, read.

    Attributes:
        source: the caller's own object, never changed.
        id: its id; where it has none, derived from its content and how often that came before.
        key: identity and version: hash of id, content and occurrence.
        role: who speaks.
        name: the speaker's or the tool's name, if given.
        text: everything a reader would see: text, reasoning, media as short descriptions.
        calls: tool calls that it makes.
        answers: ids of calls that it answers.
        date: when it was said, as the caller wrote it, if known.
        encoded: the original as JSON text.
        media: how many images, files, or other things that are no text it holds.
    """

    source: Source
    id: str
    key: str
    role: Role
    text: str
    encoded: Encoded
    name: str | None = None
    calls: tuple[Call, ...] = ()
    answers: tuple[str, ...] = ()
    date: str | None = None
    media: int = 0
    given_id: str | None = None

    @property
    def cite(self) -> str:
        """How a summary names it: its id if short and plain, else the start of its key."""
        plain = len(self.id) <= SHORT_ID and all(c.isalnum() or c in "-_:." for c in self.id)
        return self.id if plain and self.given_id is not None else self.key[:8]

    @property
    def reading(self) -> str:
        """The text with its tool calls: what a summariser reads and recall searches."""
        if not self.calls:
            return self.text
        calls = "\n".join(call.reading for call in self.calls)
        return f"{self.text}\n{calls}" if self.text else calls


@dataclass(slots=True)
class _Parts:
    """What the content of a message holds, gathered block by block."""

    text: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    media: int = 0
    results: int = 0  # how many of the texts are results of tools, not the speaker's own words


def read_messages(messages: Sequence[Source], seen: Mapping[str, int] | None = None) -> list[Entry]:
    """Read a history.

    Args:
        messages: LangChain messages, or dicts in OpenAI's or Anthropic's form.
        seen: how often each content (by digest) has come before, where the start is missing.

    Raises:
        MessageError: one of them cannot be understood; says which and what is expected.
    """
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Sequence):
        raise MessageError(
            f"messages must be a list of messages, not {type(messages).__name__}; wrap a single "
            "message in a list"
        )
    digests: Counter[str] = Counter(seen or {})
    keys: Counter[str] = Counter()
    entries = []
    for place, source in enumerate(messages):
        entry = _read(source, place)
        digest = hashlib.sha256(entry.encoded.text.encode()).hexdigest()
        if entry.given_id is None:
            entry.id = f"{digest[:12]}-{digests[digest]}"
            digests[digest] += 1
        base = hashlib.sha256(f"{entry.id}\0{digest}".encode("utf-8", "backslashreplace"))
        entry.key = base.hexdigest()[:32]
        if keys[entry.key]:  # the same message twice, id and all
            again = hashlib.sha256(f"{entry.key}\0{keys[entry.key]}".encode())
            keys[entry.key] += 1
            entry.key = again.hexdigest()[:32]
        keys[entry.key] += 1
        entries.append(entry)
    return entries


def _read(source: Source, place: int) -> Entry:
    if isinstance(source, BaseMessage):
        return _from_langchain(source, place)
    if isinstance(source, Mapping):
        return _from_dict(source, place)
    raise MessageError(
        f"message {place} is {type(source).__name__}; give LangChain messages or dicts such as "
        '{"role": "user", "content": "..."}'
    )


def _from_langchain(message: BaseMessage, place: int) -> Entry:
    kind = message.type.removesuffix("MessageChunk").lower()
    if kind == "remove":
        raise MessageError(
            f"message {place} is a RemoveMessage, which is an instruction to a reducer and no part "
            "of a history; pass the history that it leaves"
        )
    role: Role = ROLES.get(
        message.role.lower() if isinstance(message, ChatMessage) else kind, "other"
    )
    parts = _Parts()
    _content(message.content, parts)
    known = {call.id for call in parts.calls}
    if isinstance(message, AIMessage):
        for call in message.tool_calls:
            if (call["id"] or "") not in known:
                parts.calls.append(Call(call["id"] or "", call["name"], _as_text(call["args"])))
        for bad in message.invalid_tool_calls:
            if bad["id"] and bad["id"] not in known:
                parts.calls.append(Call(bad["id"], bad["name"] or "", bad["args"] or ""))
        if not parts.calls and (raw := message.additional_kwargs.get("tool_calls")):
            _openai_calls(raw, parts)
    if isinstance(message, ToolMessage):
        parts.answers.append(message.tool_call_id)
    elif isinstance(message, FunctionMessage):
        role = "tool"
    extra = {**(message.response_metadata or {}), **(message.additional_kwargs or {})}
    if thought := extra.get("reasoning_content"):
        parts.text.insert(0, str(thought))
    return _entry(message, message.id, role, message.name, parts, extra)


def _from_dict(message: Mapping[str, Any], place: int) -> Entry:
    role_name = message.get("role")
    if not isinstance(role_name, str):
        raise MessageError(
            f'message {place} has no "role"; a message is a dict such as '
            '{"role": "user", "content": "..."}'
        )
    if role_name.lower() not in ROLES:
        raise MessageError(
            f"message {place} has the unknown role {role_name!r}; known are {', '.join(ROLES)}"
        )
    role = ROLES[role_name.lower()]
    content = message.get("content")
    if content is not None and not isinstance(content, (str, list)):
        raise MessageError(
            f"the content of message {place} is {type(content).__name__}; it must be text, a list "
            "of content blocks, or null"
        )
    parts = _Parts()
    if thought := message.get("reasoning_content"):
        parts.text.append(str(thought))
    _content(content, parts)
    if calls := message.get("tool_calls"):
        _openai_calls(calls, parts)
    if isinstance(old := message.get("function_call"), Mapping):
        parts.text.append(f"{old.get('name', '')}({_as_text(old.get('arguments', ''))})")
    if role_name == "tool":
        call_id = message.get("tool_call_id")
        if not isinstance(call_id, str):
            raise MessageError(
                f'message {place} has the role "tool" and no "tool_call_id" to say which call it '
                "answers"
            )
        parts.answers.append(call_id)
    if role == "user" and parts.answers and len(parts.text) == parts.results:
        role = "tool"
    given = message.get("id")
    return _entry(
        message, None if given is None else str(given), role, message.get("name"), parts, message
    )


def _entry(
    source: Source,
    given_id: str | None,
    role: Role,
    name: Any,
    parts: _Parts,
    extra: Mapping[str, Any],
) -> Entry:
    date = next((str(extra[key]) for key in DATE_KEYS if extra.get(key)), None)
    return Entry(
        source=source,
        id=given_id or "",
        key="",
        role=role,
        text="\n".join(part for part in parts.text if part),
        encoded=encode(source),
        name=str(name) if name else None,
        calls=tuple(parts.calls),
        answers=tuple(dict.fromkeys(parts.answers)),
        date=date,
        media=parts.media,
        given_id=given_id,
    )


def _content(content: Any, parts: _Parts) -> None:
    if isinstance(content, str):
        parts.text.append(content)
        return
    for block in content or ():
        if isinstance(block, str):
            parts.text.append(block)
        elif isinstance(block, Mapping):
            _block(block, parts)
        else:
            parts.text.append(_as_text(block))


def _block(block: Mapping[str, Any], parts: _Parts) -> None:
    kind = str(block.get("type", ""))
    if kind in ("tool_use", "tool_call", "server_tool_use", "server_tool_call"):
        args = block.get("input", block.get("args", {}))
        if kind.startswith("server"):  # answered inside the same message, so it pairs with nothing
            parts.text.append(f"{block.get('name', '')}({_as_text(args)})")
        else:
            parts.calls.append(
                Call(str(block.get("id", "")), str(block.get("name", "")), _as_text(args))
            )
    elif kind == "tool_result":
        parts.answers.append(str(block.get("tool_use_id", "")))
        inner = _Parts()
        _content(block.get("content"), inner)
        parts.text.extend(inner.text)
        parts.results += len(inner.text)
        parts.media += inner.media
    elif isinstance(block.get("text"), str):
        parts.text.append(block["text"])
    elif isinstance(thought := block.get("thinking", block.get("reasoning")), str):
        parts.text.append(thought)
    elif isinstance(block.get("content"), (str, list)):
        _content(block["content"], parts)
    else:
        parts.media += 1
        parts.text.append(_describe(kind, block))


def _describe(kind: str, block: Mapping[str, Any]) -> str:
    """An image or a document in a few words; its bytes are in the archive, not in the text."""
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


def _openai_calls(calls: Any, parts: _Parts) -> None:
    for call in calls if isinstance(calls, list) else ():
        if not isinstance(call, Mapping):
            continue
        function = call.get("function") or call.get("custom") or call
        name, args = function.get("name", ""), function.get("arguments", function.get("input", ""))
        parts.calls.append(Call(str(call.get("id") or ""), str(name), _as_text(args)))


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
