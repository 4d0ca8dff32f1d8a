"""The notes as data: lines, and what stands around them.

A record has the notes on everything that has left. The text that a model sees is rendered from
them, and never read back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, Literal, NamedTuple

from conspectus._bounded_cache import BoundedCache
from conspectus.core.records import from_plain, to_plain

Kind = Literal["said", "done", "agent", "found"]
"""What a line has: words of the user, a call, words of somebody else, or a finding of a model."""

NAME_FIELDS = ("ids", "kind", "call", "speaker", "same_as", "repeated", "kept_places")
"""Fields with names, ids and numbers. Nobody has said these, so no redaction changes them."""

SYSTEM = "system"
"""The speaker of system messages in the middle of a history."""

MOST_CITED_IDS = 4
"""The most messages that a line cites."""

MOST_CITED_SOURCES = 8
"""The most messages that a finding of a model cites."""

SHORT_OUTCOME_CHARACTERS = 80
"""A call of an unknown tool with a longer outcome counts as one that only reads: tools that change
something answer with few words."""

LINE_OVERHEAD = 16
"""Characters of a line in addition to its texts: the dash, the brackets, the arrow."""

ARGUMENT_OVERHEAD = 3
"""Characters of an argument in addition to its name and its value."""

RULE_OVERHEAD = 3
"""Characters of a mark between two rules of a line."""

MOST_CACHED_NOTES = 16
"""The most notes whose lines are kept in memory together with their plain data."""


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


@dataclass
class Line:
    """One entry of the notes. It is not changed once the messages are read.

    A line may also be a tally. It stands for lines that are left out, and counts them.

    Attributes:
        kind: what it is about.
        ids: names of the messages that it is about, which recall the originals. In a tally those
            of the first and the last message.
        text: what was said or found; of a call the reason, in the agent's words.
        speaker: who said it, if that is neither the user nor the agent. Of an answer of the user,
            the tool that asked for it.
        call: the name of the tool that was called.
        args: the arguments of the call, each a name and a value. What names the thing comes first.
            In a tally the calls of each tool.
        outcome: what came of the call, in one line; empty without a result.
        is_data: whether the outcome is data, as fields and rows.
        failed: whether the result says that the call failed.
        effect: whether the call changes anything; None if nobody knows.
        rules: rules in the text, word for word. They are left out last.
        span: the positions of its first and its last message among all that have left.
        stands_for: the number of lines that a tally stands for; 0 for other lines.
        same_as: the id of an earlier message that said the same, if only what differs is quoted.
        repeated: for each argument, how many characters at its beginning are the same as in the
            previous call of the tool.
        changes: in a tally, what the calls that changed something were about.
        records: in a tally, the records that calls that only read have found.
        failures: in a tally, the number of calls that failed.
        texts: the line as text, by its length and by whether it cites. See `line_text`.
        terms: its words, once they are needed. See `protection.terms_of`.
        weight: its weight, once it is needed. See `weights.weight_of`.
    """

    kind: Kind
    ids: tuple[str, ...] = ()
    text: str = ""
    speaker: str = ""
    call: str = ""
    args: tuple[tuple[str, str], ...] = ()
    outcome: str = ""
    is_data: bool = False
    failed: bool = False
    effect: bool | None = None
    rules: tuple[str, ...] = ()
    span: tuple[int, ...] = (0, 0)
    stands_for: int = 0
    same_as: str = ""
    repeated: tuple[int, ...] = ()
    changes: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    failures: int = 0
    texts: dict[tuple[float, bool], str] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    terms: tuple[str, ...] | None = field(default=None, init=False, repr=False, compare=False)
    weight: float | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def is_tally(self) -> bool:
        """Whether the line stands for lines that are left out."""
        return self.stands_for > 0

    @property
    def cited_ids(self) -> tuple[str, ...]:
        """The names that the line cites."""
        return self.ids[: MOST_CITED_SOURCES if self.kind == "found" else MOST_CITED_IDS]

    @cached_property
    def size(self) -> int:
        """The characters that the line takes if nothing of it is cut."""
        size = LINE_OVERHEAD + len(self.text) + len(self.call) + len(self.outcome)
        for name, value in self.args:
            size += len(name) + len(value) + ARGUMENT_OVERHEAD
        cited = self.cited_ids
        return size + sum(map(len, cited)) + 2 * len(cited)

    def size_with_rules(self, number: int) -> int:
        """Return the characters of the line if only `number` rules are left of its text."""
        rules = self.rules[:number]
        cited = sum(map(len, self.cited_ids)) + 2 * len(self.cited_ids)
        overhead = LINE_OVERHEAD + len(self.speaker) + cited
        return overhead + sum(len(rule) + RULE_OVERHEAD for rule in rules) + RULE_OVERHEAD

    @property
    def acts(self) -> bool:
        """Whether the call has changed something.

        Tools that only look up data are known by their names. So a call of an unknown tool counts
        as one that acts if its result is data or short.
        """
        if not self.outcome or self.failed:
            return False
        if self.effect is None:
            return self.is_data or len(self.outcome) <= SHORT_OUTCOME_CHARACTERS
        return self.effect

    @cached_property
    def plain(self) -> Any:
        """The line as plain data, without fields that have their default. It is never changed."""
        values = vars(self)
        plain: dict[str, Any] = {}
        for name, default in _LINE_DEFAULTS:
            value = values[name]
            if value != default:
                plain[name] = list(value) if type(value) is tuple else value
        if self.args:
            plain["args"] = [list(argument) for argument in self.args]
        return plain


_LINE_DEFAULTS = [(part.name, part.default) for part in fields(Line) if part.init]


class KeptBetween(NamedTuple):
    """A message that stays in view although later ones leave.

    Attributes:
        key: its key.
        evicted_before: how many of the messages that leave come before it.
    """

    key: str
    evicted_before: int


@dataclass(frozen=True, slots=True)
class KeptPlace:
    """The place among the lines of a message that is still in view.

    Attributes:
        key: its key.
        position: its position among all messages that have left. Its lines get it later.
        followed_by: the name of the first message after it that has left.
    """

    key: str
    position: int
    followed_by: str


@dataclass(frozen=True)
class Notes:
    """The notes as data: all of them so far, or those that one compaction adds.

    Attributes:
        lines: what was said, done and found in the messages that left, in their order.
        parts: the number of lines that each compaction has added, the oldest first; empty if one
            compaction has added all.
        goal: what the work is for, as a model wrote it, in lines.
        next: the next step, likewise.
        todo: the newest to-do list, an item a line; None if none was written.
        skills: skill files that were read, a reference a line.
        text: a text that stands as it is: notes that came without their record, or that a person
            has edited.
        edited: whether a later `summary` replaces `text`. It is set for a text that a person has
            edited, that was accepted without notes, or whose record has no notes that can be read.
        summary: the newest summary by a prompt or a function of the caller's.
        rewrites_findings: whether `lines` hold the findings of earlier notes, written anew.
        user: the name under which the user speaks; None if no message was read yet.
        below: what the text says of messages that stay in view although later ones have left.
        how_to_recall: what to tell the agent about recalling originals; empty if it cannot.
        kept_places: the places of messages that stay in view although later ones have left.
        density: the characters of lines for each token of the last text; 0 if no line was cut.
        rules: rules that the program has set. They come before the lines.
        removed_rules: ids of rules that a person has taken out.
        rules_left_out: rules that the last text has no room for, each with the id of its message.
    """

    lines: tuple[Line, ...] = ()
    parts: tuple[int, ...] = ()
    goal: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    todo: tuple[str, ...] | None = None
    skills: tuple[str, ...] = ()
    text: str = ""
    edited: bool = False
    summary: str = ""
    rewrites_findings: bool = False
    user: str | None = None
    below: str = ""
    how_to_recall: str = ""
    kept_places: tuple[KeptPlace, ...] = ()
    density: float = 0.0
    rules: tuple[str, ...] = ()
    removed_rules: tuple[str, ...] = ()
    rules_left_out: tuple[tuple[str, str], ...] = ()

    def lines_by_part(self) -> list[tuple[Line, ...]]:
        """Return the lines of each part."""
        ends = accumulate(self.parts or (len(self.lines),), initial=0)
        return [self.lines[start:end] for start, end in pairwise(ends)]

    def with_new(self, new: Notes) -> Notes:
        """Return the notes with what a compaction adds."""
        parts = self.lines_by_part()
        if new.rewrites_findings:
            parts = [tuple(line for line in part if line.kind != "found") for part in parts]
        first_new = len(parts)
        parts += new.lines_by_part()
        parts = _each_line_in_its_place(parts, first_new)
        is_replaced = bool(new.summary) and self.edited
        text = "" if is_replaced else self.text
        return replace(
            new,
            lines=tuple(line for part in parts for line in part),
            parts=tuple(len(part) for part in parts if part),
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
        """Return the notes as plain data, without fields that have their default.

        It is never changed.
        """
        data: dict[str, Any] = to_plain(replace(self, lines=()))
        if self.lines:
            plain_lines = [line.plain for line in self.lines]
            data["lines"] = plain_lines
            _LINES_OF_PLAIN.put(id(plain_lines), (plain_lines, self.lines))
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Notes:
        """Read notes that `to_json` wrote. Fields that a newer version added are left out.

        Raises:
            TypeError, ValueError: the data is no notes.

        Example:
            >>> Notes.from_json({"goal": ["ship it"]}).goal
            ('ship it',)
        """
        notes = from_plain(cls, {name: data[name] for name in data if name != "lines"})
        plain_lines = data.get("lines", ())
        cached = _LINES_OF_PLAIN.get(id(plain_lines))
        lines = cached[1] if cached else tuple(from_plain(Line, plain) for plain in plain_lines)
        if sum(notes.parts) not in (0, len(lines)):
            raise ValueError("the parts of the notes are damaged")
        if lines and not cached:
            _LINES_OF_PLAIN.put(id(plain_lines), (plain_lines, lines))
        return replace(notes, lines=lines)


def _each_line_in_its_place(
    parts: Sequence[tuple[Line, ...]], first_new: int
) -> list[tuple[Line, ...]]:
    """Move new lines of messages that had stayed in view to their places among earlier lines.

    Args:
        parts: the lines of each part.
        first_new: the number of the first part with new lines.
    """
    placed = [*map(list, parts)]
    earlier = [line.span for part in parts[:first_new] for line in part if line.kind != "found"]
    last = max(earlier, default=(-1,))
    for part in placed[first_new:]:
        late = [line for line in part if line.kind != "found" and line.span < last]
        for line in late:
            part.remove(line)
            _insert(line, placed[:first_new])
    return [*map(tuple, placed)]


def _insert(line: Line, parts: Sequence[list[Line]]) -> None:
    """Put a line before the first one that came after it."""
    for part in parts:
        for place, other in enumerate(part):
            if other.kind != "found" and other.span > line.span:
                part.insert(place, line)
                return


_LINES_OF_PLAIN: BoundedCache[int, tuple[Any, tuple[Line, ...]]] = BoundedCache(MOST_CACHED_NOTES)
"""Lines by the id() of their plain data. Records share that data, and reading it takes long."""


def texts_in(data: Any) -> Iterator[str]:
    """Yield each text in the plain data of notes, in order. Names are not among them."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping):
        names = _names_in(data)
        for field_name, value in data.items():
            if field_name not in names:
                yield from texts_in(value)
    elif isinstance(data, (list, tuple)):
        for part in data:
            yield from texts_in(part)


def with_texts(data: Any, texts: Iterator[str]) -> Any:
    """Return the plain data of notes with other texts, one for each of `texts_in`, in its order."""
    if isinstance(data, str):
        return next(texts)
    if isinstance(data, Mapping):
        names = _names_in(data)
        return {
            field_name: value if field_name in names else with_texts(value, texts)
            for field_name, value in data.items()
        }
    if isinstance(data, (list, tuple)):
        return [with_texts(part, texts) for part in data]
    return data


def _names_in(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the fields of a mapping that hold no words of a conversation."""
    # The arguments of a tally are numbers of calls, and no words.
    return (*NAME_FIELDS, "args") if data.get("stands_for") else NAME_FIELDS
