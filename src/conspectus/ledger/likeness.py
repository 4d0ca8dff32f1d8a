"""What a statement is about, and which values it sets: what two statements are compared by."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from conspectus.ledger.identifiers import Kind
from conspectus.ledger.phrases import CJK, Phrases
from conspectus.ledger.values import values
from conspectus.ledger.wording import LANGUAGES
from conspectus.ledger.wording.marks import NEVER, OLD_AFTER, OLD_BEFORE

PAIR = 0.6
"""What a pair of characters counts, where a word counts one."""

REMEMBERED = 20_000
"""Texts whose reading is remembered, so that none is read twice."""

_WORD = re.compile(rf"[^\W\d_{CJK}]{{2,}}|[{CJK}]+|\d+")
_FIGURE = re.compile(r"\d+(?:[.,:/-]\d+)*")


@lru_cache(REMEMBERED)
def _folded(word: str) -> str:
    return "".join(
        c for c in unicodedata.normalize("NFKD", word.lower()) if not unicodedata.combining(c)
    )


@lru_cache(REMEMBERED)
def stem(word: str) -> str:
    """A word without its ending, roughly, in any language of Latin script."""
    word = _folded(word)
    if len(word) > 4 and word[-1] == "s" and word[-2] != "s":
        word = word[:-1]
    if len(word) > 6:
        return word[:6]
    return word.rstrip("e") if len(word) > 3 else word


_FILLER = frozenset(_folded(word) for w in LANGUAGES for word in w.filler.split())
_FILLER_STEMS = frozenset(
    stem(word) for w in LANGUAGES if w.months for word in w.filler.split() if len(word) > 3
)
_WIDE_FILLER = sorted(
    {
        word
        for w in LANGUAGES
        for word in (w.filler + " " + w.units * (not w.months)).split()
        if re.match(f"[{CJK}]", word)
    },
    key=len,
    reverse=True,
)
_WIDE_FILLING = re.compile(
    "|".join(map(re.escape, (w for w in _WIDE_FILLER if len(w) > 1)))
    + "|[的了是在把将到为和与或也都就还要用每这那个一有不没很]"
    + "|[はがをにでとのもへや]|[은는이가을를에의로와과도만]"
)
_CONCEPTS: dict[str, str] = {}
_WIDE_CONCEPTS: list[tuple[str, str]] = []
for _wording in LANGUAGES:
    for _line in _wording.alike.strip().split("\n"):
        _name = _line.split()[0] if _line.split() else ""
        for _word in _line.split():
            if re.match(f"[{CJK}]", _word):
                _WIDE_CONCEPTS.append((_word, f"={_name}"))
            else:
                _CONCEPTS.setdefault(stem(_word), f"={_name}")
_CONCEPT_OF_WIDE = dict(_WIDE_CONCEPTS)
_WIDE_CONCEPT = re.compile(
    "|".join(sorted(map(re.escape, _CONCEPT_OF_WIDE), key=len, reverse=True))
)
_LANGUAGE = Phrases(w.languages.replace(" ", " / ") for w in LANGUAGES)
_WEEKDAY = Phrases(w.weekdays.replace(" ", " / ") for w in LANGUAGES if w.months)
_WIDE_WEEKDAY = re.compile(
    r"(?:周|星期|礼拜)[一二三四五六日天]|[月火水木金土日]曜|[월화수목금토일]요일"
)
_UNIT = re.compile(r"^[\d.,'’ \u00a0\u202f~〜–-]+")
_TIME = re.compile(r"\D{0,4}\d{1,2}(?::\d\d|\s?(?:Uhr|heures|h|点|時|时|시)\s?(?:\d\d)?)\D{0,4}")
_LIMITS = frozenset({"=limit", "=上限", "=상한", "=obergrenze", "=límite", "=plafond"})


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text is about.

    Attributes:
        words: what it speaks of: stems, or pairs of characters, or names of groups of like words.
        gives: values that it sets, as kind, unit and value.
        old: values that it says hold no longer.
        never: it forbids.
    """

    words: frozenset[str]
    gives: tuple[tuple[Kind | str, str, str], ...]
    old: tuple[tuple[Kind | str, str, str], ...]
    never: bool


