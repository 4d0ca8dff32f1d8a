"""Read one message in the form of any provider: text, media, tool calls and answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import is_
from typing import TYPE_CHECKING, Any

from conspectus._langchain import is_message, is_tool_message
from conspectus.core.items import Role
from conspectus.errors import MessageError
from conspectus.messages.blocks import (
    CACHE,
    KINDS,
    OPAQUE,
    TOOL_USE,
    UNTYPED,
    Kind,
    at_path,
    author_of,
    called,
    described,
    first_id,
    is_item,
    kind_name,
    kind_of,
    opened,
)
from conspectus.messages.message import Call, Message, Result, as_text

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

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

DATE_KEYS = ("timestamp", "created_at", "date", "session_time", "time")

NO_TEXT = frozenset(
    "computer_screenshot image_generation_call redacted_thinking container_upload".split()
)
"""Kinds of blocks beside the table's media whose bytes are no text."""

FUNCTION = "function:"
"""Opens the id of a call in OpenAI's first form, which had none; the function's name follows."""

_NO_RESULT = frozenset(
    [*"type id call_id is_error status approval_request_id content output".split(), *TOOL_USE]
)
"""Fields of an answer that are no part of what it says."""

_NO_WORDS = frozenset(("type", "id", "index", "content", CACHE))
"""Fields of a block of an unknown kind that say nothing beside its content."""


def as_messages(value: Any) -> Any:
    """Return the messages that a caller means, in a form that is read.

    The body of a request, or a graph's state, is its `messages`. Objects of a provider's SDK, such
    as OpenAI's `ChatCompletionMessage`, become dicts. All else stays as it is.

    Example:
        >>> as_messages({"messages": [{"role": "user", "content": "hi"}]})
        [{'role': 'user', 'content': 'hi'}]
    """
    if isinstance(value, Mapping) and "role" not in value and "messages" in value:
        value = value["messages"]
    if not isinstance(value, (list, tuple)) or {*map(type, value)} <= {dict}:
        return value
    models = [part.model_dump(exclude_none=True) if _is_model(part) else part for part in value]
    return value if all(map(is_, models, value)) else models


def _is_model(message: Any) -> bool:
    """Return whether it is a pydantic object that stands for a message or an item."""
    if type(message) is dict or is_message(message):
        return False
    return callable(getattr(message, "model_dump", None)) and not isinstance(message, type)


def read(message: Any, index: int) -> Message:
    """Read one message, without a key; `index` names it in a `MessageError`."""
    if is_message(message):
        return _from_langchain(message, index)
    if not isinstance(message, Mapping):
        raise MessageError(
            f"message {index} is {type(message).__name__}; give LangChain messages or dicts such "
            'as {"role": "user", "content": "..."}'
            + ("; of this one, message.model_dump()" if _is_model(message) else "")
        )
    if not is_item(message):
        return _from_dict(message, index)
    parts = Parts()
    parts.block(message)
    role: Role = "assistant" if author_of(message) == "model" else "tool"
    return parts.message(message, message.get("id"), role, message, item=True)


