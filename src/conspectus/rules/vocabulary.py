"""The words by which sentences show that they bind, from `words.toml`."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, NamedTuple

POINTS = {
    "asked": 5,
    "strong": 3,
    "medium": 2,  # binds only with more, such as a number: "at most 5"
    "scope": 1,
    "weak": 1,
    "neutral": 0,
    "against": -3,
}
"""The points of a phrase, by its group."""

OPENING_POINTS = 3
"""The points of a first word that binds at the beginning of a sentence."""

CONTRAST_POINTS = 2
"""The points of a contrast behind a comma, as in "use this, not that"."""

MOST_CONTRAST_WORDS = 6
"""The most words from such a comma to the end of the sentence."""

COUNTED_ONCE = frozenset({"scope", "weak"})
"""Groups that count once in a sentence: many such words say no more than a few."""

LANGUAGE_CHARACTERS = 4_000
"""Characters at the beginning of a text by which its languages are recognised."""

LIKELY_SHARE = 0.5
"""A language may be that of a text if it has this share of the common words of the likeliest."""

TELLING_WORDS = 2
"""Common words by which a language is recognised. With fewer, a text may be in any language."""

LONG_TEXT_CHARACTERS = 2_000
"""A text of so many characters without common words is no prose in any language."""

MOST_REMEMBERED_WORDS = 20_000
"""The most words of texts that a vocabulary remembers."""

POLITE_WORDS = frozenset(
    "please bitte also and und et y e en i и lütfen per s'il por proszę пожалуйста من".split()
)
"""Words that may stand before the first word of a sentence that counts."""

LEAST_PREFIXED_LETTERS = 3
"""The first letter of a word with more letters than this may be a prefix."""

_LETTER_FORMS = str.maketrans(
    "أإآٱىيك’ʼ`", "ااااییک'''", "\u0640\u200c\u200d\u064b\u064c\u064d\u064e\u064f\u0650\u0651\u0652"
)
"""Letters of Arabic and Persian that are written in several ways, vowel signs, and apostrophes."""

_INVISIBLE = re.compile("[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
"""Signs without a form of their own, which come with text that was copied: soft hyphens, joints of
width zero, and marks of the direction of writing."""

_WORD = re.compile(r"[^\s!-&(-/:-@\[-^`{-~¡¿«»‐-‘“-‧‹›،؛؟۔।॥·;、。！？：…'#]+'?|:")
"""A word, with an apostrophe at its end, or a colon."""

_SPACES = re.compile(r"\s+")

_SCRIPTS = (
    (re.compile("[\u3040-\u30ff]"), ("ja",)),
    (re.compile("[\u3400-\u9fff]"), ("zh",)),
    (re.compile("[\uac00-\ud7af]"), ("ko",)),
    (re.compile("[\u0e00-\u0e7f]"), ("th",)),
    (re.compile("[\u0600-\u06ff]"), ("ar", "fa")),
    (re.compile("[\u0900-\u097f]"), ("hi",)),
    (re.compile("[\u0590-\u05ff]"), ("he",)),
    (re.compile("[\u0370-\u03ff]{3}"), ("el",)),
)
"""Scripts whose letters tell the language. A text with Japanese letters is not Chinese."""


_TOLD_BY_LETTERS = frozenset(name for _, names in _SCRIPTS for name in names)


class PhrasePoints(NamedTuple):
    """The points of a sentence, and whether it has a phrase that binds together with a number."""

    points: int
    binds_with_number: bool


def plain_form(text: str) -> str:
    """Return a text in small letters, each letter written in one way, without invisible signs.

    Example:
        >>> plain_form("Ｎｅｖｅｒ\\u200b push")
        'never push'
    """
    if not text.isascii():
        text = _INVISIBLE.sub("", text.replace("İ", "i"))
        text = unicodedata.normalize("NFKC", text).translate(_LETTER_FORMS)
    return text.casefold()


def words_of(text: str) -> list[str]:
    """Return the words of a text in its plain form.

    Example:
        >>> words_of("don't push: wait")
        ["don'", 't', 'push', ':', 'wait']
    """
    return _WORD.findall(text)


class PlainSentence:
    """A sentence in its plain form, taken apart once for all vocabularies.

    Args:
        text: the sentence.
    """

    def __init__(self, text: str) -> None:
        self.text = plain_form(text)

    @cached_property
    def words(self) -> list[str]:
        """Its words."""
        return words_of(self.text)

    @cached_property
    def words_behind_comma(self) -> list[str]:
        """Its words behind the last comma, if they are few; empty for others."""
        _, comma, behind = self.text.rpartition(",")
        words = words_of(behind) if comma else []
        return words if len(words) <= MOST_CONTRAST_WORDS else []


class Phrase(NamedTuple):
    """A phrase behind its first word, and what group it is of.

    Attributes:
        following: its words behind the first one.
        group: its group.
        second: its second word; empty if there is none, or one with a star.
    """

    following: tuple[str, ...]
    group: str
    second: str = ""


class SpacedVocabulary:
    """Phrases of a language that puts spaces between its words.

    Args:
        phrases: pairs of a phrase and its group.
        prefixes: letters that may stand before any word, as Arabic and Hebrew join "and" to it.
        openings: phrases that bind at the beginning of a sentence.
        contrasts: phrases that bind behind a comma near the end.
    """

    def __init__(
        self,
        phrases: Iterable[tuple[str, str]],
        prefixes: str,
        openings: Iterable[str],
        contrasts: Iterable[str],
    ) -> None:
        self._openings = _by_first_word(openings)
        self._contrasts = _by_first_word(contrasts)
        self._by_first: dict[str, list[Phrase]] = {}
        self._stems: dict[str, str] = {}
        self._endings: dict[str, str] = {}
        self._prefixes = tuple(prefixes)
        self._by_word: dict[str, Sequence[Phrase]] = {}
        for text, group in phrases:
            first, *following = _pattern_words(text)
            if first.startswith("*"):
                self._endings[first[1:]] = group
            elif first.endswith("*"):
                self._stems[first[:-1]] = group
            else:
                second = following[0] if following and "*" not in following[0] else ""
                phrase = Phrase(tuple(following), group, second)
                self._by_first.setdefault(first, []).append(phrase)
        for candidates in self._by_first.values():
            candidates.sort(key=lambda phrase: -len(phrase.following))
        self._stem_sizes = sorted({*map(len, self._stems)}, reverse=True)
        self._ending_sizes = sorted({*map(len, self._endings)}, reverse=True)

    def groups_in(self, sentence: PlainSentence) -> set[tuple[str, str]]:
        """Return the phrases of a sentence, each with its group."""
        words = sentence.words
        found = set[tuple[str, str]]()
        behind_last = 0
        for position, word in enumerate(words):
            phrases = self._by_word.get(word)
            if phrases is None:
                phrases = self._remember_word(word)
            if not phrases or position < behind_last:
                continue
            next_word = words[position + 1] if position + 1 < len(words) else ""
            for phrase in phrases:
                if phrase.second and phrase.second != next_word:
                    continue
                end = position + 1 + len(phrase.following)
                if not phrase.following or _agree(phrase.following, words[position + 1 : end]):
                    found.add((f"{word} {' '.join(phrase.following)}", phrase.group))
                    behind_last = end
                    break
        return found

    def points_by_place(self, sentence: PlainSentence) -> int:
        """Return the points of phrases that bind only at one place of a sentence."""
        points = 0
        words = sentence.words
        if words and words[0] in POLITE_WORDS:
            words = words[1:]
        if _begins_with_any(words, self._openings) and not self._begins_neutral(words):
            points += OPENING_POINTS
        if _begins_with_any(sentence.words_behind_comma, self._contrasts):
            points += CONTRAST_POINTS
        return points

    def _begins_neutral(self, words: Sequence[str]) -> bool:
        """Tell whether a sentence begins with a phrase that only looks as if it bound."""
        return any(
            not POINTS[phrase.group]
            and _agree(phrase.following, words[1 : 1 + len(phrase.following)])
            for phrase in self._by_first.get(words[0], ())
        )

    def _remember_word(self, word: str) -> Sequence[Phrase]:
        """Look up the phrases that may begin with a word, the longest first."""
        phrases = self._look_up(word)
        if len(self._by_word) >= MOST_REMEMBERED_WORDS:
            self._by_word = {}
        self._by_word[word] = phrases
        return phrases

    def _look_up(self, word: str) -> Sequence[Phrase]:
        if word in self._by_first:
            return self._by_first[word]
        if word.startswith(self._prefixes) and len(word) > LEAST_PREFIXED_LETTERS:
            word = word[1:]
        if word in self._by_first:
            return self._by_first[word]
        for size in self._stem_sizes:
            if word[:size] in self._stems:
                return [Phrase((), self._stems[word[:size]])]
        for size in self._ending_sizes:
            if word[-size:] in self._endings and len(word) > size:
                return [Phrase((), self._endings[word[-size:]])]
        return ()


class UnspacedVocabulary:
    """Phrases of a language that are looked for anywhere, without spaces.

    Args:
        phrases: pairs of a phrase and its group.
    """

    def __init__(self, phrases: Iterable[tuple[str, str]]) -> None:
        self._by_first: dict[str, list[tuple[str, str]]] = {}
        for text, group in phrases:
            phrase = _SPACES.sub("", plain_form(text))
            self._by_first.setdefault(phrase[0], []).append((phrase, group))
        for candidates in self._by_first.values():
            candidates.sort(key=lambda candidate: -len(candidate[0]))

    def points_by_place(self, sentence: PlainSentence) -> int:
        """Return 0: these languages have no phrases that bind at a place of the sentence only."""
        return 0

    def groups_in(self, sentence: PlainSentence) -> set[tuple[str, str]]:
        """Return the phrases of a sentence, each with its group."""
        text = _SPACES.sub("", sentence.text)
        found = set[tuple[str, str]]()
        position = 0
        while position < len(text):
            for phrase, group in self._by_first.get(text[position], ()):
                if text.startswith(phrase, position):
                    found.add((phrase, group))
                    position += len(phrase) - 1
                    break
            position += 1
        return found


Vocabulary = SpacedVocabulary | UnspacedVocabulary


class _Languages(NamedTuple):
    vocabularies: Mapping[str, Vocabulary]
    by_common_word: Mapping[str, Sequence[str]]


@cache
def _languages() -> _Languages:
    """Read the file, once a process."""
    path = files("conspectus.rules").joinpath("words.toml")
    vocabularies: dict[str, Vocabulary] = {}
    by_common_word: dict[str, list[str]] = {}
    for language, table in tomllib.loads(path.read_text("utf-8")).items():
        phrases = list(_phrases_of(table))
        if table.get("unspaced"):
            vocabularies[language] = UnspacedVocabulary(phrases)
        else:
            vocabularies[language] = SpacedVocabulary(
                phrases,
                table.get("prefixes", ""),
                table.get("opening", ()),
                table.get("contrast", ()),
            )
        for word in plain_form(table.get("common", "")).split():
            by_common_word.setdefault(word, []).append(language)
    return _Languages(vocabularies, by_common_word)


def _phrases_of(table: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield each phrase once; where two groups have it, the first of `POINTS` counts."""
    seen = set[str]()
    for group in POINTS:
        for phrase in table.get(group, ()):
            if phrase not in seen:
                seen.add(phrase)
                yield phrase, group


