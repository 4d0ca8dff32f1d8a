"""Which messages of the user give way first where not all of their words fit.

A message gives way in steps: it is cut to ever fewer characters, and at last it is left out, and
counted. `SHORTENING_ORDER` says when each step is taken. Among equals the longest are cut first,
and those are left out first whose words most other messages have, too: what is said once would be
lost, and what is said often is still there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from enum import Enum, auto
from itertools import chain
from typing import NamedTuple

from conspectus.notes.data import Line

CUT_LEVELS = (4_800, 2_400, 1_200, 600, 300)
"""The characters to which a message is cut, step by step."""

SHORT = 300
"""A message that is cut to so many characters is short."""

LAST_LEVELS = (150, 75, 40)
"""The characters to which a message that is never left out is cut at last."""

TELLING = 4
"""A message tells much if it has so many times the average of rare words a character."""

ADDED_WORDS = 3
"""Words that are added to those of a message when their rarity is averaged. So a message of one
rare word is not the rarest."""

_TERM = re.compile(r"(?=([\u0e00-\uffff]{2}))[\u0e00-\uffff]|([^\W_]+)")
"""Of scripts without spaces, from Thai on, each pair of characters; of others each word."""

_ASCII_WORDS = bytes(byte if chr(byte).isalnum() else 32 for byte in range(128)).ljust(256)
"""Translates a text in ASCII so that spaces alone divide its words."""


class Protection(Enum):
    """How much a message of the user is protected from being shortened."""

    ORDINARY = auto()
    TELLING = auto()
    """It says much in few words, such as a list of rules among hundreds of short requests."""
    RULE = auto()
    """It has a statement that binds, or it is the newest message."""
    TASK = auto()
    """It is the first message. So protected is also one that is a rule and tells much."""


class Turns(NamedTuple):
    """When each kind of step is taken; None: never."""

    cut: int  # to more than `SHORT` characters
    cut_short: int  # to `SHORT` characters
    leave_out: int | None = None
    cut_last: int | None = None  # to `LAST_LEVELS`


SHORTENING_ORDER: Mapping[Protection, Turns] = {
    Protection.ORDINARY: Turns(cut=0, cut_short=0, leave_out=2),
    Protection.TELLING: Turns(cut=1, cut_short=3, leave_out=4),
    Protection.RULE: Turns(cut=0, cut_short=0, cut_last=5),
    Protection.TASK: Turns(cut=1, cut_short=3, cut_last=5),
}
"""The turn in which each step of a message is taken, by its protection. Lower turns come first."""


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
        much = TELLING * self._terms_per_character * line.size
        if self.rarity(position) <= much:
            return False
        words = filter(str.isalpha, self._terms[position])
        return sum(map(self._rarity.__getitem__, words)) > much


def shortening_steps(lines: Mapping[int, Line]) -> list[ShorteningStep]:
    """Return the steps by which messages of the user give way, in their order.

    Args:
        lines: the messages by their positions; at least one.
    """
    vocabulary = Vocabulary(lines)
    first = min(lines)
    newest = max(lines)
    steps: list[tuple[int, float, ShorteningStep]] = []
    for position, line in lines.items():
        protection = _protection_of(
            line,
            is_first=position == first,
            is_newest=position == newest,
            is_telling=vocabulary.is_telling(position, line),
        )
        turns = SHORTENING_ORDER[protection]
        for level in CUT_LEVELS:
            if level < line.size:
                turn = turns.cut if level > SHORT else turns.cut_short
                steps.append((turn, -level, ShorteningStep(position, level)))
        if turns.leave_out is not None:
            rarity = vocabulary.average_rarity(position)
            steps.append((turns.leave_out, rarity, ShorteningStep(position, 0)))
        if turns.cut_last is not None:
            for level in LAST_LEVELS:
                if level < line.size:
                    steps.append((turns.cut_last, -level, ShorteningStep(position, level)))
    return [step for _, _, step in sorted(steps)]


def _protection_of(line: Line, *, is_first: bool, is_newest: bool, is_telling: bool) -> Protection:
    if is_first:
        return Protection.TASK
    if is_newest or line.rules:
        return Protection.TASK if is_telling else Protection.RULE
    return Protection.TELLING if is_telling else Protection.ORDINARY


def terms_of(line: Line) -> tuple[str, ...]:
    """Return the words of a line, once each, in the same order in every process."""
    terms: tuple[str, ...] | None = line.derived.get("terms")
    if terms is None:
        text = line.text.casefold()
        if text.isascii():  # in half the time
            words = text.encode().translate(_ASCII_WORDS).decode().split()
        else:
            words = ["".join(groups) for groups in _TERM.findall(text)]
        terms = tuple(dict.fromkeys(words))
        line.derived["terms"] = terms
    return terms
