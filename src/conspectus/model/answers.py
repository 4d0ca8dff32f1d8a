"""Findings taken apart: lines under headings, the messages they cite, statements that bind."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from conspectus.messages import SUMMARY_LINE, Entry
from conspectus.messages.framing import as_notes
from conspectus.model.base import SummaryRequest
from conspectus.notes.segment import Answer

SECTIONS = ("goal", "next", "binding", "found")
"""How our headings begin, in small letters; what stands under any other one was found."""

MOST_BINDING = 5
KEY_START = 6  # characters at the start of a key that are read as its message's id
LONGEST_HEADING = 60
WORDLESS = 3  # tokens up to which a line without a source says nothing, such as "None."

_GROUP = re.compile(r"[\[(【（]([^\[\]()【】（）\n]{1,200})[\])】）]")
_SEPARATORS = str.maketrans(dict.fromkeys(",;&、，；", " "))
_DIGITS = str.maketrans("", "", "0123456789")
_DASHES = frozenset("-*•+–—")
_QUOTES = "\"'“”„«»「」『』‘’"


@dataclass(slots=True)
class _Line:
    text: str
    dashed: bool
    ids: tuple[str, ...] = ()


def answer_of(text: str, request: SummaryRequest) -> Answer:
    """Return what an answer in the form `"findings"` says to a request.

    Text before the first heading is left out, and so is a finding with neither a dash nor a source:
    a remark. An answer to the agent's last request sets neither goal nor next step, as any text in
    that may have given the model orders: those lines count as findings.
    """
    lines = _lines(text, request)
    by_cite = {entry.cite: entry for entry in request.entries}
    named = ((_quoted(one.text, by_cite.get(i)), i) for one in lines["binding"] for i in one.ids)
    binding = [(said, i) for said, i in dict.fromkeys(named) if said][:MOST_BINDING]
    goal, then = ([one.text for one in lines[name]] for name in ("goal", "next"))
    said = [one for one in lines["found"] if one.dashed and request.count(one.text) > WORDLESS]
    found = [one for one in lines["found"] if one.ids or one in said]
    if request.last is not None:
        found, goal, then = [*lines["goal"], *found, *lines["next"]], [], []
    return Answer([(one.text, one.ids) for one in found], goal, then, binding)


def cites(text: str, request: SummaryRequest) -> bool:
    """Whether a line cites a message that leaves, or one that the notes so far cite."""
    return any(one.ids for lines in _lines(text, request).values() for one in lines)


def _lines(text: str, request: SummaryRequest) -> dict[str, list[_Line]]:
    sections: dict[str, list[_Line]] = {name: [] for name in SECTIONS}
    at, headed = sections["found"], False
    for line in as_notes(text.strip().removeprefix(SUMMARY_LINE)).splitlines():
        bare = line.strip()
        if heading := _heading(bare):
            if not headed:
                at.clear()
            headed = True
            at = sections[next((n for n in SECTIONS if heading.startswith(n)), "found")]
        elif bare and not bare.startswith("```"):
            said = _without_dash(bare)
            if said == bare and line.startswith("  ") and at:
                at[-1].text += " " + bare
            else:
                at.append(_Line(said, said != bare))
    sources = _Sources(request)
    for one in (one for lines in sections.values() for one in lines):
        one.text, one.ids = sources.split(one.text)
    return sections


def _heading(line: str) -> str:
    """Return the words of a heading in small letters; empty for any other line."""
    marked = line.startswith("#") and line.lstrip("#")[:1] == " "
    bold = line.startswith("**") and line.rstrip(": ").endswith("**")
    return line.strip("#*: ").casefold() if len(line) <= LONGEST_HEADING and marked | bold else ""


def _without_dash(line: str) -> str:
    mark, _, rest = line.partition(" ")
    numbered = len(mark) <= 3 and mark[:-1].isdecimal() and mark[-1:] in (".", ")")
    return rest.strip() if mark in _DASHES or numbered else line


def _quoted(statement: str, entry: Entry | None) -> str:
    """Return a statement as it stands in a message of the user; empty where it does not."""
    wanted = "".join(statement.strip().strip(_QUOTES).split())  # a line may be broken elsewhere
    if entry is None or entry.role != "user" or entry.name or not wanted:
        return ""
    places = [place for place, char in enumerate(entry.own) if not char.isspace()]
    at = "".join(entry.own.split()).find(wanted)
    return entry.own[places[at] : places[at + len(wanted) - 1] + 1] if at >= 0 else ""


class _Sources:
    """The ids that an answer may cite, in the ways in which models write them."""

    def __init__(self, request: SummaryRequest) -> None:
        entries = [*request.entries, *request.kept[: request.ahead]]
        self._names = {name: e.cite for e in entries for name in (e.key, e.id, e.cite)}
        self._keys = sorted(entry.key for entry in entries)
        for line in request.notes.splitlines():
            for group in reversed(list(_GROUP.finditer(line))):
                if line[group.end() :].strip() or group[0][0] != "[":
                    break
                self._names |= {name: self._names.get(name, name) for name in _words(group)}
        self._shapes = {name.translate(_DIGITS) for name in self._names}

    def split(self, line: str) -> tuple[str, tuple[str, ...]]:
        """Return a line and its ids, without brackets at its end that hold ids of any message."""
        found, end = list[str](), len(line)
        for group in reversed(list(_GROUP.finditer(line))):
            last, words = not line[group.end() : end].strip(" .;,。"), _words(group)
            if not (last and group[0][0] in "[【"):  # a number in parentheses is a number
                words = [word for word in words if not word.isdecimal()]
            ids = [name for word in words for name in self._resolved(word)]
            found[:0] = ids
            unknown = words and all(word.translate(_DIGITS) in self._shapes for word in words)
            if last and (ids or unknown):
                end = group.start()
        return line[:end].rstrip(), tuple(dict.fromkeys(found))

    def _resolved(self, word: str) -> Iterator[str]:
        """Return the id that a word stands for, or both ends of a range."""
        dashes = [place for place, char in enumerate(word) if char in "-–—"]
        halves = [(word[:place], word[place + 1 :]) for place in dashes]
        for names in ((word,), *halves):
            found = [name for one in names if (name := self._named(one)) is not None]
            if len(found) == len(names):
                yield from found
                return

    def _named(self, word: str) -> str | None:
        if word in self._names or len(word) < KEY_START:
            return self._names.get(word)
        at = bisect_left(self._keys, word)
        begun = at < len(self._keys) and self._keys[at].startswith(word)
        return self._names[self._keys[at]] if begun else None


def _words(group: re.Match[str]) -> list[str]:
    return group[1].translate(_SEPARATORS).split()
