"""Mend tool calls and results of a foreign history, so that a provider takes it.

Providers refuse a history with a call without a result after it, a result without a call or apart
from it, or an id of two calls.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conspectus._langchain import is_message
from conspectus.messages import Source
from conspectus.messages.reading import ROLES

NAMED = 5  # Messages that a note names
UNKNOWN = "[The result of this call was not recorded.]"  # The text in place of a missing result

APART = "a tool result stood before or apart from its call, and stands behind it now"
MISSING = "a tool call had no result, and has one now that says so"
REPEATED = "a tool call stood there twice, and stands there once now"
RENAMED = "the id of a tool call named an earlier one too, and is another one now"
ORPHAN = "a tool result answers no call of the history, and is left out of what is written"
TWO_CALLS = "two tool calls have one id, which no provider takes; give one of them another id"


@dataclass(frozen=True, slots=True)
class Mended:
    """A history with its calls and results in order.

    Unchanged messages are the caller's own objects. `wrong` has mistakes that cannot be mended,
    `left_out` counts messages that lost results without a call.
    """

    messages: list[Source]
    notes: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    left_out: int = 0


def mend(messages: Sequence[Source], *, unique_ids: bool, orphans: bool) -> Mended:
    """Put each result right behind its call; give each call without one a result.

    The last message's calls may still be carried out, so they may lack one. With `unique_ids`, an
    id names one call of the whole history, as Anthropic requires; otherwise one of a message. With
    `orphans`, results without a call stay, so that a compaction archives them.
    """
    return _Mending(messages, unique_ids, orphans).mended()


@dataclass(eq=False, slots=True)
class _Call:
    at: int
    id: str
    name: str
    answered: bool = False


@dataclass(eq=False, slots=True)
class _Result:
    """A block of a message, or a message of its own if `block` is None."""

    id: str
    block: Mapping[str, Any] | None
    call: _Call | None = None

    @property
    def written(self) -> dict[str, Any]:
        """The block, with its call's present id."""
        now = self.call.id if self.call is not None else self.id
        return {**(self.block or {}), "tool_use_id": now}


@dataclass(eq=False, slots=True)
class _Message:
    """A message: its calls, its results, and the rest."""

    index: int
    source: Source
    calls: list[_Call] = field(default_factory=list)
    results: list[_Result] = field(default_factory=list)
    rest: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, index: int, source: Source) -> _Message:
        message = cls(index, source)
        role = ROLES.get(str(_get(source, "role") or _get(source, "type")).lower())
        call_id = _get(source, "tool_call_id")
        if role == "tool" and call_id is not None:
            message.results = [_Result(str(call_id), None)]
        elif role == "user":
            for block in _blocks(source):
                if isinstance(block, Mapping) and block.get("type") == "tool_result":
                    message.results.append(_Result(str(block.get("tool_use_id")), block))
                else:
                    message.rest.append(block)
        elif role == "assistant":
            listed = [one for calls in _listed(source) for one in calls]
            ids = {str(one["id"]): _name(one) for one in listed}
            message.calls = [_Call(index, call_id, name) for call_id, name in ids.items()]
        return message

    @property
    def homes(self) -> set[int]:
        """Places of the messages whose calls it answers."""
        return {one.call.at for one in self.results if one.call is not None}

    @property
    def lost(self) -> list[_Result]:
        """Results without a call."""
        return [one for one in self.results if one.call is None]


