"""The notes as data: lines, and what is open.

A record holds the notes on all that has left. The text that a model sees is rendered from them, and
never read back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, Literal

from conspectus._bounded_cache import BoundedCache
from conspectus.core.records import from_plain, to_plain

Kind = Literal["said", "done", "agent", "found"]

# Parts of a line that are names, and not what somebody has said.
NAMES = ("ids", "kind", "call", "by")
# Names of messages that a line cites at most, and one that a model has written.
CITED, SOURCES = 4, 8
# Characters of a text that a call has returned which counts as one that changed something,
# where nobody knows: whatever changes something says little.
SILENT = 80
SEGMENTS = 16  # Notes whose lines are in memory with their data, at most


@dataclass(frozen=True, slots=True)
class Answer:
    """What a summarising model has written, taken apart."""

    # what it found, each line with the ids of the messages that it cites
    found: Sequence[tuple[str, tuple[str, ...]]] = ()
    goal: Sequence[str] = ()  # what the work is for, as lines
    next: Sequence[str] = ()  # the next step, as lines
    # statements of the user that it quotes, each with the id of its message
    binding: Sequence[tuple[str, str]] = ()


@dataclass
class Line:
    """One entry of the notes; it is not changed once it is read."""

    kind: Kind  # what the user said, what was done, what an agent said, or what a model found
    ids: tuple[str, ...] = ()  # names of the messages that it is about; they recall the originals
    text: str = ""  # the words: the user's, the agent's, a finding, or why the agent made a call
    by: str = ""  # who said it, where that is neither the user nor the agent
    call: str = ""  # the name of the tool that was called
    # its arguments, each a name and a value, what names the thing first
    args: tuple[tuple[str, str], ...] = ()
    outcome: str = ""  # what came of the call, in one line; empty without a result
    fields: bool = False  # whether that is data, as fields and rows
    failed: bool = False  # whether the result says that the call failed
    effect: bool | None = None  # whether the call changes anything; None where nobody knows
    # statements in the user's words that bind, by a model's word; they are cut last
    quotes: tuple[str, ...] = ()
    # the places of its first and its last message among all that have left
    span: tuple[int, ...] = (0, 0)
    # how many lines it stands for that are only counted any more: `ids` are the first and the
    # last, `args` the calls of each tool, `about` what calls with an effect were about; 0 for a
    # line
    times: int = 0
    about: tuple[str, ...] = ()
    failures: int = 0  # how many of these failed
    # what was derived from it, by name or by the room of a text
    texts: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def cites(self) -> tuple[str, ...]:
        """The names that the line cites."""
        return self.ids[: SOURCES if self.kind == "found" else CITED]

    @cached_property
    def size(self) -> int:
        """Characters that the line takes when nothing of it is cut."""
        size = 16 + len(self.text) + len(self.call) + len(self.outcome)
        for name, value in self.args:
            size += len(name) + len(value) + 3
        return size + sum(map(len, cites := self.cites)) + 2 * len(cites)

    @property
    def acts(self) -> bool:
        """Whether the call changes something, by its tool, as it says little, or as it is data.

        Tools that only look up data are known by their names.
        """
        unknown = self.effect is None and (self.fields or len(self.outcome) <= SILENT)
        return bool(self.outcome) and not self.failed and (self.effect or unknown)

    @cached_property
    def plain(self) -> Any:
        """The line as plain data, without what is as usual; it is never changed."""
        own = vars(self)
        parts = ((name, own[name]) for name, usual in _USUAL if own[name] != usual)
        plain = {name: [*part] if type(part) is tuple else part for name, part in parts}
        return plain | {"args": [*map(list, self.args)]} if self.args else plain


_USUAL = [(part.name, part.default) for part in fields(Line) if part.init]


@dataclass(frozen=True)
class Notes:
    """The notes as data: all of them so far, or those that one compaction adds."""

    lines: tuple[Line, ...] = ()  # what the messages that left hold, in their order
    # how many of the lines each part has, the oldest first; empty for one part
    parts: tuple[int, ...] = ()
    goal: tuple[str, ...] = ()  # what the work is for, as a model wrote it
    next: tuple[str, ...] = ()  # the next step, likewise
    # the newest to-do list, an item a line; None where none was written
    todo: tuple[str, ...] | None = None
    skills: tuple[str, ...] = ()  # skill files that were read, a reference a line
    text: str = ""  # a text that stands as it is, such as notes that came without their record
    edited: bool = False  # the next summary takes the place of the text
    summary: str = ""  # the newest summary by a prompt or a function of the caller's
    rewrites_findings: bool = False  # `lines` hold the findings of earlier notes, written anew
    user: str | None = None  # the name under which the user speaks; None where nobody has looked
    # what to say of messages that stay in view, below the notes, although later ones left
    below: str = ""
    # characters of cut lines that took a token in the last text; 0 where none were cut
    density: float = 0.0

    def each_part(self) -> list[tuple[Line, ...]]:
        """Return the lines of each part."""
        ends = accumulate(self.parts or (len(self.lines),), initial=0)
        return [self.lines[begin:end] for begin, end in pairwise(ends)]

    def with_new(self, new: Notes) -> Notes:
        """Return the notes with what a compaction adds."""
        parts = self.each_part()
        if new.rewrites_findings:
            parts = [tuple(line for line in part if line.kind != "found") for part in parts]
        lines = tuple(line for part in parts for line in part)
        text = "" if new.summary and self.edited else self.text
        return replace(
            new,
            lines=(*lines, *new.lines),
            parts=tuple(filter(None, (*map(len, parts), *(new.parts or (len(new.lines),))))),
            goal=new.goal or self.goal,
            todo=self.todo if new.todo is None else new.todo,
            skills=tuple(dict.fromkeys((*self.skills, *new.skills))),
            text="\n".join(filter(None, (text, new.text))),
            edited=(self.edited and not new.text) or new.edited,
            summary=new.summary or self.summary,
            rewrites_findings=False,
            user=new.user if self.user is None else self.user,
            density=new.density or self.density,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the notes as plain data, without what is as usual; it is never changed."""
        data: dict[str, Any] = to_plain(replace(self, lines=()))
        if self.lines:
            plain = data["lines"] = [line.plain for line in self.lines]
            _known.put(id(plain), (plain, self.lines))
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Notes:
        """Read notes that `to_json` wrote; parts that a newer version added are left out.

        Raises:
            TypeError, ValueError: the data is no notes.

        Example:
            >>> Notes.from_json({"goal": ["ship it"]}).goal
            ('ship it',)
        """
        notes = from_plain(cls, {name: data[name] for name in data if name != "lines"})
        plain = data.get("lines", ())
        known = _known.get(id(plain))
        lines = known[1] if known else tuple(from_plain(Line, line) for line in plain)
        if sum(notes.parts) not in (0, len(lines)):
            raise ValueError("the parts of the notes are damaged")
        if lines and not known:
            _known.put(id(plain), (plain, lines))
        return replace(notes, lines=lines)


_known: BoundedCache[int, tuple[Any, tuple[Line, ...]]] = BoundedCache(SEGMENTS)
"""Lines by the identity of their plain data, which records share: reading takes long."""


def with_texts(data: Any, change: Callable[[str], str]) -> Any:
    """Return the plain data of notes with each text changed, names left as they are."""
    if isinstance(data, str):
        return change(data)
    if isinstance(data, Mapping):
        names = (*NAMES, "args") if data.get("times") else NAMES  # counts of calls, and no words
        return {
            key: value if key in names else with_texts(value, change) for key, value in data.items()
        }
    if isinstance(data, (list, tuple)):
        return [with_texts(one, change) for one in data]
    return data
