"""Read the messages that leave the view as lines of the notes.

Only structure counts: who spoke, which call, which result, in which order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from conspectus.messages import Message, is_summary_message
from conspectus.messages.message import Call, Result
from conspectus.notes.cutting import GAP, cut, one_line
from conspectus.notes.segment import Answer, Line, Segment
from conspectus.notes.shapes import arguments, shape_of
from conspectus.notes.tools import Skills, Tool, ToolTable

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
    if user is None:  # none where any message of the user has none
        names = [one.name or "" for one in whole if one.role == "user"]
        user = "" if "" in names else next(iter(names), "")
    reader = _Reader(whole, tools or ToolTable(), user, skills)
    for place, message in enumerate(leaving):
        if not is_summary_message(message.source):
            reader.read(message, place)
    lines, files = reader.lines, tuple(reader.skill_files.values())
    if answer is None:
        return Segment(tuple(lines), todo=reader.todo, skills=files, user=user)
    if answer.found:
        lines = [line for line in lines if line.kind != "agent" or line.by]
    quotes: dict[str, tuple[str, ...]] = {}
    for quote, cite in answer.binding:
        quotes[cite] = (*quotes.get(cite, ()), quote)
    lines = [
        replace(line, quotes=quotes[line.ids[0]])
        if line.kind == "said" and line.ids[0] in quotes
        else line
        for line in lines
    ]
    lines += [Line("found", ids, one_line(text)) for text, ids in answer.found]
    goal, following = tuple(answer.goal), tuple(answer.next)
    return Segment(
        tuple(lines), goal=goal, next=following, todo=reader.todo, skills=files, user=user
    )


class _Reader:
    """The lines so far, and the calls that wait for their results."""

    def __init__(
        self, messages: Sequence[Message], tools: ToolTable, user: str, skills: Skills | None
    ) -> None:
        self._messages, self._tools, self._user, self._skills = messages, tools, user, skills
        self.lines: list[Line] = []
        self.todo: tuple[str, ...] | None = None
        self.skill_files: dict[str, str] = {}
        self._calls: dict[str, list[int]] = {}
        self._todos: dict[str, tuple[str, ...]] = {}

    def read(self, message: Message, place: int) -> None:
        """Add what one message says, asks and answers."""
        own = message.own.strip()
        if own and not message.calls and message.role != "tool":
            by: str = "" if message.role == "assistant" else message.role
            if message.role == "user":
                by = "" if message.name in (None, "", self._user) else str(message.name)
            line = Line("said", (message.cite,), own, span=(place, place))
            if message.role != "user" or by:
                next_one = self._messages[place + 1 : place + 2]
                answer = "".join(one.cite for one in next_one if one.role == "user" and one.own)
                line = replace(line, kind="agent", by=by, answer=answer)
            self.lines.append(line)
        for number, call in enumerate(message.calls):
            why = "" if number or message.role == "tool" else own
            self._call(message, call, place, why)
        for result in _results(message) if message.answers else ():
            self._result(message, result, place)

    def _call(self, message: Message, call: Call, place: int, why: str) -> None:
        tool = self._tools[call.name]
        args = tool.ordered(arguments(call.args))
        if tool.todo and (items := _items(call, tool)) is not None:
            self._todos[call.id] = items  # the newest list is shown under what is open
            args = [(tool.todo, GAP)]
        self._calls.setdefault(call.id, []).append(len(self.lines))
        line = Line(
            "done",
            (message.cite,),
            cut(why, STORED),
            call=call.name or "call",
            args=tuple((name, cut(value, STORED)) for name, value in args),
            effect=tool.effect,
            span=(place, place),
        )
        self.lines.append(line)

    def _result(self, message: Message, result: Result, place: int) -> None:
        # Ids may come again: the first call without an answer has it, else the last one.
        calls = self._calls.get(result.call, [])
        at = next((n for n in calls if not self.lines[n].outcome), calls[-1] if calls else None)
        if at is None:
            at = len(self.lines)
            self._calls[result.call] = [at]
            self.lines.append(Line("done", call="result", span=(place, place)))
        line, tool = self.lines[at], self._tools[self.lines[at].call]
        pieces, fields, says_failed = shape_of(result.text)
        failed = result.failed or (says_failed and tool.effect is not False)
        if self._skills is not None and not result.failed:
            self.skill_files |= self._skills.read(line.call, line.args)
        if len(pieces) > MOST_PIECES:
            pieces = (*pieces[: MOST_PIECES // 2], GAP, *pieces[-MOST_PIECES // 2 :])
        if len(result.text) > STORED:
            pieces = tuple(cut(piece, STORED) for piece in pieces)
        pieces = pieces or ("(empty)",)
        if tool.todo:
            pieces = (cut(" ".join(pieces), BRIEF),)
            self.todo = self.todo if failed else self._todos.get(result.call, self.todo)
        self.lines[at] = replace(
            line,
            ids=tuple(dict.fromkeys((*line.ids, message.cite))),
            outcome=(*line.outcome, *pieces),
            fields=fields,
            failed=line.failed or failed,
            span=(line.span[0], place),
        )


def _results(message: Message) -> Sequence[Result]:
    """Return the answers in a message."""
    source: Any = message.source
    failed = getattr(source, "status", None) == "error"
    if isinstance(source, Mapping):
        failed = source.get("status") == "error" or source.get("is_error") is True
    if message.results:
        return [result._replace(failed=result.failed or failed) for result in message.results]
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
