"""Render the notes within their room.

Where not all lines fit they give way step by step: they get shorter by half, and at last are
counted. `WEIGHTS` says which kind takes its next step first. The user's words have a share of their
own, in which the longest are cut first; then those are left out whose words others have, too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain
from math import inf, sqrt

from conspectus.notes.data import Kind, Line, Notes
from conspectus.notes.text import cut, fitted, section, shown, tallied

HEADINGS: dict[Kind, str] = {
    "said": "Said by the user",
    "done": "Done",
    "agent": "Said by the agent",
    "found": "Found and decided",
}
NOW = "# Now, before the messages below"

PART_LINES = 12  # Lines that a part shows at least, once lines are cut
# How much more than it shows of a line a record keeps, and the characters of a line, and of one
# of the user's words, that it keeps at least.
MORE, LINE_KEPT, WORDS_KEPT = 2, 300, 8_000
# Lines that are left out before they are counted for good: as many words of the user's again.
MANY_GONE = 64
# The share of its room that a text is to fill where something is cut, the share that is enough,
# and how often it is tried.
FILLED, ENOUGH, TRIES = 0.96, 0.93, 8
# Characters of a token, about, of one in code, and the least; what has no more than the first for
# each token of its room is tried whole.
USUAL, DENSE, SPARSE = 4, 2.5, 0.3
AROUND = 0.6  # The share of the room that texts of a caller's own may take
SHARE = 0.5  # The share of the room that the user's words may take where other lines need the rest
LEVELS = (4_800, 2_400, 1_200, 600, 300, 150)  # The characters of a line, step by step
# Characters to which words of the user are cut before some are left out; to which the first message
# is cut by then, and those that say much in few words; and those to which the first and the newest
# are cut after that, which always stay. Where the most of these are free, the last line that was
# left out has them.
WORDS_CUT, TELLING_CUT, ENDS_CUT = 300, 600, (150, 75, 40)
TELLING = 4  # Times the average of rare words a character, from which a message says much
FEW_WORDS = 3  # Words that are added to those of a message: one of a few words is no rare one
# The characters of the first and the newest words where nothing else fits.
LEAST_LEVELS = (2_400, 1_200, 600, 300, 150, 75, 40)
LEAST_LINE = 120  # Characters below which a line is not cut, but counted
# Lines from the newest to the one that has seven tenths of its weight: 1 / sqrt(1 + age /
# RECENT).
RECENT = 24
LONG_OUTCOME = 600  # Characters of an outcome from which a call of an unknown tool is a look
WEIGHTS: tuple[tuple[Callable[[Line], object], float], ...] = (
    (lambda line: line.kind == "found", 50.0),
    (lambda line: line.kind == "agent", 5.0),
    (lambda line: line.failed or line.acts, 1.5),
    (lambda line: line.effect is False or len(line.outcome) > LONG_OUTCOME, 0.6),
    (lambda line: True, 1.0),
)
"""What a line weighs, by the first test that it passes. So of lines of one length and age looks
give way first, then calls, those that changed something or failed, what the agent said, and last a
model's findings."""

# Of scripts without spaces, from Thai on, each pair of characters; of others each word.
_TERM = re.compile(r"(?=([\u0e00-\uffff]{2}))[\u0e00-\uffff]|([^\W_]+)")
# The bytes of a text in ASCII, without all that divides its words.
_WORDS = bytes(byte if chr(byte).isalnum() else 32 for byte in range(128)).ljust(256)

SAID_OR_FOUND = ("said", "found")

Steps = list[tuple[int, int]]  # the place of a line, and the characters that it is left
Parts = Sequence[Sequence[tuple[Line, float]]]  # lines, each with its characters
Count = Callable[[str], int]


