"""Whether what a summariser has answered is a summary, by the grounds that it has.

A summary tells of the messages that it stands for. A text is refused if it plainly is something
else (a copy, a page, a repeated line), or if its score is below a limit. The score comes from trees
that `benchmarks/fit_summaries.py` has fitted to labelled texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from conspectus.messages import SUMMARY_LINE
from conspectus.messages.users import is_by_user
from conspectus.model.base import SummaryRequest
from conspectus.model.grounds import Grounds, distinct_share, grounds_of
from conspectus.model.headings import heading_of, section_of
from conspectus.model.prompts import TEXTS
from conspectus.model.speech import language_of, shares_of_speech
from conspectus.model.terms import LONG_RUN, plain, terms_of

LONGEST_ANSWER = 100_000
"""Characters that any answer may have."""

CHARACTERS_PER_TOKEN = 32
"""Characters that an answer may have for each token that was asked for, if those are more."""

SENTENCE_OF_A_PROMPT = 60
"""Characters from which on a sentence of our prompts is long enough to be known again."""

REPEATED_WORDS = 3
"""Words in a row by which a repetition is known."""

LEAST_DISTINCT = 0.1
"""A text of which less is said only once repeats itself. Lists of like lines have more."""

MOST_COPIED = 0.5
"""A text of which more stands word for word in one message is a copy of it."""

LEAST_COPIED_WORDS = 25
"""Words from which on a text may be known as a copy."""

LEAST_NUMBERS = 4
"""Numbers of a text in another language of which the messages must have half."""

LEAST_TO_TELL = 12
"""Different words and names that messages must have so that a text can be measured by them."""

READ_OF_MESSAGE = 2_000
"""Characters of a message in which they are looked for."""

MOST_APOLOGY = 0.1
"""A text of whose words a larger share apologises or refuses is no summary, whatever it is of."""

LEAST_ADDRESSED = 0.1
"""Nor is a text of whose words as large a share means the reader, if no word of it reports."""

QUESTION_MARKS = ("?", "？", "؟")

_ERROR = re.compile(r"(?:\d{3} )?(?:\w{0,40}error|\w{0,40}exception|traceback|bad gateway)\b", re.I)
"""How the text of an error begins."""

_PROMPT_SENTENCES = [
    sentence
    for text in TEXTS
    for sentence in " ".join(text.split()).split(". ")
    if len(sentence) > SENTENCE_OF_A_PROMPT
]
_PROMPT_MARKS = [*_PROMPT_SENTENCES, "<message id=", "</messages>"]
"""Tags and sentences of our prompts. A text that repeats one of them is no summary."""


def reason_not_a_summary(
    text: str, request: SummaryRequest, *, has_our_prompt: bool = False
) -> str:
    """Say in a short sentence why a text is no summary; return an empty text if it is one.

    Args:
        text: the answer.
        request: what was asked. Without `check_summaries` any text that can be read is a summary.
        has_our_prompt: the answer was asked for in the form of our prompt.
    """
    longest = max(LONGEST_ANSWER, request.limit * CHARACTERS_PER_TOKEN)
    if len(text) > longest:
        return f"it has {len(text):,} characters, which is more than anybody reads"
    text = text.strip().removeprefix(SUMMARY_LINE).strip()
    if not any(char.isalnum() for char in text):
        return "it is empty"
    if not request.check_summaries:
        return ""
    if _repeats_prompt(text):
        return "it repeats the prompt"
    if is_document(text):
        return "it is one JSON or markup document, not lines that tell of the messages"
    if not _can_be_measured(request):
        return _reason_by_form(text)
    grounds = _grounds(text, request)
    return is_plainly_none(text, grounds) or _reason_by_score(text, grounds, has_our_prompt)


def begins_as_asked(text: str) -> bool:
    """Tell whether a text begins with one of the headings that our prompt asks for."""
    first_line = text.strip().partition("\n")[0]
    return bool(section_of(heading_of(first_line)))


def _reason_by_form(text: str) -> str:
    """Say why a text is no summary by its form alone, as the messages have too few words."""
    terms = terms_of(text)
    if distinct_share(terms.words, REPEATED_WORDS) < LEAST_DISTINCT:
        return "it says the same over and over"
    if all(len(word) > LONG_RUN for word in terms.words):
        return "it has no words"
    shares = shares_of_speech(plain(text), terms.words, language_of(text, terms.words))
    if _ERROR.match(text):
        return "it is an error"
    if shares["apologies"] > MOST_APOLOGY:
        return "it apologises or refuses, and does not tell what was said"
    reports = shares["speakers"] + shares["reports"]
    asks = bool(shares["first_person"]) and text.endswith(QUESTION_MARKS)
    if not reports and (asks or shares["addressed"] >= LEAST_ADDRESSED):
        return "it speaks to somebody, as an answer does, and does not tell what was said"
    return ""


def _reason_by_score(text: str, grounds: Grounds, has_our_prompt: bool) -> str:
    """Say why a text is no summary by what was measured of it; empty if it is one."""
    limits = read_trees()["limits"]
    has_form = begins_as_asked(text)
    limit = limits["function"]
    if has_our_prompt:
        limit = limits["with_form" if has_form else "without_form"]
    if score(grounds.features) >= limit:
        return ""
    reason = _what_is_missing(grounds)
    if has_our_prompt and not has_form:
        return f"it has not the headings that were asked for, and {reason}"
    return reason


def is_document(text: str) -> bool:
    """Tell whether a text is one JSON or markup document, as a gateway's page."""
    text = text.strip()
    return (text[:1] + text[-1:]) in ("{}", "<>")


