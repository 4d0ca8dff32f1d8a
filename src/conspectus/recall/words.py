"""The search terms of a text: words, identifiers and their parts, scripts without spaces.

The same rules apply to messages and queries.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

_NAMES = "january february march april may june july august september october november december"
_MONTHS = {name: at for at, name in enumerate(_NAMES.split(), 1)}
_MONTHS |= {name[:3]: at for name, at in list(_MONTHS.items())} | {"sept": 9}
_MONTH = rf"(?P<name>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\b\.?"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_FORMS = [
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"\b{_YEAR}[-/.](?P<month>[01]?\d)(?:[-/.](?P<day>[0-3]?\d))?(?!\d)",
        rf"(?<!\d){_YEAR}\s*年\s*(?P<month>[01]?\d)\s*月(?:\s*(?P<day>[0-3]?\d)\s*[日号號])?",
        r"(?<![\d年])(?P<month>[01]?\d)\s*月\s*(?P<day>[0-3]?\d)\s*[日号號]",
        rf"\b{_DAY}(?: of)? {_MONTH}(?:,? {_YEAR}\b)?",
        rf"\b{_MONTH} {_DAY}\b(?:,? {_YEAR}\b)?",
        rf"\b{_MONTH},? (?:of )?{_YEAR}\b",
    )
]
_NUMERIC, _WIDE, _NAMED = _FORMS[:1], _FORMS[1:3], _FORMS[3:]
_SHORT = tuple(name[:3] for name in _NAMES.split())
_HAS_NAME = re.compile(rf"\b(?=[adfjmnos]){_MONTH}", re.IGNORECASE)

STEMS = 50_000  # Stems cached: finding one takes some 40 microseconds

LONGEST = 80  # Characters of a term that count; a longer one is data, and is not taken apart
MOST_TERMS = 64  # Different terms of a query that count
READ = 8_000  # Characters read at each end of a query, where a question stands

MOST_PARTS = 8
"""Last sentences of a long query that are searched for separately: questions stand there."""

REMEMBERED = 10_000  # Pieces whose terms are cached: most occur in many messages
SHARED = 0.75  # Each of `n` terms made from one piece of a query weighs `n ** -SHARED`

# Han, Kana, Hangul; and Thai, Lao, Myanmar and Khmer, which use no spaces either.
_DENSE = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff\u1100-\u11ff\uac00-\ud7af\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)
_PIECE = re.compile(
    rf"(?P<dense>[{_DENSE}]+)"
    rf"|(?P<name>(?:(?![{_DENSE}])\w)+(?:[-./\\:@#+]+(?:(?![{_DENSE}])\w)+)*)"
)
_SENTENCE = re.compile(r"[.?!;]+(?=\s|$)|[。？！；…\n]+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+|[^\W_]+")
_SEGMENT = re.compile(r"[/\\:@#+]+")
_ASIDE = "¤"  # Opens a term with other ASCII than letters and digits, in hexadecimal


# A query leaves these out unless it holds nothing else; the index keeps them.
ENGLISH = frozenset(
    """
    a an the and or but nor so yet of to in on at for with by from into onto about over under
    between through during is was were are be been being am do does did done doing has have had
    having will would shall should can could might must i me my mine we us our ours you your yours
    he him his she her hers it its they them their theirs this that these those there here what when
    where which who whom whose why how if then than as not no yes any some all both each such other
    s t re ve ll d m don didn doesn isn wasn kind type many much long please
    """.split()
)
"""Compared in small letters; a word in capitals (`IT`, `WHO`) is a name and stays."""

DENSE = re.compile(
    "为什么|什么样|什么|怎么样|怎么|怎样|如何|哪里|哪儿|哪个|哪些|哪家|哪|多少|几个|是不是|有没有|"
    "能不能|能否|请问|一下|何时|谁|吗|呢|啊|的|是|了|"
    "為什麼|什麼|怎麼樣|怎麼|哪裡|哪個|多少|嗎|誰|請問|"
    "でしたか|でした|ですか|です|ましたか|ました|ますか|ます|ください|どうして|どんな|どこ|どの|いつ|"
    "だれ|なぜ|何|誰|무엇|무슨|어디|언제|누구|어떻게|얼마"
)
"""Function words of Chinese, Japanese and Korean, which put no space around them."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a text.

    `words` are stems, parts of identifiers, characters and bigrams, in order, with repeats;
    `wholes` are identifiers, also those inside paths and addresses.
    """

    words: tuple[str, ...]
    wholes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ask:
    """The terms of one sentence of a query, with their weights.

    The parts of one identifier, or bigrams of one run, share a weight little above that of a word.
    `names` are all its words, function words too, as any may name a speaker.
    """

    words: dict[str, float]
    wholes: tuple[str, ...]
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Query:
    """A query as a whole and by sentences, if it has several.

    `single` are characters of scripts without spaces, for when nothing else is found; `surfaces`
    are pieces of the query as they may stand in a text, to find the best excerpt.
    """

    whole: Ask
    parts: tuple[Ask, ...]
    single: tuple[str, ...]
    surfaces: tuple[str, ...]


def terms_of(text: str) -> Terms:
    """Return the terms of a message.

    Example:
        >>> terms_of("getUser failed").words
        ('get', 'user', 'fail')
    """
    words: list[str] = []
    wholes: list[str] = []
    known: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    for kind, piece in _pieces(text):
        if kind == "dense":
            words += piece
            words += (piece[i : i + 2] for i in range(len(piece) - 1))
            continue
        if piece not in known:
            known[piece] = (_taken if len(piece) <= LONGEST else _apart)(piece)
        words += known[piece][0]
        wholes += known[piece][1]
    words += date_terms(text)
    return Terms(tuple(words), tuple(wholes))


def _apart(piece: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the terms of a piece, and the identifiers in it."""
    parts = tuple([_safe(stem(part)) for part in _parts(piece)])
    return parts, tuple([_safe(whole) for whole in _wholes(piece)])


