"""Read a history, and remember what was read of each message.

Of a LangChain message it is remembered as long as the message lives, of a dict as long as it is in
the newest history of its thread. A message is compared with a copy at each call, so that a change
in place is noticed.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from operator import attrgetter, itemgetter
from typing import Any
from weakref import ref

from conspectus._langchain import is_message
from conspectus._newest import Newest
from conspectus.errors import MessageError
from conspectus.messages.message import Message, Source, characters, name_entries, tagged
from conspectus.messages.reading import read

THREADS, CHARACTERS, EACH = 256, 64_000_000, 1_000
"""Bounds of each memory of this process: most threads, and most characters in all of them, images
included, where each message counts for 1,000 more. A longer thread is remembered alone. The one
that was not used for longest goes first."""

_rest = attrgetter(*(field.name for field in fields(Message)[1:]))
_of_dicts = Newest[Hashable, tuple[int, list[Message]]](THREADS, CHARACTERS, itemgetter(0))
_of_objects: dict[int, tuple[ref[Any], tuple[Any, ...]]] = {}
"""By a LangChain message's identity: the message, weakly, and all fields of its `Message` but the
first, which is itself. The last has a copy of what the message held, to compare it with."""


def read_messages(messages: Sequence[Source], thread: Hashable = None) -> list[Message]:
    """Read a history.

    Args:
        messages: LangChain messages, dicts in OpenAI's or Anthropic's form, or items of OpenAI's
            Responses.
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
    _, before = _of_dicts.get(thread) or (0, []) if thread is not None else (0, [])
    # Clients that send a history anew send equal dicts in the same order.
    known = dict(enumerate(before)) | {id(message.source): message for message in before}
    result: list[Message] = []
    for index, source in enumerate(messages):
        message = None
        for name in (id(source), index) if type(source) is dict else ():
            message = known.get(name)
            if message is not None and _equal(message.memo["copy"], source):
                break
        else:
            message = read_message(source, index)
        joined = bool(result and result[-1].goes_on) and _continues(message, result[-1])
        if message.source is not source or message.joined != joined:
            message = replace(message, source=source, joined=joined)
        result.append(message)
    name_entries(result)
    if thread is not None:
        dicts = [message for message in result if type(message.source) is dict]
        _of_dicts.put(thread, (sum(message.memo["size"] for message in dicts), dicts))
    return result


def _continues(message: Message, before: Message) -> bool:
    """Tell whether a message continues the answer of the one before it."""
    if not before.role == message.role == "assistant":
        return False
    return before.goes_on == "pause" or message.goes_on == "response"


def read_message(message: Source, index: int = 0) -> Message:
    """Read one message, without a key; errors as for `read_messages`."""
    name = id(message)
    known, rest = _of_objects.get(name, (None, ()))
    if known is not None and known() is message and _equal(rest[-1]["copy"], vars(message)):
        return Message(message, *rest)
    try:
        made, copy = read(message, index), None
        extra = is_message(message) and message.__pydantic_extra__
        if not extra:
            fields: Any = vars(message) if is_message(message) else message
            copy = tagged(fields, [])
            if not _equal(copy, fields):  # not all of it is JSON
                made.memo["tagged"], copy = True, None
                with suppress(Exception):  # such as a part that holds itself, or a lock
                    copy = _copied(fields)
    except MessageError:
        raise
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise MessageError(
            f"message {index} cannot be read ({type(error).__name__}: {error!s:.200}); check "
            "its content and its tool calls"
        ) from error
    made.memo["copy"], made.memo["size"] = copy, EACH + characters(copy)
    if is_message(message) and not extra:
        _of_objects[name] = ref(message, lambda _: _of_objects.pop(name, None)), _rest(made)
    return made


def _equal(copy: Any, content: Any) -> bool:
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
