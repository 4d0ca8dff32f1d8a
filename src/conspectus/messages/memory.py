"""Read a history, and remember what was read of each message.

Of a LangChain message it is remembered as long as the message lives, of a dict as long as it is in
the newest history of its thread. A message is compared with a copy at each call, so that a change
in place is noticed.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, NamedTuple
from weakref import ref

from conspectus._langchain import is_message
from conspectus._newest import Newest
from conspectus.errors import MessageError
from conspectus.messages.codec import NoPlainData, copied
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
    places = list(before.values())
    entries: list[Entry] = []
    for place, message in enumerate(messages):
        if type(message) is dict:
            name = id(message)
            known = before.get(name)
            if known is None or not _equal(known.copy, message):
                # Clients that send a history anew send equal dicts in the same places.
                known = places[place] if place < len(places) else None
                if known is None or known.entry is None or not _equal(known.copy, message):
                    known = _newly_read(message, place)
                else:
                    known = known._replace(entry=replace(known.entry, source=message))
            dicts[name] = known
            assert known.entry is not None
            entries.append(known.entry)
        else:
            entries.append(read_message(message, place))
    _join(entries)
    name_entries(entries, seen)
    if thread is not None:
        _of_dicts.put(thread, dicts)
    return entries


def read_message(message: Source, place: int = 0) -> Entry:
    """Read one message, without a key; errors as for `read_messages`."""
    known = _of_objects.get(id(message))
    if (
        known is None
        or (known.message and known.message()) is not message
        or not _equal(known.copy, vars(message))
    ):
        known = _newly_read(message, place)
    return known.entry or Entry(message, *known.rest)


def _equal(copy: Any, content: Any) -> bool:
    """Tell whether a message is as it was; numbers are equal as in Python, so that 1 is True."""
    try:
        return bool(copy == content)
    except Exception:  # a value that was put in cannot be compared
        return False


def _newly_read(message: Any, place: int) -> _Known:
    try:
        entry = read(message, place)
        copy = _copy(message, entry)
    except MessageError:
        raise
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise MessageError(
            f"message {place} cannot be read ({type(error).__name__}: {error!s:.200}); check "
            "its content and its tool calls"
        ) from error
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


def _copy(message: Any, entry: Entry) -> Any:
    """Copy a message, to be compared with it later; None if it is to be read anew each time.

    If the copy says all that is to be encoded, its entry gets it.
    """
    try:
        if type(message) is dict:
            copy = copied(message)
            entry.memo["copy"] = copy, ""
            return copy
        if not is_message(message) or message.__pydantic_extra__:
            return None
        parts = dict(vars(message))
        artifact = parts.pop("artifact", None)
        copy = copied(parts)
    except NoPlainData:
        return None
    plain = type(message).__module__.startswith("langchain_core.messages.")
    if "artifact" in vars(message):
        try:
            copy["artifact"] = copied(artifact)
        except NoPlainData:
            copy["artifact"], plain = _Same(artifact), False
    if plain:
        entry.memo["copy"] = copy, message.type
    return copy


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
