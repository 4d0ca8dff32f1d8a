"""The notes of one compaction as data: lines, and what is open.

A record holds its segment. The text that a model sees is rendered from the segments of the records
in force, and never read back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from conspectus._newest import Newest
from conspectus.core.plain import from_plain, to_plain
from conspectus.notes.cutting import terms

Kind = Literal["said", "done", "found"]

NAMES = ("ids", "kind", "call", "by")
"""Parts of a line that are names, and not what somebody has said."""

CITED, SOURCES = 4, 8
"""Names of messages that a line cites at most, and one that a model has written."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a summarising model has written, taken apart.

    Attributes:
        found: what it found, each line with the ids of the messages that it cites.
        goal: what the work is for, as lines.
        next: the next step, as lines.
        binding: statements of the user that it quotes, each with the id of its message.
    """

    found: Sequence[tuple[str, tuple[str, ...]]] = ()
    goal: Sequence[str] = ()
    next: Sequence[str] = ()
    binding: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Line:
    """One entry of the notes.

    Attributes:
        kind: what the user said, what was done, or what was found.
        ids: names of the messages that it is about; they recall the originals.
        text: the words: the user's, a finding, or why the agent made a call, in its own words.
        by: who said it, where that is neither the user nor the agent.
        call: the name of the tool that was called.
        args: its arguments, each a name and a value, what names the thing first.
        outcome: what came of the call, in pieces: lines, fields or rows.
        fields: whether the pieces are fields or rows of data.
        named: for each piece, how often later messages name what it holds; -1 for one that stood in
            an earlier result.
        failed: whether the result says that the call failed.
        effect: whether the call changes anything; None where nobody knows.
        again: a later call asked the same.
        worth: how many of the line's identifiers later messages name.
        quotes: statements in the user's words that bind, by a model's word; they are cut last.
        model: a model has written it.
        like: the message that says the same, letter for letter, in the place of the words.
        times: how many lines it stands for that are only counted any more: `ids` are the first and
            the last, `args` the calls of each tool, `worth` how many failed; 0 for a line.
    """

    kind: Kind
    ids: tuple[str, ...] = ()
    text: str = ""
    by: str = ""
    call: str = ""
    args: tuple[tuple[str, str], ...] = ()
    outcome: tuple[str, ...] = ()
    fields: bool = False
    named: tuple[int, ...] = ()
    failed: bool = False
    effect: bool | None = None
    again: bool = False
    worth: int = 0
    quotes: tuple[str, ...] = ()
    model: bool = False
    like: str = ""
    times: int = 0

    @cached_property
    def cites(self) -> int:
        """Characters of the names that the line cites."""
        return sum(len(name) + 2 for name in self.ids[: SOURCES if self.model else CITED]) + 4

    @cached_property
    def size(self) -> int:
        """Characters that the line takes when nothing of it is cut."""
        args = sum(len(name) + len(value) + 3 for name, value in self.args)
        outcome = sum(len(piece) + 3 for piece in self.outcome)
        return 12 + len(self.text) + len(self.call) + args + outcome + self.cites

    @cached_property
    def terms(self) -> frozenset[str]:
        """The terms of the text."""
        return frozenset(terms(self.text))


@dataclass(frozen=True)
class Segment:
    """What one compaction adds to the notes.

    Attributes:
        lines: what the messages that left hold, in their order.
        goal: what the work is for, as a model wrote it; the newest segment's is shown.
        next: the next step, likewise.
        todo: the newest to-do list, an item a line; None where none was written.
        skills: skill files that were read, a reference a line.
        text: a text that stands as it is: a summary by a prompt or a function of the caller's, or
            notes that came without their record.
        summary: `text` is a summary that takes the place of the one before.
        anew: `lines` hold the findings of earlier segments, written anew.
        alone: it takes the place of all earlier segments.
        earlier: the earlier segments as they are from now on; with `alone`.
        user: the name under which the user speaks; None where nobody has looked.
        ahead: which message of the user that stays in view came before the last one that left.
    """

    lines: tuple[Line, ...] = ()
    goal: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    todo: tuple[str, ...] | None = None
    skills: tuple[str, ...] = ()
    text: str = ""
    summary: bool = False
    anew: bool = False
    alone: bool = False
    earlier: tuple[Segment, ...] = ()
    user: str | None = None
    ahead: str = ""

    @property
    def replaced(self) -> bool:
        """Whether the text is one that the next summary takes the place of."""
        return self.summary or self.alone

    @cached_property
    def _plain(self) -> dict[str, Any]:
        data: dict[str, Any] = to_plain(self)
        _READ.put(id(data), (data, self))
        return data

    def to_json(self) -> dict[str, Any]:
        """Return the segment as plain data, without what is as usual; it is never changed."""
        return self._plain

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Segment:
        """Read a segment that `to_json` wrote; parts that a newer version added are left out.

        Raises:
            TypeError, ValueError: the data is no segment.

        Example:
            >>> Segment.from_json({"goal": ["ship it"]}).goal
            ('ship it',)
        """
        known = _READ.get(id(data))
        if known is not None and known[0] is data:
            return known[1]
        segment = from_plain(cls, data)
        for line in segment.lines:
            counts = all(count.isdecimal() for _, count in line.args) or not line.times
            if len(line.named) != len(line.outcome) or not counts:
                raise ValueError("a line of the notes is damaged")
        _READ.put(id(data), (data, segment))
        return segment


_READ: Newest[int, tuple[Mapping[str, Any], Segment]] = Newest(
    4_096, 200_000, lambda known: len(known[1].lines)
)
"""Segments that were read, by the identity of their data, the newest with so many lines at most."""


def with_texts(data: Any, change: Callable[[str], str]) -> Any:
    """Return the plain data of a segment with each text changed, names left as they are."""
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