class _Mending:
    def __init__(self, messages: Sequence[Source], unique_ids: bool, orphans: bool) -> None:
        self._messages = [_Message.of(index, one) for index, one in enumerate(messages)]
        self._unique, self._orphans = unique_ids, orphans
        self._told: dict[str, list[int]] = {}

    def mended(self) -> Mended:
        self._match()
        own = {message.index: [self._calling(message)] for message in self._messages}
        behind: dict[int, list[Source]] = {}
        for message in self._messages:
            if message.results:
                own[message.index] = self._answering(message, behind)
        last = max((m.index for m in self._messages if m.rest or not m.results), default=-1)
        for message in self._messages:
            missing = [call for call in message.calls if not call.answered]
            if missing and message.index < last:
                self._tell(MISSING, message)
                behind.setdefault(message.index, []).extend(_unknown(message.source, missing))
        found: list[Source] = []
        for index, kept in own.items():
            found += [*kept, *behind.get(index, ())]
        wrong = [_said(TWO_CALLS, at) for what, at in self._told.items() if what == TWO_CALLS]
        notes = [_said(what, at) for what, at in self._told.items() if what != TWO_CALLS]
        left_out = 0 if self._orphans else len(self._told.get(ORPHAN, ()))
        return Mended(found, tuple(notes), tuple(wrong), left_out)

    def _match(self) -> None:
        """Pair each result with the nearest open call before it, else with one behind."""
        calls: dict[str, list[_Call]] = {}
        early: list[tuple[int, _Result]] = []
        for message in self._messages:
            for result in message.results:
                before = [one for one in calls.get(result.id, ()) if not one.answered]
                if not _pair(result, before[-1:]):
                    early.append((message.index, result))
            for call in message.calls:
                calls.setdefault(call.id, []).append(call)
        for index, result in early:
            known = calls.get(result.id, ())
            _pair(result, [one for one in known if one.at > index and not one.answered])
        taken: set[str] = set()
        for message in self._messages:
            for call in message.calls if self._unique else ():
                number, name = 1, call.id
                while call.id in taken:
                    number += 1
                    call.id = f"{name}_{number}"
                taken.add(call.id)

    def _calling(self, message: _Message) -> Source:
        """Return a message with its calls, each once and under its own id."""
        source = message.source
        alike = [_alike(calls) for calls in _listed(source)]
        if any(same is False for same in alike):
            self._tell(TWO_CALLS, message)
            return source
        if any(alike):
            self._tell(REPEATED, message)
            source = _calls_once(source)
        old = list(dict.fromkeys(str(one["id"]) for calls in _listed(source) for one in calls))
        new = {before: call.id for before, call in zip(old, message.calls, strict=True)}
        if any(before != now for before, now in new.items()):
            self._tell(RENAMED, message)
            source = _with_ids(source, new)
        return source

    def _answering(self, message: _Message, behind: dict[int, list[Source]]) -> list[Source]:
        """Return the rest of a message whose results move behind their calls."""
        if message.lost:
            self._tell(ORPHAN, message)
        lost = message.lost if self._orphans else []
        source, homes = message.source, message.homes
        whole = len(lost) == len(message.lost)
        if len(homes) < 2 and self._follows(message):
            blocks = [one.block for one in message.results]
            ordered = all(a is b for a, b in zip(blocks, _blocks(source), strict=False))
            same = all(one.call is None or one.call.id == one.id for one in message.results)
            if whole and ordered and same:
                return [source]
            if not ordered:
                self._tell(APART, message)
            kept = [one for one in message.results if one.call is not None or self._orphans]
            return _with_results(source, kept, message.rest)
        if homes:
            self._tell(APART, message)
        for home in sorted(homes):
            moved = [one for one in message.results if one.call and one.call.at == home]
            alone = len(moved) == len(message.results) and not message.rest
            piece = source if alone else _changed(source, id=None)
            behind.setdefault(home, []).extend(_with_results(piece, moved, []))
        return _with_results(source, lost, message.rest)

    def _follows(self, message: _Message) -> bool:
        """Tell whether only results of the same calls stand between a message and these."""
        for home in message.homes:
            between = self._messages[home + 1 : message.index]
            if home > message.index or any(
                not one.results or one.rest or not one.homes <= {home} for one in between
            ):
                return False
        return True

    def _tell(self, what: str, message: _Message) -> None:
        self._told.setdefault(what, []).append(message.index)


