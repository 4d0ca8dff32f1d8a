"""Read one message, in the form of any provider, as an entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from conspectus._langchain import is_message, is_tool_message
from conspectus.core.items import Role
from conspectus.errors import MessageError
from conspectus.messages.blocks import author_of, is_item
from conspectus.messages.content import (
    FUNCTION,
    Parts,
    function_call,
    openai_calls,
    read_block,
    read_content,
)
from conspectus.messages.entries import Entry, Source

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


def as_messages(given: Any) -> Any:
    """Return the messages that a caller means, in a form that is read.

    The body of a request, or a graph's state, is its `messages`. Objects of a provider's SDK, such
    as OpenAI's `ChatCompletionMessage`, become dicts. All else stays as it is.

    Example:
        >>> as_messages({"messages": [{"role": "user", "content": "hi"}]})
        [{'role': 'user', 'content': 'hi'}]
    """
    if isinstance(given, Mapping) and "role" not in given and "messages" in given:
        given = given["messages"]
    if not isinstance(given, (list, tuple)) or not any(map(_is_model, given)):
        return given
    return [one.model_dump(exclude_none=True) if _is_model(one) else one for one in given]


def _is_model(message: Any) -> bool:
    """Return whether it is a pydantic object that stands for a message or an item."""
    if type(message) is dict or is_message(message):
        return False
    return callable(getattr(message, "model_dump", None)) and not isinstance(message, type)


def read(message: Any, place: int) -> Entry:
    """Read one message, without a key; `place` names it in a `MessageError`."""
    if is_message(message):
        return _from_langchain(message, place)
    if not isinstance(message, Mapping):
        raise MessageError(
            f"message {place} is {type(message).__name__}; give LangChain messages or dicts such "
            'as {"role": "user", "content": "..."}'
            + ("; of this one, message.model_dump()" if _is_model(message) else "")
        )
    if is_item(message):
        parts = Parts()
        read_block(message, parts)
        role: Role = "assistant" if author_of(message) == "model" else "tool"
        return _entry(message, message.get("id"), role, None, parts, message)
    return _from_dict(message, place)


def _from_langchain(message: BaseMessage, place: int) -> Entry:
    kind = message.type.removesuffix("MessageChunk").lower()
    if kind == "remove":
        raise MessageError(
            f"message {place} is a RemoveMessage, which is an instruction to a reducer and no part "
            "of a history; pass the history that it leaves"
        )
    spoken_by = str(getattr(message, "role", "")).lower() if kind == "chat" else kind
    more, parts = message.additional_kwargs, Parts()
    content: Any = message.content
    if answers_computer(message) and isinstance(content, str):  # the address of a picture
        content = [{"type": "input_image", "image_url": content}]
    read_content(content, parts)
    if kind == "ai":
        called = getattr(message, "tool_calls", [])
        for call in (*called, *getattr(message, "invalid_tool_calls", [])):
            parts.call(call["id"], call["name"], call["args"] or "")
        openai_calls(more.get("tool_calls"), parts)
        if not called:  # Google repeats one of them there, without its id
            function_call(more.get("function_call"), parts)
        # The older form of ChatOpenAI's answers keeps the calls of hosted tools here.
        read_content(more.get("tool_outputs"), parts)
    elif is_tool_message(message):
        parts.answers.append(message.tool_call_id)
    elif kind == "function":
        parts.answers.append(FUNCTION + str(message.name))
    extra = {**message.response_metadata, **more}
    if thought := extra.get("reasoning_content"):
        parts.text.insert(0, str(thought))
    role = ROLES.get(spoken_by, "other")
    return _entry(message, message.id, role, message.name, parts, extra)


def answers_computer(message: BaseMessage) -> bool:
    """Tell whether a tool's message is OpenAI's `computer_call_output`, a picture."""
    kind = message.additional_kwargs.get("type")
    return kind == "computer_call_output" and is_tool_message(message)


def _from_dict(message: Mapping[str, Any], place: int) -> Entry:
    role_name, content = message.get("role"), message.get("content")
    if not isinstance(role_name, str):
        raise MessageError(
            f'message {place} has no "role"; a message is a dict such as '
            '{"role": "user", "content": "..."}'
        )
    if role_name.lower() not in ROLES:
        raise MessageError(
            f"message {place} has the unknown role {role_name!r}; known are {', '.join(ROLES)}"
        )
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
    if "content" not in message and ROLES[role_name.lower()] in ("user", "system"):
        raise MessageError(
            f'message {place} has the role {role_name!r} and no "content"; give its text, which '
            "may be empty"
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
    role = ROLES[role_name.lower()]
    return _entry(message, message.get("id"), role, message.get("name"), parts, message)


def _entry(
    source: Source, given: Any, role: Role, name: Any, parts: Parts, extra: Mapping[str, Any]
) -> Entry:
    given_id = None if given is None else str(given)
    if role == "user" and parts.answers and not any(parts.own):
        role = "tool"  # Anthropic's results come in the name of the user
    goes_on = "pause" if extra.get("stop_reason") == "pause_turn" else ""
    if (
        not goes_on
        and not is_message(source)
        and (source.get("type") == "message" or is_item(source))
    ):
        goes_on = "response"
    return Entry(
        source=source,
        id=given_id or "",
        key="",
        role=role,
        text="\n".join(filter(None, parts.text)),
        own="" if role == "tool" else "\n".join(filter(None, parts.own)),
        name=str(name) if name else None,
        calls=tuple(parts.calls),
        answers=tuple(dict.fromkeys(parts.answers)),
        results=tuple(parts.results),
        needs=tuple(dict.fromkeys(parts.needs)),
        goes_on=goes_on,
        date=next((str(extra[key]) for key in DATE_KEYS if extra.get(key)), None),
        media=tuple(parts.media),
        given_id=given_id,
    )
