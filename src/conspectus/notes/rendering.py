"""The notes as text, within a room."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import chain

from conspectus.notes.cutting import cut, section
from conspectus.notes.data import Kind, Line, Notes
from conspectus.notes.line_text import line_text, shorten_line
from conspectus.notes.room import Attempt, Filled, allowances, fill_room
from conspectus.notes.tally import tally_of
from conspectus.notes.todo import todo_lines
from conspectus.rules import rule_id

IN_ORDER = "In order"
"""The heading of what was said and done."""

FOUND = "Found and decided"
"""The heading of a model's findings."""

TALLY_ORDER: tuple[Kind, ...] = ("said", "done", "agent", "found")
"""The order of the tallies at the beginning of a part."""

NOW = "# Now, before the messages below"
"""The heading of what is open."""

ADVICE_SHARE = 0.1
"""The share of the room around the lines that how to recall may take."""

LEAST_PART_LINES = 12
"""A part of the notes that shows fewer lines, when lines are cut, is joined to the next part."""

KEPT_FACTOR = 2
"""A record keeps of each line so many times the characters that the text shows."""

KEPT_LINE_CHARACTERS = 300
"""Characters that a record keeps of each line in any case."""

KEPT_WORDS_CHARACTERS = 8_000
"""Characters that a record keeps of each message of the user in any case."""

MOST_NAMED_LEFT_OUT = 24
"""The most messages that are named because their rules were left out."""

MOST_KEPT_LEFT_OUT = 64
"""If more lines are left out, the record has only their tally."""

AROUND_SHARES = ((0.6, 0.6), (0.6, 0.3), (0.45, 0.25), (0.3, 0.15))
"""The shares of the room that the text before the lines and the text after them may take. If
nothing fits with the first pair, the next one is tried: the rules of the program give way last."""

AROUND_SHARES_ALONE = ((1.0, 1.0), (0.7, 0.3))
"""The same if there are no lines."""

SMALLEST_LEVELS = (2_400, 1_200, 600, 300, 150, 75, 40)
"""The characters of the first and the newest message of the user, tried if nothing else fits."""

Allowed = tuple[Line, float]
"""A line with the characters that it may take."""

LEAST_ALLOWED = 1.0
"""The characters of a line that is recorded although the text leaves it out. A record keeps more of
each line than so many."""

Count = Callable[[str], int]
"""Returns the tokens of a text."""