_taken = lru_cache(REMEMBERED)(_apart)


def names_of(text: str) -> tuple[str, ...]:
    """Return the terms of a speaker's name."""
    names: list[str] = []
    for kind, piece in _pieces(text):
        names += _pairs(piece) if kind == "dense" else (_safe(stem(p)) for p in _parts(piece))
    return tuple(dict.fromkeys(names))


def query_of(text: str) -> Query:
    """Return the terms of a query; none if it holds no word."""
    if len(text) > 2 * READ:
        text = f"{text[:READ]}\n{text[-READ:]}"
    whole = _ask(text)
    parts: list[Ask] = []
    for sentence in _SENTENCE.split(text)[-MOST_PARTS:]:
        part = _ask(sentence)
        if len(part.words) + len(part.wholes) > 1:
            parts.append(part)
    surfaces: list[str] = []
    single: list[str] = []
    for kind, piece in _pieces(text):
        if kind == "dense":
            single += (c for run in _runs(piece) or (piece,) for c in run)
            surfaces += (pair for run in _runs(piece) for pair in _pairs(run))
        else:
            surfaces += (stem(part) for part in _parts(piece) if not _empty(part, piece))
            surfaces += _wholes(piece)
    return Query(
        whole,
        tuple(parts) if len(parts) > 1 else (),
        tuple(dict.fromkeys(single))[:MOST_TERMS],
        tuple(dict.fromkeys(surfaces))[:MOST_TERMS],
    )


def _ask(text: str) -> Ask:
    """Return the terms of one sentence, without function words unless there is nothing else."""
    for strict in (True, False):
        words: dict[str, float] = {}
        wholes: list[str] = []
        for kind, piece in _pieces(text):
            if kind == "dense":
                for run in _runs(piece) if strict else (piece,):
                    _weigh(words, _pairs(run) if len(run) > 1 else [run])
            else:
                parts = [part for part in _parts(piece) if not (strict and _empty(part, piece))]
                _weigh(words, [_safe(stem(part)) for part in parts])
                wholes += (_safe(whole) for whole in _wholes(piece))
        for term in date_terms(text) if words else ():
            words[term] = 1.0
        if words or wholes:
            break
    most = dict(list(words.items())[:MOST_TERMS])
    return Ask(most, tuple(dict.fromkeys(wholes))[:MOST_TERMS], frozenset(names_of(text)))