@lru_cache(REMEMBERED)
def reading(text: str) -> Reading:
    """What a text is about; remembered."""
    found: list[tuple[Kind | str, str, str, int]] = [
        ("time" if (measure := unit(kind, value)) == "time" else kind, measure, value, at)
        for kind, value, at in values(text)
        if kind != "command"
    ]
    rest = list(text)
    for _, _, value, at in found:
        rest[at : at + len(value)] = " " * len(value)
    for name, words in (("language", _LANGUAGE), ("weekday", _WEEKDAY)):
        for start, end in words.places("".join(rest)):
            found.append((name, "", _folded(text[start:end]), start))
            rest[start:end] = " " * (end - start)
    for match in _WIDE_WEEKDAY.finditer("".join(rest)):
        found.append(("weekday", "", match[0], match.start()))
        rest[match.start() : match.end()] = " " * len(match[0])
    for match in _FIGURE.finditer("".join(rest)):
        found.append(("figure", "", match[0], match.start()))
    found.sort(key=lambda one: one[3])
    new: list[tuple[Kind | str, str, str]] = []
    old: list[tuple[Kind | str, str, str]] = []
    for place, (kind, unit_, value, at) in enumerate(found):
        one = (kind, unit_, value)
        later = any(k == kind for k, _, _, _ in found[place + 1 :])
        (old if _is_old(text, value, at, later, found) else new).append(one)
    return Reading(
        frozenset(_words("".join(rest))), tuple(new), tuple(old), NEVER.search(text) is not None
    )


def unit(kind: str, value: str) -> str:
    """The unit of a number; what other kinds are measured by, if anything."""
    if _TIME.fullmatch(value):
        return "time"
    if kind == "number":
        if value[0] in "€$£¥₩":
            return value[0]
        bare = _UNIT.sub("", value).strip().lower()
        return _UNITS.get(bare, stem(bare) if bare.isalpha() and bare.isascii() else bare)
    if kind == "id" and "@" in value:
        return "@"
    return ""


_UNITS = {
    "eur": "€",
    "euro": "€",
    "euros": "€",
    "usd": "$",
    "dollar": "$",
    "dollars": "$",
    "min": "minut",
    "mins": "minut",
    "h": "hour",
    "hrs": "hour",
    "hr": "hour",
    "s": "second",
    "sec": "second",
    "secs": "second",
    "std": "stunde",
    "块": "元",
    "分间": "分",
    "分間": "分",
    "秒间": "秒",
    "秒間": "秒",
    "日間": "日",
}


def _is_old(
    text: str, value: str, at: int, later: bool, found: list[tuple[Kind | str, str, str, int]]
) -> bool:
    before = text[max(0, at - 30) : at]
    after = text[at + len(value) : at + len(value) + 24]
    if OLD_AFTER.match(after):
        # "from nine" of a time and "から" of a start are no old values where nothing follows.
        return later or not re.match(r"\s*(?:から|より|에서)", after)
    match = OLD_BEFORE.search(before)
    if match is None:
        return False
    weak = re.match(
        r"(?:from|von|vom|de|no|non|not|nicht|pas|从|由|自|was|were|been)\b",
        match[0].strip(),
        re.IGNORECASE,
    )
    return later or (len(found) > 1 and not weak)


def _words(text: str) -> set[str]:
    words: set[str] = set()
    for match in _WIDE_CONCEPT.finditer(text):
        words.add(_CONCEPT_OF_WIDE[match[0]])
    text = _WIDE_CONCEPT.sub(" ", text)
    for run in _WORD.findall(_WIDE_FILLING.sub(" ", text)):
        if re.match(f"[{CJK}]", run):
            words.update(run[i : i + 2] for i in range(len(run) - 1))
            if len(run) == 1:
                words.add(run)
        elif not run.isdigit():
            folded = _folded(run)
            if folded not in _FILLER and (short := stem(run)) not in _FILLER_STEMS:
                words.add(_CONCEPTS.get(short, short))
    return words


def shared(one: frozenset[str], other: frozenset[str]) -> float:
    """How many words two statements share; parts of compounds count as well."""
    both = one & other
    count = sum(PAIR if _is_pair(word) else 1.0 for word in both)
    left, right = one - both, other - both
    for word in left:
        if (
            len(word) >= 5
            and word.isascii()
            and any(
                len(w) >= 4
                and w.isascii()
                and (word.startswith(w) or w.startswith(word) or word.endswith(w))
                for w in right
            )
        ):
            count += 0.7
    return count


def size(words: frozenset[str]) -> float:
    """How much a statement says: its words, pairs of characters for less."""
    return sum(PAIR if _is_pair(word) else 1.0 for word in words)


def _is_pair(word: str) -> bool:
    return len(word) == 2 and word[0] > "\u3000"


def subject(read: Reading) -> frozenset[str]:
    """The words that say what a statement is about, less those of limits, which many share."""
    return frozenset(word for word in read.words if word not in _LIMITS)