class NotesRenderer:
    """Renders the notes of a record, with what is added to them, as text.

    The text is a condensed transcript: what was said and done in order, so that an answer stands
    under its question, and around it the goal, what was found, and what is open.

    If not all lines fit, they give way step by step: they are cut to ever fewer characters, and at
    last they are left out and counted. `protection.py` and `weights.py` say which line gives way
    first.

    Args:
        parts: the notes so far, and the notes that are added to them, the oldest first.

    Attributes:
        notes: all of these notes in one.

    Example:
        >>> NotesRenderer([Notes((Line("said", ("m2",), "Be brief."),))]).render(100, len)
        '## In order\\n- The user: Be brief. [m2]'
    """

    def __init__(self, parts: Sequence[Notes]) -> None:
        self.notes = reduce(Notes.with_new, parts, Notes())
        self._rules_left_out: tuple[tuple[str, str], ...] = ()
        self._density = self.notes.density
        self._allowances: list[float] = []  # of the last text; empty if its lines stand whole

    @property
    def findings(self) -> list[Line]:
        """The findings of models that are in force."""
        return [line for line in self.notes.lines if line.kind == "found"]

    @property
    def summary(self) -> str:
        """The newest summary by a prompt or a function of the caller's; empty if there is none."""
        if self.notes.summary:
            return self.notes.summary
        return self.notes.text if self.notes.edited else ""

    @property
    def rules(self) -> list[str]:
        """All rules, those of the program first, without those that a person has taken out."""
        removed = frozenset(self.notes.removed_rules)
        lines = (_without_rules(line, removed) for line in self.notes.lines)
        return [*self._program_rules(), *(rule for line in lines for rule in line.rules)]

    def render(
        self,
        room: int,
        count: Count,
        *,
        archived: bool = True,
        calls: bool = True,
        words: bool = True,
    ) -> str:
        """Return the text.

        Args:
            room: the most tokens that it may take.
            count: returns the tokens of a text.
            archived: whether originals can be recalled; otherwise nothing is cited.
            calls: whether calls and the agent's own words are shown, beside the user's words and
                a model's findings.
            words: whether the user's words are shown.
        """
        parts = self._shown_parts(calls=calls, words=words)
        lines = [line for part in parts for line in part]
        filled: Filled | None = None
        for before_share, behind_share in AROUND_SHARES if lines else AROUND_SHARES_ALONE:
            filled = self._fill_beside(
                parts, room, count, int(room * before_share), int(room * behind_share), archived
            )
            if filled is not None:
                break
        if filled is None:
            self._allowances = []
            text = _write_least(lines, room, count, archived)
        else:
            self._allowances = filled.attempt.allowances
            self._density = filled.density
            text = filled.attempt.text
        self._rules_left_out = self._rules_not_in(lines, text)
        return text

    def _fill_beside(
        self,
        parts: Sequence[Sequence[Line]],
        room: int,
        count: Count,
        before_room: int,
        behind_room: int,
        archived: bool,
    ) -> Filled | None:
        """Return a text with at most so many tokens around its lines; None if none fits."""
        lines = [line for part in parts for line in part]
        size = float(sum(line.size for line in lines))
        before = self._text_before(before_room, count)
        behind = self._text_behind(behind_room, count)

        def write(characters: float, *, names_changes: bool = True) -> Attempt:
            allowed = allowances(lines, characters) if characters < size else []
            rules_left_out = _name_left_out(lines, allowed) if archived else ""
            groups = _group_parts(parts, allowed)
            if not names_changes:
                groups = [_with_counts_only(group) for group in groups]
            blocks = [before, *_write_parts(groups, rules_left_out, archived), behind]
            text = "\n".join(filter(None, blocks))
            return Attempt(text, count(text), allowed)

        writings = (write, partial(write, names_changes=False))
        attempts = (
            fill_room(
                room,
                writing,
                size=size,
                tokens_around=count(before + behind),
                density=self.notes.density,
            )
            for writing in writings
        )
        return next((found for found in attempts if found is not None), None)

    @property
    def rules_left_out(self) -> tuple[tuple[str, str], ...]:
        """The rules that the last text has no room for, each with the id of its message."""
        return self._rules_left_out

    def _rules_not_in(self, lines: Sequence[Line], text: str) -> tuple[tuple[str, str], ...]:
        shown = _with_single_blanks(text)
        stated = [("", rule) for rule in self._program_rules()]
        stated += [(line.ids[0] if line.ids else "", rule) for line in lines for rule in line.rules]
        return tuple(
            dict.fromkeys(pair for pair in stated if _with_single_blanks(pair[1]) not in shown)
        )

    def _program_rules(self) -> list[str]:
        removed = self.notes.removed_rules
        return [rule for rule in self.notes.rules if rule_id(rule) not in removed]

    def recorded(self) -> Notes:
        """Return the notes for a record: not much more of each line than the last text shows.

        If many lines are left out, only their tally is recorded.
        """
        notes = replace(self.notes, rules_left_out=self._rules_left_out)
        if not self._allowances:
            return notes
        pairs = [*zip(self.notes.lines, self._allowances, strict=True)]
        said_left_out = sum(line.kind == "said" for line, allowed in pairs if not allowed)
        others_left_out = sum(line.kind != "said" for line, allowed in pairs if not allowed)

        def is_recorded(line: Line, allowed: float) -> bool:
            left_out = said_left_out if line.kind == "said" else others_left_out
            return bool(allowed or line.rules or left_out <= MOST_KEPT_LEFT_OUT)

        # A line that is not recorded gets no characters, so that a tally replaces it.
        kept = [
            (allowed or LEAST_ALLOWED) if is_recorded(line, allowed) else 0.0
            for line, allowed in pairs
        ]
        parts = _group_parts(self.notes.lines_by_part(), kept)
        return replace(
            notes,
            lines=tuple(
                _shorten_for_record(line, allowed) for line, allowed in chain.from_iterable(parts)
            ),
            parts=tuple(map(len, parts)),
            density=self._density,
        )

    def _shown_parts(self, *, calls: bool, words: bool) -> list[tuple[Line, ...]]:
        shown_kinds = {"found"}
        if calls:
            shown_kinds |= {"done", "agent"}
        if words:
            shown_kinds.add("said")
        removed = frozenset(self.notes.removed_rules)
        return [
            tuple(_without_rules(line, removed) for line in part if line.kind in shown_kinds)
            for part in self.notes.lines_by_part()
        ]

    def _text_before(self, room: int, count: Count) -> str:
        """Return what comes before the lines: the rules of the program, the goal, `notes.text`."""
        rules = self._program_rules()
        while rules and count("\n".join(section("Rules", rules))) > room:
            rules.pop()
        blocks = [
            "\n".join(section("Rules", rules)),
            _cut_to_room("\n".join(section("Goal", self.notes.goal)), room, count),
            _cut_to_room(self.notes.text, room, count),
        ]
        return "\n".join(filter(None, blocks))

    def _text_behind(self, room: int, count: Count) -> str:
        """Return what comes after the lines: what is open, and `notes.summary`."""
        notes = self.notes
        about = notes.how_to_recall
        if count(about) > room * ADVICE_SHARE:
            about = ""
        lines = [
            *filter(None, [about]),
            *section("Order", [notes.below] if notes.below else []),
            *section("Open", todo_lines(notes.todo or ())),
            *section("Next", notes.next),
            *section("Skills read", notes.skills),
        ]
        blocks: list[str] = []
        if lines:
            blocks += [NOW, _cut_to_room("\n".join(lines), room, count)]
        if notes.summary:
            blocks += ["## Summary", _cut_to_room(notes.summary, room, count)]
        return "\n".join(blocks)