def _pattern_words(phrase: str) -> list[str]:
    """Return the words of a phrase; a star stays at the word where it stands."""
    starred = plain_form(phrase).replace("*", "\ue000")
    return [word.replace("\ue000", "*") for word in words_of(starred)]


def _by_first_word(phrases: Iterable[str]) -> dict[str, list[list[str]]]:
    """Return the words of phrases by their first word; `*` stands for any."""
    by_first: dict[str, list[list[str]]] = {}
    for phrase in phrases:
        words = _pattern_words(phrase)
        by_first.setdefault(words[0], []).append(words[1:])
    return by_first


def _begins_with_any(words: Sequence[str], phrases: Mapping[str, list[list[str]]]) -> bool:
    if not words:
        return False
    candidates = (*phrases.get(words[0], ()), *phrases.get("*", ()))
    return any(_agree(following, words[1 : 1 + len(following)]) for following in candidates)


def _agree(pattern: Sequence[str], words: Sequence[str]) -> bool:
    """Tell whether words are those of a pattern; a star stands for any letters at that end."""
    return len(pattern) == len(words) and all(map(_agrees, pattern, words))


def _agrees(expected: str, word: str) -> bool:
    if expected.endswith("*"):
        return word.startswith(expected[:-1])
    if expected.startswith("*"):
        return word.endswith(expected[1:])
    return expected == word


