"""Read a caller's messages as entries: speaker, text, calls and answers of each.

LangChain messages, OpenAI-style dicts, Anthropic-style dicts and items of OpenAI's Responses are
returned as they came: an entry keeps the caller's own object.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

from conspectus._core.items import Role
from conspectus._langchain import is_message, is_tool_message
from conspectus.errors import MessageError
from conspectus.messages.blocks import author_of, is_item
from conspectus.messages.codec import Encoded, encode
from conspectus.messages.content import (
    FUNCTION,
    Call,
    Parts,
    Result,
    function_call,
    openai_calls,
    read_block,
    read_content,
)

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

Source: TypeAlias = "BaseMessage | Mapping[str, Any]"  # A message as callers have it

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
SHORT_ID = 12  # Length up to which an id is cited as it is; otherwise the start of the key is

DATE_KEYS = ("timestamp", "created_at", "date", "session_time", "time")


@dataclass(slots=True)
class Entry:
    """One message, read.

    Attributes:
        source: the caller's own object, never changed.
        id: its id; without one, derived from its content and earlier occurrences.
        key: identity and version: hash of id, content and occurrence.
        role: the speaker's role.
        name: the speaker's or the tool's name, if given.
        text: its readable text: text, reasoning, media as short descriptions.
        own: the speaker's own words in it, without the results of tools.
        calls: tool calls that it makes.
        answers: ids of calls that it answers.
        results: the answers among its blocks, one by one.
        needs: ids of calls that must stand before it, although it does not answer them.
        joined: whether it continues the answer that the message before it began.
        date: when it was said, as the caller wrote it, if known.
        encoded: the original as JSON text.
        found: cached findings of a higher layer.
        media: its blocks without text, such as images and files, the caller's own.
        redacted: whether secrets were taken out, so that it differs from the message sent.
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
    results: tuple[Result, ...] = ()
    needs: tuple[str, ...] = ()
    joined: bool = False
    date: str | None = None
    media: tuple[Mapping[str, Any], ...] = ()
    given_id: str | None = None
    own: str = ""
    found: Any = None
    redacted: bool = False

    @property
    def cite(self) -> str:
        """The name in a summary: its id if short and plain, else the start of its key."""
        plain = 0 < len(self.id) <= SHORT_ID and all(c.isalnum() or c in "-_:." for c in self.id)
        return self.id if plain and self.given_id is not None else self.key[:8]

    @property
    def reading(self) -> str:
        """The text with its tool calls, for summarisers and for recall."""
        if not self.calls:
            return self.text
        calls = "\n".join(call.reading for call in self.calls)
        return f"{self.text}\n{calls}" if self.text else calls


def read_messages(messages: Sequence[Source], seen: Mapping[str, int] | None = None) -> list[Entry]:
    """Read a history.

    Args:
        messages: LangChain messages, dicts in OpenAI's or Anthropic's form, or items of OpenAI's
            Responses.
        seen: counts of earlier contents if the start of the history is missing: the result of
            `occurrences` for the missing keys.

    Raises:
        MessageError: one of them cannot be understood; names it and the expected form.
    """
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Sequence):
        raise MessageError(
            f"messages must be a list of messages, not {type(messages).__name__}; wrap a single "
            "message in a list"
        )
    entries = []
    for place, source in enumerate(messages):
        try:
            entries.append(_read(source, place))
        except MessageError:
            raise
        except (TypeError, ValueError, AttributeError, RecursionError) as error:
            raise MessageError(
                f"message {place} cannot be read ({type(error).__name__}: {error!s:.200}); check "
                "its content and its tool calls"
            ) from error
    for before, entry in pairwise(entries):
        entry.joined = _goes_on(before, entry)
    _pair_local_shells(entries)
    name_entries(entries, seen)
    return entries


def _goes_on(before: Entry, entry: Entry) -> bool:
    """Tell whether two messages are one answer: items of one response, or a paused turn."""
    if before.role != "assistant" or entry.role != "assistant":
        return False
    source = before.source
    if is_message(source):
        return source.response_metadata.get("stop_reason") == "pause_turn"
    if source.get("stop_reason") == "pause_turn":
        return True
    return _of_response(source) and _of_response(entry.source)


def _of_response(source: Source) -> bool:
    return not is_message(source) and (is_item(source) or source.get("type") == "message")


def _pair_local_shells(entries: Sequence[Entry]) -> None:
    """Give outputs of local shells the one id that pairs them with their calls."""
    other: dict[str, str] = {}
    for entry in entries:
        if is_message(entry.source):
            continue
        if entry.source.get("type") == "local_shell_call":
            other[str(entry.source.get("id"))] = str(entry.source.get("call_id"))
        elif entry.source.get("type") == "local_shell_call_output":
            entry.answers = tuple(other.get(one, one) for one in entry.answers)


def name_entries(
    entries: Sequence[Entry],
    seen: Mapping[str, int] | None = None,
    missing: Mapping[int, Collection[str]] | None = None,
) -> None:
    """Give each entry its key, and an id if it has none; see `read_messages`.

    `missing` has, by the place of a summary or a clip, the keys of the messages that it stands for.
    A message after it with the same id and content is another one.
    """
    contents: Counter[str] = Counter(seen or {})
    keys: Counter[str] = Counter()
    taken: set[str] = set()
    for place, entry in enumerate(entries):
        if missing and place in missing:
            taken.update(missing[place])
        digest = hashlib.sha256(entry.encoded.text.encode()).hexdigest()
        if entry.given_id is None:
            # The key has the content and its number, so that messages which have left can be
            # counted by their keys alone.
            content = digest[:28]
            entry.id = entry.key = f"{content}-{contents[content]}"
            contents[content] += 1
            continue
        named = f"{entry.given_id}\0{digest}".encode("utf-8", "backslashreplace")
        key = hashlib.sha256(named).hexdigest()[:32]
        again = keys[key]  # the same message twice, id and all
        while (name := _occurring(key, again)) in taken:
            again += 1
        keys[key] = again + 1
        entry.key = name


