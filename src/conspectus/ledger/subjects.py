"""Which statement a later one takes the place of.

Losing a rule costs more than carrying two. So either the two are the same, word for word, save one
measured value; or the later says that something changes, shares enough words or a unit and a word
with the earlier, and fits no other as well. Nobody but the system changes what the system has said.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

from conspectus.ledger.patterns import Phrases
from conspectus.ledger.reading import bare, values_in
from conspectus.ledger.words import LANGUAGE_NAMES, LANGUAGES

LATEST = 60
"""Statements with a word in common that a change is compared with: the latest."""

ALIKE, MEASURED = 0.5, 0.3
"""Share of words that two must have in common; the second where a value of one unit differs."""

NEAR = 3
"""Statements that a change without a subject of its own may mean: the last ones."""

MAYBE = 0.6
"""How well a change fits a statement that it may be about, at least."""

MARGIN = 0.05
"""Two statements that fit a change so nearly as well leave it open which is meant."""

_CHANGE = Phrases([language["change"] for language in LANGUAGES])
_FILLER = frozenset(
    word for language in LANGUAGES for word in language["filler"].replace(" / ", " ").split()
)
_WIDE_FILLER = re.compile(
    "|".join(sorted((re.escape(w) for w in _FILLER if w[0] > "\u3000"), key=len, reverse=True))
)
_MONTH = (
    r"(?:jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez|ene|abr|ago|dic|fév|avr"
    r"|juin|juil|aoû|déc)\w*"
)
_MEASURE = re.compile(
    rf"(?P<sign>[€$£¥₩])\s?\d(?:[\d.,]*\d)?|\d{{1,2}}\.?\s?(?:de\s)?(?P<month>{_MONTH})\b(?:\s\d{{4}})?|\b(?P<first>{_MONTH})\s\d{{1,2}}\b(?:,?\s\d{{4}})?"
    r"|\d{1,2}[月월]\s?\d{1,2}[日일]?(?P<day>)|\b\d{1,2}:\d\d\b(?P<time>)"
    r"|\d(?:[\d.,]*\d)?(?:[\s-]?(?P<unit>[^\W\d_]{1,14}|%)|(?P<bare>))"
    rf"|(?<!\w)(?P<language>{'|'.join(LANGUAGE_NAMES.split())})(?!\w)",
    re.IGNORECASE,
)
_UNITS = dict(
    zip("euro eur usd dollar 块 min h".split(), "€ € $ $ 元 minut hour".split(), strict=True)
)
_HAN = re.compile(r"[\u3400-\u9fff]+")
_ENDING = re.compile(r"(?:ies|ing|ed|es|en|er|s|e|n|y)$")


@dataclass(frozen=True, slots=True)
class About:
    """What a statement is about.

    Attributes:
        words: the words of its subject.
        measures: unit and value of what it measures, dates and times among them.
        named: identifiers and code that it names, with what kind of thing each is.
        frame: the sentence with its measured values left out.
        changes: whether it says that something changes.
    """

    words: frozenset[str]
    measures: tuple[tuple[str, str], ...]
    named: tuple[tuple[str, str], ...]
    frame: str
    changes: bool

    @property
    def bare(self) -> bool:
        """Whether it names no subject: what it is about was said before."""
        return all(word[0] == "·" for word in self.words)


@lru_cache(4_000)
def about(text: str, before: str = "") -> About:
    """Return the subject of a sentence, in the light of the one before it."""
    text, low = bare(text)[:600], bare(text)[:600].lower()
    named = tuple((_shape(v), v) for form, v in values_in(text) if form == "code")
    rest = low
    for _, value in named:  # the digits of a name measure nothing
        rest = rest.replace(value.lower(), " ")
    measures = tuple(dict.fromkeys((_unit(m), m[0].strip()) for m in _MEASURE.finditer(rest)))
    words = _words(_MEASURE.sub(" ", _CHANGE.sub(" ", rest)))
    changes = _CHANGE.search(low) is not None
    if before:
        words |= _words(before[-300:].lower()) if len(words) < 3 or not changes else frozenset()
        changes = changes or _CHANGE.search(before[-300:].lower()) is not None
    if not words:
        words = frozenset(f"·{unit}" for unit, _ in (*measures, *named) if unit)
    return About(words, measures, named, frame(text), changes)


def frame(text: str) -> str:
    """Return a sentence without measured values: near-equal ones have the same."""
    return _MEASURE.sub("#", " ".join(text.lower().split()))


Key = TypeVar("Key", bound=Hashable)


class Subjects(Generic[Key]):
    """Statements in force by what they are about, and which of them a later one replaces."""

    def __init__(self) -> None:
        self._frames: dict[tuple[str, str], Key] = {}
        self._by_word: dict[str, deque[Key]] = defaultdict(lambda: deque(maxlen=LATEST))
        self._known: dict[Key, tuple[About, str]] = {}
        self._last: deque[Key] = deque(maxlen=NEAR)

    def drop(self, key: Key) -> None:
        """Forget a statement that is in force no longer."""
        self._known.pop(key, None)

    def replaced(self, new: About, role: str) -> tuple[Key | None, list[Key]]:
        """Return the statement that a new one replaces, and those that it may mean."""
        if new.measures:
            same = self._frames.get((role, new.frame))
            if same in self._known and _one_differs(new, self._known[same][0]):
                return same, []
        if not new.changes:
            return None, []
        found: list[tuple[float, Key]] = []
        near = self._last if new.bare else ()
        keys = (*(k for w in _index(new) for k in self._by_word.get(w, ())), *near)
        for key in dict.fromkeys(keys):
            old, who = self._known.get(key, (None, ""))
            if old is not None and (who != "system" or role == "system"):
                fit = _fit(new, old)
                if fit > 0:
                    found.append((fit, key))
        found.sort(key=lambda one: -one[0])
        sure = found and found[0][0] >= 1
        if sure and (len(found) == 1 or found[1][0] <= found[0][0] - MARGIN):
            return found[0][1], []
        return None, [key for fit, key in found if fit >= MAYBE]

    def add(self, key: Key, one: About, role: str) -> None:
        """Note a statement that is in force."""
        self._known[key] = (one, role)
        if one.measures:
            self._frames[role, one.frame] = key
        self._last.append(key)
        for word in _index(one):
            self._by_word[word].append(key)


def _index(one: About) -> frozenset[str]:
    """Return the keys of a statement: its words, and the values that it names."""
    return one.words | {value for _, value in (*one.measures, *one.named)}


def _fit(new: About, old: About) -> float:
    """How well a change fits a statement: over 1, it replaces it; over 0, it may.

    One that names the same identifier may always be about it.
    """
    same = MAYBE if {*new.named} & {*old.named} else 0.0
    return max(same, _likeness(new, old))


def _likeness(new: About, old: About) -> float:
    both = len(new.words & old.words)
    mine, theirs = (*new.measures, *new.named), (*old.measures, *old.named)
    common = {form for form, _ in mine} & {form for form, _ in theirs}
    other = [one for one in mine if one[0] in common and one not in theirs]
    if other and theirs and set(theirs) <= set(mine):
        return 2.0  # it names what held before, and what holds now
    if not both:
        return 1.0 if other and other[0][0] and new.bare else 0.0
    share = both / min(len(new.words), len(old.words))
    if other:
        return share + (1 if share >= MEASURED else 0)
    if mine or theirs:
        return share / 2  # something else is measured or named: an exception, or another thing
    if both / len(old.words) >= ALIKE:
        return share + 1
    return share if both > 1 else 0.0


def _one_differs(new: About, old: About) -> bool:
    """Whether two that are the same but for their values differ in one that has a unit."""
    if len(new.measures) != len(old.measures) or new.named != old.named:
        return False
    apart = [(a, b) for a, b in zip(new.measures, old.measures, strict=True) if a != b]
    return len(apart) == 1 and apart[0][0][0] == apart[0][1][0] != ""


def _unit(match: re.Match[str]) -> str:
    kind = match.lastgroup or ""
    if kind in ("month", "first", "day"):
        return "date"
    if kind in ("time", "language"):
        return kind
    word = match[kind].lower()
    if not word or word in _FILLER:
        return ""
    if _HAN.match(word) or word[0] > "\u3000":
        word = word[:2] if word[0] in "万만千천" else word[0]
    stem = _stem(word)
    return _UNITS.get(word) or _UNITS.get(stem) or stem


def _shape(value: str) -> str:
    return "@" if "@" in value else "/" if "/" in value else "." if "." in value else "id"


def _stem(word: str) -> str:
    return _ENDING.sub("", word)[:7] if len(word) > 3 and word[0] < "\u3000" else word


def _words(low: str) -> frozenset[str]:
    found = set()
    for word in re.findall(r"[^\W\d_]+", low):
        if word[0] < "\u3000":
            if len(word) > 1 and word not in _FILLER:
                found.add(_stem(word))
        elif "\uac00" <= word[0] <= "\ud7af":
            if len(word) > 1 and word[:2] not in _FILLER:
                found.add(word[:2])
        else:
            for run in re.findall(
                r"[\u3400-\u9fff]+|[\u30a0-\u30ff]{2,}", _WIDE_FILLER.sub(" ", word)
            ):
                if run[0] < "\u3400" or len(run) < 2:
                    found.add(run)
                else:
                    found.update(run[n : n + 2] for n in range(len(run) - 1))
    return frozenset(found)