def _with_single_blanks(text: str) -> str:
    """Return a text with single blanks, so that the indentation of an item does not matter."""
    return " ".join(text.split())


def _without_rules(line: Line, removed: frozenset[str]) -> Line:
    """Return a line without the rules that a person has taken out. Its text stays as it is."""
    if not removed or not line.rules:
        return line
    rules = tuple(rule for rule in line.rules if rule_id(rule) not in removed)
    return line if rules == line.rules else replace(line, rules=rules)


def _name_left_out(lines: Sequence[Line], allowed: Sequence[float]) -> str:
    """Name the messages whose rules have no room; empty if all have.

    `allowed` has the characters of each line. It is empty if all lines are whole.
    """
    number = 0
    ids: dict[str, None] = {}
    for line, characters in zip(lines, allowed, strict=bool(allowed)):
        if not line.rules or characters >= line.size:
            continue
        shown = (
            _with_single_blanks(line_text(line, characters, archived=True)) if characters else ""
        )
        missing = sum(_with_single_blanks(rule) not in shown for rule in line.rules)
        if missing:
            number += missing
            ids |= dict.fromkeys(line.ids[:1])
    if not number:
        return ""
    named = ", ".join([*ids][:MOST_NAMED_LEFT_OUT])
    more = ", …" if len(ids) > MOST_NAMED_LEFT_OUT else ""
    plural = "s" if number > 1 else ""
    return f"({number} rule{plural} left out; recall {named}{more})"


def _with_counts_only(group: Sequence[Allowed]) -> list[Allowed]:
    """Return lines in which no tally names changes or records."""
    return [
        (replace(line, changes=(), records=()) if line.is_tally else line, characters)
        for line, characters in group
    ]


