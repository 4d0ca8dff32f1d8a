"""The answer of a model that was asked for findings, taken apart and held against the messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from conspectus.ledger import Fact, quoted
from conspectus.messages import SUMMARY_LINE, Entry
from conspectus.messages.framing import as_notes
from conspectus.summarize import users_words
from conspectus.summarize.base import SummaryRequest
from conspectus.summarize.condensing import WRITTEN, tokens_of
from conspectus.summarize.cutting import cut
from conspectus.summarize.notes import (
    FOUND,
    GOAL,
    NEXT,
    OPEN,
    SAID,
    Notes,
    apart,
    cited,
    items,
    section,
)
from conspectus.summarize.open_work import UNDER_WAY
from conspectus.summarize.prompts import ANEW, IN_VIEW, STAYS
from conspectus.summarize.shares import PARTS
from conspectus.summarize.writing import Answer, with_segments, write

_HEADING = re.compile(r"^\s*(?:#{1,6}\s*|\*\*)([^#*]{1,60}?)\s*:?\s*(?:\*\*)?\s*:?\s*$")
_BULLET = re.compile(r"^\s*(?:[-*•+]\s+|\d{1,2}[.)]\s+)")
_BRACKETS = re.compile(r"\[([^\[\]\n]{1,200})\]$", re.MULTILINE)
_QUOTES = "\"'“”„«»「」『』‘’"
_NOTHING = re.compile(r"^\W*(?:none|nothing|n/?a|无|なし|없음)\W*$", re.IGNORECASE)


def answer_of(
    text: str, entries: Sequence[Entry], known: Sequence[str] = ()
) -> tuple[Answer, list[Fact]]:
    """Return what a model found, and the statements of the user that it named as binding.

    Lines under headings that were not asked for count as findings. A name in brackets that is no
    message's is left out. A statement counts only if the message that it cites says so, word for
    word.

    Args:
        text: the answer.
        entries: the messages that it was given.
        known: names of earlier messages that it may cite.

    Example:
        >>> answer_of("## Goal\\n- ship it\\n## Found and decided\\n- a stale cache", [])[0].found
        ['a stale cache']
    """
    by_cite = {entry.cite: entry for entry in entries}
    names = {*by_cite, *known}
    sections: dict[str, list[str]] = {"goal": [], "next": [], "binding": [], "found": []}
    at = "found"
    for line in text.strip().splitlines():
        heading = _HEADING.match(line)
        if heading:
            word = heading[1].strip().casefold()
            at = next((name for name in sections if word.startswith(name)), "found")
            continue
        if line.strip() and not line.strip().startswith("```") and not _NOTHING.match(line):
            bare = _BULLET.sub("", line.strip())
            if bare == line.strip() and line.startswith("  ") and sections[at]:
                sections[at][-1] += " " + bare
            else:
                sections[at].append(bare)
    lines = {name: [_true(line, names) for line in said] for name, said in sections.items()}
    facts = [fact for line in sections["binding"] if (fact := _quoted(line, by_cite)) is not None]
    return Answer(lines["found"], lines["goal"], lines["next"]), facts


def _true(line: str, names: set[str]) -> str:
    """Return a line as data, without names that are no message's."""
    text, cites = apart(as_notes(line).strip())  # two blanks in code are two
    there = [name for name in cites if name in names]
    return cited(text, there) if there or not cites else text


def _quoted(line: str, by_cite: Mapping[str, Entry]) -> Fact | None:
    """Return the statement that a line names, if the cited message holds it."""
    text, cites = apart(line.strip())
    cited = (by_cite[name] for name in cites if name in by_cite)
    facts = (quoted(entry, text.strip().strip(_QUOTES)) for entry in cited)
    return next((fact for fact in facts if fact is not None), None)


CONTEXT = 2_000
"""Tokens of earlier notes that a model is shown at most."""

LARGEST = 4_096
"""Tokens that a model is asked for at most."""

SHARE = 0.5
"""Share of the room that a model is asked to fill: it tells what a line on a deed cannot."""

LEAST = 200
"""Tokens that a model is asked for where half of the room is as much."""

HEADINGS = 24
"""Tokens of the headings around a text that stands alone."""

SAID_SHOWN = 600
"""Characters of one message of the user's among them."""

VIEW_SHOWN = 4_000
"""Characters of the first, most often the task itself, and of the newest that stays in view; less
in a small room."""

FEW = 8
"""Findings up to one part in so many of the room stay beside new ones, whatever those take."""

BESIDE = 0.15
"""Share of the room for a model's goal and next step, and for what is open and archived."""

TIGHT = 400
"""Tokens up to which all the room is offered to a summariser that writes a whole summary."""


