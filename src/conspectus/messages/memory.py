"""Read a history, and remember what was read of each message.

Of a LangChain message it is remembered as long as the message lives, of a dict as long as it is in
the newest history of its thread. A message is compared with a copy at each call, so that a change
in place is noticed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, NamedTuple
from weakref import ref

from conspectus._langchain import is_message
from conspectus._newest import Newest
from conspectus.errors import MessageError
from conspectus.messages.codec import NoPlainData, copied, encode, encode_copy
from conspectus.messages.entries import Entry, Source, name_entries
from conspectus.messages.reading import read

THREADS, MESSAGES = 256, 32_768
"""Most threads, and most dicts in all of them, whose reading is remembered; a thread with more
dicts is remembered alone."""


class _Known(NamedTuple):
    """What was read of one message.

    Attributes:
        copy: of its content, to compare it with; None if it is to be read anew.
        entry: the entry of a dict.
        message: a LangChain message, weakly.
        rest: the fields of its entry behind the message itself.
    """

    copy: Any
    entry: Entry | None = None
    message: ref[Any] | None = None
    rest: tuple[Any, ...] = ()


_of_objects: dict[int, _Known] = {}
_of_dicts: Newest[Hashable, dict[int, _Known]] = Newest(THREADS, MESSAGES, len)
_rest = attrgetter(*(field.name for field in fields(Entry)[1:]))


def read_messages(
    messages: Sequence[Source],
    seen: Mapping[str, int] | None = None,
    thread: Hashable = None,
) -> list[Entry]:
    """Read a history.

    Args:
        messages: LangChain messages, dicts in OpenAI's or Anthropic's form, or items of OpenAI's
            Responses.
        seen: counts of earlier contents if the start of the history is missing: the result of
            `occurrences` for the missing keys.
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
    before = _of_dicts.get(thread) or {} if thread is not None else {}
    dicts: dict[int, _Known] = {}
    entries: list[Entry] = []
    for place, message in enumerate(messages):
        name = id(message)
        if type(message) is dict:
            known = before.get(name)
            if known is None or not _equal(known.copy, message):
                known = _newly_read(message, place)
            dicts[name] = known
        else:
            known = _of_objects.get(name)
            if (
                known is None
                or (known.message and known.message()) is not message
                or not _equal(known.copy, message.__dict__)
            ):
                known = _newly_read(message, place)
        entries.append(known.entry or Entry(message, *known.rest))
    if thread is not None:
        _of_dicts.put(thread, dicts)
    _join(entries)
    name_entries(entries, seen)
    return entries


def _equal(copy: Any, content: Any) -> bool:
    """Tell whether a message is as it was; numbers are equal as in Python, so that 1 is True."""
    try:
        return bool(copy == content)
    except Exception:  # a value that was put in cannot be compared
        return False


def _newly_read(message: Any, place: int) -> _Known:
    try:
        entry = read(message, place)
        copy, text = _copy(message)
    except MessageError:
        raise
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise MessageError(
            f"message {place} cannot be read ({type(error).__name__}: {error!s:.200}); check "
            "its content and its tool calls"
        ) from error
    entry.digest = hashlib.sha256(text.encode()).hexdigest()
    if entry.given_id is None:
        entry.stem = entry.digest[:28]
        entry.id = entry.key = f"{entry.stem}-0"
    else:
        named = f"{entry.given_id}\0{entry.digest}".encode("utf-8", "backslashreplace")
        entry.key = entry.stem = hashlib.sha256(named).hexdigest()[:32]
    if copy is None or isinstance(message, dict):
        return _Known(copy, entry)
    name = id(message)
    known = _Known(copy, None, ref(message, lambda gone: _forget(name, gone)), _rest(entry))
    _of_objects[name] = known
    return known


def _forget(name: int, gone: ref[Any]) -> None:
    known = _of_objects.get(name)
    if known is not None and known.message is gone:
        del _of_objects[name]


class _Same:
    """Equal to one object only: stands in a copy for an artifact without a form in JSON."""

    def __init__(self, part: object) -> None:
        self._part = part

    def __eq__(self, other: object) -> bool:
        return other is self._part

    __hash__ = None  # type: ignore[assignment]


def _copy(message: Any) -> tuple[Any, str]:
    """Copy a message, to be compared with it later, and write it as `encode` does.

    Without a copy it is read anew each time.
    """
    if not is_message(message):
        if type(message) is not dict:
            return None, encode(message).text
        try:
            copy = copied(message)
        except NoPlainData:
            return None, encode(message).text
        return copy, encode_copy(copy, None)
    own = type(message).__module__.startswith("langchain_core.messages.")
    copy = {}
    for name, part in message.__dict__.items():
        try:
            copy[name] = copied(part)
        except NoPlainData:
            if name != "artifact":
                return None, encode(message).text
            copy[name], own = _Same(part), False
    if message.__pydantic_extra__:
        return None, encode(message).text
    return copy, encode_copy(copy, message.type) if own else encode(message).text


def _join(entries: list[Entry]) -> None:
    """Find messages that are one answer, and the calls that outputs of local shells answer."""
    responses, before = False, entries[0] if entries else None
    for place, entry in enumerate(entries):
        joined = False
        if before is not None and before.goes_on:
            responses = responses or before.goes_on == "response"
            if before.role == "assistant" and entry.role == "assistant" and place:
                joined = before.goes_on == "pause" or entry.goes_on == "response"
        if entry.joined != joined:
            entry = entries[place] = replace(entry, joined=joined)
        before = entry
    if not responses:
        return
    other: dict[str, str] = {}  # their calls have two ids, of which outputs name either
    for place, entry in enumerate(entries):
        source: Any = {} if is_message(entry.source) else entry.source
        if source.get("type") == "local_shell_call":
            other[str(source.get("id"))] = str(source.get("call_id"))
        elif source.get("type") == "local_shell_call_output":
            answers = tuple(other.get(name, name) for name in entry.answers)
            entries[place] = replace(entry, answers=answers)
