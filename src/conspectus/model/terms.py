"""The terms of a text by which a summary is found again in the messages that it stands for.

They are the beginnings of its words, its numbers and its names. A script without spaces has pairs
of characters in the place of words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from conspectus.archive.passages import MARKS
from conspectus.archive.passages import UNSPACED as UNSPACED_OR_HANGUL

UNSPACED = UNSPACED_OR_HANGUL.replace("\u1100-\u11ff\uac00-\ud7af", "")
"""Scripts without spaces. Korean has spaces, and the beginnings of its words stay the same."""

MOST_CHARACTERS_READ = 200_000
"""Characters of one message that are read, half of them at its beginning, half at its end."""

STEM_CHARACTERS = 5
"""Characters at the beginning of a word that its forms have in common, roughly."""

ARABIC_STEM_CHARACTERS = 4
"""The same in Arabic, after the article and joined particles."""

HANGUL_STEM_CHARACTERS = 2
"""The same in Korean."""

SHORTEST_STEM = 4
"""A shorter word of Latin letters is mostly grammar. In other alphabets one character less is
enough."""

_LETTER = rf"(?![{UNSPACED}_\d])[\w{MARKS}]"
_TOKEN = re.compile(
    rf"(?P<unspaced>[{UNSPACED}]+)|(?P<number>\d+(?:[.,:\-/]\d+)*)"
    rf"|(?P<word>(?:{_LETTER})+(?:'(?:{_LETTER})+)?)"
)
_WORD = re.compile(rf"(?:{_LETTER})+(?:'(?:{_LETTER})+)?|\d+(?:[.,:\-/]\d+)*")
_NUMBER = re.compile(r"\d+(?:[.,:\-/]\d+)*")
_UNSPACED_RUN = re.compile(f"[{UNSPACED}]{{2,}}")
_IDENTIFIER = re.compile(
    r"(?<![A-Za-z0-9])"
    r"(?:[A-Za-z0-9]+(?:[_./\-][A-Za-z0-9]+)+|[a-z]+[A-Z]\w*|[A-Za-z]+\d\w*|\d+[A-Za-z]\w*)"
)
_KATAKANA = re.compile("[\u30a0-\u30ff]{2,}")
_IDEOGRAPH = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_BEFORE_SENTENCE = re.compile(r"(?:[.!?:\n\-*•|>#\"“„«(\]]\s{0,4}|\A\s{0,4})\Z")
_THOUSANDS = re.compile(r"[.,](?=\d{3}(?!\d))")
_ARABIC_MARKS = re.compile("[\u064b-\u0652\u0640]")
_ARABIC_LETTERS = str.maketrans("أإآةى", "اااهي")
_DIGITS = str.maketrans("٠١٢٣٤٥٦٧٨٩۰۱۲۳۴۵۶۷۸۹०१२३४५६७८९", "0123456789" * 3)


class Term(NamedTuple):
    """What a text and a message may have in common."""

    kind: str  # "word", "number" or "name"
    text: str


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of one text.

    Attributes:
        words: all words and numbers in small letters, in order. Pairs of characters where a script
            has no spaces.
        content: the beginnings of the words that say what it is about, each once, in order.
        numbers: all numbers of two digits or more, each once.
        names: words with a capital inside a sentence, identifiers, and foreign words in Katakana.
        positions: where each term stands first, by the order of terms.
        size: the number of words, of numbers, and of pairs of characters.
    """

    words: list[str] = field(default_factory=list)
    content: list[str] = field(default_factory=list)
    numbers: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    positions: dict[Term, int] = field(default_factory=dict)
    size: int = 0


def terms_of(text: str) -> Terms:
    """Return the terms of a text."""
    text = plain(text)
    words: list[str] = []
    content: dict[str, None] = {}
    numbers: set[str] = set()
    names: set[str] = set()
    positions: dict[Term, int] = {}
    for match in _TOKEN.finditer(text):
        token = match[0]
        if match["unspaced"]:
            names.update(_KATAKANA.findall(token))
            for pair in _pairs(token):
                words.append(pair)
                if _is_content_pair(pair):
                    content[pair] = None
                    positions.setdefault(Term("word", pair), len(words))
        elif match["number"]:
            words.append(token)
            number = number_key(token)
            if len(number) > 1:
                numbers.add(number)
                positions.setdefault(Term("number", number), len(words))
        else:
            folded = token.casefold()
            words.append(folded)
            beginning = stem(folded)
            if _is_content(beginning):
                content[beginning] = None
                positions.setdefault(Term("word", beginning), len(words))
            if _is_name(token, text, match.start()):
                names.add(folded)
                positions.setdefault(Term("name", folded), len(words))
    for match in _IDENTIFIER.finditer(text):
        if len(match[0]) > SHORTEST_STEM - 1 and not re.fullmatch(r"m\d+", match[0]):
            names.add(match[0].casefold())
    return Terms(words, list(content), numbers, names, positions, len(words))


