"""Which words of a line bind, beside those that a search has found."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from conspectus.notes.data import Line
from conspectus.rules.sentences import sentence_ends

FEW_MESSAGES = 4
"""A name tells what a message is about if at most so many messages of the user have it."""

_TOKEN = re.compile(r"[「『“‘«][^」』”’»\n]{2,20}[」』”’»]|[\w./@:-]+")
"""A word, a path, or what stands in quotation marks."""

_IN_OTHER_LETTERS = re.compile(r"[A-Za-z]{2,}")


def in_order(text: str, rules: Iterable[str]) -> tuple[str, ...]:
    """Return the rules that stand in a text, in their order, without those within others.

    Example:
        >>> in_order("Ask first. Never push.", ["Never push.", "Ask", "Ask first.", "Wait."])
        ('Ask first.', 'Never push.')
    """
    places = {rule: text.find(rule) for rule in rules if rule}
    behind = 0
    chosen: list[str] = []
    for rule, place in sorted(places.items(), key=lambda pair: (pair[1], -len(pair[0]))):
        if place >= behind:
            chosen.append(rule)
            behind = place + len(rule)
    return tuple(chosen)


def lines_of(text: str) -> list[str]:
    """Return the lines of a text that say something: all of a system message binds."""
    return [line for line in map(str.strip, text.splitlines()) if line]


def add_later_statements(before: Sequence[Line], lines: Sequence[Line]) -> None:
    """Add sentences that name what an earlier rule names to the rules of their lines.

    So a rule never stands without what the user has said about the same matter later, such as that
    it holds no more.

    Args:
        before: the lines so far.
        lines: the new lines, whose rules are added to.
    """
    said = [line for line in (*before, *lines) if line.kind == "said" and not line.is_tally]
    messages = Counter(name for line in said for name in _names_of_line(line))
    matters = {name for line in before for name in _matters(line, messages)}
    for line in lines:
        if line.kind == "said" and not matters.isdisjoint(_names_of_line(line)):
            about = [
                sentence
                for sentence in _sentences(line.text)
                if not matters.isdisjoint(_names(sentence))
            ]
            line.rules = in_order(line.text, [*line.rules, *about])
        matters |= _matters(line, messages)


def _matters(line: Line, messages: Counter[str]) -> set[str]:
    """Return the names by which later messages can be about the rules of a line."""
    names = {name for rule in line.rules for name in _names(rule)}
    return {name for name in names if messages[name] <= FEW_MESSAGES}


def _names_of_line(line: Line) -> frozenset[str]:
    names: frozenset[str] | None = line.derived.get("names")
    if names is None:
        names = _names(line.text)
        line.derived["names"] = names
    return names


def _names(text: str) -> frozenset[str]:
    """Return what names things in a text, in any language."""
    names = set[str]()
    begins = True  # a capital says nothing there
    for match in _TOKEN.finditer(text):
        token = match[0].strip("./@:-")
        if _is_name(token, begins):
            names.add(token.casefold())
        elif not token.isascii():
            names.update(word.casefold() for word in _IN_OTHER_LETTERS.findall(token))
        behind = text[match.end() : match.end() + 1]
        begins = match[0][-1] in ".:" or behind in ".!?。！？\n"
    return frozenset(names)


def _is_name(token: str, begins: bool) -> bool:
    """Tell whether a word names a thing by its signs, by its digits or by a capital."""
    if token.isalpha():
        return not begins and len(token) > 2 and token[0].isupper()
    return len(token) > 1 and not token.isdecimal()


def _sentences(text: str) -> list[str]:
    ends = sorted({0, *sentence_ends(text), len(text)})
    return [text[start:end].strip() for start, end in pairwise(ends)]
