"""Terms of a text for search: words, identifiers whole and in parts, and scripts without spaces.

The same rules read messages and queries. What they give is safe inside an FTS5 expression: no
term holds a quote, a space or an operator.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST = 80
"""Characters of a term that count; a longer one is data, and is not taken apart."""

MOST_TERMS = 64
"""Different terms of a query that count."""

# Han, Kana, Hangul; and Thai, Lao, Myanmar and Khmer, which use no spaces either.
_DENSE = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff\u1100-\u11ff\uac00-\ud7af\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)
_PIECE = re.compile(
    rf"(?P<dense>[{_DENSE}]+)"
    rf"|(?P<name>(?:(?![{_DENSE}])\w)+(?:[-./\\:@#+]+(?:(?![{_DENSE}])\w)+)*)"
)
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+|[^\W_]+")
_SEGMENT = re.compile(r"[/\\:@#+]+")
_ASIDE = "¤"
"""Opens a term that holds other ASCII than letters and digits, written in hexadecimal."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a text is found by.

    Attributes:
        words: stems, parts of identifiers, characters and bigrams, in order, with repeats.
        wholes: identifiers as they stand, and those inside paths and addresses.
    """

    words: tuple[str, ...]
    wholes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """What a query asks for.

    Attributes:
        words: terms, each once.
        wholes: identifiers as they stand, each once.
        single: characters of scripts without spaces, for when nothing else is found.
        surfaces: pieces of the query as they may stand in a text, to find the best place in it.
    """

    words: tuple[str, ...]
    wholes: tuple[str, ...]
    single: tuple[str, ...]
    surfaces: tuple[str, ...]


def terms_of(text: str) -> Terms:
    """The terms of a message.

    Example:
        >>> terms_of("getUser failed").words
        ('get', 'user', 'fail')
    """
    words: list[str] = []
    wholes: list[str] = []
    for kind, piece in _pieces(text):
        if kind == "dense":
            words += piece
            words += (piece[i : i + 2] for i in range(len(piece) - 1))
        else:
            words += (_safe(stem(part)) for part in _parts(piece))
            wholes += (_safe(whole) for whole in _wholes(piece))
    return Terms(tuple(words), tuple(wholes))


def query_of(text: str) -> Query:
    """The terms of a query; no words at all where it is empty or only punctuation."""
    words: list[str] = []
    wholes: list[str] = []
    single: list[str] = []
    surfaces: list[str] = []
    for kind, piece in _pieces(text):
        if kind == "dense":
            pairs = [piece[i : i + 2] for i in range(len(piece) - 1)]
            words += pairs or [piece]
            single += piece
            surfaces += pairs or [piece]
        else:
            parts = _parts(piece)
            words += (_safe(stem(part)) for part in parts)
            surfaces += (stem(part) for part in parts)
            for whole in _wholes(piece):
                wholes.append(_safe(whole))
                surfaces.append(whole)
    some = [tuple(dict.fromkeys(terms))[:MOST_TERMS] for terms in (words, wholes, single, surfaces)]
    return Query(*some)


def stem(word: str) -> str:
    """An English word without its ending, so that `fails`, `failed` and `failing` meet.

    Example:
        >>> [stem(word) for word in ("caches", "cached", "running", "class", "bus")]
        ['cach', 'cach', 'run', 'class', 'bus']
    """
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending, least in (("ing", 6), ("ed", 5)):
        if word.endswith(ending) and len(word) >= least:
            word = word[: -len(ending)]
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    for match in _PIECE.finditer(unicodedata.normalize("NFKC", text)):
        yield match.lastgroup or "", match.group()


def _parts(name: str) -> list[str]:
    if len(name) > LONGEST and not any(mark in name for mark in "/._-\\"):
        return [name[:LONGEST].casefold()]
    return [part.casefold()[:LONGEST] for part in _PART.findall(name)]


def _wholes(name: str) -> Iterator[str]:
    """An identifier, its segments, and their segments: a path, its file's name, the bare name."""
    seen = set()
    segments = _SEGMENT.split(name)
    for one in (name, *segments, *(bare for part in segments for bare in part.split("."))):
        if one not in seen and len(_PART.findall(one[:LONGEST])) > 1:
            seen.add(one)
            yield one[:LONGEST].casefold()


def _safe(term: str) -> str:
    if all(ord(c) > 127 or c.isalnum() for c in term):
        return term
    return _ASIDE + term.encode("utf-8", "replace").hex()
