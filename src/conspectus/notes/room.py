"""How the room of the notes is shared among their lines, and how much of them fills it.

A room is counted in tokens, and how many tokens a text takes is known only once it is written. So
`fill_room` writes it with ever better numbers of characters, which `allowances` shares among the
lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import NamedTuple

from conspectus.notes.data import Line
from conspectus.notes.protection import (
    LAST_LEVELS,
    SHORT_CHARACTERS,
    ShorteningStep,
    shortening_steps,
)
from conspectus.notes.weights import steps_by_weight

USERS_SHARE = 0.5
"""The share of the room that the user's words may take if other lines need the remaining room."""

MOST_RULES_SHARE = 0.95
"""The share of the room up to which rules take room from other lines."""

TASK_SHARE = 0.6
"""The share of the room that the first message may take before other words of the user are cut.
What their rules need is subtracted."""

AIMED_SHARE = 0.96
"""The share of its room that a text should fill if something is cut."""

SUFFICIENT_SHARE = 0.93
"""The share of its room from which on a text is long enough."""

MOST_ATTEMPTS = 8
"""How often a text is written at most until it fills its room."""

MOST_DENSITY = 4.0
"""The most characters that are expected for a token. Lines without more than this for each token
of the room are first tried whole."""

CODE_DENSITY = 2.5
"""Characters for a token of code. This is expected as long as nothing was measured."""

LEAST_DENSITY = 0.3
"""The fewest characters that are expected for a token."""


class Attempt(NamedTuple):
    """A text that was written with a number of characters of lines.

    Attributes:
        text: the text.
        tokens: its size.
        allowances: the characters of each line; empty if all of them stand whole.
    """

    text: str
    tokens: int
    allowances: list[float]


class Filled(NamedTuple):
    """The longest text that was found to fit, and its characters of lines for each token."""

    attempt: Attempt
    density: float


def fill_room(
    room: int,
    write: Callable[[float], Attempt],
    *,
    size: float,
    tokens_around: int,
    density: float,
) -> Filled | None:
    """Return a text that fills a room as well as a few attempts can; None if none fits.

    Args:
        room: the most tokens of the text.
        write: writes a text with so many characters of lines.
        size: characters of all lines if nothing is cut.
        tokens_around: tokens of what stands around the lines.
        density: characters of lines for each token in the last text; 0 if there was none.
    """
    measured = min(max(density or CODE_DENSITY, LEAST_DENSITY), MOST_DENSITY)
    characters = size
    if size > MOST_DENSITY * room:
        characters = min(size, max(measured * (AIMED_SHARE * room - tokens_around), 0.0))
    fits = 0.0
    exceeds = inf
    best: Filled | None = None
    for _ in range(MOST_ATTEMPTS):
        attempt = write(characters)
        measured = characters / max(attempt.tokens - tokens_around, 1)
        if attempt.tokens <= room:
            best = Filled(attempt, round(measured, 2))
            fits = characters
            if characters == size or attempt.tokens >= SUFFICIENT_SHARE * room:
                break
        else:
            exceeds = characters
        if exceeds - fits < MOST_DENSITY:
            break
        characters = min(size, measured * (AIMED_SHARE * room - tokens_around))
        if not fits < characters < exceeds:
            characters = (fits + min(exceeds, size)) / 2
    return best


def allowances(lines: Sequence[Line], characters: float) -> list[float]:
    """Return the characters that each line may take, so that all together take `characters`.

    A line that is left out gets 0. First, lines of the user and lines with rules get their share,
    or what the rules need if that is more. Other lines get what is left. What these do not need
    goes back to the lines of the user.
    """
    allowed = [float(line.size) for line in lines]
    users: dict[int, Line] = {}
    others: list[tuple[int, Line]] = []
    for position, line in enumerate(lines):
        if line.is_tally:
            continue
        if line.kind == "said" or line.rules:
            users[position] = line
        else:
            others.append((position, line))
    others.reverse()
    size_of_users = sum(line.size for line in users.values())
    size_others = sum(line.size for _, line in others)
    size_of_rules = sum(_least_size(line) for line in users.values())
    size_that_stays = size_of_rules + _size_of_ends(users) if size_of_rules else 0.0
    least = max(characters * USERS_SHARE, min(size_that_stays, characters * MOST_RULES_SHARE))
    users_room = min(size_of_users, max(least, characters - size_others))
    free = characters - users_room - size_others
    if free < 0:
        free = _give_way(allowed, steps_by_weight(others), free)
    free = users_room + free - size_of_users
    if free < 0:
        free += _cap_task(allowed, users, characters * TASK_SHARE - size_of_rules, needed=-free)
    if free < 0:
        _give_way(allowed, shortening_steps(users), free)
    return allowed


def _size_of_ends(words: Mapping[int, Line]) -> float:
    """Return the least characters of the first and the newest message, if these have no rules."""
    said = [line for line in words.values() if line.kind == "said"]
    ends = {id(line): line for line in (*said[:1], *said[-1:]) if not line.rules}
    return float(sum(min(line.size, LAST_LEVELS[0]) for line in ends.values()))


def _cap_task(allowed: list[float], words: Mapping[int, Line], room: float, needed: float) -> float:
    """Cut the first message of the user to the room that it may take before others get some.

    Returns:
        The characters that this frees, at most `needed`.
    """
    for position, line in words.items():
        if line.kind == "said":
            most = max(room + _least_size(line), _least_size(line), float(SHORT_CHARACTERS))
            freed = min(needed, max(0.0, allowed[position] - most))
            allowed[position] -= freed
            return freed
    return 0.0


def _least_size(line: Line) -> float:
    """Return the characters of a line that other lines give way to: those of its rules."""
    return min(line.size, line.size_with_rules(len(line.rules))) if line.rules else 0


def _give_way(allowed: list[float], steps: Iterable[ShorteningStep], free: float) -> float:
    """Shorten lines, step by step, until `free` is no longer negative; return what is then free.

    If the last step has freed more than was needed, the lines that were shortened last get it back.
    """
    whole = [*allowed]
    taken: list[ShorteningStep] = []
    for step in steps:
        if free >= 0:
            break
        if step.characters >= allowed[step.position]:
            continue
        free += allowed[step.position] - step.characters
        allowed[step.position] = step.characters
        taken.append(step)
    for position, _ in reversed(taken):
        # A line that was left out comes back only if it then says something.
        if free > 0 and (allowed[position] or free >= LAST_LEVELS[0]):
            given_back = min(free, whole[position] - allowed[position])
            allowed[position] += given_back
            free -= given_back
    return max(free, 0.0)
