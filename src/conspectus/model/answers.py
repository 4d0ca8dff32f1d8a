"""What the findings say that a summariser has answered."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from conspectus.messages import SUMMARY_LINE, Message
from conspectus.messages.harmless import as_notes
from conspectus.messages.users import is_by_user
from conspectus.model.base import SummaryRequest
from conspectus.model.headings import heading_of, section_of
from conspectus.notes.data import Answer

SECTIONS = ("goal", "next", "rules", "found")
"""The parts of an answer. Text under any other heading counts as found."""

MOST_BINDING_STATEMENTS = 5
"""Statements of the user that an answer may quote as binding."""

MOST_BINDING_TRIES = 4 * MOST_BINDING_STATEMENTS
"""Lines that are looked up among the user's words, as each look-up reads a whole message."""

SHORTEST_UNCITED = 6
"""Characters from which on a statement that cites no message is looked for in all of them."""

WORDLESS_TOKENS = 3
"""A line without a source and with at most so many tokens says nothing, such as "None."."""

_DASH = re.compile(r"(?:[-*•+–—]|\d{1,2}[.)])\s+")
_GROUP = re.compile(r"[\[(【（]([^\[\]()【】（）\n]{1,200})[\])】）]")
_NOTES_CITATION = re.compile(r"\[([^\[\]\n]{1,200})\]\s*$")  # as the notes write it
_SEPARATORS = str.maketrans(dict.fromkeys(",;&、，；", " "))
_QUOTES = "\"'“”„«»「」『』‘’"
_BETWEEN_GROUPS = " .;,。"


class Statement(NamedTuple):
    """One line of an answer."""

    text: str
    ids: tuple[str, ...]  # of the messages that it cites
    is_listed: bool  # it begins with a dash or a number


def answer_of(text: str, request: SummaryRequest) -> Answer:
    """Return what an answer in the form `"findings"` says.

    Remarks are left out: text before the first heading, and lines with neither a dash nor a source.
    The answer to an agent's last request sets no goal and no next step, as any text in that request
    may have ordered one. Such lines count as findings.
    """
    sections = _statements(text, request)
    found = [line for line in sections["found"] if _says_something(line, request)]
    if any(line.ids for lines in sections.values() for line in lines):
        # If the model cites nothing at all, it may write no list either.
        found = [line for line in found if line.ids or line.is_listed]
    goal = sections["goal"]
    next_step = sections["next"]
    if request.last is not None:
        found = [*goal, *found, *next_step]
        goal = []
        next_step = []
    return Answer(
        found=[(line.text, line.ids) for line in found],
        goal=[line.text for line in goal],
        next=[line.text for line in next_step],
        binding=_binding_statements(sections["rules"], request),
    )


def _says_something(line: Statement, request: SummaryRequest) -> bool:
    return bool(line.ids) or request.count(line.text) > WORDLESS_TOKENS


def _binding_statements(lines: list[Statement], request: SummaryRequest) -> list[tuple[str, str]]:
    """Return the statements that stand in a message of the user, each with its id.

    A line that cites no message is looked for in all of them.
    """
    entries = {entry.cite: entry for entry in request.entries}
    lines = lines[:MOST_BINDING_TRIES]
    searched: dict[str, str] = {}
    if not all(line.ids for line in lines):
        searched = {
            cite: _without_spaces(entry.own) for cite, entry in entries.items() if is_by_user(entry)
        }
    distinct: dict[tuple[str, str], None] = {}
    for line in lines:
        for cite in line.ids or _ids_of_newest(line.text, searched):
            words = _quotation_of(line.text, entries.get(cite))
            if words:
                distinct[words, cite] = None
    return list(distinct)[:MOST_BINDING_STATEMENTS]


def _ids_of_newest(statement: str, searched: Mapping[str, str]) -> list[str]:
    """Return the id of the newest message that contains a statement; none for a mere word."""
    sought = _without_spaces(statement.strip().strip(_QUOTES))
    if len(sought) < SHORTEST_UNCITED:
        return []
    return [cite for cite, text in searched.items() if sought in text][-1:]