class NotesRenderer:
    """Renders the notes of a record, with what is added to them, as text.

    Args:
        parts: the notes, and what is added, oldest first.

    Attributes:
        notes: all of it.

    Example:
        >>> NotesRenderer([Notes((Line("said", ("m2",), "Be brief."),))]).render(100, len)
        '# Part 1\\n## Said by the user\\n- Be brief. [m2]'
    """

    def __init__(self, parts: Sequence[Notes]) -> None:
        self.notes = reduce(Notes.with_new, parts, Notes())
        self._rooms, self._density = list[float](), self.notes.density

    @property
    def findings(self) -> list[Line]:
        """The findings of models that are in force."""
        return [line for line in self.notes.lines if line.kind == "found"]

    @property
    def summary(self) -> str:
        """The newest summary by a prompt or a function of the caller's; empty if there is none."""
        return self.notes.summary or (self.notes.text if self.notes.edited else "")

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
            room: tokens that it may take.
            count: tokens of a text.
            archived: whether originals can be recalled; otherwise nothing is cited.
            calls: whether calls and the agent's own words are shown, beside the user's and a
                model's findings.
            words: whether the user's are shown.
        """
        parts = self.notes.each_part()
        if not calls:
            parts = [tuple(line for line in part if line.kind in SAID_OR_FOUND) for part in parts]
        if not words:
            parts = [tuple(line for line in part if line.kind != "said") for part in parts]
        lines = [line for part in parts for line in part]
        before, end = self._around(int(room * AROUND) if lines else room, count)
        self._rooms, fixed = [], count(before + end)
        whole, low, high, best = float(sum(line.size for line in lines)), 0.0, inf, None
        each = min(max(self.notes.density or DENSE, SPARSE), USUAL)
        chars = each * (FILLED * room - fixed) if whole > USUAL * room else whole
        chars = min(whole, max(chars, 0.0))
        for _ in range(TRIES):
            rooms = _rooms(lines, chars) if chars < whole else []
            body = list[str]()
            for number, part in enumerate(_shared_out(parts, rooms), 1):
                body.append(f"# Part {number}")
                for kind, name in HEADINGS.items():
                    some = [shown(line, left, archived) for line, left in part if line.kind == kind]
                    body += section(name, some)
            text = "\n".join(filter(None, (before, *body, end)))
            size = count(text)
            each = chars / max(size - fixed, 1)
            if size <= room:
                best, self._rooms, low, self._density = text, rooms, chars, round(each, 2)
                if chars == whole or size >= ENOUGH * room:
                    break
            else:
                high = chars
            if high - low < USUAL:
                break
            guess = min(whole, each * (FILLED * room - fixed))
            chars = guess if low < guess < high else (low + min(high, whole)) / 2
        return _least(lines, room, count, archived) if best is None else best

    def recorded(self) -> Notes:
        """Return the notes for a record: not much more of each line than the text shows of it.

        Where many lines are left out, they are counted for good.
        """
        if not self._rooms:
            return self.notes
        pairs = [*zip(self.notes.lines, self._rooms, strict=True)]
        gone = Counter(line.kind == "said" for line, room in pairs if not room)
        rooms = [room or gone[line.kind == "said"] <= MANY_GONE for line, room in pairs]
        parts = _shared_out(self.notes.each_part(), rooms)
        lines = list[Line]()
        for line, room in chain.from_iterable(parts):
            least = max(MORE * room, WORDS_KEPT if line.kind == "said" else LINE_KEPT)
            # One that is little longer stays, with its texts.
            lines.append(fitted(line, least) if line.size > MORE * least else line)
        numbers = tuple(map(len, parts))
        return replace(self.notes, lines=tuple(lines), parts=numbers, density=self._density)

    def _around(self, room: int, count: Count) -> tuple[str, str]:
        """Return what stands before the lines, and what is open behind them."""
        own = self.notes
        sections = {
            "Goal": own.goal,
            "Order": tuple(filter(None, [own.below])),
            "Open": own.todo or (),
            "Next": own.next,
            "Skills read": own.skills,
        }
        end = "\n".join(line for name, some in sections.items() for line in section(name, some))
        if end:
            end = f"{NOW}\n{_within(end, room, count)}"
        if own.summary:
            end = f"{end}\n## Summary\n{_within(own.summary, room, count)}".lstrip("\n")
        return own.text and _within(own.text, room, count), end


def _shared_out(parts: Sequence[Sequence[Line]], rooms: Sequence[float]) -> Parts:
    """Return the lines of each part with their rooms, those without any as one line that counts.

    Without rooms all is shown whole. Otherwise parts that show few lines are one.
    """
    if not rooms:
        return [[(line, line.size) for line in part] for part in parts if part]
    groups, each = list[list[tuple[Line, float]]](), iter(rooms)
    for part in filter(None, parts):
        pairs = [*zip(part, each, strict=False)]
        if groups and sum(room > 0 and not line.times for line, room in groups[-1]) < PART_LINES:
            groups[-1] += pairs
        else:
            groups.append(pairs)
    for at, pairs in enumerate(groups):
        gone = [line for line, room in pairs if line.times or not room]
        kinds = ([line for line in gone if line.kind == kind] for kind in HEADINGS)
        counts = [(tallied(same), 1.0) for same in kinds if same]
        groups[at] = [*counts, *(pair for pair in pairs if pair[1] and not pair[0].times)]
    return groups


def _least(lines: Sequence[Line], room: int, count: Count, archived: bool) -> str:
    """Return the user's first and newest words in a room that not even counted lines fit.

    Each is cut by itself: no text may begin with one message and end with another.
    """
    words = [line for line in lines if line.kind == "said" and not line.times]
    everything = sum(line.times or 1 for line in lines)
    for ends in ([*words[:1], *words[1:][-1:]], words[-1:], []):
        gone = f"- ({everything - len(ends)} lines left out)"
        for characters in LEAST_LEVELS:
            said = section(HEADINGS["said"], [shown(one, characters, archived) for one in ends])
            text = "\n".join(["# Part 1", *said, gone])
            if count(text) <= room:
                return text
    return _within(gone, room, count)


def _within(text: str, room: int, count: Count) -> str:
    """Return as much of a text as fits, its beginning and its end."""
    size, part = len(text), text
    while part and (tokens := count(part)) > room:
        size = min(size - 1, int(size * max(room, 0) / tokens))
        part = cut(text, size)
    return part


def _rooms(lines: Sequence[Line], room: float) -> list[float]:
    """Return the characters of each line so that all take so many; 0 for one that is counted.

    The user's words take their share, the others what is left, and the words what these leave.
    """
    rooms = [float(line.size) for line in lines]
    places = [(place, line) for place, line in enumerate(lines) if not line.times]
    said = {place: line for place, line in places if line.kind == "said"}
    others = [(place, line) for place, line in reversed(places) if place not in said]
    words, rest = (sum(line.size for _, line in some) for some in (said.items(), others))
    share = min(words, max(room * SHARE, room - rest))
    left = _give_way(rooms, _steps_of_others(others), room - share - rest)
    if (left := share + left - words) < 0:
        _give_way(rooms, _steps_of_words(said), left)
    return rooms


def _give_way(rooms: list[float], steps: Steps, left: float) -> float:
    """Take steps while too little is left; return what the last lines to give way leave."""
    taken, sizes = 0, [*rooms]
    while left < 0 and taken < len(steps):
        place, level = steps[taken]
        left += rooms[place] - level
        rooms[place] = level
        taken += 1
    for place, _ in reversed(steps[:taken]):
        if left > 0 and (rooms[place] or left >= ENDS_CUT[0]):
            more = min(left, sizes[place] - rooms[place])
            rooms[place] += more
            left -= more
    return max(left, 0.0)


def _steps_of_others(lines: Sequence[tuple[int, Line]]) -> Steps:
    """Return the steps of lines that are not the user's, the newest line first."""
    steps = list[tuple[float, int, int]]()
    for age, (place, line) in enumerate(lines):
        if (weight := line.texts.get("weight")) is None:
            weight = next(weight for test, weight in WEIGHTS if test(line))
            line.texts["weight"] = weight
        weight /= 1.0 if line.kind == "found" else sqrt(1.0 + age / RECENT)
        steps += [(-level / weight, place, level) for level in LEVELS if level < line.size]
        steps.append((-min(LEAST_LINE, line.size) / weight, place, 0))
    return [(place, level) for _, place, level in sorted(steps)]


