"""Read histories in the form of any provider: text, media, tool calls and answers.

What was read is remembered: for a LangChain message as long as the object lives, for a dict as long
as it is in the newest history of its thread. At each call a message is compared with a copy, so
that a change in place is noticed.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple
from weakref import KeyedRef

from conspectus._bounded_cache import BoundedCache
from conspectus._langchain import is_message
from conspectus.core.items import Role
from conspectus.errors import MessageError
from conspectus.messages.blocks import (
    CACHE,
    SIGNED_FIELDS,
    TOOL_USE,
    USUAL_TEXT,
    BlockKind,
    at_path,
    first_id,
    is_item,
    kind_of,
    plain_text,
    tool_and_arguments,
    unwrap_block,
)
from conspectus.messages.media import described, without_bytes
from conspectus.messages.message import (
    Call,
    Message,
    Result,
    Source,
    as_text,
    assign_keys,
    fields_of,
    to_json_data,
    without_objects,
)

THREADS = 256
"""Threads in each memory of this process; the least recently used thread is dropped first."""

CHARACTERS = 64_000_000
"""Characters in each memory of this process, images included; each message counts for
`MESSAGE_OVERHEAD` more. A thread with more of them is remembered alone."""

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

FUNCTION = "function:"
"""The start of the id that we give to a call in OpenAI's first form, which had no ids. The
function's name follows."""

DATE_KEYS = ("timestamp", "created_at", "date", "session_time", "time")

PLAIN_FIELDS = frozenset(("role", "content", "id", "name", "tool_call_id"))
"""A message with no other fields has only the text in `content`."""

_NOT_OF_RESULT = frozenset(
    (*TOOL_USE, "type", "id", "call_id", "is_error", "status", "approval_request_id")
)
"""Fields of an answer that are no part of its text."""

_NOT_OF_TEXT = frozenset(("type", "id", "index", "content", CACHE))
"""Fields of a block of an unknown kind that are not read as text."""

_fields_but_source = attrgetter(*(field.name for field in fields(Message)[1:]))

_of_dicts = BoundedCache[Hashable, tuple[int, list[Message]]](THREADS, CHARACTERS, itemgetter(0))
"""The dicts of the newest history of each thread, as read, with the characters in them."""

_of_objects: dict[int, tuple[KeyedRef[int, Any], tuple[Any, ...]]] = {}
"""By the id() of a LangChain message: a weak reference to it, and all fields of its `Message` but
the first, which is the message. The last field has a copy of the content, to see changes."""


def as_messages(value: Any) -> Any:
    """Return the messages of a request's body, or of a graph's state; any other value as it is.

    Example:
        >>> as_messages({"messages": [{"role": "user", "content": "hi"}]})
        [{'role': 'user', 'content': 'hi'}]
    """
    if isinstance(value, Mapping) and "role" not in value and "messages" in value:
        return value["messages"]
    return value


def read_messages(messages: Sequence[Source], thread: Hashable = None) -> list[Message]:
    """Read a history.

    Args:
        messages: LangChain messages, dicts in OpenAI's or Anthropic's form, or items of OpenAI's
            Responses. Objects of their SDKs, dicts with some in them as well, are read as dicts.
        thread: a name for the thread of the history. The next history of the thread is then read
            from the first new dict on. Default: all dicts are read each time.

    Raises:
        MessageError: a message cannot be understood. The error names it, and the expected form.
    """
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Sequence):
        raise MessageError(
            f"messages must be a list of messages, not {type(messages).__name__}; wrap a single "
            "message in a list"
        )
    _, remembered = _of_dicts.get(thread) or (0, [])
    result: list[Message] = []
    open_answer = ""  # how the answer in the message before this one is continued
    for index, source in enumerate(messages):
        # A history has the same order the next time.
        is_remembered = index < len(remembered) and type(source) is dict
        message = remembered[index] if is_remembered else None
        if message is None or not is_unchanged(message.remembered.copy, source):
            message = read_message(source, index)
            source = message.source
        is_answer = message.role == "assistant"
        in_response = open_answer == message.continuation == "response"
        continues_reply = is_answer and (open_answer == "pause" or in_response)
        open_answer = message.continuation if is_answer else ""
        if message.source is not source or message.continues_reply != continues_reply:
            message = replace(message, source=source, continues_reply=continues_reply)
        result.append(message)
    assign_keys(result)
    if thread is not None:
        dicts = [message for message in result if type(message.source) is dict]
        size = sum(message.cache_weight for message in dicts)
        _of_dicts.put(thread, (size, dicts))
    return result


