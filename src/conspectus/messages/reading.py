"""Read histories in the form of any provider: text, media, tool calls and answers.

What was read of a LangChain message is remembered as long as the message lives, of a dict as long
as it is in the newest history of its thread. A message is compared with a copy at each call, so
that a change in place is noticed.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter, itemgetter
from typing import Any
from weakref import KeyedRef

from conspectus._langchain import is_message
from conspectus._newest import Newest
from conspectus.core.items import Role
from conspectus.errors import MessageError
from conspectus.messages.blocks import (
    CACHE,
    PROVEN,
    TOOL_USE,
    Kind,
    at_path,
    called,
    described,
    first_id,
    is_item,
    kind_of,
    opened,
    plain_text,
    without_bytes,
)
from conspectus.messages.message import (
    Call,
    Message,
    Result,
    Source,
    as_text,
    fields_of,
    name_entries,
    tagged,
    without_objects,
)

THREADS, CHARACTERS = 256, 64_000_000
"""Bounds of each memory of this process: most threads, and most characters in all of them, images
included, where each message counts for `EACH` more. A longer thread is remembered alone. The one
that was not used for longest goes first."""

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
"""Opens the id of a call in OpenAI's first form, which had none; the function's name follows."""

DATE_KEYS = ("timestamp", "created_at", "date", "session_time", "time")

PLAIN_FIELDS = frozenset(("role", "content", "id", "name", "tool_call_id"))
"""Fields of a dict with a text beside which nothing is said."""

_NO_RESULT = frozenset(
    (*TOOL_USE, "type", "id", "call_id", "is_error", "status", "approval_request_id")
)
"""Fields of an answer that are no part of what it says."""

_NO_WORDS = frozenset(("type", "id", "index", "content", CACHE))
"""Fields of a block of an unknown kind that say nothing beside its content."""


_rest = attrgetter(*(field.name for field in fields(Message)[1:]))
_of_dicts = Newest[Hashable, tuple[int, list[Message]]](THREADS, CHARACTERS, itemgetter(0))
_of_objects: dict[int, tuple[KeyedRef[int, Any], tuple[Any, ...]]] = {}
"""By a LangChain message's identity: the message, weakly, and all fields of its `Message` but the
first, which is itself. The last has a copy of what the message held, to compare it with."""


def as_messages(value: Any) -> Any:
    """Return the messages of a request's body, or of a graph's state; all else as it is.

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
        thread: names the thread whose history it is, so that its next history is read from the
            first new dict on. Default: dicts are read anew.

    Raises:
        MessageError: one of them cannot be understood; names it and the expected form.
    """
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Sequence):
        raise MessageError(
            f"messages must be a list of messages, not {type(messages).__name__}; wrap a single "
            "message in a list"
        )
    _, before = _of_dicts.get(thread) or (0, [])
    result: list[Message] = []
    open_answer = ""  # how the answer of the message before this one goes on
    for index, source in enumerate(messages):  # a history comes again in the same order
        message = before[index] if index < len(before) and type(source) is dict else None
        if message is None or not equal(message.memo["copy"], source):
            message = read_message(source, index)
            source = message.source
        goes_on = message.goes_on if message.role == "assistant" else None
        joined = goes_on is not None and open_answer in ("pause", goes_on or "pause")
        open_answer = goes_on or ""
        if message.source is not source or message.joined != joined:
            message = replace(message, source=source, joined=joined)
        result.append(message)
    name_entries(result)
    if thread is not None:
        dicts = [message for message in result if type(message.source) is dict]
        _of_dicts.put(thread, (sum(message.memo["size"] for message in dicts), dicts))
    return result


def read_message(message: Source, index: int = 0) -> Message:
    """Read one message, without a key; errors as for `read_messages`."""
    known, rest = _of_objects.get(id(message), (None, ()))
    if known is not None and known() is message and equal(rest[-1]["copy"], fields_of(message)):
        return Message(message, *rest)
    try:
        content = fields_of(message)
        copy = tagged(content, [])
        is_json = equal(copy, content)
        if not is_json and (plain := without_objects(message)) is not message:
            return read_message(plain, index)
        made = _read(message, index)
        if is_json:
            made.memo["data"] = copy
        else:
            copy = None
            with suppress(Exception):  # such as a part that holds itself, or a lock
                copy = _copied(content)
    except MessageError:
        raise
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise MessageError(
            f"message {index} cannot be read ({type(error).__name__}: {error!s:.200}); check "
            "its content and its tool calls"
        ) from error
    made.memo["copy"], name = copy, id(message)
    if is_message(message):
        _of_objects[name] = KeyedRef(message, _forget, name), _rest(made)
    return made


def _forget(message: KeyedRef[int, Any]) -> None:
    _of_objects.pop(message.key, None)


def equal(copy: Any, content: Any) -> bool:
    """Tell whether a message is as it was; numbers are equal as in Python, so that 1 is True."""
    try:
        return bool(copy == content)
    except Exception:  # a value that was put in cannot be compared
        return False


def _copied(value: Any) -> Any:
    """Copy what may change and is read; the rest is compared by identity or equality."""
    if isinstance(value, Mapping):
        return {key: _copied(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return (list if isinstance(value, list) else tuple)(map(_copied, value))
    return value.model_copy(deep=True) if hasattr(value, "model_copy") else value


def _read(message: Any, index: int) -> Message:
    """Read one message, without a key; `index` names it in a `MessageError`."""
    item = False
    if is_message(message):
        role = ROLES.get(message.type) or _langchain_role(message, index)
        fields, beside = vars(message), {**message.response_metadata, **message.additional_kwargs}
    elif isinstance(message, Mapping):
        fields = beside = message if type(message) is dict else dict(message)
        item = "role" not in message and is_item(message)
        role = _item_role(message) if item else _dict_role(message, index)
    else:
        raise MessageError(
            f"message {index} is {type(message).__name__}; give LangChain messages or dicts such "
            'as {"role": "user", "content": "..."}'
            + ("; of this one, message.model_dump()" if hasattr(message, "model_dump") else "")
        )
    made, kind, content = Message(message, "", "", role, ""), fields.get("type"), None
    if (own_id := fields.get("id")) is not None:
        made.id = made.given_id = str(own_id)
    if not item:
        content, name = fields.get("content"), fields.get("name")
        made.name = str(name) if name else None
        if "function" in (kind, fields.get("role")):
            made.answers = (f"{FUNCTION}{name or ''}",)
        elif role == "tool" and (answered := fields.get("tool_call_id")) is not None:
            made.answers = (answered,)
    if item or kind == "message":
        made.goes_on = "response"
    if beside:
        made.goes_on = "pause" if beside.get("stop_reason") == "pause_turn" else made.goes_on
        made.date = next((str(beside[key]) for key in DATE_KEYS if beside.get(key)), None)
    calls = fields.get("tool_calls") or fields.get("invalid_tool_calls")
    if type(content) is str and not calls and (not beside or beside.keys() <= PLAIN_FIELDS):
        made.text = content
        made.own = "" if role == "tool" else content
        return made
    parts = _Parts()
    if item:
        parts.block(message)
    else:
        parts.message(fields, beside)
    made.answers = tuple(dict.fromkeys((*made.answers, *parts.answers)))
    if role == "user" and made.answers and not parts.own:
        made.role = "tool"  # Anthropic's results come in the name of the user
    made.text = "\n".join(parts.text)
    if made.role != "tool":
        made.own = made.text if parts.own == parts.text else "\n".join(parts.own)
    made.calls, made.needs = tuple(parts.calls.values()), tuple(dict.fromkeys(parts.needs))
    made.results, made.media = tuple(parts.results), tuple(parts.media)
    made.sealed = parts.sealed
    return made


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
    run = bool(kind.answers) and item.get("execution") == "client"
    return "tool" if run or kind.by == "client" else "assistant"


def _dict_role(message: Mapping[str, Any], index: int) -> Role:
    name, content, wrong = message.get("role"), message.get("content"), ""
    role = ROLES.get(name.lower()) if isinstance(name, str) else None
    if not isinstance(name, str):
        wrong = 'has no "role"; a message is a dict such as {"role": "user", "content": "..."}'
    elif role is None:
        wrong = f"has the unknown role {name!r}; known are {', '.join(ROLES)}"
    elif "content" not in message and (role in ("user", "system") or "parts" in message):
        wrong = (
            f'has the role {name!r} and no "content"; give its text, which may be empty, or its '
            "blocks, as OpenAI and Anthropic write them"
        )
    elif name == "tool" and not isinstance(message.get("tool_call_id"), str):
        wrong = 'has the role "tool" and no "tool_call_id" to say which call it answers'
    elif content is not None and not isinstance(content, (str, list)):
        wrong = f"has content of the type {type(content).__name__}; give text, a list, or null"
    if role is None or wrong:
        raise MessageError(f"message {index} {wrong}")
    return role


def _named(part: Any, field: str) -> Any:
    """Return a part of a message, or raise `TypeError` for an object that nothing here reads."""
    if part is None or isinstance(part, (str, int, float, bytes, Mapping, list, tuple)):
        return part
    kind = type(part)
    raise TypeError(f"its {field} has an object of {kind}; give a dict, such as its .model_dump()")


@dataclass(slots=True)
class _Parts:
    """A message taken apart.

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
    sealed: bool = False

    def message(self, fields: Mapping[str, Any], beside: Mapping[str, Any]) -> None:
        """Add a message by its fields; `beside` has what else its maker said of it."""
        content = fields.get("content")
        if beside:
            thought = beside.get("reasoning_content") or beside.get("reasoning")  # as DeepSeek's
            self.content(thought if isinstance(thought, str) else None)
            if isinstance(details := beside.get("reasoning_details"), list):  # as OpenRouter's
                self.content([one for one in details if not thought or at_path(one, "data")])
            self.own.clear()  # a thought is said to nobody
            if isinstance(content, str) and beside.get("type") == "computer_call_output":
                content = [{"type": "input_image", "image_url": content}]
        self.content(content)
        self.content(beside.get("refusal"))
        for holder in (fields, beside) if fields is not beside else (fields,):
            for key in ("tool_calls", "invalid_tool_calls"):
                listed = holder.get(key)
                for call in listed if isinstance(listed, (list, tuple)) else ():
                    if not isinstance(call, Mapping):
                        _named(call, key)
                    else:
                        made = call.get("function") or call.get("custom") or call
                        args = made.get("arguments", made.get("input", made.get("args")))
                        self.call(call.get("id"), made.get("name"), args or "")
        first = beside.get("function_call")  # Google repeats one of the calls
        if first and isinstance(first, Mapping) and not fields.get("tool_calls"):
            name = first.get("name") or ""
            self.call(f"{FUNCTION}{name}", name, first.get("arguments", ""))
        self.content(beside.get("tool_outputs"))  # of hosted tools, in ChatOpenAI's older form

    def call(self, call_id: object, name: object, args: Any) -> None:
        """Add a call; one without an id pairs with nothing and is text."""
        call = Call(str(call_id or ""), str(name or ""), as_text(args))
        if call.id:
            self.calls.setdefault(call.id, call)
        else:
            self.content(call.reading)

    def content(self, content: Any) -> None:
        """Add a content: text, a block of any provider, or a list of both."""
        listed = isinstance(content, list)
        for part in (content if listed else [content]) if content else ():
            if isinstance(part, str):
                text = part
            elif plain_text(part):
                text = part["text"]
            elif isinstance(part, Mapping) and (listed or "type" in part):
                self.block(part)
                continue
            else:
                text = self._as_text(_named(part, "content"))
            if text:
                self.text.append(text)
                self.own.append(text)

    def block(self, block: Mapping[str, Any]) -> None:
        """Add one block of any provider; an item of OpenAI's Responses is one."""
        block = opened(block)
        self.sealed |= block.get("type") == "compaction" and bool(block.get("encrypted_content"))
        kind = kind_of(block)
        if kind.needs and (needed := first_id(block, kind.needs)):
            self.needs.append(needed)
        if kind.asks:
            name, args = called(block, kind)
            if not kind.args:  # a server's item, which may hold what its tool has drawn
                args = without_bytes(args, self.media)
            self.call(first_id(block, kind.asks), name, args)
        elif kind.answers:
            self._answer(block, kind)
        else:
            self._words(block, kind)

    def _answer(self, block: Mapping[str, Any], kind: Kind) -> None:
        inner, content = _Parts(), block.get("content", block.get("output"))
        if content is None:
            content = {key: block[key] for key in block if key not in _NO_RESULT} or None
        inner.content(content)
        answered = first_id(block, kind.answers)  # empty: it answers the newest call
        failed = block.get("is_error") is True or bool(block.get("error"))
        failed = failed or block.get("status") in ("error", "failed", "incomplete")
        self.answers.append(answered)
        self.results.append(Result(answered, "\n".join(inner.text), failed))
        self.text += inner.text
        self.media += inner.media

    def _words(self, block: Mapping[str, Any], kind: Kind) -> None:
        said = [at_path(block, path) for path in kind.says]
        said = [one for one in said if isinstance(one, (str, list))]
        if at_path(block, "source.type") == "text":
            said = [block["source"].get("data")]
        if said:
            self._beside(block, kind)
        elif kind.media:
            self.media.append(block)
            said = [described(block)]
        else:  # nothing that we know: all of it, as it stands
            content = block.get("content")
            listed = isinstance(content, (str, list))
            rest = {key: block[key] for key in block if key not in _NO_WORDS} if listed else block
            said = [self._as_text(rest) if rest else None, content if listed else None]
        for one in (*said, *(at_path(block, path) for path in kind.also)):
            self.content(one)

    def _beside(self, block: Mapping[str, Any], kind: Kind) -> None:
        """Add media that stand beside what a block says, under keys that nobody documents."""
        heard = {path.partition(".")[0] for path in (*kind.says, *kind.also)}
        for key, part in block.items():
            if key not in heard and key not in PROVEN:
                without_bytes({key: part}, self.media)

    def _as_text(self, value: Any) -> str:
        """Return a value that nothing here knows as text; encoded bytes in it count as media."""
        return as_text(without_bytes(value, self.media))
