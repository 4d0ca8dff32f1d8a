"""Who speaks in a text: a narrator, or somebody who is in the conversation.

The words by which that is recognised are data, in `speech_words.json`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

UNSPACED_LANGUAGES = ("Japanese", "Chinese", "Korean", "Thai")
"""Languages whose words are looked for inside of words, as no space or ending separates them."""

LEAST_LENGTH = 8
"""Words that a text counts as at least, so that one word of two is not half of it."""

LETTERS_PER_WORD = 2.2
"""Letters of an unspaced language that count as a word."""

MOST_SHARE = 0.25
"""A share of one group above this counts as this."""

GROUPS = (
    "addressed",
    "first_person",
    "first_person_plural",
    "speakers",
    "reports",
    "states",
    "about_summaries",
    "apologies",
    "advice",
)
"""The groups of words, in order: for the reader (you), the writer (I), the writer with others (we),
the parties (user, assistant), what they did (asked, decided), how things stand (open, next),
summaries, apologies and refusals, advice."""

_HIRAGANA = re.compile("[\u3040-\u309f]")
_IDEOGRAPH = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_HANGUL = re.compile("[\uac00-\ud7af]")
_THAI = re.compile("[\u0e00-\u0e7f]")


@cache
def speech_words() -> Mapping[str, Mapping[str, frozenset[str]]]:
    """Return the words of each group, by language."""
    file = resources.files("conspectus.model").joinpath("speech_words.json")
    languages: dict[str, dict[str, str]] = json.loads(file.read_text(encoding="utf-8"))
    return {
        language: {group: frozenset(words.split()) for group, words in groups.items()}
        for language, groups in languages.items()
    }


def language_of(text: str, words: Sequence[str]) -> str:
    """Return the language of a text: the one of which it has the most words in `speech_words.json`.

    Args:
        text: the text.
        words: its words in small letters.
    """
    length = max(1, len(text))
    hiragana = len(_HIRAGANA.findall(text))
    ideographs = len(_IDEOGRAPH.findall(text))
    shares = {
        "Japanese": 2 * hiragana / length if hiragana >= 5 else 0.0,
        "Chinese": 1.5 * ideographs / length if hiragana * 8 < ideographs else 0.0,
        "Korean": 1.5 * len(_HANGUL.findall(text)) / length,
        "Thai": len(_THAI.findall(text)) / length,
    }
    counts = Counter(words)
    for language, groups in speech_words().items():
        if language not in UNSPACED_LANGUAGES:
            known = sum(counts[word] for word in frozenset().union(*groups.values()))
            shares[language] = known / max(1, len(words))
    best = max(shares, key=shares.__getitem__)
    return best if shares[best] else "English"


def shares_of_speech(text: str, words: Sequence[str], language: str) -> dict[str, float]:
    """Return what share of the words of a text each group of its language has."""
    groups = speech_words()[language]
    if language in UNSPACED_LANGUAGES:
        length = max(LEAST_LENGTH, sum(map(str.isalpha, text)) / LETTERS_PER_WORD)
        folded = text.casefold()
        found = {group: sum(map(folded.count, groups[group])) for group in GROUPS}
    else:
        length = max(LEAST_LENGTH, len(words))
        counts = Counter(words)
        found = {group: sum(counts[word] for word in groups[group]) for group in GROUPS}
    return {group: min(MOST_SHARE, count / length) for group, count in found.items()}
