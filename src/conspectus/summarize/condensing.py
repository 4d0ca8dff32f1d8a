"""Segments of the notes made shorter: the oldest lines first, and the user's words never."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from conspectus.summarize import journal, left_out, users_words
from conspectus.summarize.columns import HEADS, heads_of, named
from conspectus.summarize.compacting import pairs_within
from conspectus.summarize.cutting import cut, cut_command
from conspectus.summarize.findings import (
    THOUGHT_OF,
    WHOLE,
    explains,
    fewer_sentences,
    said_again,
    tells,
)
from conspectus.summarize.looks import in_place
from conspectus.summarize.notes import DONE, FOUND, SAID, apart, cited
from conspectus.summarize.outputs import SALIENT
from conspectus.summarize.scripts import EDITS as EDITED
from conspectus.summarize.superseding import (
    TIMES,
    changes,
    counted,
    named_by_changes,
    named_nowhere,
    newest_of_each_call,
    newest_of_each_run,
    without_undone,
)

LENGTHS = (1_600, 800, 400, 300, 220, 170, 130, 100, 80)
"""Characters of a line, tried in turn where earlier segments have to give way."""

REPLY = 220
"""Characters that what was told or found keeps while deeds can still be made shorter."""

CONSTANT = 2
"""Times that a name has stood with one value and no other; then later lines leave the pair out."""

REASONS = 0.4
"""Share of the room that conclusions keep while deeds can still be made shorter."""

WRITTEN = 0.7
"""The same of conclusions that a model wrote: they tell what a deed's line cannot."""

EDITS = 4
"""Times that an edit in place is longer than other lines: its text is what was changed."""

AT_WORK = 3
"""Times that a record is longer which a later change names: the work is about it."""

DEED = 2
"""Times that a deed of a tool is longer: what it was given cannot be looked up again."""

RULES = 700
"""Characters that the rules of a file keep while other lines can still be made shorter."""

LAST = 4
"""Conclusions that stay while deeds can still be made shorter."""

FIELDS, CELLS = 4, (80, 56, 40, 28)
"""Pairs from which an outcome is a record, and characters of each, tried in turn."""

WORDY = 60
"""Characters of the parts of an outcome, on average, from which it is in words."""

_PARTS = re.compile(r"; | ⏎ | (?=\w+[=:])")
_PATH = re.compile(r"[\w.-]*/[\w./-]{8,}\b")

_MORE = re.compile(r" \+(\d+) more$")
_NEXT_FIELD = re.compile(r" (?=\w[\w.]*(?:=|: |\[\w))")
_FIELD = re.compile(r"(?<=[\s;])(?=\w[\w.]*=)")
_ARGUMENT = re.compile(r"(?<=[(\s])\w+=(?=[^,)]{4})")  # a short value says nothing by itself
_PAIR = re.compile(
    r"(?<![^\s:])((?!status|success|result|state|error|ok)[a-z]\w+)=([^\s;,]{4,}) (?=\w+=|\w+:)"
)


def tokens_of(count: Callable[[str], int], lines: Sequence[str]) -> int:
    """Return the tokens of lines in a list."""
    return count("\n".join(f"- {line}" for line in lines)) if lines else 0


