"""Read a history as it is known again, whatever its client changes in it.

A message is known by what clients do not change: the user's words, the model's words, the ids of
its calls. Results of tools, thoughts, reminders and marks for a cache count for nothing, as clients
clear them.
"""

from __future__ import annotations

import hashlib
import json
import marshal
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import is_
from typing import Any

from conspectus._bounded_cache import BoundedCache
from conspectus.errors import MessageError
from conspectus.messages import Message, read_message
from conspectus.messages.blocks import kind_of, without_cache_marks
from conspectus.tokens import TokenMeter
from conspectus_serve.cleared import THOUGHTS

_WRITE = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode

_PASSING = ("system-reminder", "think", "thinking", "thought", "reasoning")
"""Tags around parts of texts that clients add to messages, or take out, from request to request."""

_PART = re.compile(r"[A-Za-z0-9]{8,}+")  # of an id
_TURN = re.compile(r"(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")  # from letters to digits

KNOWN = 16_384  # messages whose marks are kept: clients send most of them again
NEWEST = 32  # answers by which a thread is looked for; of those before, each at twice the distance
_BACK = (*range(1, NEWEST), *(NEWEST << n for n in range(24)))
TOGETHER = 4  # messages that name an answer, with those before it


class Odd(dict[str, Any]):
    """What stands for a message that the engine does not understand; it stays in view."""


@dataclass(frozen=True, slots=True, eq=False)
class Mark:
    """A message as it is known again."""

    name: str  # hash of what clients leave alone; empty if there is nothing such
    size: int  # characters of its JSON
    said: bool  # it holds more than results of tools, and is no system message
    by_model: bool
    unique: bool  # no other conversation has its name
    as_is: bool  # it is read as it came
    tokens: int
    ids: tuple[str, ...] = ()  # of its calls, and of those that it answers
    parts: tuple[str, ...] = ()  # its names with only one of its calls, or of their results, left


@dataclass(frozen=True, slots=True)
class Trail:
    """A history as it is known again."""

    kind: int  # of the protocol and the estimate of tokens
    history: Sequence[Any] = ()
    marks: list[Mark] = field(default_factory=list)
    messages: list[Any] = field(default_factory=list)  # as the engine reads them: no cache marks
    tokens: int = 0
    seen: dict[str, int] = field(default_factory=dict)  # how often there is a name
    context: str = ""  # hash of all that was said
    ids: dict[str, int] = field(default_factory=dict)  # how often there is an id
    talk: list[str] = field(default_factory=list)  # names of the messages that were said
    answers: list[int] = field(default_factory=list)  # ends of the model's own in these
    said: Sequence[str] = ()  # the same names; without one, a name of the whole
    answered: Sequence[str] = ()  # those up to the last answer of the model; without one, all
    names: Sequence[str] = ()  # of the answers by which a thread is looked for, the newest first

    def begins(self, history: Sequence[Any], kind: int) -> bool:
        """Return whether a history goes on from this one."""
        known = self.history
        return kind == self.kind and len(known) <= len(history) and all(map(is_, known, history))


_KNOWN = BoundedCache[int, Mark](KNOWN)


def trail_of(
    history: Sequence[Any],
    protocol: str,
    meter: TokenMeter,
    before: Trail | None = None,
    read_marks: Callable[[list[Any]], list[Mark]] | None = None,
) -> Trail:
    """Read a history; two protocols have no names in common.

    System messages do not count, as they may hold a clock, unless there is nothing else. The trail
    of `before` need not be read again where the history goes on from it; `read_marks` does what
    `marks_of` does. Raises ValueError, TypeError or RecursionError for a message that is no JSON
    object.
    """
    kind = hash((protocol, meter.family, meter.maker))
    begin = before if before is not None and before.begins(history, kind) else Trail(kind)
    new = history[len(begin.history) :]
    keys = [_key(message) ^ kind for message in new]
    known = {key: mark for key in keys if (mark := _KNOWN.get(key)) is not None}
    if unread := {key: one for key, one in zip(keys, new, strict=True) if key not in known}:
        messages = [*unread.values()]
        made = read_marks(messages) if read_marks else marks_of(messages, protocol, meter)
        for key, mark in zip(unread, made, strict=True):
            known[key] = mark
            _KNOWN.put(key, mark)
    marks = [known[key] for key in keys]
    read = [one if mark.as_is else _read(one)[0] for mark, one in zip(marks, new, strict=True)]
    messages = begin.messages + read
    seen = {**begin.seen}
    context = begin.context
    ids = {**begin.ids}
    for at, mark in enumerate(marks):
        name = mark.name
        if not name:
            continue
        comes_again = False
        for one in mark.ids:
            ids[one] = ids.get(one, 0) + 1
            comes_again |= ids[one] > 1
        if not mark.said and (comes_again or not mark.unique):
            # Its call's id may come again in any turn, so that it is known by what was said before
            # it. A count of equal ids would shift where a turn is deleted.
            name = _hashed([name, context])
        seen[name] = number = seen.get(name, 0) + 1
        if number > 1:  # the same words again are another message
            name = f"{name}-{number}"
        if name != mark.name:
            marks[at] = replace(mark, name=name)
        if mark.said:
            context = _hashed([context, name])
    marks = begin.marks + marks
    again = {one for one, number in ids.items() if number > 1}
    for at, mark in enumerate(marks) if again else ():
        if mark.unique and not again.isdisjoint(mark.ids):  # an id that only looks random
            marks[at] = replace(mark, unique=False)
    new_marks = marks[len(begin.marks) :]
    talk = begin.talk + [mark.name for mark in new_marks if mark.said]
    tokens = begin.tokens + sum(mark.tokens for mark in new_marks)
    said = talk or [_hashed([protocol, *messages])]
    new_talk = enumerate((mark for mark in new_marks if mark.said), len(begin.talk) + 1)
    answers = begin.answers + [end for end, mark in new_talk if mark.by_model]
    # How many of them an earlier request may have held.
    ends = [*range(1, answers[0] if answers else len(talk) + 1), *answers] or [1]
    near = [ends[-at] for at in _BACK if at <= len(ends)]
    # Without their numbers, which change where a client drops its oldest messages.
    names = ["-".join(map(bare, said[max(0, end - TOGETHER) : end])) for end in near]
    return Trail(
        kind=kind,
        history=history,
        marks=marks,
        messages=messages,
        tokens=tokens,
        seen=seen,
        context=context,
        ids=ids,
        talk=talk,
        answers=answers,
        said=said,
        answered=said[: ends[-1]],
        names=names,
    )