def is_plainly_none(text: str, grounds: Grounds) -> str:
    """Say why a text cannot be a summary of any messages; return an empty text if it may be one."""
    if is_document(text):
        return "it is one JSON or markup document, not lines that tell of the messages"
    if distinct_share(grounds.terms.words, REPEATED_WORDS) < LEAST_DISTINCT:
        return "it says the same over and over"
    if not grounds.grounded and not grounds.features["other_language"]:
        return f"it tells of nothing that is in the {grounds.messages:,} messages"
    numbers = grounds.terms.numbers
    known = sum(1 for term in grounds.grounded if term.kind == "number")
    is_foreign = grounds.features["other_language"] and len(numbers) >= LEAST_NUMBERS
    if is_foreign and known * 2 < len(numbers):
        return f"of {len(numbers):,} numbers in it, the messages have {known:,}"
    is_long = grounds.terms.size >= LEAST_COPIED_WORDS
    if is_long and grounds.features["copied"] > MOST_COPIED:
        return "it copies one of the messages"
    return ""


def score(features: Mapping[str, float]) -> float:
    """Return how much a text is like a summary; 0 is in the middle."""
    stored = read_trees()
    values = [features[name] for name in stored["features"]]
    total: float = stored["start"]
    for tree in stored["trees"]:
        node = tree[0]
        while len(node) > 1:
            feature, limit, left, right = node
            node = tree[left if values[feature] <= limit else right]
        total += node[0]
    return total


@cache
def read_trees() -> Any:
    """Return the fitted trees, the names of their measures, and the limits of the score."""
    file = resources.files("conspectus.model").joinpath("summary_trees.json")
    return json.loads(file.read_text(encoding="utf-8"))


def _repeats_prompt(text: str) -> bool:
    words = " ".join(text.split())
    return any(mark in words for mark in _PROMPT_MARKS)


def _grounds(text: str, request: SummaryRequest) -> Grounds:
    leaving = [entry.reading for entry in request.entries]
    if request.summary_so_far:
        leaving.insert(0, request.summary_so_far)
    kept = [entry.reading for entry in request.kept]
    history = [*request.entries, *request.kept]
    earlier = len(leaving) - len(request.entries)
    last_user = max((i for i, entry in enumerate(history) if is_by_user(entry)), default=0)
    return grounds_of(text, leaving, kept, last_user + earlier)


def _can_be_measured(request: SummaryRequest) -> bool:
    """Tell whether the messages have enough words to find some of them again in a summary."""
    words = set[str]()
    for entry in request.entries:
        terms = terms_of(entry.reading[:READ_OF_MESSAGE])
        words |= {*terms.content, *terms.names}
        if len(words) >= LEAST_TO_TELL:
            return True
    return False


def _what_is_missing(grounds: Grounds) -> str:
    """Say which of its measures is least like those of a summary."""
    features = grounds.features
    terms = grounds.terms
    marked = {*terms.numbers, *terms.names}
    known = sum(1 for term in grounds.grounded if term.kind != "word")
    if len(marked) >= 3 and known * 2 < len(marked):
        return f"of {len(marked):,} names and numbers in it, the messages have {known:,}"
    if features["dialogue"] > 0.06 or features["questions"] > 0.3:
        return "it speaks to somebody, as an answer does, and does not tell what was said"
    if features["apologies"] > 0.03:
        return "it apologises or refuses, and does not tell what was said"
    if features["new_words"] > 0.6:
        share = features["new_words"]
        return f"{share:.0%} of its words are in none of the messages"
    return (
        f"it tells of {grounds.places:,} of {grounds.messages:,} messages, and not in their order"
        if grounds.places
        else "no name, number or rare word of the messages is in it"
    )
