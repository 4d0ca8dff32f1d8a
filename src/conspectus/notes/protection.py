"""Which messages of the user give way first if not all of their words fit.

A message gives way in steps: it is cut to ever fewer characters, and at last it is left out and
counted. `SHORTENING_ORDER` says when each step is taken. Among equals, the longest messages are cut
first. Messages whose words are also in many others are left out first, because those words then are
still there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from enum import Enum, auto
from itertools import chain
from typing import NamedTuple

from conspectus.notes.data import Line

USERS_LEVELS = (4_800, 2_400, 1_200, 600, 300)
"""The characters to which a message is cut, step by step."""

SHORT_CHARACTERS = 300
"""A message that is cut to so many characters, or fewer, is short."""

LAST_LEVELS = (150, 75, 40)
"""The characters to which a message that is never left out is cut at last."""

TELLING_FACTOR = 4
"""A message tells much if, for its length, its words are so many times as rare as the average."""

ADDED_WORDS = 3
"""Words that are added to those of a message when their rarity is averaged. So a message that is
only one rare word is not the rarest."""

_TERM = re.compile(r"(?=([\u0e00-\uffff]{2}))[\u0e00-\uffff]|([^\W_]+)")
"""Of scripts without spaces, from Thai on, each pair of characters; of others each word."""

_ASCII_WORDS = bytes(byte if chr(byte).isalnum() else 32 for byte in range(128)).ljust(256)
"""Translates a text in ASCII so that spaces alone divide its words."""


class Protection(Enum):
    """How much a message of the user is protected from being shortened."""

    ORDINARY = auto()
    TELLING = auto()
    """It says much in few words, such as a list of rules among hundreds of short requests."""
    NEWEST = auto()
    """It is the newest message."""
    RULE = auto()
    """It has rules."""
    TASK = auto()
    """It is the first message, or the newest one if that tells much or binds."""


class StepTurns(NamedTuple):
    """In which turn each kind of step is taken; None: never."""

    cut: int  # to more than `SHORT_CHARACTERS` characters
    cut_short: int  # to `SHORT_CHARACTERS` characters
    leave_out: int | None = None
    cut_to_rules: int = 1  # to its rules
    leave_out_rules: int = 7  # one after the other, those of the oldest message first
    cut_last: int | None = None  # to `LAST_LEVELS`, if it has no rules


SHORTENING_ORDER: Mapping[Protection, StepTurns] = {
    Protection.ORDINARY: StepTurns(cut=0, cut_short=0, leave_out=2),
    Protection.TELLING: StepTurns(cut=1, cut_short=3, leave_out=4),
    Protection.RULE: StepTurns(cut=0, cut_short=0, leave_out=7),
    Protection.NEWEST: StepTurns(cut=0, cut_short=0, cut_last=6),
    Protection.TASK: StepTurns(cut=5, cut_short=6, cut_to_rules=6, cut_last=6),
}
"""The turn in which each step of a message is taken, by its protection. Lower turns come first.

