"""Findings taken apart: lines under headings, the messages they cite, statements that bind."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set

from conspectus.messages import SUMMARY_LINE, Message
from conspectus.messages.framing import as_notes
from conspectus.model.base import SummaryRequest
from conspectus.notes.segment import Answer

# How our headings begin, in small letters; what stands under any other one was found
SECTIONS = ("goal", "next", "binding", "found")
MOST_BINDING = 5
LONGEST_HEADING = 60
WORDLESS = 3  # tokens up to which a line without a source says nothing, such as "None."

_DASH = re.compile(r"(?:[-*•+–—]|\d{1,2}[.)])\s+")
_GROUP = re.compile(r"[\[(【（]([^\[\]()【】（）\n]{1,200})[\])】）]")
_CITED = re.compile(r"\[([^\[\]\n]{1,200})\]\s*$")  # as the notes do
_SEPARATORS = str.maketrans(dict.fromkeys(",;&、，；", " "))
KEY, _HEX = 8, frozenset("0123456789abcdef")
_DIGITS = str.maketrans("", "", "0123456789")
_QUOTES = "\"'“”„«»「」『』‘’"

Line = tuple[str, tuple[str, ...], bool]  # text, ids, whether it begins with a dash


def answer_of(text: str, request: SummaryRequest) -> Answer:
    """Return what an answer in the form `"findings"` says to a request.

    Remarks are left out: text before the first heading, lines with neither a dash nor a source. An
    answer to the agent's last request sets no goal and no next step, as any text in that may have
    given the model orders: those lines count as findings.
    """
    lines, count = _lines(text, request), request.count
    by_cite = {entry.cite: entry for entry in request.entries}
    some = lines["binding"][: 4 * MOST_BINDING]  # looking for each takes time
    named = ((_quoted(said, by_cite.get(i)), i) for said, ids, _ in some for i in ids)
    binding = [(said, i) for said, i in dict.fromkeys(named) if said][:MOST_BINDING]
    goal, then = ([said for said, *_ in lines[name]] for name in ("goal", "next"))
    some = [line for line in lines["found"] if line[1] or count(line[0]) > WORDLESS]
    found = [line for line in some if line[1] or line[2]]
    if not any(any(ids for _, ids, _ in part) for part in lines.values()):
        found = some  # a model that cites nothing may write no list either
    if request.last is not None:
        found, goal, then = [*lines["goal"], *found, *lines["next"]], [], []
    return Answer([(said, ids) for said, ids, _ in found], goal, then, binding)


def cites(text: str, request: SummaryRequest) -> bool:
    """Whether a line cites a message that leaves, or one that the notes so far cite."""
    return any(ids for lines in _lines(text, request).values() for _, ids, _ in lines)


def _lines(text: str, request: SummaryRequest) -> dict[str, list[Line]]:
    sections: dict[str, list[tuple[str, bool]]] = {name: [] for name in SECTIONS}
    at, headed = sections["found"], False
    for line in text.strip().removeprefix(SUMMARY_LINE).splitlines():
        bare = line.strip()
        mark = _DASH.match(bare)
        if heading := _heading(bare):
            if not headed:
                at.clear()
            headed = True
            at = sections[next((n for n in SECTIONS if heading.startswith(n)), "found")]
        elif at and bare and not mark and line.startswith("  "):
            at[-1] = (f"{at[-1][0]} {as_notes(bare)}", at[-1][1])
        elif bare and not bare.startswith("```"):
            at.append((as_notes(bare[mark.end() :] if mark else bare), bool(mark)))
    names = _names(request)
    shapes = set(map(_shape, names))
    return {
        name: [(*_split(said, names, shapes), dash) for said, dash in at]
        for name, at in sections.items()
    }


def _heading(line: str) -> str:
    marked = line.startswith("#") and line.lstrip("#")[:1] == " "
    bold = line.startswith("**") and line.rstrip(": ").endswith("**")
    return line.strip("#*: ").casefold() if len(line) <= LONGEST_HEADING and marked | bold else ""


def _quoted(statement: str, entry: Message | None) -> str:
    """Return a statement as it stands in a message of the user; empty where it does not."""
    wanted = "".join(statement.strip().strip(_QUOTES).split())  # a line may be broken elsewhere
    if entry is None or entry.role != "user" or not wanted:
        return ""
    places = [place for place, char in enumerate(entry.own) if not char.isspace()]
    at = "".join(entry.own.split()).find(wanted)
    return entry.own[places[at] : places[at + len(wanted) - 1] + 1] if at >= 0 else ""


def _names(request: SummaryRequest) -> dict[str, str]:
    """Return what an answer may cite, by the names that models write for it."""
    entries = [*request.entries, *request.kept[: request.ahead]]
    names = {name: e.cite for e in entries for name in (e.key, e.id, e.cite)}
    cited = filter(None, map(_CITED.search, request.notes.splitlines()))
    return {name: name for group in cited for name in _words(group)} | names


def _split(line: str, names: Mapping[str, str], shapes: Set[str]) -> tuple[str, tuple[str, ...]]:
    """Return a line and its ids, without brackets at its end that hold ids of any message."""
    ids, end = list[str](), len(line)
    for group in reversed([*_GROUP.finditer(line)]):
        last, words = not line[group.end() : end].strip(" .;,。"), _words(group)
        if not (last and group[0][0] in "[【"):  # a number in parentheses is a number
            words = [word for word in words if not word.isdecimal()]
        cited = [names[name] for word in words for name in _ends(word, names)]
        ids[:0] = cited
        unknown = words and all(_shape(word) in shapes for word in words)
        if last and (cited or unknown):
            end = group.start()
    return line[:end].rstrip(), tuple(dict.fromkeys(ids))


def _ends(word: str, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return a name, or both ends of a range; nothing for other words."""
    cuts = (place for place, char in enumerate(word) if char in "-–—")
    ways = ((word,), *((word[:cut], word[cut + 1 :]) for cut in cuts))
    return next((way for way in ways if all(name in names for name in way)), ())


def _shape(word: str) -> str:
    # the start of a key has eight hexadecimal digits
    return "key" if len(word) == KEY and set(word) <= _HEX else word.translate(_DIGITS)


def _words(group: re.Match[str]) -> list[str]:
    return group[1].translate(_SEPARATORS).split()