def read_message(message: Source, index: int = 0) -> Message:
    """Read one message, without a key.

    Raises:
        MessageError: as for `read_messages`.
    """
    reference, remembered = _of_objects.get(id(message), (None, ()))
    is_known = reference is not None and reference() is message
    if is_known and is_unchanged(remembered[-1].copy, fields_of(message)):
        return Message(message, *remembered)
    try:
        content = fields_of(message)
        data = to_json_data(content, [])
        is_json = is_unchanged(data, content)
        if not is_json:
            as_dicts = without_objects(message)
            if as_dicts is not message:
                return read_message(as_dicts, index)
        read = _read(message, index)
    except MessageError:
        raise
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise MessageError(
            f"message {index} cannot be read ({type(error).__name__}: {error!s:.200}); check "
            "its content and its tool calls"
        ) from error
    if is_json:
        read.remembered.data = data
        read.remembered.copy = data
    else:
        read.remembered.copy = _copy_to_compare(content)
    if is_message(message):
        identity = id(message)
        _of_objects[identity] = KeyedRef(message, _forget, identity), _fields_but_source(read)
    return read


def _forget(message: KeyedRef[int, Any]) -> None:
    _of_objects.pop(message.key, None)


def is_unchanged(copy: Any, content: Any) -> bool:
    """Tell whether a message has not changed. Values are compared as in Python: 1 equals True."""
    try:
        return bool(copy == content)
    except Exception:  # a value in it cannot be compared
        return False


def _copy_to_compare(content: Any) -> Any:
    """Copy the fields of a message. Return None if a part cannot be copied."""
    with suppress(Exception):  # such as a part that holds itself, or a lock
        return _copied(content)
    return None