def terms_in(message: str, wanted: Terms) -> tuple[set[Term], list[str]]:
    """Return which of the wanted terms a message has, and the words of the message in order."""
    folded = plain(message).casefold()
    if _UNSPACED_RUN.search(folded):
        words = list(_words_and_pairs(folded))
    else:
        words = _WORD.findall(folded)  # the same words, found faster
    distinct = set(words)
    beginnings = distinct | set(map(stem, distinct))
    found = {Term("word", word) for word in wanted.content if word in beginnings}
    if wanted.numbers:
        numbers = set(map(number_key, _NUMBER.findall(folded)))
        found.update(Term("number", number) for number in numbers & wanted.numbers)
    for name in wanted.names:
        # An identifier, or a word of a script without spaces, stands inside of other words.
        may_be_inside = not name.isalpha() or bool(_KATAKANA.match(name))
        if name in distinct or (may_be_inside and name in folded):
            found.add(Term("name", name))
    return found, words


def plain(text: str) -> str:
    """Return a text with one form for each letter and digit, without the middle of a long one."""
    if len(text) > MOST_CHARACTERS_READ:
        text = f"{text[: MOST_CHARACTERS_READ // 2]}\n{text[-MOST_CHARACTERS_READ // 2 :]}"
    return unicodedata.normalize("NFKC", text).replace("’", "'").translate(_DIGITS)


def stem(word: str) -> str:
    """Return the beginning of a word in small letters, which its forms have in common."""
    first = word[0]
    if "\uac00" <= first <= "\ud7af":
        return word[:HANGUL_STEM_CHARACTERS]
    if "\u0621" <= first <= "\u064a":
        return _arabic_stem(word)
    return word[:STEM_CHARACTERS]


def number_key(number: str) -> str:
    """Return a number without the signs between its thousands: `1,284` and `1.284` are one."""
    return _THOUSANDS.sub("", number.strip(".,:-/")).replace(",", ".")


def _arabic_stem(word: str) -> str:
    """Return the beginning of a word without its article and joined particles."""
    word = _ARABIC_MARKS.sub("", word).translate(_ARABIC_LETTERS)
    if len(word) > ARABIC_STEM_CHARACTERS:
        if word[0] in "وفبلك" and word[1:3] == "ال":
            word = word[3:]
        elif word[:2] in ("ال", "لل"):
            word = word[2:]
        elif word[0] in "وبلفي":
            word = word[1:]
    return word[:ARABIC_STEM_CHARACTERS]


def _words_and_pairs(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(text):
        if match["unspaced"]:
            yield from _pairs(match[0])
        else:
            yield match[0]


def _pairs(run: str) -> Iterator[str]:
    for position in range(len(run) - 1):
        yield run[position : position + 2]


def _is_content_pair(pair: str) -> bool:
    """Tell whether a pair of characters may be a word, as pairs with Hiragana are grammar."""
    if _KATAKANA.match(pair):
        return True
    if any("\u3000" <= char <= "\u30ff" for char in pair):
        return False
    is_han = bool(_IDEOGRAPH.match(pair[0])), bool(_IDEOGRAPH.match(pair[1]))
    return all(is_han) or not any(is_han)


def _is_content(beginning: str) -> bool:
    if not beginning:
        return False
    if "\uac00" <= beginning[0] <= "\ud7af":
        return len(beginning) >= HANGUL_STEM_CHARACTERS
    return len(beginning) >= (SHORTEST_STEM if beginning.isascii() else SHORTEST_STEM - 1)


def _is_name(word: str, text: str, start: int) -> bool:
    """Tell whether a word is written as a name: in capitals, or with one inside a sentence."""
    if len(word) < 2 or not word[0].isupper():
        return False
    return word.isupper() or not _BEFORE_SENTENCE.search(text[max(0, start - 4) : start])
