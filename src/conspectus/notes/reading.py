"""Read the messages that leave the view as lines of the notes.

Only structure counts: who spoke, which call, which result, in which order. How often later messages
name the same identifiers says what the work went on with.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from conspectus.messages import Entry, is_summary_message
from conspectus.messages.message import Call
from conspectus.notes.cutting import BREAK, cut, one_line, terms
from conspectus.notes.segment import GAP, Answer, Line, Segment
from conspectus.notes.shapes import arguments, shape_of
from conspectus.notes.skills import Skills, reference
from conspectus.notes.tools import Tool, ToolTable

_WORD = re.compile(r"[^\W_][\w./:@%+-]{2,80}")
_LAST = re.compile(r"^.*\.(?=[^.]+$)")
_EDGE = "./:@%+-"

STORED = 4_000
"""Characters of one value that a line keeps at most; the archive has the rest."""

SHORT = 8
"""Characters up to which a line may stand anywhere by chance."""

BRIEF = 60
"""Characters of what a tool answers to a to-do list, which often repeats it."""

MOST_PIECES = 400
"""Pieces of one result that a line keeps at most, half of them from each end."""


class Names:
    """Where identifiers were named last by the agent or the user.

    An identifier is a word with a digit, a sign or a capital inside. One that most messages have
    says nothing, and does not count.

    Args:
        entries: all messages in their order, those that stay in view at the end.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._last: dict[str, int] = {}
        times: dict[str, int] = {}
        for place, entry in enumerate(entries):
            if entry.role == "tool":
                continue
            for word in set(_identifiers(entry.reading)):
                self._last[word] = place
                times[word] = times.get(word, 0) + 1
        self._words = {w for one in entries if one.role != "tool" for w in terms(one.own)}
        common = max(8, len(entries) // 4)
        for word, count in times.items():
            if count > common:
                del self._last[word]

    def after(self, text: str, place: int) -> int:
        """Return how many identifiers of a text are named after a place."""
        last = self._last
        return sum(last.get(word, -1) > place for word in set(_identifiers(text)))

    def weight(self, piece: str, place: int, *, fields: bool) -> int:
        """Return what a piece of a result is worth: what is named later, and what is spoken of.

        Args:
            piece: a line, a field or a row.
            place: of its message.
            fields: a field is worth more where anybody speaks of what its name says.
        """
        worth = 2 * self.after(piece, place)
        name = piece.partition("=")[0] if fields else ""
        if name and len(name) < len(piece) and self._words.issuperset(terms(_LAST.sub("", name))):
            worth += 1
        return worth


def _identifiers(text: str) -> Iterable[str]:
    for word in _WORD.findall(text):
        bare = word.rstrip(_EDGE)
        if not (bare.isalpha() and (bare.islower() or bare[1:].islower())):
            yield bare


@dataclass(slots=True)
class _Reading:
    """The lines so far, and the calls that wait for their results."""

    names: Names
    tools: ToolTable
    user: str | None
    lines: list[Line] = field(default_factory=list)
    waiting: dict[str, list[int]] = field(default_factory=dict)
    todos: dict[str, tuple[str, ...]] = field(default_factory=dict)
    asked: dict[tuple[str, str], int] = field(default_factory=dict)
    todo: tuple[str, ...] | None = None
    skills: Skills | None = None
    read_skills: dict[str, str] = field(default_factory=dict)
    pieces: set[str] = field(default_factory=set)

    def known(self, piece: str) -> bool:
        """Tell whether a piece of a result stood in this one or an earlier one before."""
        known = piece in self.pieces
        self.pieces.add(piece)
        return known

    def speaker(self, entry: Entry) -> str:
        """Return who speaks, where it is neither the user nor the agent."""
        if entry.role == "user":
            return "" if entry.name in (None, "", self.user) else str(entry.name)
        return "" if entry.role == "assistant" else entry.role

    def read(self, entry: Entry, place: int) -> None:
        """Add what one message says, asks and answers."""
        if entry.role != "tool":
            self._words(entry, place)
        for number, call in enumerate(entry.calls):
            self._call(entry, call, place, entry.own.strip() if not number else "")
        for call_id, text, failed in _results(entry):
            self._result(entry, call_id, text, failed, place)

    def _words(self, entry: Entry, place: int) -> None:
        text = entry.own.strip()
        if not text or entry.calls:
            return
        by, worth = self.speaker(entry), self.names.after(text, place)
        said = entry.role == "user" and not by
        line = Line("said" if said else "found", (entry.cite,), text, by, worth=worth)
        self.lines.append(line)

    def _call(self, entry: Entry, call: Call, place: int, why: str) -> None:
        tool = self.tools[call.name]
        args = tool.ordered(arguments(call.args))
        if tool.todo and (items := _items(call, tool)) is not None:
            self.todos[call.id] = items  # the newest list is shown under what is open
            args = [(tool.todo, GAP)]
        said = " ".join(value for _, value in args[:4])
        key = (call.name, said)
        if (earlier := self.asked.get(key)) is not None:
            self.lines[earlier] = replace(self.lines[earlier], again=True)
        self.asked[key] = len(self.lines)
        self.waiting.setdefault(call.id, []).append(len(self.lines))
        self.lines.append(
            Line(
                "done",
                (entry.cite,),
                cut(_without(why, args), STORED),
                call=call.name or "call",
                args=tuple((name, cut(value, STORED)) for name, value in args),
                effect=tool.effect,
                worth=self.names.after(f"{why} {said}", place),
            )
        )

    def _result(self, entry: Entry, call_id: str, text: str, failed: bool, place: int) -> None:
        calls = self.waiting.get(call_id, [])
        # Ids may come again: the first call without an answer has it, else the last one.
        at = next((n for n in calls if not self.lines[n].outcome), calls[-1] if calls else None)
        pieces, joint, says_failed = shape_of(text)
        if at is not None and self.skills is not None and not failed:
            asked = self.lines[at]
            if path := self.skills.path(asked.call, asked.args):
                self.read_skills[path] = reference(path, text)
        if len(pieces) > MOST_PIECES:
            pieces = (*pieces[: MOST_PIECES // 2], GAP, *pieces[-MOST_PIECES // 2 :])
        pieces = tuple(cut(piece, STORED) for piece in pieces)
        fields = joint != BREAK
        named = tuple(
            -1 if self.known(piece) else self.names.weight(piece, place, fields=fields)
            for piece in pieces
        )
        line = Line("done", call="result") if at is None else self.lines[at]
        tool = self.tools[line.call]
        failed = failed or (says_failed and tool.effect is not False)
        if tool.todo:
            pieces, named = (cut(" ".join(pieces), BRIEF),), (0,)
            self.todo = self.todo if failed else self.todos.get(call_id, self.todo)
        ids = tuple(dict.fromkeys((*line.ids, entry.cite)))
        line = replace(
            line,
            ids=ids,
            outcome=(*line.outcome, *(pieces or ("(empty)",))),
            fields=fields,
            named=(*line.named, *(named or (0,))),
            failed=line.failed or failed,
        )
        if at is None:
            self.waiting[call_id] = [len(self.lines)]
            self.lines.append(line)
        else:
            self.lines[at] = line


def _without(why: str, args: Sequence[tuple[str, str]]) -> str:
    """Return a reason with a mark in the place of lines that stand in the call beside it."""
    values = {line.strip() for _, value in args for line in value.split(BREAK)}
    kept: list[str] = []
    for line in why.split("\n"):
        bare = line.strip()
        fence = bare.startswith("```")
        if not fence and (len(bare) <= SHORT or bare not in values):
            kept.append(line)
        elif not fence and kept[-1:] != [GAP]:
            kept.append(GAP)
    return "\n".join(kept).strip().removesuffix(GAP).strip()


def _results(entry: Entry) -> Iterable[tuple[str, str, bool]]:
    """Return the answers in a message: the call, the text, and whether it is marked as failed."""
    if entry.results:
        return list(entry.results)
    source = entry.source
    get = source.get if isinstance(source, Mapping) else lambda name: getattr(source, name, None)
    failed = get("status") == "error" or get("is_error") is True
    return [(call_id, entry.text, failed) for call_id in entry.answers[:1]]


def _items(call: Call, tool: Tool) -> tuple[str, ...] | None:
    """Return a to-do list, an item a line with its fields; None where there is none."""
    try:
        rows = json.loads(call.args)[tool.todo]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if not isinstance(rows, list):
        return None
    fields = (row.values() if isinstance(row, Mapping) else [row] for row in rows)
    return tuple(one_line(" | ".join(map(str, row))) for row in fields)


def user_of(entries: Sequence[Entry]) -> str:
    """Return the name under which the user speaks; none where any message of the user has none."""
    names = [entry.name or "" for entry in entries if entry.role == "user"]
    return "" if "" in names else next(iter(names), "")


def read_segment(
    leaving: Sequence[Entry],
    kept: Sequence[Entry] = (),
    answer: Answer | None = None,
    *,
    user: str | None = None,
    tools: ToolTable | None = None,
    skills: Skills | None = None,
) -> Segment:
    """Return what the messages that leave add to the notes.

    Args:
        leaving: the originals, oldest first.
        kept: the messages that stay in view.
        answer: what a model has found in them; its lines take the place of the agent's own words
            to the user.
        user: the name under which the user speaks; None to take it from the first one to speak.
        tools: what is known of tools.
        skills: which calls read skill files.
    """
    user = user_of([*leaving, *kept]) if user is None else user
    reading = _Reading(
        Names([*leaving, *kept]),
        tools or ToolTable(),
        user,
        skills=skills,
    )
    for place, entry in enumerate(leaving):
        if is_summary_message(entry.source):
            continue
        reading.read(entry, place)
    lines, read = reading.lines, tuple(reading.read_skills.values())
    if answer is None:
        return Segment(tuple(lines), todo=reading.todo, skills=read, user=user)
    if answer.found:
        lines = [line for line in lines if line.kind != "found" or line.by]
    lines += [Line("found", ids, one_line(text), model=True) for text, ids in answer.found]
    binding: dict[str, tuple[str, ...]] = {}
    for quote, cite in answer.binding:
        binding[cite] = (*binding.get(cite, ()), quote)
    lines = [
        replace(line, quotes=binding[line.ids[0]])
        if line.kind == "said" and line.ids[0] in binding
        else line
        for line in lines
    ]
    goal, following = tuple(answer.goal), tuple(answer.next)
    return Segment(tuple(lines), goal, following, reading.todo, read, user=user)
