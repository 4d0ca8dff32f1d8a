"""Read the messages that leave the view as lines of the notes.

Only structure counts: who spoke, which call, which result, in which order; and of a result its
data: JSON objects become fields, lists of like records a table with its columns named once, other
texts their lines. No tool, language or phrase is known here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, NamedTuple

from conspectus.messages import Message
from conspectus.messages.hosts import standing_topics
from conspectus.messages.message import Call, Result, fields_of
from conspectus.messages.users import is_by_user
from conspectus.notes.data import Answer, Kind, Line, Notes
from conspectus.notes.text import BREAK, FIELD, GAP, cut, one_line, without_encoded
from conspectus.notes.tools import Skills, Tool, ToolTable

STORED = 4_000  # Characters of one value that a line keeps at most; the archive has the rest
TODO_ANSWER = 60  # Characters of what a tool answers to a to-do list, which often repeats it
MOST_JSON = 2_000_000  # Characters of a text that is tried as JSON
DEPTH = 4  # Levels of nested data that become fields; what lies deeper stands as JSON
CODES = ("returncode", "return_code", "exit_code", "exitCode", "exit_status")
ERRORS = ("error", "errors", "error_code", "is_error", "isError")
STATES = ("status", "state", "success", "ok")
FIRST = frozenset((*CODES, *ERRORS, *STATES))  # Fields that say how a call ended; they come first
HEAD, TAIL = 4, 2  # First and last lines of a text of which one may say how the program ended
HOST = "host"  # Speaks in the name of the user, as in reminders; no words of theirs
FAILED = ("error", "failed", "failure", "incomplete", "false")

# Values of an error that say that there was none.
NOTHING = ("", "0", "false", "none", "null", "[]", "{}")
_ENDED = re.compile(
    r"(?i)\A\W?(?:(?:\w++ ){0,3}?exited with|(?:(?:\w++ )?failed with )?exit) "
    r"(?:code|status) (-?\d++)\W?"
)
_TAGS = re.compile(r"<(\w{1,40})>([^<\n]{0,200})</\1>\s*")
_OPEN = re.compile(r"<(\w{1,40})>\n?")


def extract_notes(
    leaving: Sequence[Message],
    staying: Sequence[Message] = (),
    answer: Answer | None = None,
    *,
    before: Notes | None = None,
    tools: Mapping[str, Tool] | None = None,
    skills: Skills | None = None,
) -> Notes:
    """Return what the messages that leave add to the notes.

    Args:
        leaving: the originals, oldest first, without summaries of earlier messages.
        staying: the messages that stay in view.
        answer: what a model has found in them; its lines take the place of the agent's own words
            to the user.
        before: the notes so far. The first to speak in them is the user.
        tools: what is known of tools.
        skills: which calls read skill files.
    """
    before, answer = before or Notes(), answer or Answer()
    user = before.user
    if user is None:  # none where any message of the user has none
        names = [one.name or "" for one in (*leaving, *staying) if is_by_user(one)]
        user = "" if "" in names else next(iter(names), "")
    reader = _Reader(tools or ToolTable(), user, skills, before.todo or ())
    start = max((line.span[-1] + 1 for line in before.lines), default=0)
    for place, message in enumerate(leaving, start):
        reader.read(message, place)
    lines = [one for one in reader.lines if one.kind != "agent" or one.by or not answer.found]
    for line in lines:
        if line.kind == "said":
            line.quotes = tuple(text for text, cite in answer.binding if cite == line.ids[0])
    return Notes(
        (*lines, *(Line("found", ids, one_line(text)) for text, ids in answer.found)),
        goal=tuple(answer.goal),
        next=tuple(answer.next),
        todo=reader.todo,
        skills=tuple(reader.skill_files.values()),
        user=user,
    )


@dataclass(slots=True)
class _Reader:
    """The lines so far, and the calls that wait for their results."""

    tools: Mapping[str, Tool]
    user: str  # the name under which the user speaks
    skills: Skills | None
    before: Sequence[str]  # the to-do list of the notes so far
    lines: list[Line] = field(default_factory=list)
    todo: tuple[str, ...] | None = None  # the newest list
    skill_files: dict[str, str] = field(default_factory=dict)
    calls: dict[str, list[Line]] = field(default_factory=dict)  # since the user spoke, by their ids
    earlier_calls: dict[str, Line] = field(default_factory=dict)  # before, the newest of each id
    todos: dict[str, str] = field(default_factory=dict)  # arguments with a list, by call

    def read(self, message: Message, place: int) -> None:
        """Add what one message says, asks and answers.

        What a host states for the whole thread has left because a newer statement is in view.
        """
        own, role = message.own.strip(), message.role
        if own and role == "user":
            self.earlier_calls |= {name: calls[-1] for name, calls in self.calls.items()}
            self.calls = {}
        if own and not message.calls and role != "tool" and not standing_topics(message):
            by = self._speaker(message)
            kind: Kind = "agent" if by or role != "user" else "said"
            self.lines.append(Line(kind, (message.cite,), own, by, span=(place, place)))
        for number, call in enumerate(message.calls):
            why = "" if number or role == "tool" else own
            self._call(message, call, place, why)
        if message.answers:
            fields = fields_of(message.source)
            failed = fields.get("status") == "error" or fields.get("is_error") is True
            whole = Result(message.answers[0], message.text, False)
            for result in message.results or [whole]:
                self._result(message, result, place, failed or result.failed)

    def _speaker(self, message: Message) -> str:
        """Name who spoke, where that is neither the user nor the agent."""
        if message.role != "user":
            return "" if message.role == "assistant" else message.role
        if not is_by_user(message):
            return message.name or HOST
        return "" if message.name in (None, "", self.user) else str(message.name)

    def _call(self, message: Message, call: Call, place: int, why: str) -> None:
        tool, text = self.tools[call.name], without_encoded(call.args.strip())
        data = _data(text) if text.startswith("{") else None
        if isinstance(data, Mapping):
            args = [(str(name), _plain(value)) for name, value in data.items()]
            args.sort(key=lambda arg: tool.places.get(arg[0], len(tool.places)))
        else:
            args = [("", one_line(text))] if text else []
        if tool.todo and _items(call.args, tool, ()) is not None:
            self.todos[call.id] = call.args  # the newest list is shown under what is open
            args = [(tool.todo, GAP)]
        line = Line(
            "done",
            (message.cite,),
            cut(why, STORED),
            call=call.name or "call",
            args=tuple((name, cut(value, STORED)) for name, value in args),
            effect=tool.effect,
            span=(place, place),
        )
        self.calls.setdefault(call.id, []).append(line)
        self.lines.append(line)

    def _result(self, message: Message, result: Result, place: int, failed: bool) -> None:
        # Ids come again: since the user spoke, the first call without an answer has it, else the
        # last one. An earlier call that was never answered has it where there is no other.
        calls = self.calls.get(result.call)
        if calls is not None:
            line = next((call for call in calls if not call.outcome), calls[-1])
        elif result.call in self.earlier_calls:
            line = self.earlier_calls[result.call]
        else:
            line = Line("done", call="result", span=(place, place))
            self.earlier_calls[result.call] = line
            self.lines.append(line)
        tool, shape = self.tools[line.call], shape_of(without_encoded(result.text))
        if self.skills is not None and not failed:
            self.skill_files |= self.skills.read(line.call, line.args)
        if tool.asks and not failed and (said := result.text.strip()):
            self.lines.append(Line("said", (message.cite,), said, line.call, span=(place, place)))
        failed = failed or (shape.failed and tool.effect is not False)
        if tool.todo:
            items = _items(self.todos.get(result.call, ""), tool, self.todo or self.before)
            self.todo = self.todo if failed or items is None else items
        outcome = cut(shape.text, TODO_ANSWER if tool.todo or tool.asks else STORED) or "(empty)"
        line.outcome = f"{line.outcome}{BREAK}{outcome}" if line.outcome else outcome
        line.ids = tuple(dict.fromkeys((*line.ids, message.cite)))
        line.fields, line.failed = shape.fields, line.failed or failed
        line.span = (line.span[0], place)


def _items(args: str, tool: Tool, before: Sequence[str]) -> tuple[str, ...] | None:
    """Return a to-do list, an item a line with its fields; None where there is none.

    A call may say that it has only what has changed: `merge`, and an `id` in each item.
    """
    try:
        data = json.loads(args)
        rows = data[tool.todo]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if not isinstance(rows, list):
        return None
    fields = (row.values() if isinstance(row, Mapping) else [row] for row in rows)
    items = tuple(one_line(" | ".join(map(str, row))) for row in fields)
    if data.get("merge") is not True:
        return items
    changed = [enumerate(row.items()) for row in rows if isinstance(row, Mapping)]
    ids = {(at, str(value)) for row in changed for at, (name, value) in row if name == "id"}
    return (*(item for item in before if ids.isdisjoint(enumerate(item.split(" | ")))), *items)


# What a tool was given and what it answered, by the shape of the data


class Shape(NamedTuple):
    """A result in one line, whether that is data, and whether it says that the call failed.

    A record that is mostly what a program printed is no data: its end says what came of it.
    """

    text: str
    fields: bool
    failed: bool


def shape_of(text: str) -> Shape:
    """Take a result apart.

    Example:
        >>> shape_of('{"id": 7, "beds": [{"n": 1, "kind": "twin"}, {"n": 2, "kind": "king"}]}')[0]
        'id=7; beds (n | kind): 1 | twin; 2 | king'
    """
    text = text.strip()
    shapes = (shape_in_form(text) for shape_in_form in FORMS)
    return next(shape for shape in shapes if shape is not None)


def _json_shape(text: str) -> Shape | None:
    """Take JSON apart: an object into its fields, a list of like records into a table."""
    try:
        return _shape_of_data(text, _data(text))
    except RecursionError:  # it is nested so deep that it could just be read
        return None


def _shape_of_data(text: str, data: Any) -> Shape | None:
    if isinstance(data, list) and len(data) == 1 and isinstance(data[0], Mapping):
        data = data[0]
    if not data:
        return None
    fields = data if isinstance(data, Mapping) else {}
    fields = dict(sorted(fields.items(), key=lambda one: one[0] not in FIRST))
    values = [value for value in fields.values() if isinstance(value, str)]
    printed = any("\n" in value and 2 * len(value) > len(text) for value in values)
    line = FIELD.join(_pieces("", fields or data)).replace(f":{FIELD}", ": ")
    return Shape(line, not printed, _says_failed(fields))


def _printed_shape(text: str) -> Shape:
    """Take what a program printed apart, with how it ended.

    It may stand in a frame of tags, as shells for agents print it: short values, then the output.
    """
    fields, at = {}, 0
    while tag := _TAGS.match(text, at):
        fields[tag[1]] = one_line(tag[2])
        at = tag.end()
    rest = text[at:]
    if (tag := _OPEN.match(rest)) and rest.endswith(f"</{tag[1]}>"):
        rest = rest[tag.end() : -len(tag[1]) - 3]
    lines = [line for line in map(str.strip, rest.split("\n")) if line]
    ends = [f"{name}={value}" for name, value in fields.items() if not lines or value != "0"]
    heads = (line.partition(":") for line in lines[:HEAD])
    codes = {name.strip().lower().replace(" ", "_"): value for name, _, value in heads}
    for one in filter(None, map(_ENDED.fullmatch, (*lines[-TAIL:], *lines[:HEAD]))):
        fields["exit_code"] = one[1]
    fields |= {name: codes[name] for name in CODES if name in codes}
    if lines and lines[0][:6].lower() == "error:":  # as tools answer that have no other mark
        fields["error"] = lines[0][6:]
    return Shape(BREAK.join((*ends, *lines)), False, _says_failed(fields))


FORMS: tuple[Callable[[str], Shape | None], ...] = (_json_shape, _printed_shape)
"""The forms of results, of which the first that takes a text apart counts. A form returns None for
a text of another form; the last one takes any text."""


def _data(text: str) -> Any:
    if text[:1] not in ("{", "[") or text[-1:] not in ("}", "]") or len(text) > MOST_JSON:
        return None
    try:
        return _JSON.decode(text)
    except (ValueError, RecursionError):
        return None


def _number(digits: str) -> float | str:
    """Return a number; its digits where it would be written otherwise, as 2.50 would be 2.5."""
    number = float(digits)
    return number if repr(number) == digits else digits


_JSON = json.JSONDecoder(parse_float=_number)
_ENCODER = json.JSONEncoder(ensure_ascii=False)


def _plain(value: Any) -> str:
    """Return a value in one line; what is nested stays JSON."""
    if isinstance(value, str):
        return one_line(value)
    if type(value) is int:
        return int.__repr__(value)
    if type(value) is float and isfinite(value):
        return float.__repr__(value)
    if value == {}:
        return "{}"
    if isinstance(value, list) and not any(isinstance(one, (list, dict)) for one in value):
        return ", ".join(map(_plain, value)) if len(value) != 1 else f"[{_plain(value[0])}]"
    return one_line(_ENCODER.encode(value))


def _pieces(name: str, value: Any, depth: int = 0) -> list[str]:
    """Return a value as one piece, as its fields, or as a table."""
    if isinstance(value, dict) and value and depth <= DEPTH:
        named = ((f"{name}.{key}" if name else str(key), part) for key, part in value.items())
    elif isinstance(value, list) and (columns := _columns(value)):
        head = f"{name} ({' | '.join(columns)}):".strip()
        rows = (" | ".join(_plain(row.get(column, "")) for column in columns) for row in value)
        return [head, *rows]
    elif isinstance(value, list) and any(isinstance(one, (dict, list)) for one in value):
        named = ((f"{name}[{place}]", part) for place, part in enumerate(value))
    elif isinstance(value, list):
        return [f"{name}={', '.join(map(_plain, value)) or 'none'}".lstrip("=")]
    else:
        return [f"{name}={_plain(value)}".lstrip("=")]
    pieces: list[str] = []
    for inner, part in named:
        part_depth = depth + 1
        while _holds_one_part(part):
            inner += "[0]"
            part = part[0]
            part_depth += 1
        if part == []:
            pieces.append(f"{inner}=none".lstrip("="))
        elif part and isinstance(part, (dict, list)):
            pieces += _pieces(inner, part, part_depth)
        else:
            pieces.append(f"{inner}={_plain(part)}".lstrip("="))
    return pieces


def _holds_one_part(value: Any) -> bool:
    """Tell whether a value is a list of one list or record: its only piece is what that one is."""
    return type(value) is list and len(value) == 1 and isinstance(value[0], (dict, list))


def _columns(rows: list[Any]) -> list[str]:
    """Return the columns of a list of two or more like records; empty where they are not alike."""
    if len(rows) < 2 or not all(isinstance(row, dict) and row for row in rows):
        return []
    columns = list(dict.fromkeys(str(name) for row in rows for name in row))
    filled = sum(len(row) for row in rows)
    return columns if filled * 2 >= len(columns) * len(rows) else []


def _says_failed(fields: Mapping[str, Any]) -> bool:
    said = {name: str(value).strip().lower() for name, value in fields.items() if name in FIRST}
    error = any(name in ERRORS and value not in NOTHING for name, value in said.items())
    inside = (part for part in fields.values() if isinstance(part, Mapping))
    said |= {name: str(part[name]).strip() for part in inside for name in CODES if name in part}
    codes = (value.partition(" ")[0] for name, value in said.items() if name in CODES)
    error = error or any(code.lstrip("-").isdecimal() and code.strip("-0") for code in codes)
    return error or any(name in STATES and value in FAILED for name, value in said.items())