@dataclass(slots=True)
class Parts:
    """The content of a message, taken apart.

    `own` are the speaker's own words in `text`; `calls` stand by their ids, as some providers list
    one twice.
    """

    text: list[str] = field(default_factory=list)
    own: list[str] = field(default_factory=list)
    calls: dict[str, Call] = field(default_factory=dict)
    answers: list[str] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)
    media: list[Mapping[str, Any]] = field(default_factory=list)

    def say(self, text: str) -> None:
        """Add words of the speaker."""
        if text:
            self.text.append(text)
            self.own.append(text)

    def sealed(self, holder: Mapping[str, Any]) -> None:
        """Add the sealed thoughts that stand beside the content."""
        for data in filter(None, (one.get("data") for one in details_in(holder))):
            block = {"type": "redacted_thinking", "data": data}
            self.media.append(block)
            self.text.append(described(block["type"], block))

    def call(self, call_id: object, name: object, args: Any) -> None:
        """Add a call; one without an id pairs with nothing and is text."""
        call = Call(str(call_id or ""), str(name or ""), as_text(args))
        if call.id:
            self.calls.setdefault(call.id, call)
        else:
            self.say(call.reading)

    def content(self, content: Any) -> None:
        """Add a content: text, or a list of blocks of any provider."""
        if isinstance(content, list):
            for block in content:
                if isinstance(block, Mapping):
                    self.block(block)
                else:
                    self.say(as_text(block))
        elif content is not None:
            self.say(as_text(content))

    def block(self, block: Mapping[str, Any]) -> None:
        """Add one block of any provider; an item of OpenAI's Responses is one."""
        block = opened(block)
        kind = kind_of(block)
        if kind.needs and (needed := first_id(block, kind.needs)):
            self.needs.append(needed)
        if kind.asks:
            self.call(first_id(block, kind.asks), *called(block, kind))
        elif kind.answers:
            self._answer(block, kind)
        else:
            self._words(block, kind)

    def _answer(self, block: Mapping[str, Any], kind: Kind) -> None:
        inner = Parts()
        content = block.get("content", block.get("output"))
        if isinstance(content, Mapping) and "type" in content:
            inner.block(content)
        elif content is not None:
            inner.content(content)
        rest = {key: part for key, part in block.items() if key not in _NO_RESULT}
        if rest and (content is None or kind_name(block) not in KINDS):
            inner.say(as_text(rest))
        if answered := first_id(block, kind.answers):
            failed = block.get("is_error") is True or bool(block.get("error"))
            failed = failed or block.get("status") in ("error", "failed", "incomplete")
            self.answers.append(answered)
            self.results.append(Result(answered, "\n".join(inner.text), failed))
        self.text += inner.text
        self.media += inner.media

    def _words(self, block: Mapping[str, Any], kind: Kind) -> None:
        name, source = kind_name(block), at_path(block, "source.type")
        thought = block.get("thinking", block.get("reasoning"))
        document = at_path(block, f"{name}.source.text") if name in UNTYPED else None
        text = next((t for t in (block.get("text"), thought, document) if isinstance(t, str)), None)
        if text is not None:
            self.say(text)
        elif name == "reasoning":
            self.content(block.get("summary"))
            self.content(block.get("content"))
        elif source == "text":
            self.say(str(block["source"].get("data", "")))
        elif source == "content":
            self.content(block["source"].get("content"))
        elif kind.media or name in NO_TEXT:
            self.media.append(block)
            self.say(described(name, block))
        elif isinstance(block.get("content"), (str, list)):
            rest = {key: part for key, part in block.items() if key not in _NO_WORDS}
            if kind is OPAQUE and rest:  # such as what a program printed, beside its files
                self.say(as_text(rest))
            self.content(block["content"])
        else:  # nothing that we know: all of it, as it stands
            self.say(as_text(block))
        for also in kind.also:
            more = block.get(also) or at_path(block, f"{name}.{also}")
            if isinstance(more, str) and not any(more in text for text in self.text):
                self.say(more)

    def openai_calls(self, holder: Mapping[str, Any], *, first: bool = True) -> None:
        """Add the calls of a chat completion; with `first`, also that of its first form."""
        calls = holder.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, Mapping):
                function = call.get("function") or call.get("custom") or call
                args = function.get("arguments", function.get("input", ""))
                self.call(call.get("id"), function.get("name"), args)
        call = holder.get("function_call")
        if first and isinstance(call, Mapping):  # which has no id
            name = str(call.get("name", ""))
            self.call(FUNCTION + name, name, call.get("arguments", ""))

    def message(
        self, source: Any, own_id: Any, role: Role, extra: Mapping[str, Any], *, item: bool = False
    ) -> Message:
        """Make the message, without a key; `extra` has what else its maker said of it."""
        paused = extra.get("stop_reason") == "pause_turn"
        given_id = None if own_id is None else str(own_id)
        if role == "user" and self.answers and not self.own:
            role = "tool"  # Anthropic's results come in the name of the user
        name = source.name if is_message(source) else source.get("name")
        text = "\n".join(self.text)
        own = text if len(self.own) == len(self.text) else "\n".join(self.own)
        return Message(
            source=source,
            id=given_id or "",
            key="",
            role=role,
            text=text,
            own="" if role == "tool" else own,
            name=str(name) if name and not (item and "role" not in source) else None,
            calls=tuple(self.calls.values()),
            answers=tuple(dict.fromkeys(self.answers)),
            results=tuple(self.results),
            needs=tuple(dict.fromkeys(self.needs)),
            goes_on="pause" if paused else "response" if item else "",
            date=next((str(extra[key]) for key in DATE_KEYS if extra.get(key)), None),
            media=tuple(self.media),
            given_id=given_id,
        )