def vocabularies_for(text: str) -> list[Vocabulary]:
    """Return the vocabularies of the languages in which a text may be.

    The letters tell some of them; of those that share letters, the common words at the beginning.
    """
    beginning = text[:LANGUAGE_CHARACTERS]
    known = _languages()
    names: list[str] = []
    for letters, languages in () if beginning.isascii() else _SCRIPTS:
        if letters.search(beginning) and not ("ja" in names and languages == ("zh",)):
            names += languages
    times: dict[str, int] = {}
    for word in words_of(plain_form(beginning)):
        for name in known.by_common_word.get(word, ()):
            times[name] = times.get(name, 0) + 1
    most = max(times.values(), default=0)
    if most >= TELLING_WORDS:
        names += [name for name, number in times.items() if number >= LIKELY_SHARE * most]
    elif not names and len(text) < LONG_TEXT_CHARACTERS:
        names += [name for name in known.vocabularies if name not in _TOLD_BY_LETTERS]
    return [known.vocabularies[name] for name in names]


def points_of(sentence: PlainSentence, vocabulary: Vocabulary) -> PhrasePoints:
    """Return the points of all phrases of a sentence together."""
    groups = [group for _, group in vocabulary.groups_in(sentence)]
    points = sum(POINTS[group] for group in groups if group not in COUNTED_ONCE)
    points += sum(POINTS[group] for group in COUNTED_ONCE if group in groups)
    points += vocabulary.points_by_place(sentence)
    return PhrasePoints(points, "medium" in groups)