def _without_spaces(text: str) -> str:
    """Return a text without spaces, so that line breaks do not matter when it is compared."""
    return "".join(text.split())


def _quotation_of(statement: str, entry: Message | None) -> str:
    """Return a statement as a message of the user has it; empty if the message does not."""
    sought = _without_spaces(statement.strip().strip(_QUOTES))
    if entry is None or not is_by_user(entry) or not sought:
        return ""
    positions = [position for position, char in enumerate(entry.own) if not char.isspace()]
    start = _without_spaces(entry.own).find(sought)
    if start < 0:
        return ""
    end = start + len(sought) - 1
    return entry.own[positions[start] : positions[end] + 1]


def _statements(text: str, request: SummaryRequest) -> dict[str, list[Statement]]:
    """Return the lines of an answer by the section under which they stand."""
    names = _citable_names(request)
    return {
        section: [_statement(line, is_listed, names) for line, is_listed in lines]
        for section, lines in _sections(text).items()
    }


def _sections(text: str) -> dict[str, list[tuple[str, bool]]]:
    """Divide an answer into lines under our headings, each with whether a dash begins it.

    An indented line continues the line before it. Text before the first heading is left out.
    """
    sections: dict[str, list[tuple[str, bool]]] = {name: [] for name in SECTIONS}
    current = sections["found"]
    has_heading = False
    for line in text.strip().removeprefix(SUMMARY_LINE).splitlines():
        bare = line.strip()
        dash = _DASH.match(bare)
        heading = heading_of(bare)
        if heading:
            if not has_heading:
                current.clear()
            has_heading = True
            current = sections[section_of(heading) or "found"]
        elif current and bare and not dash and line.startswith("  "):
            beginning, is_listed = current[-1]
            current[-1] = (f"{beginning} {as_notes(bare)}", is_listed)
        elif bare and not bare.startswith("```"):
            current.append((as_notes(bare[dash.end() :] if dash else bare), bool(dash)))
    return sections


def _citable_names(request: SummaryRequest) -> dict[str, str]:
    """Return the ids that an answer may cite, by each name that models write for them."""
    names = dict[str, str]()
    for line in request.summary_so_far.splitlines():
        citation = _NOTES_CITATION.search(line)
        if citation:
            names |= {name: name for name in _words_of_citation(citation)}
    for entry in (*request.entries, *request.kept[: request.kept_before_last_evicted]):
        names |= dict.fromkeys((entry.key, entry.id, entry.cite), entry.cite)
    return names


def _statement(line: str, is_listed: bool, names: Mapping[str, str]) -> Statement:
    """Take the citations out of a line, and the brackets at its end that hold them."""
    ids = list[str]()
    end = len(line)
    for group in reversed([*_GROUP.finditer(line)]):
        is_last = not line[group.end() : end].strip(_BETWEEN_GROUPS)
        words = _words_of_citation(group)
        is_citation = is_last and group[0][0] in "[【"
        if not is_citation:  # a number in parentheses is a number
            words = [word for word in words if not word.isdecimal()]
        cited = [names[name] for word in words for name in _cited_names(word, names)]
        ids[:0] = cited
        if is_last and cited:
            end = group.start()
    return Statement(line[:end].rstrip(), tuple(dict.fromkeys(ids)), is_listed)


def _cited_names(word: str, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return a name, or both ends of a range such as `m3-m7`; nothing for other words."""
    return next((cited for cited in _readings_of(word) if all(map(names.__contains__, cited))), ())


def _readings_of(word: str) -> Iterator[tuple[str, ...]]:
    yield (word,)
    for position, char in enumerate(word):
        if char in "-–—":
            yield word[:position], word[position + 1 :]


def _words_of_citation(group: re.Match[str]) -> list[str]:
    return group[1].translate(_SEPARATORS).split()