def _from_langchain(message: BaseMessage, index: int) -> Message:
    kind = message.type.removesuffix("MessageChunk").lower()
    if kind == "remove":
        raise MessageError(
            f"message {index} is a RemoveMessage, which is an instruction to a reducer and no part "
            "of a history; pass the history that it leaves"
        )
    spoken_by = str(getattr(message, "role", "")).lower() if kind == "chat" else kind
    more, parts, content = message.additional_kwargs, Parts(), message.content
    extra = {**message.response_metadata, **more}
    if thought := thought_in(extra):
        parts.text.append(thought)
    parts.sealed(extra)
    if answers_computer(message) and isinstance(content, str):  # the address of a picture
        content = [{"type": "input_image", "image_url": content}]
    parts.content(content)
    parts.say(str(more.get("refusal") or ""))
    if kind == "ai":
        calls = getattr(message, "tool_calls", [])
        for call in (*calls, *getattr(message, "invalid_tool_calls", ())):
            parts.call(call["id"], call["name"], call["args"] or "")
        if more:
            # Google repeats one of them in the first form, without its id.
            parts.openai_calls(more, first=not calls)
            # The older form of ChatOpenAI's answers keeps the calls of hosted tools here.
            parts.content(more.get("tool_outputs"))
    elif is_tool_message(message):
        parts.answers.append(message.tool_call_id)
    elif kind == "function":
        parts.answers.append(FUNCTION + str(message.name))
    return parts.message(message, message.id, ROLES.get(spoken_by, "other"), extra)


def thought_in(holder: Mapping[str, Any]) -> str:
    """Return what a model thought, as DeepSeek and OpenRouter write it beside the content."""
    plain = holder.get("reasoning_content") or holder.get("reasoning")
    if plain and isinstance(plain, str):
        return plain
    texts = (one.get("text") or one.get("summary") for one in details_in(holder))
    return "\n".join(as_text(text) for text in texts if text)


def details_in(holder: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return OpenRouter's parts of a thought: texts, and data that its provider alone can read."""
    details = holder.get("reasoning_details")
    listed = details if isinstance(details, list) else []
    return [one for one in listed if isinstance(one, Mapping)]


def answers_computer(message: BaseMessage) -> bool:
    """Tell whether a tool's message is OpenAI's `computer_call_output`, a picture."""
    kind = message.additional_kwargs.get("type")
    return kind == "computer_call_output" and is_tool_message(message)


def _from_dict(message: Mapping[str, Any], index: int) -> Message:
    role_name, content = message.get("role"), message.get("content")
    role = ROLES.get(role_name.lower()) if isinstance(role_name, str) else None
    call_id, wrong = message.get("tool_call_id"), ""
    if not isinstance(role_name, str):
        wrong = 'has no "role"; a message is a dict such as {"role": "user", "content": "..."}'
    elif role is None:
        wrong = f"has the unknown role {role_name!r}; known are {', '.join(ROLES)}"
    elif content is None and "parts" in message:
        wrong = (
            'has "parts" as in Google\'s own form, which is not read; give it as a LangChain '
            "message or in OpenAI's form"
        )
    elif "content" not in message and role in ("user", "system"):
        wrong = f'has the role {role_name!r} and no "content"; give its text, which may be empty'
    elif role_name == "tool" and not isinstance(call_id, str):
        wrong = 'has the role "tool" and no "tool_call_id" to say which call it answers'
    if role is None or wrong:
        raise MessageError(f"message {index} {wrong}")
    if content is not None and not isinstance(content, (str, list)):
        raise MessageError(
            f"the content of message {index} is {type(content).__name__}; it must be text, a list "
            "of content blocks, or null"
        )
    parts = Parts()
    parts.say(thought_in(message))
    parts.sealed(message)
    parts.content(content)
    parts.say(str(message.get("refusal") or ""))
    parts.openai_calls(message)
    if role_name == "function":
        parts.answers.append(FUNCTION + str(message.get("name", "")))
    elif role_name == "tool":
        parts.answers.append(str(call_id))
    item = message.get("type") == "message"
    return parts.message(message, message.get("id"), role, message, item=item)