def for_model(request: SummaryRequest, *, whole: bool) -> SummaryRequest:
    """Return the request as a model gets it: only its own part, in its own share of the room."""
    notes, limit, count = Notes.parse(request.standing), request.limit, request.count
    if whole:
        standing = notes.summary or notes.before
        if count(standing) > limit:  # it is among the messages, and is read with them
            standing = ""
        most = limit if limit <= TIGHT else limit // 2
        return replace(request, standing=standing, limit=min(most, LARGEST))
    old = [items(text) for text in notes.segments]
    said = [line for one in old for line in one.get(SAID, ())]
    shown = min(VIEW_SHOWN, max(2 * limit, SAID_SHOWN))  # a model's window may be small, too
    said = [
        _shown(line, SAID_SHOWN if place else shown, request) for place, line in enumerate(said)
    ]
    found = [line for one in old for line in one.get(FOUND, ())]
    open_ = [line for line in notes.now.get(OPEN, ()) if not line.startswith(UNDER_WAY)]
    now = section((GOAL, OPEN, NEXT), {**notes.now, OPEN: open_})
    users = [entry for entry in request.kept[: request.ahead] if entry.role == "user"]
    named = {name for line in said for name in apart(line)[1]}
    ahead = [
        _shown(cited(as_notes(one.text), [one.cite]), shown, request)
        for one in users[-1:]
        if one.cite not in named
    ]
    over = count("\n".join([*said, *ahead, *found])) - CONTEXT
    anew = _outgrown(request, notes)
    if not anew:  # what is replaced is shown whole
        found, over = _later(found, over, count)
    if len(said) > 1:
        said = [said[0], *_later(said[1:], over, count, least=1)[0]]
    before = notes.before if count(notes.before) <= CONTEXT else ""
    heading = ANEW if anew else STAYS
    lines = {SAID: said, IN_VIEW: ahead, heading: found}
    parts = (before, section((SAID, IN_VIEW, heading), lines), now)
    standing = "\n".join(part for part in parts if part)
    return replace(request, standing=standing, limit=_asked(request, notes))


def _shown(line: str, most: int, request: SummaryRequest) -> str:
    """Return words of the user, of a long message those that stand first in the notes, too."""
    if len(line) <= most:
        return line
    room = request.count(line) * most // len(line)
    [chosen] = users_words.chosen([line], room, request.count, request.ledger)
    text, cites = apart(line)
    return chosen or cited(cut(text, most), cites)


def _asked(request: SummaryRequest, notes: Notes) -> int:
    """Tokens of the answer: what can stand beside the user's words and the deeds."""
    limit = request.limit
    fitting = int(limit * BESIDE) + _findings_room(request, notes)
    return min(LARGEST, max(min(int(limit * SHARE), fitting), min(limit // 2, LEAST), 1))


def _findings_room(request: SummaryRequest, notes: Notes) -> int:
    """Tokens of findings that can stand beside the user's words and some deeds."""
    before = [line for text in notes.segments for line in items(text).get(SAID, ())]
    said = tokens_of(request.count, [*before, *users_words.said(request.entries, before)])
    limit, parts = request.limit, request.shares.parts or PARTS
    words = min(said, int(limit * request.shares.said)) if "said" in parts else 0
    return int((limit * (1 - BESIDE) - words) * (WRITTEN if "done" in parts else 1))


def _outgrown(request: SummaryRequest, notes: Notes) -> bool:
    """Whether the findings so far and new ones do not fit, so that the new ones replace them.

    Only where a model can be shown all of them.
    """
    found = [line for text in notes.segments for line in items(text).get(FOUND, ())]
    size = tokens_of(request.count, found)
    new = _asked(request, notes) * 3 // 4  # the rest is its goal, its next step and what binds
    few = request.limit // FEW
    return few < size <= CONTEXT and size + new > _findings_room(request, notes)


def _later(
    lines: list[str], over: int, count: Callable[[str], int], least: int = 0
) -> tuple[list[str], int]:
    """Return the last lines, without so many tokens, and the tokens still over."""
    gone = 0
    while over > 0 and gone < len(lines) - least:
        over -= max(1, count(lines[gone]))
        gone += 1
    return lines[gone:], over


def composed(
    request: SummaryRequest, text: str, *, whole: bool, most: int, live: bool = False
) -> tuple[str, list[Fact]]:
    """Return the notes with a summariser's text in its place, and what it named as binding.

    Args:
        request: what leaves, the notes so far, and the room for all of it.
        text: what the summariser has written.
        whole: it is a summary of all that came before.
        most: tokens that the notes may take where the summariser's text is a long one.
        live: its model saw the messages in their own roles, in which anybody's text may give it
            orders: whatever it says counts as findings, and sets no goal and no next step.
    """
    notes = Notes.parse(request.standing)
    anew = _outgrown(request, notes)
    text = as_notes(text.strip().removeprefix(SUMMARY_LINE).strip())
    limit = min(most, max(request.limit, request.count(text) + HEADINGS))
    request = replace(request, limit=max(limit, 1))
    if whole:
        return write(request, Answer(summary=text)), []
    known = set(re.findall(r"[\w.:-]+", " ".join(_BRACKETS.findall(request.standing))))
    known |= {entry.cite for entry in request.kept[: request.ahead]}
    answer, facts = answer_of(text, request.entries, sorted(known))
    if live:
        answer = Answer([*answer.goal, *(answer.found or ()), *answer.next])
    if anew and answer.found:
        old = [items(text) | {FOUND: []} for text in notes.segments]
        request = replace(request, standing=with_segments(notes, old).render())
    return write(replace(request, ledger=request.ledger.merged(facts)), answer), facts
