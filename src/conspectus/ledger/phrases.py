"""Phrases as people write them in a list, and where a sentence has one of them.

A list holds phrases divided by ` / ` or by lines. In a phrase

    word*       is any word that starts so
    (a|b)       is one of these
    ...         is up to five words, or none
    #           is a number, in digits or as a word
    ^ at first  is where a sentence or a clause begins

and in scripts without spaces `…` is up to twelve characters. Case does not matter. The work is
linear in the sentence: phrases are looked up by the first word, never tried one after another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Characters of scripts that are read without looking at spaces."""

REMEMBERED = 64
"""Texts whose words are remembered, as each is looked through for many lists of phrases."""

READ = 2_000
"""Characters of a text that are looked through: a sentence is shorter, and more is data."""

_HAS_CJK = re.compile(f"[{CJK}]")
_TOKEN = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*['’]?")
_ELEMENT = re.compile(r"\([^)]*\)|\S+")
_NUMBER = (
    r"(?:[€$£¥]\s?)?\d[\d.,:/'-]*\w*|one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|thirty"
    r"|half|einen?|eine[rmn]?|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|zwölf|halbe\w?"
    r"|un|una|uno|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|media|une|deux|trois|quatre|cinq"
    r"|huit|neuf|dix|douze"
)
_BETWEEN = r"[\s,:;\"'“”„«»()–-]+"
_GAP = rf"(?:{_BETWEEN}[^\s.!?;]+){{0,5}}?"
_CLAUSE = re.compile(
    r"(?:^|[,:;–—(\"“„«]|\s-|\b(?:please|and|but|also|so|or|then|bitte|und|aber|also|favor|y|pero"
    r"|plaît|et|mais|alors))[\s\"“„«*_]*$",
    re.IGNORECASE,
)


_Token = tuple[int, tuple[tuple[str, int], ...]]
"""A word of a text: where it is, and what a phrase that starts with it may be filed under."""


class _Tokens(NamedTuple):
    text: str
    tokens: tuple[_Token, ...]
    keys: frozenset[str]
    wide: bool


@lru_cache(REMEMBERED)
def _tokens(text: str) -> _Tokens:
    """The words of a text; it is read once for the many lists of phrases that are looked for."""
    text = text[:READ].replace("’", "'")
    tokens: list[_Token] = []
    every = {""}
    for token in _TOKEN.finditer(text):
        word, at = token[0].lower(), token.start()
        keys = [(word, at), (word[:3] + "*", at)]
        if "'" in word:
            head, _, rest = word.partition("'")
            # What is elided in French stands before the word that counts.
            keys += [(head, at), (f"{head}'", at), (f"{head}'*", at)]
            keys += [(rest, at + len(head) + 1), (rest[:3] + "*", at + len(head) + 1)]
        elif "-" in word:
            keys.append((word.partition("-")[0], at))
        if word[:1].isdigit():
            keys.append(("#", at))
        tokens.append((at, tuple(dict.fromkeys(keys)) if len(keys) > 2 else tuple(keys)))
        for key, _ in keys:
            every.add(key)
    return _Tokens(text, tuple(tokens), frozenset(every), _HAS_CJK.search(text) is not None)


class Phrases:
    """Phrases of one purpose, ready to be looked for.

    Args:
        lists: the phrases, as this module says.

    Example:
        >>> Phrases(["never / at most #"]).places("Use at most three of them.")
        [(4, 17)]
    """

    def __init__(self, lists: Iterable[str]) -> None:
        self._by_word: dict[str, list[re.Pattern[str]]] = {}
        self._by_start: dict[str, list[re.Pattern[str]]] = {}
        self._any: list[re.Pattern[str]] = []
        self._clauses: set[re.Pattern[str]] = set()
        wide = []
        for phrase in phrases(lists):
            if _HAS_CJK.search(phrase):
                wide.append(_wide(phrase))
            else:
                self._add(phrase)
        wide.sort(key=len, reverse=True)
        self._wide = re.compile("|".join(wide), re.IGNORECASE) if wide else None
        self._keys = frozenset((*self._by_word, *self._by_start, *(("",) if self._any else ())))

    def _add(self, phrase: str) -> None:
        clause = phrase.startswith("^")
        elements = _ELEMENT.findall(phrase.removeprefix("^"))
        pattern = re.compile(_narrow(elements), re.IGNORECASE)
        if clause:
            self._clauses.add(pattern)
        first = elements[0].lower()
        for word in first.strip("()").split("|"):
            if word == "*":
                self._any.append(pattern)
            elif word == "#":
                self._by_start.setdefault("#", []).append(pattern)
            elif word.endswith("*"):
                self._by_start.setdefault(word.rstrip("*")[:3] + "*", []).append(pattern)
            else:
                key = _TOKEN.match(word)
                self._by_word.setdefault(key[0] if key else word, []).append(pattern)

    def places(self, text: str) -> list[tuple[int, int]]:
        """Where the text has one of the phrases: start and end of each, in characters."""
        return list(self._found(text))

    def first(self, text: str) -> int:
        """Where the first one starts; -1 if there is none."""
        return min((start for start, _ in self._found(text)), default=-1)

    def __contains__(self, text: str) -> bool:
        return next(self._found(text), None) is not None

    def _found(self, text: str) -> Iterator[tuple[int, int]]:
        read = _tokens(text)
        if not read.keys.isdisjoint(self._keys):
            known = self._keys
            for token in read.tokens:
                if self._any or any(key in known for key, _ in token[1]):
                    yield from self._at(read.text, token)
        if self._wide is not None and read.wide:
            for match in self._wide.finditer(read.text):
                yield match.span()

    def _at(self, text: str, token: _Token) -> Iterator[tuple[int, int]]:
        """The phrases that start with one word of a text."""
        start, keys = token
        for key, at in keys:
            if key in self._keys:
                yield from self._tried(text, at, self._by_word.get(key, ()))
                yield from self._tried(text, at, self._by_start.get(key, ()))
        if self._any and _CLAUSE.search(text, max(0, start - 24), start):
            yield from self._tried(text, start, self._any)

    def _tried(
        self, text: str, at: int, patterns: Iterable[re.Pattern[str]]
    ) -> Iterator[tuple[int, int]]:
        for pattern in patterns:
            match = pattern.match(text, at)
            if match and (
                pattern not in self._clauses or _CLAUSE.search(text, max(0, at - 24), at)
            ):
                yield match.span()


def phrases(lists: Iterable[str]) -> Iterator[str]:
    """The single phrases of lists."""
    for text in lists:
        for line in text.split("\n"):
            for phrase in line.split(" / "):
                if phrase := phrase.strip():
                    yield phrase


def clear(found: Phrases, but: Phrases, text: str) -> list[tuple[int, int]]:
    """Where the text has a phrase that is no part of another one, which means something else."""
    places = found.places(text)
    if places:
        masked = but.places(text)
        places = [
            p for p in places if not any(p[0] < end and start < p[1] for start, end in masked)
        ]
    return places


def _narrow(elements: list[str]) -> str:
    """A pattern for the words of a phrase, for scripts with spaces."""
    pattern, gap = "", False
    for place, element in enumerate(elements):
        if element == "...":
            pattern += _GAP
            gap = True
            continue
        if place and (pattern or gap):
            pattern += _BETWEEN if not pattern.endswith(_BETWEEN) else ""
        pattern += _one(element)
        gap = False
    return pattern


def _one(element: str) -> str:
    if element == "#":
        return rf"(?:{_NUMBER})(?!\w)"
    if element == "*":
        return r"\w+"
    options = element.strip("()").split("|") if element.startswith("(") else [element]
    made = []
    for option in options:
        if option == "#":
            made.append(_NUMBER)
        elif option.endswith("*"):
            made.append(re.escape(option.rstrip("*")) + r"[\w'-]*")
        else:
            made.append(re.escape(option))
    tail = "" if not element[-1].isalnum() and element[-1] not in ")*" else r"(?!\w)"
    return f"(?:{'|'.join(made)}){tail}"


def _wide(phrase: str) -> str:
    """A pattern for a phrase of a script without spaces."""
    return "".join(
        ".{0,12}?"
        if part in ("…", " … ")
        else part
        if part in "()|"
        else r"\d+"
        if part == "#"
        else re.escape(part)
        for part in re.split(r"( … |…|[()|#])", phrase)
        if part
    )