Rules of the oldest message are left out first, so that no rule is shown without a later statement
that changes it."""


class ShorteningStep(NamedTuple):
    """A step by which the line at a position is left with so many characters; 0: it is counted."""

    position: int
    characters: int


class Vocabulary:
    """The words of all messages of the user, and how rare each is.

    Args:
        lines: the messages by their positions.
    """

    def __init__(self, lines: Mapping[int, Line]) -> None:
        self._terms = {position: terms_of(line) for position, line in lines.items()}
        uses = Counter(chain.from_iterable(self._terms.values()))
        self._rarity = {term: 1 / number for term, number in uses.items()}
        self._terms_per_character = len(uses) / sum(line.size for line in lines.values())

    def rarity(self, position: int) -> float:
        """Return the sum over the words of a message; a word counts less if others have it."""
        return sum(map(self._rarity.__getitem__, self._terms[position]))

    def average_rarity(self, position: int) -> float:
        """Return how rare a word of a message is on average."""
        return self.rarity(position) / (len(self._terms[position]) + ADDED_WORDS)

    def is_telling(self, position: int, line: Line) -> bool:
        """Tell whether a message says much in few words.

        Names made of digits do not count, because in a dump each of them is rare.
        """
        much = TELLING_FACTOR * self._terms_per_character * line.size
        if self.rarity(position) <= much:
            return False
        words = filter(str.isalpha, self._terms[position])
        return sum(map(self._rarity.__getitem__, words)) > much


def shortening_steps(lines: Mapping[int, Line]) -> list[ShorteningStep]:
    """Return the steps by which messages of the user give way, in their order.

    Args:
        lines: the messages by their positions; at least one. Lines of others are among them if
            they have rules.
    """
    vocabulary = Vocabulary(lines)
    said = [position for position, line in lines.items() if line.kind == "said"]
    first = min(said, default=-1)
    newest = max(said, default=-1)
    steps: list[_DueStep] = []
    for position, line in lines.items():
        protection = _protection_of(
            line,
            is_first=position == first,
            is_newest=position == newest,
            is_telling=vocabulary.is_telling(position, line),
        )
        turns = SHORTENING_ORDER[protection]
        steps += _steps_of_cutting(position, line, turns)
        if line.rules:
            steps += _steps_of_rules(position, line, turns)
        elif turns.leave_out is not None:
            rarity = vocabulary.average_rarity(position)
            steps.append(_DueStep(turns.leave_out, rarity, ShorteningStep(position, 0)))
    return [due.step for due in sorted(steps, key=lambda due: (due.turn, due.place))]


class _DueStep(NamedTuple):
    """A step with its turn, and its place among the steps of that turn."""

    turn: int
    place: float
    step: ShorteningStep


def _steps_of_cutting(position: int, line: Line, turns: StepTurns) -> list[_DueStep]:
    """Return the steps in which a message is cut and keeps all of its rules."""
    least = line.size_with_rules(len(line.rules)) if line.rules else 0
    steps: list[_DueStep] = []
    for level in USERS_LEVELS:
        if least < level < line.size:
            turn = turns.cut if level > SHORT_CHARACTERS else turns.cut_short
            steps.append(_DueStep(turn, -level, ShorteningStep(position, level)))
    if turns.cut_last is not None and not line.rules:
        for level in LAST_LEVELS:
            if level < line.size:
                steps.append(_DueStep(turns.cut_last, -level, ShorteningStep(position, level)))
    return steps


def _steps_of_rules(position: int, line: Line, turns: StepTurns) -> list[_DueStep]:
    """Return the steps that leave a message only its rules, and then fewer and fewer of them.

    The last rule goes first. Of a message that is never left out, a little always stays.
    """
    steps: list[_DueStep] = []
    always_stays = turns.leave_out is None
    size = line.size
    for number in reversed(range(len(line.rules) + 1)):
        characters = line.size_with_rules(number) if number or always_stays else 0
        if characters >= size:
            continue
        size = characters
        is_whole = number == len(line.rules)
        turn = turns.cut_to_rules if is_whole else turns.leave_out_rules
        place = -characters if is_whole else position
        steps.append(_DueStep(turn, place, ShorteningStep(position, characters)))
    return steps


def _protection_of(line: Line, *, is_first: bool, is_newest: bool, is_telling: bool) -> Protection:
    if is_first:
        return Protection.TASK
    if is_newest:
        return Protection.TASK if is_telling or line.rules else Protection.NEWEST
    if line.rules:
        return Protection.RULE
    return Protection.TELLING if is_telling else Protection.ORDINARY


def terms_of(line: Line) -> tuple[str, ...]:
    """Return the words of a line, once each, in the same order in every process."""
    if line.terms is None:
        text = line.text.casefold()
        if text.isascii():  # in half the time
            words = text.encode().translate(_ASCII_WORDS).decode().split()
        else:
            words = ["".join(groups) for groups in _TERM.findall(text)]
        line.terms = tuple(dict.fromkeys(words))
    return line.terms
