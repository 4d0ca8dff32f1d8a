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
from conspectus.model.prompts import TEXTS
from conspectus.model.terms import terms_of

LONGEST_ANSWER = 100_000
"""Characters that any answer may have."""

CHARACTERS_PER_TOKEN = 32
"""Characters that an answer may have for each token that was asked for, if those are more."""

SENTENCE_OF_A_PROMPT = 60
"""Characters from which on a sentence of our prompts is long enough to be known again."""

LEAST_DISTINCT = 0.2
"""A text of which less is said only once repeats itself. Lists of like lines have more."""

MOST_COPIED = 0.5
"""A text of which more stands word for word in one message is a copy of it."""

LEAST_COPIED_WORDS = 25
"""Words from which on a text may be known as a copy."""

LEAST_NUMBERS = 4
"""Numbers of a text in another language of which the messages must have half."""

LEAST_TO_TELL = 12
"""Different terms that messages must have so that a text can be measured by them."""

HEADINGS = ("goal", "rules", "found", "findings", "done", "open", "decisions", "facts", "next")
"""How the headings that our prompt asks for begin, in small letters."""

_HEADING = re.compile(r"(?:#+[ \t]+|\*\*)([^\n*#:]{2,40})")
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
        return ""
    grounds = _grounds(text, request)
    reason = is_plainly_none(text, grounds)
    if reason:
        return reason
    limits = _trees()["limits"]
    limit = limits["function"]
    if has_our_prompt:
        limit = limits["with_form" if begins_as_asked(text) else "without_form"]
    if score(grounds.features) >= limit:
        return ""
    missing_form = has_our_prompt and not begins_as_asked(text)
    reason = _what_is_missing(grounds)
    if missing_form and score(grounds.features) >= limits["function"]:
        return f"it has not the headings that were asked for, and {reason}"
    return reason


def begins_as_asked(text: str) -> bool:
    """Tell whether a text begins with one of the headings that our prompt asks for."""
    match = _HEADING.match(text.strip())
    return match is not None and match[1].strip().casefold().startswith(HEADINGS)


def is_document(text: str) -> bool:
    """Tell whether a text is one JSON or markup document, as a gateway's page."""
    text = text.strip()
    return (text[:1] + text[-1:]) in ("{}", "<>")


def is_plainly_none(text: str, grounds: Grounds) -> str:
    """Say why a text cannot be a summary of any messages; return an empty text if it may be one."""
    if is_document(text):
        return "it is one JSON or markup document, not lines that tell of the messages"
    if distinct_share(grounds.terms.words, 3) < LEAST_DISTINCT:
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
    stored = _trees()
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
def _trees() -> Any:
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
    """Tell whether the messages have enough terms to find some of them again in a summary."""
    terms = set[str]()
    for entry in request.entries:
        found = terms_of(entry.reading[:2_000])
        terms |= {*found.content, *found.numbers, *found.names}
        if len(terms) >= LEAST_TO_TELL:
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
