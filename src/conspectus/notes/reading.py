"""Read the messages that leave the view as lines of the notes.

Only structure counts: who spoke, which call, which result, in which order. How often later messages
name the same identifiers says what the work went on with.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from conspectus.messages import Message, is_summary_message
from conspectus.messages.message import Call, Result
from conspectus.notes.cutting import GAP, cut, one_line
from conspectus.notes.segment import Answer, Kind, Line, Segment
from conspectus.notes.shapes import arguments, shape_of
from conspectus.notes.tools import Skills, Tool, ToolTable

_WORD = re.compile(r"[^\W_][\w./:@%+-]{2,80}")

STORED = 4_000
"""Characters of one value that a line keeps at most; the archive has the rest."""

BRIEF = 60
"""Characters of what a tool answers to a to-do list, which often repeats it."""

MOST_PIECES = 400
"""Pieces of one result that a line keeps at most, half of them from each end."""


def read_segment(
    leaving: Sequence[Message],
    kept: Sequence[Message] = (),
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
    whole = [*leaving, *kept]
    names = [one.name or "" for one in whole if one.role == "user"]
    if user is None:  # none where any message of the user has none
        user = "" if "" in names else next(iter(names), "")
    reader = _Reader(_last_named(whole), tools or ToolTable(), user, skills)
    for place, message in enumerate(leaving):
        if not is_summary_message(message.source):
            reader.read(message, place)
    lines, skill_files = reader.lines, tuple(reader.skill_files.values())
    if answer is None:
        return Segment(tuple(lines), todo=reader.todo, skills=skill_files, user=user)
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
    return Segment(tuple(lines), goal, following, reader.todo, skill_files, user=user)


def _last_named(messages: Sequence[Message]) -> dict[str, int]:
    """Return where the agent or the user named each identifier last.

    One that most messages have says nothing, and does not count.
    """
    last: dict[str, int] = {}
    times: dict[str, int] = {}
    for place, message in enumerate(messages):
        if message.role == "tool":
            continue
        for word in _identifiers_of(message):
            last[word] = place
            times[word] = times.get(word, 0) + 1
    common = max(8, len(messages) // 4)
    return {word: place for word, place in last.items() if times[word] <= common}


def _identifiers_of(message: Message) -> frozenset[str]:
    words: frozenset[str] | None = message.memo.get("identifiers")
    if words is None:
        words = message.memo["identifiers"] = frozenset(_identifiers(message.reading))
    return words


def _identifiers(text: str) -> Iterable[str]:
    """Yield the words of a text with a digit, a sign or a capital inside."""
    for word in _WORD.findall(text):
        bare = word.rstrip("./:@%+-")
        if not (bare.isalpha() and (bare.islower() or bare[1:].islower())):
            yield bare


class _Reader:
    """The lines so far, and the calls that wait for their results."""

    def __init__(
        self, last: dict[str, int], tools: ToolTable, user: str, skills: Skills | None
    ) -> None:
        self._last, self._tools, self._user, self._skills = last, tools, user, skills
        self.lines: list[Line] = []
        self.todo: tuple[str, ...] | None = None
        self.skill_files: dict[str, str] = {}
        self._calls: dict[str, list[int]] = {}
        self._todos: dict[str, tuple[str, ...]] = {}
        self._asked: dict[tuple[str, str], int] = {}
        self._pieces: set[str] = set()

    def read(self, message: Message, place: int) -> None:
        """Add what one message says, asks and answers."""
        own = message.own.strip()
        if own and not message.calls and message.role != "tool":
            by: str = "" if message.role == "assistant" else message.role
            if message.role == "user":
                by = "" if message.name in (None, "", self._user) else str(message.name)
            kind: Kind = "said" if message.role == "user" and not by else "found"
            worth = self._named(_identifiers_of(message), place)
            self.lines.append(Line(kind, (message.cite,), own, by, worth=worth))
        for number, call in enumerate(message.calls):
            self._call(message, call, place, "" if number or message.role == "tool" else own)
        for result in _results(message):
            self._result(message, result, place)

    def _named(self, words: Collection[str], place: int) -> int:
        """Return how many of these identifiers are named later."""
        last = self._last
        return sum(last.get(word, -1) > place for word in words)

    def _call(self, message: Message, call: Call, place: int, why: str) -> None:
        tool = self._tools[call.name]
        args = tool.ordered(arguments(call.args))
        if tool.todo and (items := _items(call, tool)) is not None:
            self._todos[call.id] = items  # the newest list is shown under what is open
            args = [(tool.todo, GAP)]
        said = " ".join(value for _, value in args[:4])
        earlier = self._asked.get((call.name, said))
        if earlier is not None:
            self.lines[earlier] = replace(self.lines[earlier], again=True)
        self._asked[call.name, said] = len(self.lines)
        self._calls.setdefault(call.id, []).append(len(self.lines))
        line = Line(
            "done",
            (message.cite,),
            cut(why, STORED),
            call=call.name or "call",
            args=tuple((name, cut(value, STORED)) for name, value in args),
            effect=tool.effect,
            worth=self._named(set(_identifiers(f"{why} {said}")), place),
        )
        self.lines.append(line)

    def _result(self, message: Message, result: Result, place: int) -> None:
        # Ids may come again: the first call without an answer has it, else the last one.
        calls = self._calls.get(result.call, [])
        at = next((n for n in calls if not self.lines[n].outcome), calls[-1] if calls else None)
        if at is None:
            at = len(self.lines)
            self._calls[result.call] = [at]
            self.lines.append(Line("done", call="result"))
        line, tool = self.lines[at], self._tools[self.lines[at].call]
        pieces, fields, says_failed = shape_of(result.text)
        failed = result.failed or (says_failed and tool.effect is not False)
        if self._skills is not None and not result.failed:
            self.skill_files |= self._skills.read(line.call, line.args, result.text)
        if len(pieces) > MOST_PIECES:
            pieces = (*pieces[: MOST_PIECES // 2], GAP, *pieces[-MOST_PIECES // 2 :])
        pieces = tuple(cut(piece, STORED) for piece in pieces) or ("(empty)",)
        if tool.todo:
            pieces = (cut(" ".join(pieces), BRIEF),)
            self.todo = self.todo if failed else self._todos.get(result.call, self.todo)
        named = []
        for piece in pieces:
            named.append(
                -1 if piece in self._pieces else 2 * self._named(set(_identifiers(piece)), place)
            )
            self._pieces.add(piece)
        self.lines[at] = replace(
            line,
            ids=tuple(dict.fromkeys((*line.ids, message.cite))),
            outcome=(*line.outcome, *pieces),
            fields=fields,
            named=(*line.named, *named),
            failed=line.failed or failed,
        )


def _results(message: Message) -> Sequence[Result]:
    """Return the answers in a message."""
    if message.results:
        return message.results
    source = message.source
    get = source.get if isinstance(source, Mapping) else lambda name: getattr(source, name, None)
    failed = get("status") == "error" or get("is_error") is True
    return [Result(call, message.text, failed) for call in message.answers[:1]]


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