def bare(name: str) -> str:
    """Return a message's name without its number among equal ones."""
    return name.partition("-")[0]


def _key(message: Any) -> int:
    """Return by what a message is known in this process; its 64 bits have a secret key."""
    try:
        return hash(marshal.dumps(message, 2))  # the fastest of all
    except ValueError:  # it has a number that keeps its text
        return hash(_WRITE(message))


def _read(message: Any) -> tuple[Any, Message]:
    """Return a message as the engine reads it: without cache marks, or what stands for it."""
    bare = without_cache_marks(message)
    with suppress(MessageError):
        entry = read_message(bare)
        if "role" in bare or "call_id" not in bare or entry.calls or entry.answers:
            return bare, entry
    odd = Odd(role="system", content=json.dumps(bare, sort_keys=True))
    return odd, read_message(odd)


def marks_of(messages: Sequence[Any], protocol: str, meter: TokenMeter) -> list[Mark]:
    """Read what messages are known by, without their numbers among equal ones."""
    return [_mark_of(message, protocol, meter) for message in messages]


def _mark_of(message: Any, protocol: str, meter: TokenMeter) -> Mark:
    if not isinstance(message, dict):
        raise TypeError("a message is no object")
    read, whole = _read(message)
    lasting = {name: part for name, part in read.items() if name not in THOUGHTS}
    if isinstance(content := read.get("content"), list):
        lasting["content"] = [one for one in content if not _passes(one)]
    entry = whole if lasting == read else read_message(lasting)
    ids, said = [*(call.id for call in entry.calls), *entry.answers], [_plain(entry.own)]
    unique = bool(ids) and all(map(is_random, ids))
    if not unique:  # then the arguments tell a call from another one
        said += [f"{call.name} {call.args}" for call in entry.calls]
    said = [] if _passes(message) else list(filter(None, said))
    begin = [protocol, entry.role, *said]
    # Claude Code leaves out the other ones where it goes on from a long file. Elsewhere each result
    # is a message, and those that are gone could not be put back.
    parts = ids if unique and len(ids) > 1 and protocol == "messages" else []
    return Mark(
        name=_hashed([*begin, *ids]) if said or ids else "",
        size=len(_WRITE(read)),
        said=bool(entry.calls or said) and entry.role != "system",
        by_model=entry.role == "assistant",
        unique=unique,
        as_is=read is message,
        tokens=meter.entry(whole),
        ids=(*(f"call {call.id}" for call in entry.calls), *(f"of {one}" for one in entry.answers)),
        parts=tuple(_hashed([*begin, one]) for one in parts),
    )


def _passes(part: Any) -> bool:
    """Return whether a part is a thought or a picture, which clients clear."""
    known = isinstance(part, Mapping) and "role" not in part
    return known and (part.get("type") in THOUGHTS or bool(kind_of(part).media))


def _hashed(values: Sequence[Any]) -> str:
    return hashlib.sha256(_WRITE(values).encode()).hexdigest()[:24]


def is_random(name: str) -> bool:
    """Return whether a name is a random one, and not a word or a count, such as `function12`."""
    return any(len(_TURN.findall(part)) > 1 for part in _PART.findall(name))


def _plain(text: str) -> str:
    """Return a text without passing parts, its spaces made one."""
    for tag in _PASSING if "<" in text else ():
        begin, end = f"<{tag}>", f"</{tag}>"
        first, *parts = text.split(begin)
        left = (one.partition(end)[2] if end in one else begin + one for one in parts)
        text = "".join((first, *left))
    return " ".join(text.split())