class _Lines:
    """Lines whose tokens are known, so that a change of one needs no count of all."""

    def __init__(self, lines: Iterable[str], count: Callable[[str], int]) -> None:
        self._count = count
        self._lines: list[str | None] = list(lines)
        self._sizes = [count(f"- {line}\n") for line in self._lines]
        self.tokens = sum(self._sizes)
        self._work: set[str] | None = None

    def left(self) -> list[str]:
        """Return the lines that stand."""
        return [line for line in self._lines if line is not None]

    def looks(self) -> list[int]:
        """Return the places of folded looks that stand."""
        return [n for n, line in enumerate(self._lines) if line and line.startswith(journal.LOOKED)]

    def put(self, place: int, line: str | None) -> None:
        """Write another line in a place, or none."""
        if line == self._lines[place]:
            return
        size = 0 if line is None else self._count(f"- {line}\n")
        self.tokens += size - self._sizes[place]
        self._lines[place], self._sizes[place] = line, size

    def shorten(
        self, most: int, fits: Callable[[], bool], places: Sequence[int] | None = None
    ) -> None:
        """Shorten lines to so many characters, the first ones first, until all fits."""
        self.each(lambda line: _shorter(most * self._times(line), line), fits, places)

    def _times(self, line: str) -> int:
        if self._work is None:
            self._work = {cite for one in named_by_changes(self.left()) for cite in apart(one)[1]}
        if self._work & {*apart(line)[1]}:
            return AT_WORK
        tool = line[:1] not in "$(" and not journal.looked(line)
        return DEED if tool and changes(line) else 1

    def each(
        self,
        shorter: Callable[[str], str],
        fits: Callable[[], bool],
        places: Sequence[int] | None = None,
    ) -> None:
        """Write lines in a shorter form, the first ones first, until all fits."""
        for place in range(len(self._lines)) if places is None else places:
            if fits():
                return
            if (line := self._lines[place]) is not None:
                self.put(place, shorter(line))

    def count_equal(self) -> None:
        """Write neighbours that say the same as one line, with how many they are."""
        last: int | None = None
        for place, line in enumerate(self._lines):
            if line is None:
                continue
            before = None if last is None else self._lines[last]
            if before is not None and last is not None and (one := _both(before, line)):
                self.put(last, None)
                self.put(place, one)
            last = place

    def leave_out(self, places: Iterable[int], fits: Callable[[], bool]) -> int:
        """Leave out lines, in this order, until all fits; return how many."""
        gone = 0
        for place in places:
            if fits():
                break
            gone += self._lines[place] is not None
            self.put(place, None)
        return gone


