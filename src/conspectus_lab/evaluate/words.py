"""Find words, stems, numbers and dates, by which questions and lines are compared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

_NUMERALS = "zero one two three four five six seven eight nine ten eleven twelve".split()
NUMBERS = {word: str(value) for value, word in enumerate(_NUMERALS)} | {
    "once": "1",
    "twice": "2",
    "first": "1",
    "second": "2",
    "third": "3",
}
_MONTH_NAMES = """january february march april may june july august september october november
december""".split()
MONTHS = {
    name: number
    for number, month in enumerate(_MONTH_NAMES, 1)
    for name in (month, month[:3], *(["sept"] if number == 9 else []))
}
STOP = frozenset(
    """a an the and or of to in on at for with by from is was were are be been her his their its it
    that this as he she they them i you we my your our about into over some any so very really just
    have has had do did does not no yes""".split()
)
ASKING = frozenset("what when where which who whom whose why how kind type many much long".split())
"""Words that only ask."""

_ENDINGS = ("ings", "ing", "edly", "ied", "ies", "ed", "es", "s", "ly")
_POSSESSIVE = re.compile(r"['’]s\b")
_WORD_OR_NUMBER = re.compile(r"[a-z0-9]+(?:\.\d+)?")
_WORD = re.compile(r"[a-z0-9]+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_DAY_FIRST = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)?(?: of)? ([a-z]{3,9})\.?,? ?(\d{4})")
_MONTH_FIRST = re.compile(r"\b([a-z]{3,9})\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})")
_MONTH_ONLY = re.compile(r"\b([a-z]{3,9}),? (\d{4})")
_ISO = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_YEAR = re.compile(r"\b(?:19|20)\d{2}\b")
DAY = len("2024-05-01")
MONTH = len("2024-05")


@lru_cache(maxsize=200_000)
def dates(text: str) -> frozenset[str]:
    """Find English dates, as `2024-05-01`, `2024-05` and `2024`; days with months.

    Example:
        >>> sorted(dates("on 7 May 2023"))
        ['2023', '2023-05', '2023-05-07']
    """
    text = text.lower()
    found = set(_ISO.findall(text)) | set(_YEAR.findall(text))
    days = [*_DAY_FIRST.findall(text), *((d, m, y) for m, d, y in _MONTH_FIRST.findall(text))]
    for day, month, year in days:
        if month in MONTHS:
            found.add(f"{year}-{MONTHS[month]:02d}-{int(day):02d}")
    for month, year in _MONTH_ONLY.findall(text):
        if month in MONTHS:
            found.add(f"{year}-{MONTHS[month]:02d}")
    return frozenset(found | {date[:MONTH] for date in found if len(date) == DAY})


def stem(word: str) -> str:
    """Cut the ending off an English word.

    Example:
        >>> stem("hiking") == stem("hikes")
        True
    """
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)] + ("y" if ending in ("ied", "ies") else "")
            break
    if len(word) > 4 and (word[-1] in "ey" or word[-1] == word[-2]):
        return word[:-1]
    return word


def pairs(text: str) -> Iterator[str]:
    """Yield neighbouring characters of Han, Kana and Hangul, which have no spaces."""
    for run in _UNSPACED.findall(text):
        for place in range(max(1, len(run) - 1)):
            yield run[place : place + 2]


@lru_cache(maxsize=200_000)
def terms(text: str) -> frozenset[str]:
    """Return the stems of a text without stop words, and its character pairs.

    Example:
        >>> sorted(terms("She bought two dogs"))
        ['2', 'bought', 'dog']
    """
    text = _POSSESSIVE.sub("", text.lower())
    words = (word for word in _WORD_OR_NUMBER.findall(text) if word not in STOP)
    return frozenset({stem(NUMBERS.get(word, word)) for word in words}.union(pairs(text)))


def tokens_of(text: str) -> list[str]:
    """List the words of a text in order, as a plain search counts them."""
    words = (word for word in _WORD.findall(text.lower()) if word not in STOP)
    return [*(stem(NUMBERS.get(word, word)) for word in words), *pairs(text)]


def asked_for(question: str) -> frozenset[str]:
    """Return the terms of a question without the words that only ask."""
    return terms(question) - {stem(word) for word in ASKING}