def _occurring(key: str, again: int) -> str:
    return hashlib.sha256(f"{key}\0{again}".encode()).hexdigest()[:32] if again else key


def occurrences(keys: Iterable[str]) -> Counter[str]:
    """Count, by keys, the occurrences of contents among messages without ids."""
    counts: Counter[str] = Counter()
    for key in keys:
        content, dash, number = key.partition("-")
        if dash and number.isdigit():
            counts[content] = max(counts[content], int(number) + 1)
    return counts


def _read(source: Source, place: int) -> Entry:
    if is_message(source):
        return _from_langchain(source, place)
    if isinstance(source, Mapping):
        return _from_dict(source, place)
    raise MessageError(
        f"message {place} is {type(source).__name__}; give LangChain messages or dicts such as "
        '{"role": "user", "content": "..."}'
    )


def _from_langchain(message: BaseMessage, place: int) -> Entry:
    from langchain_core.messages import AIMessage, ChatMessage, FunctionMessage, ToolMessage

    kind = message.type.removesuffix("MessageChunk").lower()
    if kind == "remove":
        raise MessageError(
            f"message {place} is a RemoveMessage, which is an instruction to a reducer and no part "
            "of a history; pass the history that it leaves"
        )
    role: Role = ROLES.get(
        message.role.lower() if isinstance(message, ChatMessage) else kind, "other"
    )
    parts = Parts()
    read_content(_shot(message) or message.content, parts)
    if isinstance(message, AIMessage):
        for call in (*message.tool_calls, *message.invalid_tool_calls):
            parts.call(call["id"], call["name"], call["args"] or "")
        openai_calls(message.additional_kwargs.get("tool_calls"), parts)
        if not message.tool_calls:  # Google repeats one of them there, without its id
            function_call(message.additional_kwargs.get("function_call"), parts)
        # The older form of ChatOpenAI's answers keeps the calls of hosted tools here.
        read_content(message.additional_kwargs.get("tool_outputs"), parts)
    if isinstance(message, ToolMessage):
        parts.answers.append(message.tool_call_id)
    elif isinstance(message, FunctionMessage):
        role = "tool"
        parts.answers.append(FUNCTION + str(message.name))
    extra = {**(message.response_metadata or {}), **(message.additional_kwargs or {})}
    if thought := extra.get("reasoning_content"):
        parts.text.insert(0, str(thought))
    return _entry(message, message.id, role, message.name, parts, extra)


def _shot(message: BaseMessage) -> list[Any] | None:
    """Return the picture of a `computer_call_output` whose content is an address."""
    if answers_computer(message) and isinstance(message.content, str):
        return [{"type": "input_image", "image_url": message.content}]
    return None


def answers_computer(message: BaseMessage) -> bool:
    """Tell whether a tool's message is OpenAI's `computer_call_output`, a picture."""
    return (
        is_tool_message(message) and message.additional_kwargs.get("type") == "computer_call_output"
    )


def _from_dict(message: Mapping[str, Any], place: int) -> Entry:
    if is_item(message):
        return _from_item(message)
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
    if content is None and "parts" in message:
        raise MessageError(
            f'message {place} has "parts" as in Google\'s own form, which is not read; give it as '
            "a LangChain message or in OpenAI's form"
        )
    if content is not None and not isinstance(content, (str, list)):
        raise MessageError(
            f"the content of message {place} is {type(content).__name__}; it must be text, a list "
            "of content blocks, or null"
        )
    parts = Parts()
    if thought := message.get("reasoning_content"):
        parts.say(str(thought))
    read_content(content, parts)
    openai_calls(message.get("tool_calls"), parts)
    function_call(message.get("function_call"), parts)
    if role_name == "function":
        parts.answers.append(FUNCTION + str(message.get("name", "")))
    if role_name == "tool":
        call_id = message.get("tool_call_id")
        if not isinstance(call_id, str):
            raise MessageError(
                f'message {place} has the role "tool" and no "tool_call_id" to say which call it '
                "answers"
            )
        parts.answers.append(call_id)
    return _entry(message, message.get("id"), role, message.get("name"), parts, message)


def _from_item(item: Mapping[str, Any]) -> Entry:
    parts = Parts()
    read_block(item, parts)
    role: Role = "assistant" if author_of(item) == "model" else "tool"
    return _entry(item, item.get("id"), role, None, parts, item)


def _entry(
    source: Source, given: Any, role: Role, name: Any, parts: Parts, extra: Mapping[str, Any]
) -> Entry:
    given_id = None if given is None else str(given)
    if role == "user" and parts.answers and not any(parts.own):
        role = "tool"  # Anthropic's results come in the name of the user
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
        results=tuple(parts.results),
        needs=tuple(dict.fromkeys(parts.needs)),
        date=date,
        media=tuple(parts.media),
        given_id=given_id,
        own="" if role == "tool" else "\n".join(part for part in parts.own if part),
    )