def condensed(
    old: Sequence[dict[str, list[str]]],
    room: int,
    count: Callable[[str], int],
    archived: bool = True,
    written: bool = False,
    later: Sequence[str] = (),
) -> list[dict[str, list[str]]]:
    """Return all segments as one, with parts 2 and 3 within so many tokens.

    The oldest give way first: what stands in other lines is not said again, long lines are
    shortened, then looks go, then the oldest conclusions, then the oldest deeds. What the user said
    stays as it is.

    Args:
        old: the lines of each segment, by part.
        room: tokens of parts 2 and 3.
        count: tokens of a text.
        archived: the rest can be recalled.
        written: a model wrote the conclusions; they tell of deeds, too, and give way after them.
        later: deeds that come after them, and may have undone some.
    """
    share = WRITTEN if written else REASONS
    said = users_words.once([line for one in old for line in one.get(SAID, ())])
    done = _Lines([line for one in old for line in one.get(DONE, ())], count)
    found = _Lines([line for one in old for line in one.get(FOUND, ())], count)
    every = found.left()
    thoughts = [n for n, line in enumerate(every) if line.startswith(THOUGHT_OF)]
    minor = [n for n in thoughts if not explains(every[n])]
    thoughts = [*minor[:-LAST], *(n for n in thoughts if n not in minor), *minor[-LAST:]]

    def fits() -> bool:
        return done.tokens + found.tokens <= room

    heads: dict[str, str] = {}
    if not fits():
        heads = heads_of(done.left())
        deeds = newest_of_each_call(without_undone(done.left(), later=later))
        done = _Lines(_told_once([_path_once(line) for line in deeds]), count)
    done.shorten(LENGTHS[5], fits, named_nowhere(done.left(), [*said, *every]))
    done.leave_out(done.looks()[: len(done.looks()) // 2], fits)
    found.leave_out(said_again(every), fits)
    found.leave_out([n for n in thoughts if not tells(every[n]) and n < len(every) - LAST], fits)
    done.shorten(LENGTHS[3], fits, [n for n, line in enumerate(done.left()) if _in_words(line)])
    for most in LENGTHS:
        # Thoughts give way before what was told, and that before deeds.
        found.each(partial(shorter_finding, most=most), fits, thoughts)
        if not written:
            found.each(partial(shorter_finding, most=max(most, REPLY)), fits)
        done.shorten(most, fits)
        done.count_equal()
        if most == LENGTHS[2] and not fits():
            done = _Lines(newest_of_each_run(done.left()), count)
        if most == LENGTHS[-3]:
            found.leave_out(minor[:-LAST], lambda: fits() or found.tokens <= room * share)
    done.leave_out(done.looks(), fits)
    for most in LENGTHS[-2:]:  # all of them, before one of them goes
        done.each(partial(_shorter, most), fits)
    found.leave_out(minor, fits)
    if not written:
        found.each(partial(shorter_finding, most=LENGTHS[-3]), fits)
    gone = left_out.counted(done.left())
    deeds = [line for line in done.left() if not left_out.counts(line)]
    done = _Lines(deeds, count)
    at_work = named_by_changes(deeds)
    looks = [n for n, line in enumerate(deeds) if journal.looked(line)]
    done.leave_out(sorted(looks, key=lambda n: deeds[n] in at_work), fits)
    if written:
        trials = [n for n in range(len(deeds)) if not changes(deeds[n])]
        done.leave_out(trials, lambda: fits() or done.tokens <= room * (1 - share))
        found.each(partial(shorter_finding, most=REPLY), fits)
    found.leave_out(range(len(every)), lambda: fits() or found.tokens <= room * share)
    # What was run can be run again; what was changed stays changed.
    done.leave_out(sorted(range(len(deeds)), key=lambda n: changes(deeds[n])), fits)
    found.leave_out(range(len(every)), fits)
    stand = done.left()
    left = named(stand, heads)
    gone.update(left_out.tool(line) for line in deeds if line not in stand)
    if gone:
        left.insert(0, left_out.line_on(gone, archived))
    return [{SAID: said, DONE: left, FOUND: found.left()}]


def _in_words(line: str) -> bool:
    """Return whether a line tells a page that was read, or a search: both can be done again."""
    call, _, came = apart(line)[0].partition(" → ")
    parts = _PARTS.split(came)
    return journal.SAYS not in call and journal.looked(line) and len(came) > WORDY * len(parts)


def _path_once(line: str) -> str:
    """Return a line whose outcome does not say the path again that the call names.

    Example:
        >>> _path_once("edit_file(src/cafe/menu.py) → edited src/cafe/menu.py at line 3 [m2]")
        'edit_file(src/cafe/menu.py) → edited at line 3 [m2]'
    """
    call, arrow, came = line.partition(" → ")
    for path in _PATH.findall(call):
        came = re.sub(rf" {re.escape(path)}(?=[\s,;:]|$)", "", came)
    return call + arrow + came


def _both(before: str, line: str) -> str:
    """One line for two that say the same; empty where they do not."""
    (old, first), (new, last) = apart(before), apart(line)
    (old, many), (new, more) = counted(old), counted(new)
    if old != new or not first or line.startswith(journal.LOOKED):
        return ""
    return cited(f"{new} ({many + more} times)", [first[0], last[-1]])


def _told_once(lines: Sequence[str]) -> list[str]:
    """Lines that name columns once, and leave out values that never differed before them.

    A name that has stood with two values says whose value it is, or that it has changed.
    """
    values, told = defaultdict[str, Counter[str]](Counter), list[str]()

    def news(match: re.Match[str]) -> str:
        known = values[match[1]]
        return "" if len(known) == 1 and known[match[2]] >= CONSTANT else match[0]

    for line in lines:
        call, arrow, came = line.partition(" → ")
        pairs = dict.fromkeys(_PAIR.findall(came))
        came = _PAIR.sub(news, came)
        for key, value in pairs:
            values[key][value] += 1
        told.append(call + arrow + came)
    return told


def _thinned(came: str, most: int) -> str:
    """Return an outcome in so many characters: of a record the longest values first."""
    pairs = _FIELD.split(came)
    record = len(pairs) >= FIELDS and ";" not in came
    for cell in CELLS if record else ():
        if sum(min(len(pair), cell) for pair in pairs) <= most:
            return "".join(
                pair if len(pair) <= cell else f"{cut(pair, cell - 1)} " for pair in pairs
            )
    pairs = _fields(_MORE.sub("", came))
    if len(pairs) >= FIELDS and not came.startswith("["):  # rows alone stand under their columns
        more = int(found[1]) if (found := _MORE.search(came)) else 0
        heads = [sum(map(len, HEADS.findall(pair))) for pair in pairs]
        shown = [cut(pair, CELLS[0] + head) for pair, head in zip(pairs, heads, strict=True)]
        return pairs_within(shown, most, more)
    return _telling_parts(came, most)


def _fields(came: str) -> list[str]:
    """Return the fields of a record, each with all rows in it.

    Example:
        >>> _fields("id=A1 name: first=Ann last=Li; legs[from to]: JFK ATL; ATL LAX; paid=yes")
        ['id=A1', 'name: first=Ann last=Li;', 'legs[from to]: JFK ATL; ATL LAX;', 'paid=yes']
    """
    fields = list[str]()
    inside = False
    for part in _NEXT_FIELD.split(came):
        if inside:
            fields[-1] += f" {part}"
        else:
            fields.append(part)
        opens = part.partition("=")[0].endswith(":") or ": " in part
        within = fields[-1].count("(") > fields[-1].count(")")
        inside = within or ((inside or opens) and not part.endswith(";"))
    return fields


def _telling_parts(came: str, most: int) -> str:
    """Return the parts of an output that say how it ended, in so many characters.

    Example:
        >>> _telling_parts("collecting tests in menu.py ⏎ a.py ok ⏎ 29 passed", 24)
        '… ⏎ 29 passed'
    """
    parts = [part for n, part in enumerate(came.split(" ⏎ ")) if not n or part != "…"]
    if len(came) <= most or len(parts) == 1:
        return cut(came, most)
    ended = [n for n, part in enumerate(parts) if SALIENT.search(part)]
    kept, left = set[int](), most - 4
    for n in dict.fromkeys([*ended[-1:], len(parts) - 1, *reversed(ended), *range(len(parts))]):
        if len(parts[n]) + 3 <= left:
            kept.add(n)
            left -= len(parts[n]) + 3
        elif not kept:
            return cut(parts[n], most)
    kept -= {0} if parts[0] == "…" else set()
    gap = "" if len(kept) == len(parts) else "… ⏎ "
    return gap + " ⏎ ".join(parts[n] for n in sorted(kept))


def shorter_finding(line: str, most: int) -> str:
    """Return a line of findings in fewer sentences; one that names a cause stays whole longer."""
    text, cites = apart(line)
    if explains(text):
        most = max(most, WHOLE)
    return cited(fewer_sentences(text, most), cites)


def _shorter(most: int, line: str) -> str:
    text, cites = apart(line)
    if in_place(text) or EDITED in text:
        most *= EDITS
    heads = sum(map(len, HEADS.findall(text)))  # names of columns take no room from the rows
    most += heads
    if journal.SAYS in text:  # rules of a file that the agent goes by
        most = max(most, RULES)
    if len(text) <= most:
        return line
    times = found[0] if (found := TIMES.search(text)) else ""
    call, arrow, came = text.removesuffix(times).partition(" → ")
    if arrow:
        most -= len(times)
        given = most - heads
        room = max(given // 2, given - min(len(came), given))
        if call.startswith("$ "):
            call = cut_command(call, room)
        elif len(call) > room:
            call = cut(_ARGUMENT.sub("", call), room)  # a value says more than its name
        text = f"{call} → {_thinned(came, max(most - len(call), most // 3))}"
    return cited(cut(text, most + 3) + times, cites)
