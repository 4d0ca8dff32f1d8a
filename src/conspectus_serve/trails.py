"""Read a history in one pass: what each message is known by, and how large it is.

A message is known by what clients do not change: the user's words, the model's words, the ids of
its calls. Results of tools, thoughts, reminders and marks for a cache count for nothing, as clients
clear them.
"""

from __future__ import annotations

import hashlib
import json
import marshal
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conspectus.errors import MessageError
from conspectus.messages import read_messages
from conspectus.messages.blocks import without_cache_marks
from conspectus.tokens import TokenMeter

_WRITE = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode

_PASSING = ("system-reminder", "think", "thinking", "thought", "reasoning")
"""Tags around parts of texts that clients add to messages, or take out, from request to request."""

_THOUGHTS = ("thinking", "redacted_thinking", "reasoning")
_ARGUMENTS = ("name", "input", "arguments", "function")

_PART = re.compile(r"[A-Za-z0-9]{8,}+")
"""A part of an id; one of letters and digits is of no other conversation."""

NEWEST = 32  # answers by which a thread is looked for; of those before, each at twice the distance
TOGETHER = 4  # messages that name an answer, with those before it
KNOWN = 16_384  # messages whose marks are kept: clients send most of them again


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


@dataclass(frozen=True, slots=True)
class Trail:
    """A history as it is known again."""

    marks: list[Mark]
    messages: list[Any]  # as the engine reads them: without cache marks
    tokens: int
    said: list[str]  # names of the messages that were said
    answers: list[int]  # how many of these an earlier request may have held

    @property
    def answered(self) -> list[str]:
        """The names up to the last answer of the model; without one, all."""
        return self.said[: self.answers[-1]]

    def names(self) -> list[str]:
        """Return the names of the answers by which a thread is looked for, the newest first."""
        back = [*range(1, NEWEST), *(NEWEST << n for n in range(24))]
        ends = [self.answers[-at] for at in back if at <= len(self.answers)]
        return ["-".join(self.said[max(0, end - TOGETHER) : end]) for end in ends]


_KNOWN: dict[int, Mark] = {}


def trail_of(history: Sequence[Any], protocol: str, meter: TokenMeter) -> Trail:
    """Read a history; two protocols have no names in common.

    System messages do not count, as they may hold a clock, unless there is nothing else. Raises
    ValueError, TypeError or RecursionError for a message that is no JSON object.
    """
    kind, known = hash((protocol, meter.family, meter.maker)), _KNOWN.get
    # The fastest of all; its 64 bits have a secret key.
    keys = [hash(marshal.dumps(message, 2)) ^ kind for message in history]
    marks = [
        known(key) or _newly_read(key, message, protocol, meter)
        for key, message in zip(keys, history, strict=True)
    ]
    messages = [
        message if mark.as_is else _read(message)
        for mark, message in zip(marks, history, strict=True)
    ]
    names = [mark.name for mark in marks if mark.name]
    if len(set(names)) < len(names):
        marks = _numbered(marks)
    talk = [mark for mark in marks if mark.said]
    ends = [end for end, mark in enumerate(talk, 1) if mark.by_model]
    answers = [*range(1, ends[0] if ends else len(talk) + 1), *ends]
    said = [mark.name for mark in talk] or [_hashed([protocol, *messages])]
    return Trail(marks, messages, sum(mark.tokens for mark in marks), said, answers or [1])


def _numbered(marks: Iterable[Mark]) -> list[Mark]:
    """Number names that another conversation may have: the same words again are another message."""
    seen, made = Counter[str](), list[Mark]()
    for mark in marks:
        if mark.name and not mark.unique:
            seen[mark.name] += 1
            number = seen[mark.name]
            mark = replace(mark, name=f"{mark.name}-{number}") if number > 1 else mark
        made.append(mark)
    return made


def _read(message: Any) -> Any:
    """Return a message as the engine reads it: without cache marks, or what stands for it."""
    bare = without_cache_marks(message)
    if not _is_odd(bare):
        return bare
    return Odd(role="system", content=json.dumps(bare, sort_keys=True))


def _is_odd(message: Mapping[str, Any]) -> bool:
    """Return whether the engine does not understand a message, or one of its calls."""
    try:
        [entry] = read_messages([message])
    except MessageError:
        return True
    return "role" not in message and "call_id" in message and not entry.calls + entry.answers


def _newly_read(key: int, message: Any, protocol: str, meter: TokenMeter) -> Mark:
    """Read what a message is known by, without its number among equal ones."""
    if not isinstance(message, dict):
        raise TypeError("a message is no object")
    bare = without_cache_marks(message)
    parts: dict[str, list[str]] = {"said": [], "result": [], "id": [], "arguments": []}
    for kind, value in _parts(bare):
        parts[kind].append(value)
    role, type_ = bare.get("role"), str(bare.get("type") or "")
    ids, said = [*parts["id"], *parts["result"]], list(filter(None, parts["said"]))
    if role is None and not (ids or said) and type_ not in ("reasoning", ""):
        said = [str(bare.get("id") or _WRITE(bare))]
    unique = bool(ids) and all(map(_is_random, ids))
    if not unique:  # then the arguments tell a call from another one
        said += parts["arguments"]
    by_model = role in ("assistant", "model")
    if role is None:
        by_model = not type_.endswith(("_output", "_response", "_reference", "_trigger"))
    as_is = bare is message and not _is_odd(message)
    mark = Mark(
        name=_hashed([protocol, role or type_, *said, *ids]) if said or ids else "",
        size=len(_WRITE(bare)),
        said=bool(parts["id"] or said) and role not in ("system", "developer"),
        by_model=by_model,
        unique=unique,
        as_is=as_is,
        tokens=meter.message(message if as_is else _read(message)),
    )
    if len(_KNOWN) >= KNOWN:
        for old in list(_KNOWN)[: KNOWN // 4]:
            _KNOWN.pop(old, None)
    _KNOWN[key] = mark
    return mark


def _hashed(values: Sequence[Any]) -> str:
    return hashlib.sha256(_WRITE(values).encode()).hexdigest()[:24]


def _parts(part: Any) -> Iterator[tuple[str, str]]:
    """Yield the parts of a message that clients leave alone, with their kind."""
    if isinstance(part, str):
        yield "said", _plain(part)
    elif isinstance(part, list):
        for one in part:
            yield from _parts(one)
    elif isinstance(part, Mapping) and part.get("type") not in _THOUGHTS:
        kind = str(part.get("type") or "")
        answered = part.get("tool_call_id") or part.get("tool_use_id")
        if answered or (kind.endswith("_output") and part.get("call_id")):
            yield "result", str(answered or part["call_id"])
            return
        calls = kind.endswith("tool_use") or "function" in part
        if called := part.get("call_id") or (calls and part.get("id")):
            yield "id", str(called)
            yield "arguments", _WRITE([part.get(name) for name in _ARGUMENTS])
            return
        for name in ("text", "content", "tool_calls"):
            yield from _parts(part.get(name))


def _is_random(name: str) -> bool:
    return any(not (part.isalpha() or part.isdigit()) for part in _PART.findall(name))


def _plain(text: str) -> str:
    """Return a text without passing parts, its spaces made one."""
    for tag in _PASSING:
        begin, end = f"<{tag}>", f"</{tag}>"
        first, *parts = text.split(begin)
        left = (one.partition(end)[2] if end in one else begin + one for one in parts)
        text = "".join((first, *left))
    return " ".join(text.split())