def _pair(result: _Result, calls: Sequence[_Call]) -> bool:
    for call in calls[:1]:
        result.call, call.answered = call, True
    return bool(calls)


def _said(what: str, at: Sequence[int]) -> str:
    named = ", ".join(map(str, at[:NAMED])) + (f" and {len(at) - NAMED:,} more" * (len(at) > NAMED))
    return f"message{'s' * (len(at) > 1)} {named}: {what}"


def _get(source: Source, key: str) -> Any:
    return source.get(key) if isinstance(source, Mapping) else getattr(source, key, None)


def _blocks(source: Source) -> list[Any]:
    content = _get(source, "content")
    return content if isinstance(content, list) else []


def _listed(source: Source) -> list[list[Mapping[str, Any]]]:
    """Return the calls of a message, once for each list; LangChain's have two."""
    lists = (_get(source, key) for key in ("tool_calls", "invalid_tool_calls"))
    beside = [one for calls in lists if isinstance(calls, list) for one in calls]
    inside = [one for one in _blocks(source) if _is_call(one) and one.get("type") == "tool_use"]
    return [[one for one in beside if _is_call(one)], inside]


def _is_call(one: Any) -> bool:
    return isinstance(one, Mapping) and bool(one.get("id"))


def _name(call: Mapping[str, Any]) -> str:
    function = call.get("function")
    return str((function if isinstance(function, Mapping) else call).get("name") or "")


def _alike(calls: Sequence[Mapping[str, Any]]) -> bool | None:
    """Tell whether calls of one id are the same call; None if ids differ."""
    first: dict[str, str] = {}
    found = None
    for call in calls:
        written = json.dumps(call, sort_keys=True, default=str)
        if call["id"] in first:
            if first[call["id"]] != written:
                return False
            found = True
        first[call["id"]] = written
    return found


def _calls_once(source: Source) -> Source:
    def once(calls: Sequence[Any]) -> list[Any]:
        first = {one["id"]: i for i, one in reversed([*enumerate(calls)]) if _is_call(one)}
        return [c for i, c in enumerate(calls) if not _is_call(c) or first[c["id"]] == i]

    lists = {"tool_calls": _get(source, "tool_calls"), "content": _blocks(source)}
    return _changed(source, **{key: once(calls) for key, calls in lists.items() if calls})


def _with_ids(source: Source, new: Mapping[str, str]) -> Source:
    def renamed(calls: Sequence[Any]) -> list[Any]:
        return [
            {**one, "id": new.get(one["id"], one["id"])} if _is_call(one) else one for one in calls
        ]

    return _changed(source, content=renamed(_blocks(source)))


def _with_results(source: Source, results: Sequence[_Result], rest: Sequence[Any]) -> list[Source]:
    """Return a message with some results first, or none if it would be empty."""
    if not results and not rest:
        return []
    if results and results[0].block is None:
        return [source]
    return [_changed(source, content=[*(one.written for one in results), *rest])]


def _changed(source: Source, **values: Any) -> Source:
    if is_message(source):
        return source.model_copy(update=values)
    gone = {key for key, value in values.items() if value is None}
    return {key: value for key, value in {**source, **values}.items() if key not in gone}


def _unknown(source: Source, calls: Sequence[_Call]) -> list[Source]:
    """Make results with `UNKNOWN`, in the form of the calls' message."""
    if is_message(source):
        from langchain_core.messages import ToolMessage

        return [
            ToolMessage(UNKNOWN, tool_call_id=one.id, name=one.name or None, status="error")
            for one in calls
        ]
    if _get(source, "tool_calls"):
        return [{"role": "tool", "tool_call_id": one.id, "content": UNKNOWN} for one in calls]
    results = [
        {"type": "tool_result", "tool_use_id": one.id, "content": UNKNOWN, "is_error": True}
        for one in calls
    ]
    return [{"role": "user", "content": results}]
