"""Read the messages that leave the view as lines of the notes.

Only structure counts: who spoke, which call, which result, in which order. No tool, language or
phrase is known here; `find_rules` alone knows the words by which a sentence binds.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from conspectus.messages import Message
from conspectus.messages.hosts import is_host_message, standing_topics
from conspectus.messages.message import Call, Result, fields_of
from conspectus.messages.users import is_by_user
from conspectus.notes.cutting import BREAK, GAP, common_beginning, cut, one_line, without_encoded
from conspectus.notes.data import SYSTEM, Answer, KeptBetween, KeptPlace, Line, Notes
from conspectus.notes.json_fields import read_json, value_text
from conspectus.notes.outcomes import outcome_of
from conspectus.notes.repeats import SaidBefore
from conspectus.notes.rules import RuleFinder, add_later_statements, in_order, lines_of
from conspectus.notes.shell import SHELLS, command_in, effect_of_command
from conspectus.notes.skills import Skills
from conspectus.notes.todo import todo_items
from conspectus.notes.tools import PATHS, Tool, ToolTable
from conspectus.rules import statements_in

LONGEST_VALUE = 4_000
"""The most characters of a reason, an argument or an outcome that a line keeps."""

LONGEST_ECHO = 60
"""The same for the outcome of a to-do list or of a question. It often repeats the list or the
answer of the user, which the notes have elsewhere."""

HOST = "host"
"""The speaker of messages in the user's role that the user did not write, such as reminders."""

MOST_RULES_OF_FILE = 16
"""The most rules that are taken over from one file."""

_TEXT_FILE = re.compile(r"[\w.-]{1,80}\.(?:md|mdc|txt|rst|adoc)\b", re.IGNORECASE)
"""The name of a file of text."""

EMPTY_RESULT = "(empty)"
"""The outcome of a call whose result has no text."""


def extract_notes(
    leaving: Sequence[Message],
    staying: Sequence[Message] = (),
    answer: Answer | None = None,
    *,
    before: Notes | None = None,
    kept_between: Sequence[KeptBetween] = (),
    tools: Mapping[str, Tool] | None = None,
    skills: Skills | None = None,
    find_rules: RuleFinder = statements_in,
) -> Notes:
    """Return what the messages that leave add to the notes.

    Args:
        leaving: the originals, oldest first, without summaries of earlier messages.
        staying: the messages that stay in view.
        answer: what a model has found in them. Its findings replace the agent's own words to the
            user.
        before: the notes so far. They say under which name the user speaks.
        kept_between: messages that stay in view although later ones leave.
        tools: what is known of tools.
        skills: which calls read skill files.
        find_rules: returns the rules in a text, word for word.
    """
    before = before or Notes()
    answer = answer or Answer()
    user = before.user
    if user is None:
        user = _name_of_user([*leaving, *staying])
    reader = _LineReader(
        tools or ToolTable(),
        user,
        skills,
        before.todo or (),
        SaidBefore(before.lines),
        find_rules,
    )
    reader.read_names(line.text for line in before.lines if line.kind == "said")
    reader.written_files |= {_name_of_file(line) for line in before.lines if line.effect}
    positions, kept_places = _positions_of(leaving, kept_between, before)
    for message, position in zip(leaving, positions, strict=True):
        reader.read(message, position)
    lines = reader.lines
    if answer.found:
        lines = [line for line in lines if line.kind != "agent" or line.speaker]
    for line in lines:
        if line.kind == "said":
            quoted = [rule for rule, cited in answer.binding if cited == line.ids[0]]
            line.rules = in_order(line.text, [*line.rules, *quoted])
    add_later_statements(before.lines, lines, find_rules)
    findings = [Line("found", ids, one_line(text)) for text, ids in answer.found]
    return Notes(
        (*lines, *findings),
        goal=tuple(answer.goal),
        next=tuple(answer.next),
        todo=reader.todo,
        skills=tuple(reader.skill_files.values()),
        user=user,
        kept_places=kept_places,
    )


def _positions_of(
    leaving: Sequence[Message], kept_between: Sequence[KeptBetween], before: Notes
) -> tuple[list[int], tuple[KeptPlace, ...]]:
    """Return the position of each message, and those of messages that stay between them.

    A message that stayed in view when later ones left keeps the position that it got then.
    """
    kept_places = {place.key: place for place in before.kept_places}
    taken = [line.span[-1] for line in before.lines]
    taken += [place.position for place in before.kept_places]
    following = max(taken, default=-1) + 1
    waiting = [*reversed(kept_between)]
    positions: list[int] = []
    for number, message in enumerate(leaving):
        while waiting and waiting[-1].evicted_before <= number:
            key = waiting.pop().key
            if key not in kept_places:
                kept_places[key] = KeptPlace(key, following, message.cite)
                following += 1
        place = kept_places.pop(message.key, None)
        positions.append(place.position if place else following)
        following += place is None
    return positions, tuple(kept_places.values())


