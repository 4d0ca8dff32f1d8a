"""Mend tool calls and results of a foreign history, so that a provider takes it.

Providers refuse a history with a call without a result after it, or a result without a call or
apart from it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conspectus._langchain import is_message
from conspectus.messages import Source
from conspectus.messages.entries import ROLES

NAMED = 5  # Messages that a note names
UNKNOWN = "[The result of this call was not recorded.]"  # The text in place of a missing result

APART = "a tool result stood before or apart from its call, and stands behind it now"
MISSING = "a tool call had no result, and has one now that says so"
ORPHAN = "a tool result answers no call of the history, and is left out of what is written"


@dataclass(frozen=True, slots=True)
class Mended:
    """A history with its calls and results in order.

    Unchanged messages are the caller's own objects; `left_out` counts messages that lost results
    without a call.
    """

    messages: list[Source]
    notes: tuple[str, ...] = ()
    left_out: int = 0


def mend(messages: Sequence[Source], *, orphans: bool) -> Mended:
    """Put each result right behind its call; give each call without one a result.

    The last message's calls may still be carried out, so they may lack one. With `orphans`, results
    without a call stay, so that a compaction archives them.
    """
    turns = [_Turn.of(index, source) for index, source in enumerate(messages)]
    _match(turns)
    notes: dict[str, list[int]] = defaultdict(list)
    behind: dict[int, list[Source]] = defaultdict(list)
    own = [_own(turn, turns, behind, notes, orphans) for turn in turns]
    last = max((turn.at for turn in turns if turn.rest or not turn.results), default=-1)
    for turn in turns:
        missing = [call for call in turn.calls if not call.answered]
        if missing and turn.at < last:
            notes[MISSING].append(turn.at)
            behind[turn.at] += _unknown(turn.source, missing)
    return Mended(
        messages=[one for turn in turns for one in (*own[turn.at], *behind[turn.at])],
        notes=tuple(_note(what, at) for what, at in notes.items()),
        left_out=0 if orphans else len(notes[ORPHAN]),
    )


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


@dataclass(eq=False, slots=True)
class _Turn:
    """A message: its calls, its results, and the rest."""

    at: int
    source: Source
    calls: list[_Call] = field(default_factory=list)
    results: list[_Result] = field(default_factory=list)
    rest: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, at: int, source: Source) -> _Turn:
        turn = cls(at, source)
        role = ROLES.get(str(_get(source, "role") or _get(source, "type")).lower())
        answers = _get(source, "tool_call_id")
        if role == "tool" and answers is not None:
            turn.results = [_Result(str(answers), None)]
        elif role == "user":
            for block in _blocks(source):
                if isinstance(block, Mapping) and block.get("type") == "tool_result":
                    turn.results.append(_Result(str(block.get("tool_use_id")), block))
                else:
                    turn.rest.append(block)
        elif role == "assistant":
            lists = (_get(source, key) for key in ("tool_calls", "invalid_tool_calls"))
            calls = [call for one in lists if isinstance(one, list) for call in one]
            calls += [b for b in _blocks(source) if _get(b, "type") == "tool_use"]
            names = {str(call["id"]): _name(call) for call in calls if _get(call, "id")}
            turn.calls = [_Call(at, call_id, name) for call_id, name in names.items()]
        return turn

    @property
    def homes(self) -> set[int]:
        """Places of the messages whose calls it answers."""
        return {one.call.at for one in self.results if one.call is not None}


def _match(turns: Sequence[_Turn]) -> None:
    """Pair each result with the nearest open call before it, else with one behind."""
    calls: dict[str, list[_Call]] = defaultdict(list)
    early: list[tuple[int, _Result]] = []
    for turn in turns:
        for result in turn.results:
            if not _pair(result, [one for one in calls[result.id] if not one.answered][-1:]):
                early.append((turn.at, result))
        for call in turn.calls:
            calls[call.id].append(call)
    for at, result in early:
        _pair(result, [one for one in calls[result.id] if one.at > at and not one.answered])


def _pair(result: _Result, calls: Sequence[_Call]) -> bool:
    for call in calls[:1]:
        result.call, call.answered = call, True
    return bool(calls)


def _own(
    turn: _Turn,
    turns: Sequence[_Turn],
    behind: dict[int, list[Source]],
    notes: dict[str, list[int]],
    orphans: bool,
) -> list[Source]:
    """Return what stays in the place of a message; results that move go to `behind`."""
    if not turn.results:
        return [turn.source]
    source, homes = turn.source, turn.homes
    lost = [one for one in turn.results if one.call is None]
    if lost:
        notes[ORPHAN].append(turn.at)
    kept = [one for one in turn.results if one.call is not None or orphans]
    if len(homes) < 2 and all(_follows(turn, home, turns) for home in homes):
        blocks = [one.block for one in turn.results]
        ordered = all(a is b for a, b in zip(blocks, _blocks(source), strict=False))
        if ordered and len(kept) == len(turn.results):
            return [source]
        if not ordered:
            notes[APART].append(turn.at)
        return _with_results(source, kept, turn.rest)
    notes[APART].append(turn.at)
    for home in sorted(homes):
        moved = [one for one in turn.results if one.call and one.call.at == home]
        alone = len(moved) == len(turn.results) and not turn.rest
        piece = source if alone else _changed(source, id=None)
        behind[home] += _with_results(piece, moved, [])
    return _with_results(source, lost if orphans else [], turn.rest)


def _follows(turn: _Turn, home: int, turns: Sequence[_Turn]) -> bool:
    """Tell whether only results of the same calls stand between a message and these."""
    between = turns[home + 1 : turn.at]
    return home < turn.at and all(
        one.results and not one.rest and one.homes <= {home} for one in between
    )


def _note(what: str, at: Sequence[int]) -> str:
    named = ", ".join(map(str, at[:NAMED])) + (f" and {len(at) - NAMED:,} more" * (len(at) > NAMED))
    return f"message{'s' * (len(at) > 1)} {named}: {what}"


def _get(source: Any, key: str) -> Any:
    return source.get(key) if isinstance(source, Mapping) else getattr(source, key, None)


def _blocks(source: Source) -> list[Any]:
    content = _get(source, "content")
    return content if isinstance(content, list) else []


def _name(call: Mapping[str, Any]) -> str:
    return str(_get(call.get("function") or call, "name") or "")


def _with_results(source: Source, results: Sequence[_Result], rest: Sequence[Any]) -> list[Source]:
    """Return a message with some results first, or none if it would be empty."""
    if not results and not rest:
        return []
    if results and results[0].block is None:
        return [source]
    return [_changed(source, content=[*(one.block for one in results), *rest])]


def _changed(source: Source, **values: Any) -> Source:
    if is_message(source):
        return source.model_copy(update=values)
    new = {**source, **values}
    return {key: new[key] for key in new if key not in values or values[key] is not None}


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
    kind = {"type": "tool_result", "content": UNKNOWN, "is_error": True}
    return [{"role": "user", "content": [{**kind, "tool_use_id": one.id} for one in calls]}]