def _steps_of_words(lines: dict[int, Line]) -> Steps:
    """Return the steps of the user's words: long messages are cut, then some are left out.

    Those are left out first whose words most other messages have, too: what is said once would be
    lost, what is said often is still there. The first message, with the task, is cut late. So is
    one that says much in few words, such as a list of rules among hundreds of short requests.
    """
    terms = {place: _terms(line) for place, line in lines.items()}
    times = Counter(chain.from_iterable(terms.values()))
    rarity = {term: 1 / number for term, number in times.items()}
    usual = len(times) / sum(line.size for line in lines.values())
    steps, ends = list[tuple[int, float, int, int]](), (min(lines), max(lines))
    for place, line in lines.items():
        rare, much = sum(map(rarity.__getitem__, terms[place])), TELLING * usual * line.size
        # Names made of digits tell nothing by being rare: each of a dump is.
        words = filter(str.isalpha, terms[place]) if rare > much else ()
        late = place == ends[0] or sum(map(rarity.__getitem__, words)) > much
        for level in LEVELS:
            if WORDS_CUT <= level < line.size:
                step = 0 if not late else 1 if level >= TELLING_CUT else 3
                steps.append((step, -level, place, level))
        if place in ends or line.quotes:
            steps += [(5, -level, place, level) for level in ENDS_CUT if level < line.size]
        else:
            share = rare / (len(terms[place]) + FEW_WORDS)
            steps.append((4 if late else 2, share, place, 0))
    return [(place, level) for *_, place, level in sorted(steps)]


def _terms(line: Line) -> tuple[str, ...]:
    """Return the words of a line, once each, in the same order in every process."""
    if (terms := line.texts.get("terms")) is None:
        text = line.text.casefold()
        if text.isascii():  # in half the time
            found = text.encode().translate(_WORDS).decode().split()
        else:
            found = ["".join(groups) for groups in _TERM.findall(text)]
        terms = line.texts["terms"] = tuple(dict.fromkeys(found))
    return terms
