"""The notes of one compaction: parts put together within their room, and condensed when it is full.

Segments that stand keep their bytes. Only when a part has outgrown its share are the oldest
segments condensed, in one big step, so that several compactions can append before the next one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from conspectus.ledger.choosing import SHORT
from conspectus.messages import Entry, is_summary_message
from conspectus.messages.framing import as_notes
from conspectus.messages.summary import summary_body
from conspectus.summarize import journal, users_words
from conspectus.summarize.base import SummaryRequest
from conspectus.summarize.checks import cut_short
from conspectus.summarize.condensing import condensed, shorter_finding, tokens_of
from conspectus.summarize.cutting import cut
from conspectus.summarize.files import files_line
from conspectus.summarize.findings import ROOMIEST, TOLD, conclusions
from conspectus.summarize.notes import (
    DONE,
    FOUND,
    GOAL,
    NEXT,
    OPEN,
    REST,
    SAID,
    SKILLS,
    Notes,
    apart,
    cited,
    foreign,
    items,
    section,
    segment,
)
from conspectus.summarize.open_work import index, open_work, skills
from conspectus.summarize.shares import PARTS
from conspectus.summarize.steps import Step, steps_of
from conspectus.summarize.superseding import without_undone

RATIO = 10
"""Parts 2 and 3 take at most one token for so many that leave."""

HEADINGS = 10
"""Tokens of the headings of one segment."""

LEAST_GOAL = 80
"""Characters of a goal, or a next step, that stand in any room."""

INDEX = 240
"""Characters of the names of what can be recalled."""

NOW_OF = 5
"""A model's goal and next step take at most one part in so many of the room."""

ROOMY = 2
"""Where there is room, they take one token for so many that leave."""

ANSWERS = 3
"""Newest conclusions that stay while deeds can still be made shorter."""

FEW = 50
"""Tokens up to which the newest words stand instead of those that bind."""

LEAST_ROOM = 120
"""Tokens of parts 2 and 3 that a segment may take however little leaves."""

SCALES = (9.0, 6.0, 4.0, 3.0, 2.2, 1.6, 1.25, 1.0, 0.8, 0.65, 0.5, 0.4, 0.3, 0.22, 0.15)
"""How roomy lines are, tried from the roomiest."""


PRINTED = (4_000, 2_000, 1_000, 500)
"""Characters on top of each line for what a command printed, tried where the roomiest lines fit."""

REPLIES = (8_000, 4_000, 2_000, 1_000)
"""Characters of each reply to the user, tried where the lines leave room."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a summariser has written.

    Attributes:
        found: lines of part 3; None where the agent's own conclusions take their place.
        goal: what the work is for, as lines.
        next: the very next step, as lines.
        summary: a whole summary, by a summariser that writes anew all that it wrote before.
    """

    found: Sequence[str] | None = None
    goal: Sequence[str] = ()
    next: Sequence[str] = ()
    summary: str = ""


@dataclass(slots=True)
class _Draft:
    """Notes while they are put together."""

    request: SummaryRequest
    notes: Notes
    number: int
    lines: dict[str, list[str]] = field(default_factory=dict)
    now: dict[str, list[str]] = field(default_factory=dict)
    summary: str = ""

    def text(self) -> str:
        """Return the notes as they would stand."""
        own = segment(self.number, self.lines)
        segments = (*self.notes.segments, *([own] if own else []))
        return Notes(self.notes.before, segments, self.now, self.summary).render()

    def over(self) -> int:
        """Tokens by which they are too long."""
        return max(0, self.request.count(self.text()) - self.request.limit)

    def fits(self) -> bool:
        return not self.over()

    def leave_out(self, lines: list[str], least: int = 0) -> None:
        """Leave out the first of some lines until all fits, or until so few are left."""
        while len(lines) > least and (over := self.over()):
            gone = freed = 0
            while gone < len(lines) - least and freed < over:
                freed += max(1, self.request.count(lines[gone]))
                gone += 1
            del lines[:gone]


