"""Which rules the lines have: in order, and with later sentences about the same matter."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice, pairwise

from conspectus.notes.data import Line
from conspectus.rules.sentences import sentence_ends

RuleFinder = Callable[[str], Sequence[str]]
"""Returns the statements of a text that bind, word for word."""

FEW_MESSAGES = 4
"""A name tells what a message is about if at most so many messages of the user have it."""

_TOKEN = re.compile(r"[「『“‘«][^」』”’»\n]{2,20}[」』”’»]|[\w./@:-]+")
"""A word, a path, or what stands in quotation marks."""

_IN_OTHER_LETTERS = re.compile(r"[A-Za-z]{2,}")


def in_order(text: str, rules: Iterable[str]) -> tuple[str, ...]:
    """Return the rules that a text contains, in their order, without those inside others.

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


def add_later_statements(
    before: Sequence[Line], lines: Sequence[Line], find_rules: RuleFinder
) -> None:
    """Add sentences that name what an earlier rule names to the rules of their lines.

    So a rule never stands without what the user has said about the same matter later, such as that
    it holds no more.

    Args:
        before: the lines so far.
        lines: the new lines, whose rules are added to.
        find_rules: returns the rules of a text. Only their names are looked for in later lines,
            and not the names in sentences that were added here.
    """
    said = [line for line in (*before, *lines) if line.kind == "said" and not line.is_tally]
    texts = [line.text.casefold() for line in said]
    telling_names = _TellingNames(texts)
    named: set[str] = set()

    def add_names(line: Line) -> None:
        if line.kind == "said":
            named.update(telling_names.among(rule for rule in line.rules if find_rules(rule)))

    for line in before:
        add_names(line)
    for line in lines:
        if line.kind == "said" and not line.same_as and named:
            about = [sentence for sentence in _sentences(line.text) if _holds_any(sentence, named)]
            line.rules = in_order(line.text, [*line.rules, *about])
        add_names(line)


def _holds_any(text: str, names: Iterable[str]) -> bool:
    plain = text.casefold()
    return any(name in plain for name in names)


class _TellingNames:
    """Names that tell what a message is about, as few messages have them.

    Args:
        texts: all messages of the user, in small letters.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._tells: dict[str, bool] = {}

    def among(self, rules: Iterable[str]) -> set[str]:
        """Return such names in rules."""
        names = {name for rule in rules for name in _names(rule)}
        return {name for name in names if self._is_telling(name)}

    def _is_telling(self, name: str) -> bool:
        if name not in self._tells:
            holders = (text for text in self._texts if name in text)
            self._tells[name] = sum(1 for _ in islice(holders, FEW_MESSAGES + 1)) <= FEW_MESSAGES
        return self._tells[name]


def _names(text: str) -> frozenset[str]:
    """Return the names in a text, in small letters, in any language."""
    names = set[str]()
    begins = True  # at the beginning of a sentence, where a capital says nothing
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
