"""Exact facts in one message: what it states as sentences, values as they stand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from conspectus.ledger import tasks
from conspectus.ledger.commands import called, is_command
from conspectus.ledger.fact import Fact, State
from conspectus.ledger.identifiers import DATA, Kind, Line, identified, identifiers
from conspectus.ledger.sentences import sentences
from conspectus.ledger.statements import (
    Sentence,
    is_decision,
    is_done,
    is_rule,
    read,
)
from conspectus.ledger.values import values
from conspectus.messages import Entry

__all__ = [
    "Fact",
    "Kind",
    "Line",
    "facts_of",
    "identified",
    "identifiers",
    "is_decision",
    "is_rule",
    "sentences",
]

SHELLS = frozenset("? bash sh shell console zsh shell-session powershell terminal cmd".split())
"""Names of fences that hold commands; `?` is one without a name."""

QUOTE = 120
"""Characters around a value that are kept with it."""

HEAD, TAIL = 2_000, 2_000
"""Characters at either end of a tool's output whose lines are looked through for values.

What the agent uses of the rest, it says itself, and recall finds the rest."""


@dataclass(frozen=True, slots=True)
class Reported:
    """A sentence that is no fact of its own, and yet may change what the ledger holds.

    Attributes:
        sentence: the sentence, and what it says.
        done: it says that something has been done.
        role: who said it.
        order: where, in messages.
        source: how its message is cited.
    """

    sentence: Sentence
    done: bool
    role: str
    order: int
    source: str


@dataclass(frozen=True, slots=True)
class Answered:
    """A result that came back for a call; `failed` if its message says that it is an error."""

    call: str
    text: str
    source: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class AskedAfter:
    """A call that asks after work by the id that its start gave, or gives it up."""

    call: str
    task: str
    gives_up: bool


@dataclass(frozen=True, slots=True)
class Listed:
    """A to-do list as a tool was given it: what is no longer on it was given up."""

    tasks: tuple[Fact, ...]


Note = Fact | Reported | Answered | AskedAfter | Listed
"""What one message tells the ledger."""


def facts_of(entry: Entry, order: int = 0) -> Iterator[Fact]:
    """The exact facts of one message.

    Rules count only when the user or the system states them; a tool's output cannot set any.

    Args:
        entry: the message.
        order: its place in the thread, in messages.
    """
    for note in notes_of(entry, order):
        if isinstance(note, Fact):
            yield note
        elif isinstance(note, Listed):
            yield from note.tasks


def notes_of(entry: Entry, order: int = 0) -> Iterator[Note]:
    """All that one message tells the ledger, in order: statements, then values, then calls."""
    own = entry.role == "assistant"
    used, told = (1, 0) if own else (0, 1)

    def fact(kind: Kind, value: str, quote: str, state: State = "", call: str = "") -> Fact:
        return Fact(kind, value, quote, entry.cite, entry.role, used, order, state, told, call)

    if entry.role in ("user", "system", "assistant") and entry.own:
        for sentence in read(entry.own, entry.role):
            done = is_done(sentence.text)
            match sentence.states:
                case "task":
                    yield fact("task", sentence.text, sentence.text, "open")
                case "done":
                    yield fact("task", sentence.text, sentence.text, "done")
                case "rule" | "preference" | "decision":
                    yield fact(sentence.states, sentence.text, sentence.text)
            if sentence.changes or done:
                yield Reported(sentence, done, entry.role, order, entry.cite)
    for result in entry.answers:
        status = getattr(entry.source, "status", None)
        yield Answered(result, entry.text, entry.cite, status == "error")
    yield from _values_of(entry, fact)
    for call in entry.calls:
        if work := tasks.delegated(call):
            yield fact("delegation", work, work, "open", call.id)
        elif asked := tasks.asks_after(call):
            yield AskedAfter(call.id, *asked)
        if items := tuple(tasks.listed(call)):
            yield Listed(tuple(fact("task", text, text, state) for text, state in items))


def _values_of(entry: Entry, fact: Any) -> Iterator[Fact]:
    """The values of a message: of what is said in it, and of the arguments of its calls."""
    fence = ""
    for line in _lines(entry):
        bare = line.strip()
        if bare.startswith(("```", "~~~")):
            fence = "" if fence else bare[3:].strip().lower() or "?"
            continue
        if fence in SHELLS and is_command(bare, shell=True):
            yield fact("command", bare, bare)
        yield from _in_line(line, fact)
    for call in entry.calls:
        for command in called(call):
            yield fact("command", command, command)
        for text in tasks.texts(call):
            for line in text.split("\n"):
                yield from _in_line(line, fact)


def _lines(entry: Entry) -> Iterator[str]:
    """The lines of a message; of a long output of a tool, those that start in its first and in its
    last characters."""
    text = entry.text
    if entry.role != "tool" or len(text) <= HEAD + TAIL:
        yield from text.split("\n")
        return
    head = text.find("\n", HEAD)
    tail = text.find("\n", len(text) - TAIL)
    yield from (text if head < 0 else text[:head]).split("\n")
    if 0 <= head < tail:
        yield from text[tail + 1 :].split("\n")


def _in_line(line: str, fact: Any) -> Iterator[Fact]:
    for kind, value, at in values(line[:DATA]):
        start = max(0, min(at - QUOTE // 3, len(line) - QUOTE))
        quote = line[start : start + max(QUOTE, at - start + len(value))].strip()
        yield fact(kind, value, quote)


__all__ += ["Answered", "AskedAfter", "Listed", "Note", "Reported", "notes_of"]