def write(request: SummaryRequest, answer: Answer) -> str:
    """Return the notes after one compaction, within the limit of the request.

    Args:
        request: what leaves, the notes so far, the facts in force, and the room.
        answer: what the summariser has written.
    """
    parts, count, limit = request.shares.parts or PARTS, request.count, request.limit
    standing = Notes.parse(request.standing)
    if standing.before and not standing.segments:
        standing = Notes(foreign(standing.before), (), standing.now, standing.summary)
    if answer.summary:  # it was given what stood before, and takes its place
        standing = replace(standing, before="")
    entries = [entry for entry in request.entries if not _stands(entry, request.standing)]
    draft = _Draft(request, standing, len(standing.segments) + 1)
    draft.summary = answer.summary
    steps = steps_of(entries) if {"done", "index", "open"} & set(parts) else []
    old = [items(text) for text in standing.segments]
    said_before = [line for one in old for line in _words(one)]
    draft.now = _now(request, answer, standing, parts, steps, said_before)
    rest = (
        limit - count(section((GOAL, OPEN, NEXT, SKILLS, REST), draft.now)) - count(answer.summary)
    )
    said = users_words.said(entries, said_before) if "said" in parts else []
    leaving = sum(count(entry.reading) for entry in entries)

    said_size = tokens_of(count, [*said_before, *said])
    if (before := count(standing.before)) > rest // 2:
        standing = replace(standing, before=cut_short(standing.before, rest // 2, count)[0])
        draft.notes, before = standing, count(standing.before)
    rest -= before + min(HEADINGS * (1 + len(standing.segments)), rest // 4)
    share = int(rest * request.shares.said)
    others = _others(old, count)
    free = rest - said_size - others
    want = max(LEAST_ROOM, leaving // RATIO, min(free, leaving // ROOMY))
    want += tokens_of(count, list(answer.found or ()))  # deeds do not pay for what a model writes

    deeds_before = [line for one in old for line in one.get(DONE, ())]

    def deeds_at(scale: float, more: int) -> list[str]:
        deeds = [line for one in old for line in one.get(DONE, ())]
        told = journal.lines(steps, scale, more, deeds) if "done" in parts else []
        done = [cited(as_notes(text), cites) for text, cites in told]
        return without_undone(done, deeds_before)

    def at(scale: float, more: int = 0, reply: int = 0) -> dict[str, list[str]]:
        found = _found(answer, entries, scale, parts, reply)
        return {DONE: deeds_at(scale, more), FOUND: found}

    def size_at(scale: float) -> int:
        return _others([at(scale)], count)

    if free < want:
        want = min(want, max(size_at(SCALES[0]), LEAST_ROOM // 3))
    # The user's words may take what the other parts leave, and those may not take the words' share.
    # What was typed by the way has room beyond it, up to two thirds.
    typed = tokens_of(count, [line for line in (*said_before, *said) if len(line) <= SHORT])
    share = max(share, min(share + typed, rest * 2 // 3))
    if free < want and said_size > share and answer.found is None:
        # Long replies were given what was left over, and go before any word of the user's.
        short = int(TOLD * ROOMIEST)
        old = [
            one | {FOUND: [shorter_finding(line, short) for line in one.get(FOUND, ())]}
            for one in old
        ]
        others, draft.notes = _others(old, count), with_segments(standing, old)
        free = rest - said_size - others
    if free < want and said_size > share and limit > FEW:
        tells = users_words.left_out(request.archived)
        stands = users_words.chosen(
            [*said_before, *said], share - count(tells), count, request.ledger
        )
        kept = [line for line in stands[: len(said_before)] if line]
        said = [line for line in stands[len(said_before) :] if line] or said[-1:]
        (kept or said).insert(0, tells)
        old = [one | {SAID: kept if place == 0 else []} for place, one in enumerate(old)]
        said_size = tokens_of(count, [*kept, *said])
        free = rest - said_size - others
        draft.notes = with_segments(standing, old)
    if free < want and others:
        # A model's findings stay whole: it writes them anew where they have outgrown their room.
        stays = 0 if answer.found is None else tokens_of(count, _found_before(old))
        old = condensed(
            old,
            max(rest - said_size - want - want // 2, stays + (others - stays) // 3),
            count,
            request.archived,
            answer.found is not None,
            at(1.0)[DONE],
        )
        others = _others(old, count)
        free = rest - said_size - others
        draft.notes = with_segments(standing, old)
        draft.number = 2
        # More may have gone than had to; half of that is room for the next compactions.
        want = max(want, min(free // 2, leaving // ROOMY))
    draft.lines = {SAID: said}
    room = min(want, max(free, 0))

    replies = REPLIES if answer.found is None else ()
    plain = _others([{DONE: deeds_at(1.0, 0)}], count)
    reply = next(
        (
            one
            for one in replies
            if plain + _others([{FOUND: _found(answer, entries, 1.0, parts, one)}], count) <= room
        ),
        0,
    )

    def fits(place: int) -> bool:
        return _others([at(SCALES[place], 0, reply)], count) <= room

    roomiest = bisect_left(range(len(SCALES) - 1), True, key=fits)
    draft.lines |= at(SCALES[roomiest], 0, reply)
    for more in PRINTED if not roomiest else ():
        fuller = at(SCALES[0], more, reply)
        if _others([fuller], count) <= room:
            draft.lines |= fuller
            break
    _give_way(draft, chatter=answer.found is None)
    return draft.text()


def _words(lines: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the user's words of a segment, without the line on those left out."""
    return [line for line in lines.get(SAID, ()) if not line.startswith(users_words.LEFT_OUT)]


def _others(old: Sequence[Mapping[str, Sequence[str]]], count: Callable[[str], int]) -> int:
    """Tokens of parts 2 and 3 of some segments."""
    return sum(tokens_of(count, one.get(name, ())) for one in old for name in (DONE, FOUND))


def _found_before(old: Sequence[Mapping[str, Sequence[str]]]) -> list[str]:
    return [line for one in old for line in one.get(FOUND, ())]


def _stands(entry: Entry, standing: str) -> bool:
    """Whether a message is a summary that the notes so far begin with: nobody has said that."""
    return is_summary_message(entry.source) and summary_body(entry.text) in standing


def _now(
    request: SummaryRequest,
    answer: Answer,
    standing: Notes,
    parts: Sequence[str],
    steps: Sequence[Step],
    words: Sequence[str],
) -> dict[str, list[str]]:
    room = int(request.limit * request.shares.now) * 3
    count, most = request.count, request.limit // NOW_OF
    now = {GOAL: _first(answer.goal, most // 2, count)}
    now[NEXT] = _first(answer.next, most - tokens_of(count, now[GOAL]), count)
    now[SKILLS] = skills(request.ledger)
    if "open" in parts:
        before = standing.now.get(OPEN, ())
        now[OPEN] = open_work(request.entries, request.kept, before, request.ahead, words)
        if line := files_line(steps, before):
            now[OPEN].append(line)
        room -= sum(map(len, now[OPEN]))
    if "index" in parts and request.archived and room > 0:
        now[REST] = index(request.entries, steps, standing.now.get(REST, ()), min(room, INDEX))
    return now


def _first(lines: Sequence[str], room: int, count: Callable[[str], int]) -> list[str]:
    """Return the first lines that fit; where none does, the start of the first."""
    kept: list[str] = []
    for line in lines:
        if tokens_of(count, [*kept, line]) > room:
            break
        kept.append(line)
    if lines and not kept:
        text, cites = apart(lines[0])
        kept = [cited(cut(text, LEAST_GOAL), cites)]
    return kept


def _found(
    answer: Answer,
    entries: Sequence[Entry],
    scale: float,
    parts: Sequence[str],
    reply: int = 0,
) -> list[str]:
    if "found" not in parts or answer.summary:
        return []
    if answer.found is not None:
        return list(answer.found)
    return [cited(text, [cite]) for text, cite in conclusions(entries, scale, reply)]


def with_segments(notes: Notes, old: Sequence[dict[str, list[str]]]) -> Notes:
    """Return notes with other lines in their segments; those that are the same keep their bytes."""
    made: list[str] = []
    for place, lines in enumerate(old):
        before = notes.segments[place] if place < len(notes.segments) else ""
        same = before and items(before) == {k: v for k, v in lines.items() if v}
        text = before if same and len(made) == place else segment(len(made) + 1, lines)
        made += [text] if text else []
    return Notes(notes.before, tuple(made), notes.now, notes.summary)


def _give_way(draft: _Draft, *, chatter: bool) -> None:
    """Leave out what does not fit, in a stated order; the user's newest words last.

    Args:
        draft: the notes as they are.
        chatter: the newest conclusions are the agent's own sentences, which go before any deed.
    """
    for name in (REST, SKILLS):
        if draft.fits():
            return
        draft.now[name] = []
    if chatter:
        draft.leave_out(draft.lines[FOUND], least=ANSWERS)
    old, own = [items(text) for text in draft.notes.segments], [dict(draft.lines)]
    count, archived = draft.request.count, draft.request.archived
    rooms = {id(old): _others(old, count), id(own): _others(own, count)}
    # What is older gives way first, to a third; then the newest, to half; then all.
    for lines, part in ((old, 1 / 3), (own, 1 / 2), (old, 0), (own, 0)):
        least = int(_others(lines, count) * part)
        while (room := rooms[id(lines)]) > least and (over := draft.over()):
            rooms[id(lines)] = room = max(least, min(room - over, room * 3 // 4))
            shorter = condensed(lines, room, count, archived, not chatter)
            if lines is old:
                draft.notes = with_segments(draft.notes, shorter)
            else:
                draft.lines = shorter[0]
    for name in (NEXT, GOAL, OPEN):
        if not draft.fits():
            draft.now[name] = []
    if not draft.fits():
        draft.lines |= {FOUND: []}
    if not draft.fits():
        draft.notes = Notes("", draft.notes.segments)
    if not draft.fits():
        old = [items(text) for text in draft.notes.segments]
        said = [line for one in old for line in _words(one)] + draft.lines[SAID]
        deeds = [line for one in old for line in one.get(DONE, ())] + draft.lines[DONE]
        [rest] = condensed([{DONE: deeds}], 0, draft.request.count, draft.request.archived)
        draft.notes, draft.number = Notes(), 1
        draft.lines = {SAID: said, DONE: rest[DONE] if draft.request.limit > FEW else []}
        room, every = draft.request.limit, said
        while (room := room * 9 // 10) > FEW and not draft.fits():
            stands = users_words.chosen(every, room, draft.request.count, draft.request.ledger)
            draft.lines[SAID] = said = [line for line in stands if line] or said[-1:]
        if not draft.fits():
            draft.lines[DONE] = []
        draft.leave_out(said, least=1)
        while said and not draft.fits():
            text, cites = apart(said[0])
            if len(text) < 12:
                said.pop(0)
            else:
                said[0] = cited(cut(text, len(text) * 3 // 4), cites if len(text) > 60 else [])