def _write_parts(
    groups: Sequence[Sequence[Allowed]], rules_left_out: str, archived: bool
) -> list[str]:
    """Return what was said and done, in order, and what was found."""
    happened: list[str] = []
    found: list[str] = []
    for line, characters in chain.from_iterable(groups):
        texts = found if line.kind == "found" else happened
        texts.append(line_text(line, characters, archived))
    if rules_left_out:
        happened.append(rules_left_out)
    return [*section(IN_ORDER, happened), *section(FOUND, found)]


def _group_parts(parts: Sequence[Sequence[Line]], allowed: Sequence[float]) -> list[list[Allowed]]:
    """Return the lines of each part with the characters that they may take.

    Without `allowed`, all lines stay whole. Otherwise a part that shows few lines is joined to the
    next one, and a tally replaces the lines of each kind that may take no characters.
    """
    if not allowed:
        return [[(line, line.size) for line in part] for part in parts if part]
    groups: list[list[Allowed]] = []
    remaining = iter(allowed)
    for part in parts:
        pairs = [(line, next(remaining)) for line in part]
        if groups and _number_shown(groups[-1]) < LEAST_PART_LINES:
            groups[-1] += pairs
        elif pairs:
            groups.append(pairs)
    return [_with_tallies(group) for group in groups]


def _number_shown(pairs: Sequence[Allowed]) -> int:
    return sum(characters > 0 and not line.is_tally for line, characters in pairs)


def _with_tallies(pairs: Sequence[Allowed]) -> list[Allowed]:
    """Replace the lines that are left out by a tally of each kind, where the first one was."""
    left_out = [line for line, characters in pairs if line.is_tally or not characters]
    placed = [pair for pair in pairs if pair[1] and not pair[0].is_tally]
    for kind in TALLY_ORDER:
        same_kind = [line for line in left_out if line.kind == kind]
        if same_kind:
            tally = tally_of(same_kind)
            placed.insert(_place_of_tally(tally, placed), (tally, 1.0))
    return placed


def _place_of_tally(tally: Line, placed: Sequence[Allowed]) -> int:
    """Return the place before the first line that came after the first one that is left out."""
    for place, (line, _) in enumerate(placed):
        if line.kind != "found" and line.span > tally.span:
            return place
    return len(placed)


def _shorten_for_record(line: Line, allowed: float) -> Line:
    """Return a line as a record keeps it."""
    kept = max(
        KEPT_FACTOR * allowed,
        KEPT_WORDS_CHARACTERS if line.kind == "said" else KEPT_LINE_CHARACTERS,
    )
    if line.rules:
        kept = max(kept, line.size_with_rules(len(line.rules)))
    # A line that is only a little longer stays the same object, which has its texts already.
    return shorten_line(line, kept) if line.size > KEPT_FACTOR * kept else line


def _write_least(lines: Sequence[Line], room: int, count: Count, archived: bool) -> str:
    """Return the first and the newest message of the user, in a room too small for tallies.

    Each message is cut by itself, so that no text begins with one message and ends with another.
    """
    said = [line for line in lines if line.kind == "said" and not line.is_tally]
    number = sum(line.stands_for or 1 for line in lines)
    first_and_newest = said if len(said) < 2 else [said[0], said[-1]]
    left_out = ""
    for shown in (first_and_newest, said[-1:], []):
        left_out = f"- ({number - len(shown)} lines left out)"
        for characters in SMALLEST_LEVELS:
            texts = [line_text(line, characters, archived) for line in shown]
            text = "\n".join([*(section(IN_ORDER, texts) or [f"## {IN_ORDER}"]), left_out])
            if count(text) <= room:
                return text
    return _cut_to_room(left_out, room, count)


def _cut_to_room(text: str, room: int, count: Count) -> str:
    """Return as much of the beginning and the end of a text as fits `room` tokens."""
    size = len(text)
    part = text
    while part and (tokens := count(part)) > room:
        size = min(size - 1, int(size * max(room, 0) / tokens))
        part = cut(text, size)
    return part