def _copied(value: Any) -> Any:
    """Copy the parts that may be changed in place. Other values are returned as they are."""
    if isinstance(value, Mapping):
        return {key: _copied(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_copied(part) for part in value]
    if isinstance(value, tuple):
        return tuple(_copied(part) for part in value)
    return value.model_copy(deep=True) if hasattr(value, "model_copy") else value


class _Raw(NamedTuple):
    """The content of a message, whatever form it has."""

    role: Role
    fields: Mapping[str, Any]
    metadata: Mapping[str, Any]
    """Further data of a message: for a dict, its other fields."""

    is_item: bool
    """Whether it is an item of OpenAI's Responses, which is a block rather than a message."""


def _read(source: Any, index: int) -> Message:
    """Read one message, without a key; `index` names it in a `MessageError`."""
    raw = _raw_of(source, index)
    message = Message(source, "", "", raw.role, "")
    own_id = raw.fields.get("id")
    if own_id is not None:
        message.id = str(own_id)
        message.given_id = message.id
    if not raw.is_item:
        name = raw.fields.get("name")
        message.name = str(name) if name else None
        message.answers = _answers_of(raw)
    message.continuation = _continuation(raw)
    if raw.metadata:
        dates = (raw.metadata.get(key) for key in DATE_KEYS)
        message.date = next((str(date) for date in dates if date), None)
    if _is_plain_text(raw):
        text = raw.fields["content"]
        message.text = text
        message.own = "" if raw.role == "tool" else text
        return message
    parts = _Parts()
    if raw.is_item:
        parts.add_block(source)
    else:
        parts.add_message(raw.fields, raw.metadata)
    message.answers = tuple(dict.fromkeys((*message.answers, *parts.answers)))
    if raw.role == "user" and message.answers and not parts.own:
        message.role = "tool"  # Anthropic's results come in the name of the user
    message.text = "\n".join(parts.text)
    if message.role != "tool":
        message.own = message.text if parts.own == parts.text else "\n".join(parts.own)
    message.calls = tuple(parts.calls.values())
    message.needs = tuple(dict.fromkeys(parts.needs))
    message.results = tuple(parts.results)
    message.media = tuple(parts.media)
    message.sealed = parts.sealed
    return message


def _raw_of(source: Any, index: int) -> _Raw:
    """Return the content of a message.

    Raises:
        MessageError: it has another type, or lacks a field. The error names the expected form.
    """
    if is_message(source):
        role = ROLES.get(source.type) or _langchain_role(source, index)
        metadata = {**source.response_metadata, **source.additional_kwargs}
        return _Raw(role, vars(source), metadata, False)
    if not isinstance(source, Mapping):
        hint = "; of this one, message.model_dump()" if hasattr(source, "model_dump") else ""
        raise MessageError(
            f"message {index} is {type(source).__name__}; give LangChain messages or dicts such "
            f'as {{"role": "user", "content": "..."}}{hint}'
        )
    fields = source if type(source) is dict else dict(source)
    if "role" not in source and is_item(source):
        return _Raw(_item_role(source), fields, fields, True)
    return _Raw(_dict_role(source, index), fields, fields, False)


def _answers_of(raw: _Raw) -> tuple[str, ...]:
    """Return the ids of the calls that a message answers by its fields."""
    if "function" in (raw.fields.get("type"), raw.fields.get("role")):
        return (f"{FUNCTION}{raw.fields.get('name') or ''}",)
    call_id = raw.fields.get("tool_call_id")
    return (call_id,) if raw.role == "tool" and call_id is not None else ()


def _continuation(raw: _Raw) -> str:
    """Return what continues the answer that a message begins; see `Message.continuation`."""
    if raw.metadata.get("stop_reason") == "pause_turn":
        return "pause"
    return "response" if raw.is_item or raw.fields.get("type") == "message" else ""


def _is_plain_text(raw: _Raw) -> bool:
    """Tell whether a message is a text and nothing else, as most are."""
    if raw.is_item or type(raw.fields.get("content")) is not str:
        return False
    if raw.fields.get("tool_calls") or raw.fields.get("invalid_tool_calls"):
        return False
    return not raw.metadata or raw.metadata.keys() <= PLAIN_FIELDS


def _langchain_role(message: Any, index: int) -> Role:
    kind = message.type.removesuffix("MessageChunk").lower()
    if kind == "remove":
        raise MessageError(
            f"message {index} is a RemoveMessage, which is an instruction to a reducer and no part "
            "of a history; pass the history that it leaves, in a graph by the reducer add_messages"
        )
    return ROLES.get(str(message.role).lower() if kind == "chat" else kind, "other")


def _item_role(item: Mapping[str, Any]) -> Role:
    kind = kind_of(item)
    is_run_by_client = bool(kind.answered_id_paths) and item.get("execution") == "client"
    return "tool" if is_run_by_client or kind.item_author == "client" else "assistant"


def _dict_role(message: Mapping[str, Any], index: int) -> Role:
    """Return the role of a dict.

    Raises:
        MessageError: it has none, or lacks a field that its role needs.
    """
    name = message.get("role")
    content = message.get("content")
    role = ROLES.get(name.lower()) if isinstance(name, str) else None
    problem = ""
    if not isinstance(name, str):
        problem = 'has no "role"; a message is a dict such as {"role": "user", "content": "..."}'
    elif role is None:
        problem = f"has the unknown role {name!r}; known are {', '.join(ROLES)}"
    elif "content" not in message and (role in ("user", "system") or "parts" in message):
        problem = (
            f'has the role {name!r} and no "content"; give its text, which may be empty, or its '
            "blocks, as OpenAI and Anthropic write them"
        )
    elif name == "tool" and not isinstance(message.get("tool_call_id"), str):
        problem = 'has the role "tool" and no "tool_call_id" to say which call it answers'
    elif content is not None and not isinstance(content, (str, list)):
        problem = f"has content of the type {type(content).__name__}; give text, a list, or null"
    if role is None or problem:
        raise MessageError(f"message {index} {problem}")
    return role


def _checked(part: Any, field: str) -> Any:
    """Return a part of a message that can be read.

    Raises:
        TypeError: it is an object of a class that nothing here reads.
    """
    if part is None or isinstance(part, (str, int, float, bytes, Mapping, list, tuple)):
        return part
    kind = type(part)
    raise TypeError(f"its {field} has an object of {kind}; give a dict, such as its .model_dump()")


@dataclass(slots=True)
class _Parts:
    """The texts, calls and answers in the parts of a message, collected one after another."""

    text: list[str] = field(default_factory=list)
    own: list[str] = field(default_factory=list)
    """The speaker's own words in `text`."""

    calls: dict[str, Call] = field(default_factory=dict)
    """By their ids, because some providers list a call twice."""

    answers: list[str] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)
    media: list[Mapping[str, Any]] = field(default_factory=list)
    sealed: bool = False

    def add_message(self, fields: Mapping[str, Any], metadata: Mapping[str, Any]) -> None:
        """Add a message: its thoughts, its content, and the calls outside of the content."""
        self._add_thoughts(metadata)
        content = fields.get("content")
        if isinstance(content, str) and metadata.get("type") == "computer_call_output":
            content = [{"type": "input_image", "image_url": content}]
        self.add_content(content)
        self.add_content(metadata.get("refusal"))
        self._add_listed_calls(fields)
        if metadata is not fields:
            self._add_listed_calls(metadata)
        function = metadata.get("function_call")
        # Google repeats one of the calls here.
        if isinstance(function, Mapping) and function and not fields.get("tool_calls"):
            name = function.get("name") or ""
            self._add_call(f"{FUNCTION}{name}", name, function.get("arguments", ""))
        # ChatOpenAI's older form has the results of hosted tools here.
        self.add_content(metadata.get("tool_outputs"))

    def _add_thoughts(self, metadata: Mapping[str, Any]) -> None:
        """Add thoughts outside of the content. They are said to nobody, and not in `own`."""
        thoughts = metadata.get("reasoning_content") or metadata.get("reasoning")  # as DeepSeek's
        self.add_content(thoughts if isinstance(thoughts, str) else None)
        details = metadata.get("reasoning_details")  # as OpenRouter's
        if isinstance(details, list):
            self.add_content(
                [detail for detail in details if not thoughts or at_path(detail, "data")]
            )
        self.own.clear()

    def _add_listed_calls(self, fields: Mapping[str, Any]) -> None:
        """Add calls outside of the content, as OpenAI and LangChain write them."""
        for key in ("tool_calls", "invalid_tool_calls"):
            listed = fields.get(key)
            for call in listed if isinstance(listed, (list, tuple)) else ():
                if not isinstance(call, Mapping):
                    _checked(call, key)
                    continue
                call_fields = call.get("function") or call.get("custom") or call
                args = call_fields.get("args")
                args = call_fields.get("arguments", call_fields.get("input", args))
                self._add_call(call.get("id"), call_fields.get("name"), args or "")

    def _add_call(self, call_id: object, name: object, args: Any) -> None:
        """Add a call. A call without an id has no result, and is read as text."""
        call = Call(str(call_id or ""), str(name or ""), as_text(args))
        if call.id:
            self.calls.setdefault(call.id, call)
        else:
            self.add_content(call.reading)

    def add_content(self, content: Any) -> None:
        """Add a content: text, a block of any provider, or a list of both."""
        if not content:
            return
        is_list = isinstance(content, list)
        for part in content if is_list else [content]:
            if isinstance(part, str):
                text = part
            elif plain_text(part):
                text = part["text"]
            elif isinstance(part, Mapping) and (is_list or "type" in part):
                self.add_block(part)
                continue
            else:
                text = self._as_text(_checked(part, "content"))
            if text:
                self.text.append(text)
                self.own.append(text)

    def add_block(self, block: Mapping[str, Any]) -> None:
        """Add one block of any provider; items of OpenAI's Responses are blocks, too."""
        block = unwrap_block(block)
        self.sealed |= block.get("type") == "compaction" and bool(block.get("encrypted_content"))
        kind = kind_of(block)
        needed = first_id(block, kind.needed_id_paths) if kind.needed_id_paths else ""
        if needed:
            self.needs.append(needed)
        if kind.call_id_paths:
            name, args = tool_and_arguments(block, kind)
            if not kind.args:  # an item of the server; it may have an image that its tool made
                args = self._without_bytes(args)
            self._add_call(first_id(block, kind.call_id_paths), name, args)
        elif kind.answered_id_paths:
            self._add_answer(block, kind)
        else:
            self._add_words(block, kind)

    def _add_answer(self, block: Mapping[str, Any], kind: BlockKind) -> None:
        if kind.text_paths != USUAL_TEXT:
            contents = (at_path(block, path) for path in kind.text_paths)
            content = next((content for content in contents if content is not None), None)
        else:
            content = block.get("content", block.get("output"))
        if content is None:
            content = {key: block[key] for key in block if key not in _NOT_OF_RESULT} or None
        parts = _Parts()
        parts.add_content(content)
        call_id = first_id(block, kind.answered_id_paths)  # empty: it answers the newest call
        self.answers.append(call_id)
        self.results.append(Result(call_id, "\n".join(parts.text), _has_failed(block)))
        self.text += parts.text
        self.media += parts.media

    def _add_words(self, block: Mapping[str, Any], kind: BlockKind) -> None:
        """Add the text of a block that is neither a call nor an answer."""
        if at_path(block, "source.type") == "text":
            contents = [block["source"].get("data")]
        else:
            values = [at_path(block, path) for path in kind.text_paths]
            contents = [value for value in values if isinstance(value, (str, list))]
        if contents:
            self._add_unknown_media(block, kind)
        elif kind.media:
            self.media.append(block)
            contents = [described(block)]
        else:
            contents = self._all_of(block)
        for content in (*contents, *(at_path(block, path) for path in kind.extra_text_paths)):
            self.add_content(content)

    def _all_of(self, block: Mapping[str, Any]) -> list[Any]:
        """Return all fields of a block of an unknown kind as text, and then its content."""
        content = block.get("content")
        if not isinstance(content, (str, list)):
            return [self._as_text(block)] if block else []
        remaining = {key: block[key] for key in block if key not in _NOT_OF_TEXT}
        return [self._as_text(remaining), content] if remaining else [content]

    def _add_unknown_media(self, block: Mapping[str, Any], kind: BlockKind) -> None:
        """Add media that a block has besides its text, under keys that nobody documents."""
        read_keys = {path.partition(".")[0] for path in (*kind.text_paths, *kind.extra_text_paths)}
        for key, part in block.items():
            if key not in read_keys and key not in SIGNED_FIELDS:
                self._without_bytes({key: part})

    def _as_text(self, value: Any) -> str:
        """Return a value of an unknown form as text; encoded bytes in it count as media."""
        return as_text(self._without_bytes(value))

    def _without_bytes(self, value: Any) -> Any:
        """Return a value with descriptions of its bytes, which count as media."""
        value, media = without_bytes(value)
        self.media += media
        return value


def _has_failed(answer: Mapping[str, Any]) -> bool:
    """Tell whether an answer is marked as an error."""
    if answer.get("is_error") is True or answer.get("error"):
        return True
    return answer.get("status") in ("error", "failed", "incomplete")