def _name_of_user(messages: Sequence[Message]) -> str:
    """Return the name of the first user to speak; empty if a message of the user has none."""
    names = [message.name or "" for message in messages if is_by_user(message)]
    return "" if "" in names else next(iter(names), "")


@dataclass(slots=True)
class _LineReader:
    """Reads messages one after the other; keeps the calls that wait for their results.

    Attributes:
        tools: what is known of tools.
        user: the name under which the user speaks.
        skills: which calls read skill files.
        todo_before: the to-do list of the notes so far.
        said_before: what was said so far.
        find_rules: returns the statements of a text that bind.
        lines: the lines so far.
        todo: the newest to-do list; None if none was written.
        skill_files: references to the skill files that were read, by their paths.
        calls: the calls since the user spoke last, by their ids.
        earlier_calls: the newest call of each id before that.
        last_args: the arguments of the last call of each tool.
        todo_args: the arguments of calls that wrote a to-do list, by the ids of the calls.
        named_files: names of files of text that the user has named.
        written_files: names of files that the agent has written. Their rules do not bind.
    """

    tools: Mapping[str, Tool]
    user: str
    skills: Skills | None
    todo_before: Sequence[str]
    said_before: SaidBefore
    find_rules: RuleFinder
    lines: list[Line] = field(default_factory=list)
    todo: tuple[str, ...] | None = None
    skill_files: dict[str, str] = field(default_factory=dict)
    calls: dict[str, list[Line]] = field(default_factory=dict)
    earlier_calls: dict[str, Line] = field(default_factory=dict)
    todo_args: dict[str, str] = field(default_factory=dict)
    last_args: dict[str, dict[str, str]] = field(default_factory=dict)
    named_files: set[str] = field(default_factory=set)
    written_files: set[str] = field(default_factory=set)

    def read_names(self, texts: Iterable[str]) -> None:
        """Remember the files of text that the user names. Rules in them bind."""
        for text in texts:
            self.named_files |= {name.casefold() for name in _TEXT_FILE.findall(text)}

    def read(self, message: Message, position: int) -> None:
        """Add the words, the calls and the results of one message."""
        words = message.own.strip()
        is_tools = message.role == "tool"
        if words and message.role == "user":
            self.earlier_calls |= {name: calls[-1] for name, calls in self.calls.items()}
            self.calls = {}
        # A message with standing topics has left because a newer version of it is in view.
        if words and not message.calls and not is_tools and not standing_topics(message):
            self.lines.append(self._line_of_words(message, words, position))
        for number, call in enumerate(message.calls):
            reason = words if number == 0 and not is_tools else ""
            self._read_call(message, call, position, reason)
        if message.answers:
            fields = fields_of(message.source)
            failed = fields.get("status") == "error" or fields.get("is_error") is True
            whole = Result(message.answers[0], message.text, False)
            for result in message.results or [whole]:
                self._read_result(message, result, position, failed or result.failed)

    def _line_of_words(self, message: Message, words: str, position: int) -> Line:
        speaker = self._speaker_of(message)
        is_users = message.role == "user" and not speaker
        rules: Sequence[str] = ()
        if is_users:
            self.read_names([words])
            rules = self.find_rules(words)
        elif message.role == "system" and not is_host_message(message):
            rules = lines_of(words)
        line = Line(
            "said" if is_users else "agent",
            (message.cite,),
            words,
            speaker=speaker,
            span=(position, position),
        )
        self.said_before.shorten(line)
        line.rules = in_order(line.text, rules)
        return line

    def _speaker_of(self, message: Message) -> str:
        """Name who spoke; empty for the user and the agent."""
        if message.role == "assistant":
            return ""
        if message.role != "user":
            return message.role
        if not is_by_user(message):
            return message.name or HOST
        if message.name in (None, "", self.user):
            return ""
        # A person who is called "system" must not look like a system message.
        return f'"{message.name}"' if message.name == SYSTEM else str(message.name)

    def _read_call(self, message: Message, call: Call, position: int, reason: str) -> None:
        tool = self.tools[call.name]
        if tool.todo and todo_items(call.args, tool.todo, ()) is not None:
            self.todo_args[call.id] = call.args
            args = [(tool.todo, GAP)]  # the text has the newest list under "Open"
        else:
            args = _arguments(call, tool)
        line = Line(
            "done",
            (message.cite,),
            cut(reason, LONGEST_VALUE),
            call=call.name or "call",
            args=tuple((name, cut(value, LONGEST_VALUE)) for name, value in args),
            effect=_effect_of(call, tool, args),
            span=(position, position),
            repeated=self._repeated_beginnings(call.name, args),
        )
        self.calls.setdefault(call.id, []).append(line)
        self.lines.append(line)

    def _repeated_beginnings(self, tool: str, args: Sequence[tuple[str, str]]) -> tuple[int, ...]:
        """Return how many characters each argument shares with the last call; empty for none."""
        last = self.last_args.get(tool, {})
        self.last_args[tool] = dict(args)
        sizes = tuple(common_beginning(value, last.get(name, "")) for name, value in args)
        return sizes if any(sizes) else ()

    def _read_result(
        self, message: Message, result: Result, position: int, is_marked_failed: bool
    ) -> None:
        line = self._line_for_result(result, position)
        tool = self.tools[line.call]
        outcome = outcome_of(
            without_encoded(result.text), frozenset(value for _, value in line.args)
        )
        if self.skills is not None and not is_marked_failed:
            self.skill_files |= self.skills.read(line.call, line.args)
        answer = result.text.strip()
        if tool.asks and answer and not is_marked_failed:
            answer_line = Line(
                "said",
                (message.cite,),
                answer,
                speaker=line.call,
                rules=in_order(answer, self.find_rules(answer)),
                span=(position, position),
            )
            self.lines.append(answer_line)
        if not is_marked_failed and not tool.asks:
            self._read_rules_of_file(message, line, answer, position)
        # A tool that reads may have read the words of a failure that is not its own.
        may_quote = tool.effect is False or (outcome.by_words and line.effect is False)
        failed = is_marked_failed or (outcome.failed and not may_quote)
        if tool.todo and not failed:
            self._read_todo(self.todo_args.get(result.call, ""), tool)
        longest = LONGEST_ECHO if tool.todo or tool.asks else LONGEST_VALUE
        text = cut(outcome.text, longest) or EMPTY_RESULT
        line.outcome = f"{line.outcome}{BREAK}{text}" if line.outcome else text
        line.ids = tuple(dict.fromkeys((*line.ids, message.cite)))
        line.is_data = outcome.is_data
        line.failed = line.failed or failed
        line.span = (line.span[0], position)

    def _read_rules_of_file(self, message: Message, line: Line, text: str, position: int) -> None:
        """Add the rules of a skill file, or of a file of text that the user has named."""
        path = next((value for name, value in line.args if name in PATHS), "")
        if not path:
            return
        name = _name_of_file(line)
        is_skill = self.skills is not None and bool(self.skills.read(line.call, line.args))
        if line.effect:
            self.written_files.add(name)
        is_named = name in self.named_files - self.written_files
        if line.effect or not (is_skill or is_named):
            return
        rules = self.find_rules(text)[:MOST_RULES_OF_FILE]
        if rules:
            words = "\n".join(rules)
            self.lines.append(
                Line(
                    "agent",
                    (message.cite,),
                    words,
                    speaker=path,
                    rules=in_order(words, rules),
                    span=(position, position),
                )
            )

    def _line_for_result(self, result: Result, position: int) -> Line:
        """Return the line of the call that a result answers, or a new line if there is no call.

        Providers may use an id twice. So a result belongs to the first call with its id, since the
        user spoke last, that has no result yet; or else to the last call since then; or else to
        the newest call before.
        """
        calls = self.calls.get(result.call)
        if calls is not None:
            return next((line for line in calls if not line.outcome), calls[-1])
        if result.call in self.earlier_calls:
            return self.earlier_calls[result.call]
        line = Line("done", call="result", span=(position, position))
        self.earlier_calls[result.call] = line
        self.lines.append(line)
        return line

    def _read_todo(self, args: str, tool: Tool) -> None:
        items = todo_items(args, tool.todo, self.todo or self.todo_before)
        if items is not None:
            self.todo = items


def _name_of_file(line: Line) -> str:
    """Return the name of the file that a call is about, in small letters; empty without one."""
    path = next((value for name, value in line.args if name in PATHS), "")
    return posixpath.basename(path).casefold()


def _effect_of(call: Call, tool: Tool, args: Sequence[tuple[str, str]]) -> bool | None:
    """Tell whether a call changes anything: by its tool, or by its command."""
    if tool.effect is None and call.name.casefold() in SHELLS:
        return effect_of_command(command_in(args))
    return tool.effect


def _arguments(call: Call, tool: Tool) -> list[tuple[str, str]]:
    """Return the arguments of a call as names and values, those that the tool shows first."""
    text = without_encoded(call.args.strip())
    values = read_json(text) if text.startswith("{") else None
    if not isinstance(values, Mapping):
        return [("", one_line(text))] if text else []
    args = [(str(name), value_text(value)) for name, value in values.items()]
    return sorted(args, key=lambda arg: tool.places.get(arg[0], len(tool.places)))
