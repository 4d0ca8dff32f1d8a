"""The grounds of a summary: what a text has in common with the messages that it stands for.

A word is rare if few of these messages have it. So no dictionary is needed; only who speaks is
recognised by the words of a language. The trees of `gate.py` were fitted to exactly these measures:
whoever changes one runs `benchmarks/fit_summaries.py` again.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import pstdev

from conspectus.model.speech import language_of, shares_of_speech
from conspectus.model.terms import Term, Terms, plain, terms_in, terms_of

RARE_SHARE = 0.12
"""A word in at most this share of the messages, or in two of them, is rare."""

LOCATING_SHARE = 0.2
"""A term in at most this share of the messages, or in three of them, shows what a text tells of."""

MOST_ORDERED_TERMS = 150
"""Terms whose order is compared. Each is compared with each, so the time grows with the square."""

RUN_LENGTH = 5
"""Words in a row that show that they are copied."""

SAMPLE_CHARACTERS = 400
"""Characters of each message by which the language of a history is known."""

MOST_SAMPLES = 200
"""The newest messages, of which samples are taken."""

LEAST_CONTENT = 3
"""A text with fewer words counts as one with so many, so that one word of two is not half of it."""

SHORTEST_SENTENCE = 12
"""Characters. A shorter sentence need not have a rare term."""

TOPIC_SHARE = 0.1
"""A word in at least this share of the messages, and in three of them, belongs to their topic."""

COVERED_SUPPORT = 0.3
"""A text tells of a message if its terms there weigh more than this. A term weighs one in all,
which the messages that have it share."""

SMOOTHING = 0.5
"""Added to a number of hits before it is divided by the number of tries and one, so that few tries
give no share of 0 or 1."""

RARITY_SMOOTHING = 0.3
"""Added to the number of messages that have a word, before its rarity is computed."""

END_CHARACTERS = 120
"""The end of a text, in which a question is looked for."""

_CITATION = re.compile(
    r"[\[【](?:[\w-]{0,40}\d[\w-]{0,40})(?:[,;\-– ]+[\w-]{0,40}\d[\w-]{0,40})*[\]】]"
)
_SENTENCE = re.compile(r"(?<=[.!?。！？।؟])\s+|\n+|(?<=[。！？])")
_SENTENCE_END = re.compile(r"[.!?。！？؟।](?:\s|\Z)|[。！？]|\n")
_QUESTION = re.compile("[?？؟]")
_SIGNS_OF_CODE = re.compile(r"[{}<>=;()\[\]]")
_QUOTE_MARKS = re.compile('["“”„«»「」]')


@dataclass(frozen=True, slots=True)
class Grounds:
    """What was measured of a text.

    Attributes:
        features: the measures by name.
        terms: the terms of the text.
        grounded: those of the terms that the messages have, too.
        messages: the number of messages.
        places: the number of messages that have a rare term of the text.
    """

    features: dict[str, float]
    terms: Terms
    grounded: set[Term]
    messages: int
    places: int


def without_citations(text: str) -> str:
    """Return a text without ids of messages in brackets."""
    return _CITATION.sub(" ", text)


def grounds_of(
    text: str, messages: Sequence[str], kept: Sequence[str] = (), last_user: int = 0
) -> Grounds:
    """Measure a text against the messages of a history.

    Args:
        text: what may be a summary.
        messages: the texts of the messages that leave, the oldest first.
        kept: the texts of those that stay.
        last_user: the position of the last message of the user among both.
    """
    body = without_citations(text)
    terms = terms_of(body)
    history = [*messages, *kept]
    count = max(1, len(history))
    found_in, copied = _find_in_messages(terms, history)
    frequency = Counter(term for found in found_in for term in found)
    places: dict[Term, list[int]] = {term: [] for term in frequency}
    for position, found in enumerate(found_in):
        for term in found:
            places[term].append(position)

    features = _term_features(terms, frequency, count)
    rare = [
        term
        for term, number in frequency.items()
        if term.kind != "word" or number <= _most_of_rare(count)
    ]
    locating = {
        term: places[term] for term in rare if len(places[term]) <= max(3, LOCATING_SHARE * count)
    }
    features |= _place_features(locating, count)
    features |= _order_features(locating, terms, count)
    best_message = max(map(len, found_in), default=0)
    features["one_message"] = best_message / max(LEAST_CONTENT, len(frequency))
    in_last_user = len(found_in[last_user]) if found_in else 0
    features["last_user_message"] = in_last_user / max(LEAST_CONTENT, len(frequency))
    features["grounded_lines"] = _grounded_lines(body, set(rare))
    features["copied"] = copied
    features |= _speech_features(body, terms, history)
    features |= _shape_features(text, body, terms, history)
    reached = {position for positions in locating.values() for position in positions}
    return Grounds(features, terms, set(frequency), count, len(reached))


def _find_in_messages(terms: Terms, history: Sequence[str]) -> tuple[list[set[Term]], float]:
    """Return which terms of a text each message has, and the share of the text that one has.

    That share is of runs of `RUN_LENGTH` words, in the message that has the most of them.
    """
    found_in: list[set[Term]] = []
    most_copied = 0
    runs = set(_runs(terms.words))
    own_words = set(terms.words)
    for message in history:
        found, words = terms_in(message, terms)
        found_in.append(found)
        may_be_copied = 2 * len(own_words.intersection(words)) > len(own_words)
        if runs and may_be_copied:
            most_copied = max(most_copied, len(runs & set(_runs(words))))
    return found_in, most_copied / len(runs) if runs else 0.0


def distinct_share(words: Sequence[str], length: int) -> float:
    """Return the share of runs of `length` words that are not repeated; 1.0 for a short text."""
    runs = list(_runs(words, length))
    return len(set(runs)) / len(runs) if runs else 1.0


def _runs(words: Sequence[str], length: int = RUN_LENGTH) -> zip[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(length)), strict=False)


def _most_of_rare(count: int) -> float:
    """Return the number of messages, of `count`, that may have a word for it to be rare."""
    return max(2, RARE_SHARE * count)


def _term_features(terms: Terms, frequency: Counter[Term], count: int) -> dict[str, float]:
    """Measure how many words, numbers and names of the text the messages have, and how rare."""
    known = [
        frequency[Term("word", word)] for word in terms.content if Term("word", word) in frequency
    ]
    words = max(LEAST_CONTENT, len(terms.content))
    rare = sum(1 for number in known if number <= _most_of_rare(count))
    numbers = sum(1 for number in terms.numbers if Term("number", number) in frequency)
    names = sum(1 for name in terms.names if Term("name", name) in frequency)
    return {
        "new_words": (len(terms.content) - len(known)) / words,
        "rarity": sum(math.log((count + 1) / (number + RARITY_SMOOTHING)) for number in known)
        / words,
        "rare_words": rare / words,
        "rare_word_count": math.log1p(rare),
        "topic_words": sum(1 for number in known if number >= max(3, TOPIC_SHARE * count)) / words,
        "topic_weight": sum(known) / count / words,
        "known_number_count": math.log1p(numbers),
        "new_number_count": math.log1p(len(terms.numbers) - numbers),
        "known_numbers": (numbers + SMOOTHING) / (len(terms.numbers) + 1),
        "number_density": len(terms.numbers) / max(8, terms.size),
        "known_name_count": math.log1p(names),
        "new_name_count": math.log1p(len(terms.names) - names),
        "known_names": (names + SMOOTHING) / (len(terms.names) + 1),
    }


def _place_features(locating: dict[Term, list[int]], count: int) -> dict[str, float]:
    """Measure of how many messages the text tells, and how much of it tells of the newest ones."""
    support = [0.0] * count
    for positions in locating.values():
        for position in positions:
            support[position] += 1 / len(positions)
    number = len(locating)
    total = max(1, number)
    covered = sum(1 for weight in support if weight > COVERED_SUPPORT) / count
    expected = 1 - math.exp(-max(number, 0.1) / count)
    entropy = 0.0
    if number > 1:
        shares = [weight / number for weight in support if weight > 0]
        entropy = -sum(share * math.log(share) for share in shares)
        entropy /= math.log(max(2, min(count, number)))
    return {
        "term_count": math.log1p(number),
        "best_message": max(support) / total,
        "best_two_messages": max(map(sum, pairwise(support)), default=max(support)) / total,
        "last_two": sum(support[-2:]) / total,
        "last_quarter": sum(support[int(count * 0.75) :]) / total,
        "first_third": sum(support[: int(count * 0.34) + 1]) / total,
        "covered": covered,
        "covered_of_expected": min(2.0, covered / max(0.05, expected)),
        "evenness": entropy,
    }


def _order_features(locating: dict[Term, list[int]], terms: Terms, count: int) -> dict[str, float]:
    """Measure whether the text tells things in the order in which they were said."""
    ordered = [term for term in terms.positions if term in locating][:MOST_ORDERED_TERMS]
    places = [sum(locating[term]) / len(locating[term]) for term in ordered]
    number = len(places)
    agreement = sum(
        (later > earlier) - (later < earlier)
        for position, earlier in enumerate(places)
        for later in places[position + 1 :]
    )
    third = max(1, number // 3)
    beginning = sum(places[:third]) / third
    end = sum(places[-third:]) / third
    # That of Kendall's tau: the variance of `agreement` in a random order, and one.
    deviation = math.sqrt(number * (number - 1) * (2 * number + 5) / 18 + 1)
    return {
        "order": agreement / (number * (number - 1) / 2 + 6),
        "order_deviation": agreement / deviation,
        "travel": (end - beginning) / count if number >= 4 else 0.0,
        "reach": (max(places) - min(places)) / count if number > 1 else 0.0,
        "beginning": beginning / count if number else 0.5,
        "deviation": pstdev(places) / count if number > 1 else 0.0,
    }


def _grounded_lines(body: str, rare: set[Term]) -> float:
    """Return the share of sentences with a rare term."""
    sentences = [part for part in _SENTENCE.split(body) if len(part.strip()) > SHORTEST_SENTENCE]
    grounded = 0
    for sentence in sentences:
        terms = terms_of(sentence)
        grounded += any(
            term in rare
            for kind, texts in (
                ("word", terms.content),
                ("number", terms.numbers),
                ("name", terms.names),
            )
            for term in (Term(kind, found) for found in texts)
        )
    return (grounded + SMOOTHING) / (len(sentences) + 1)


def _speech_features(body: str, terms: Terms, history: Sequence[str]) -> dict[str, float]:
    """Measure who speaks in a text, and whether it has the language of the history."""
    language = language_of(body, terms.words)
    sample = plain("\n".join(text[:SAMPLE_CHARACTERS] for text in history[-MOST_SAMPLES:]))
    shares = shares_of_speech(plain(body), terms.words, language)
    words = max(8, terms.size)
    return shares | {
        "other_language": float(language != language_of(sample, terms_of(sample).words)),
        "dialogue": shares["addressed"] + shares["first_person"],
        "narration": shares["speakers"] + shares["reports"],
        "speaker_count": shares["speakers"] * words,
    }


def _shape_features(text: str, body: str, terms: Terms, history: Sequence[str]) -> dict[str, float]:
    """Measure the form of a text: questions, citations, code, length."""
    sentences = max(1, len(_SENTENCE_END.findall(body)))
    length = max(20, len(body))
    citations = len(_CITATION.findall(text))
    characters = sum(map(len, history))
    return {
        "questions": len(_QUESTION.findall(body)) / sentences,
        "asks_at_end": float(bool(_QUESTION.search(body.strip()[-END_CHARACTERS:]))),
        "citations": math.log1p(citations),
        "code": len(_SIGNS_OF_CODE.findall(body)) / length,
        "quotes": 50 * len(_QUOTE_MARKS.findall(body)) / length,
        "distinct": distinct_share(terms.words, 3),
        "length": math.log(max(1, terms.size)),
        "compression": math.log((len(body) + 1) / (characters + 1)),
    }