def _weigh(words: dict[str, float], terms: list[str]) -> None:
    terms = list(dict.fromkeys(terms))
    for term in terms:
        words[term] = max(words.get(term, 0.0), len(terms) ** -SHARED)


def _empty(part: str, piece: str) -> bool:
    """Return whether a word is a function word; one in capitals is a name."""
    return part in ENGLISH and not (len(piece) > 1 and piece.isupper())


def _runs(piece: str) -> list[str]:
    """Divide a dense run at its function words; a lone character left over says nothing."""
    return [run for run in DENSE.split(piece) if len(run) > 1 or (run and run == piece)]


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    for match in _PIECE.finditer(unicodedata.normalize("NFKC", text)):
        yield match.lastgroup or "", match.group()


def _parts(name: str) -> list[str]:
    if len(name) > LONGEST and not any(mark in name for mark in "/._-\\"):
        return [name[:LONGEST].casefold()]
    return [part.casefold()[:LONGEST] for part in _PART.findall(name)]


def _wholes(name: str) -> Iterator[str]:
    """Yield an identifier, its segments, and theirs: path, file name, bare name."""
    if name.isalpha() and (name.islower() or name.istitle() or name.isupper()):
        return  # a plain word
    seen = set()
    segments = _SEGMENT.split(name)
    for one in (name, *segments, *(bare for part in segments for bare in part.split("."))):
        if one not in seen and len(_PART.findall(one[:LONGEST])) > 1:
            seen.add(one)
            yield one[:LONGEST].casefold()


def _safe(term: str) -> str:
    if term.isalnum() or all(ord(c) > 127 or c.isalnum() for c in term):
        return term
    return _ASIDE + term.encode("utf-8", "replace").hex()


@lru_cache(STEMS)
def stem(word: str) -> str:
    """Return the Snowball stem of an English word in small letters; others stay."""
    if not word.isascii() or not word.isalpha():
        return word
    # One holds the word that it works on, so threads must not share it. The class itself, as the
    # package gives PyStemmer where that is installed, whose stems may be those of another version.
    return str(_english()().stemWord(word))


@lru_cache(1)
def rules() -> str:
    """Return the version of the stemming rules: the installed `snowballstemmer`."""
    try:
        return version("snowballstemmer")
    except PackageNotFoundError:  # a bundle without the papers of its packages
        return ""


@lru_cache(1)
def _english() -> Any:
    """Import the stemmer when it is first needed: the package imports all its languages."""
    from snowballstemmer.english_stemmer import EnglishStemmer  # type: ignore[import-untyped]

    return EnglishStemmer


def date_terms(text: str) -> tuple[str, ...]:
    """Return the terms of the dates in a text: day, day of any year, and month.

    A bare year or month is a plain word. Relative dates mean nothing without a clock.

    Example:
        >>> date_terms("on May 8th, 2023")
        ('day20230508', 'day0508', 'month202305')
    """
    forms = list(_NUMERIC)
    if "月" in text:
        forms += _WIDE
    small = text.lower()
    if any(name in small for name in _SHORT) and _HAS_NAME.search(text):
        forms += _NAMED
    return tuple(dict.fromkeys(term for form in forms for term in _found(form, text)))


def _found(form: re.Pattern[str], text: str) -> Iterator[str]:
    for match in form.finditer(text):
        parts = match.groupdict()
        name = parts.get("name")
        month = _MONTHS[name.lower()] if name else int(parts["month"])
        year, day = parts.get("year"), int(parts.get("day") or 0)
        if not 1 <= month <= 12 or day > 31:
            continue
        if year and day:
            yield f"day{year}{month:02d}{day:02d}"
        if day:
            yield f"day{month:02d}{day:02d}"
        if year:
            yield f"month{year}{month:02d}"
