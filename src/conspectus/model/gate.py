"""Whether the answer of a summariser is a summary of the messages.

`grounds.py` measures what a text has in common with the messages. A text is rejected if it clearly
is something else (a copy, a page, a repeated line), or if its score is below a limit. The score
comes from decision trees that `benchmarks/fit_summaries.py` has fitted to labelled texts. If the
messages have too few words to be recognised, only the form of the text is judged.
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
from conspectus.model.terms import Term, plain, terms_of

LONGEST_ANSWER_CHARACTERS = 100_000
"""An answer of at most so many characters is never too long."""

CHARACTERS_PER_TOKEN = 32
"""If more tokens were asked for, an answer may have so many characters for each of them."""

LEAST_SENTENCE_CHARACTERS = 60
"""A shorter sentence of our prompts may also stand in a summary by chance."""

LONGEST_WORD = 200
"""Characters of a word. A longer run of letters is none, such as encoded data."""

REPEATED_WORDS = 3
"""Length of the runs of words that are compared to recognise repetitions."""

LEAST_DISTINCT_SHARE = 0.1
"""A text with a smaller share of different runs repeats itself. Lists of like lines have more."""

MOST_COPIED_SHARE = 0.5
"""If one message contains a larger share of the runs of a text, the text is a copy of it."""

LEAST_COPIED_WORDS = 25
"""A text with fewer words is never called a copy."""

LEAST_NUMBERS = 4
"""If a text in another language has so many numbers, the messages must have half of them."""

LEAST_UNKNOWN_SHARE = 0.9
"""A text with at least this share of words that no message has tells of something else."""

DISTINCTIVE_DIGITS = 3
"""A number with fewer digits may be in any two conversations."""

LEAST_TERMS = 12
"""With fewer different words and names in the messages, a text is judged by its form alone."""

MESSAGE_CHARACTERS = 2_000
"""Characters of each message in which these words and names are looked for."""

MOST_APOLOGY_SHARE = 0.1
"""A text with a larger share of words that apologise or refuse is no summary. This limit and the
next are for texts that are judged by their form."""

LEAST_ADDRESSED_SHARE = 0.1
"""Nor is a text with at least this share of words that address the reader, and none that report."""

QUESTION_MARKS = ("?", "？", "؟")

# What a text with a low score lacks most: the first of these that it shows is the reason.

LEAST_MARKED = 3
"""If a text has so many names and numbers, the reason says how many of them the messages have."""

MOST_DIALOGUE_SHARE = 0.06
"""A text with a larger share of words that address the reader or speak of the writer is an
answer."""

MOST_QUESTION_SHARE = 0.3
"""So is a text of whose sentences a larger share are questions."""

MOST_APOLOGIES_IN_REASON = 0.03
"""A text with a larger share of words that apologise or refuse is an apology."""

MOST_NEW_WORDS_SHARE = 0.6
"""If a text has a larger share of words that no message has, the reason is this share."""

# Reasons that several checks give

IS_DOCUMENT = "it is one JSON or markup document, not lines that tell of the messages"
REPEATS_ITSELF = "it says the same over and over"
SPEAKS_TO_SOMEBODY = "it speaks to somebody, as an answer does, and does not tell what was said"
APOLOGISES = "it apologises or refuses, and does not tell what was said"

_ERROR = re.compile(r"(?:\d{3} )?(?:\w{0,40}error|\w{0,40}exception|traceback|bad gateway)\b", re.I)
"""How the text of an error begins."""

_PROMPT_SENTENCES = [
    sentence
    for text in TEXTS
    for sentence in " ".join(text.split()).split(". ")
    if len(sentence) > LEAST_SENTENCE_CHARACTERS
]
_PROMPT_MARKS = [*_PROMPT_SENTENCES, "<message id=", "</messages>"]
"""Sentences and tags of our prompts. A text that repeats one of them is no summary."""


def reason_not_a_summary(
    text: str, request: SummaryRequest, *, has_our_prompt: bool = False
) -> str:
    """Say in a short sentence why a text is no summary; return an empty text if it is one.

    Args:
        text: the answer.
        request: what was asked. Without `check_summaries` any text that can be read is a summary.
        has_our_prompt: the answer was asked for in the form of our prompt.
    """
    longest = max(LONGEST_ANSWER_CHARACTERS, request.limit * CHARACTERS_PER_TOKEN)
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
        return IS_DOCUMENT
    if not _can_be_measured(request):
        return _reason_by_form(text)
    grounds = _grounds(text, request)
    return reason_by_grounds(text, grounds) or _reason_by_score(text, grounds, has_our_prompt)


def begins_as_asked(text: str) -> bool:
    """Tell whether a text begins with one of the headings that our prompt asks for."""
    first_line = text.strip().partition("\n")[0]
    return bool(section_of(heading_of(first_line)))


def _reason_by_form(text: str) -> str:
    """Say why a text is no summary, by its form alone; empty if it may be one."""
    terms = terms_of(text)
    if distinct_share(terms.words, REPEATED_WORDS) < LEAST_DISTINCT_SHARE:
        return REPEATS_ITSELF
    if all(len(word) > LONGEST_WORD for word in terms.words):
        return "it has no words"
    shares = shares_of_speech(plain(text), terms.words, language_of(text, terms.words))
    if _ERROR.match(text):
        return "it is an error"
    if shares["apologies"] > MOST_APOLOGY_SHARE:
        return APOLOGISES
    reports = shares["speakers"] + shares["reports"]
    asks = bool(shares["first_person"]) and text.endswith(QUESTION_MARKS)
    if not reports and (asks or shares["addressed"] >= LEAST_ADDRESSED_SHARE):
        return SPEAKS_TO_SOMEBODY
    return ""


def _reason_by_score(text: str, grounds: Grounds, has_our_prompt: bool) -> str:
    """Say why a text is no summary if its score is too low; empty if it is not."""
    limits = read_trees()["limits"]
    has_form = begins_as_asked(text)
    limit = limits["function"]
    if has_our_prompt:
        limit = limits["with_form" if has_form else "without_form"]
    if score(grounds.features) >= limit:
        return ""
    reason = _greatest_lack(grounds)
    if has_our_prompt and not has_form:
        return f"it has not the headings that were asked for, and {reason}"
    return reason


def is_document(text: str) -> bool:
    """Tell whether a text is one JSON or markup document, as a gateway's page."""
    text = text.strip()
    return (text[:1] + text[-1:]) in ("{}", "<>")


def reason_by_grounds(text: str, grounds: Grounds) -> str:
    """Say why a text clearly is no summary, whatever its score is; empty if it may be one."""
    if is_document(text):
        return IS_DOCUMENT
    if distinct_share(grounds.terms.words, REPEATED_WORDS) < LEAST_DISTINCT_SHARE:
        return REPEATS_ITSELF
    if not grounds.grounded or _has_only_new_words(grounds):
        return f"it tells of nothing that is in the {grounds.messages:,} messages"
    numbers = grounds.terms.numbers
    known = sum(1 for term in grounds.grounded if term.kind == "number")
    is_translated = grounds.features["other_language"] and len(numbers) >= LEAST_NUMBERS
    if is_translated and known * 2 < len(numbers):
        return f"of {len(numbers):,} numbers in it, the messages have {known:,}"
    if grounds.features["other_language"] and _names_other_things(grounds):
        return "its names and numbers are in none of the messages"
    is_long = grounds.terms.size >= LEAST_COPIED_WORDS
    if is_long and grounds.features["copied"] > MOST_COPIED_SHARE:
        return "it copies one of the messages"
    return ""


def _has_only_new_words(grounds: Grounds) -> bool:
    """Tell whether a text in the language of the messages shares hardly a word with them."""
    if grounds.features["other_language"]:
        return False
    knows_name = any(term.kind == "name" for term in grounds.grounded)
    return grounds.features["new_words"] >= LEAST_UNKNOWN_SHARE and not knows_name


def _names_other_things(grounds: Grounds) -> bool:
    """Tell whether a text has names and numbers, and the messages have none that tells much.

    In another language than the messages, names and numbers are all that both can have.
    """
    if len(grounds.terms.numbers) + len(grounds.terms.names) < LEAST_MARKED:
        return False
    known = [term for term in grounds.grounded if term.kind != "word"]
    return len(known) <= 1 and not any(_is_distinctive(term) for term in known)


def _is_distinctive(term: Term) -> bool:
    """Tell whether a name or number is seldom in two conversations by chance."""
    digits = sum(map(str.isdecimal, term.text))
    return term.kind == "name" or digits >= DISTINCTIVE_DIGITS


def score(features: Mapping[str, float]) -> float:
    """Return the score of a text, above 0 if it is more like summaries than like other texts."""
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
    """Measure a text against the summary so far, the messages that leave and those that stay."""
    summary = [request.summary_so_far] if request.summary_so_far else []
    leaving = [*summary, *(entry.reading for entry in request.entries)]
    kept = [entry.reading for entry in request.kept]
    history = enumerate([*request.entries, *request.kept], start=len(summary))
    by_user = [position for position, entry in history if is_by_user(entry)]
    return grounds_of(text, leaving, kept, last_user=by_user[-1] if by_user else len(summary))


def _can_be_measured(request: SummaryRequest) -> bool:
    """Tell whether the messages have enough words and names to look for in a summary."""
    words = set[str]()
    for entry in request.entries:
        terms = terms_of(entry.reading[:MESSAGE_CHARACTERS])
        words |= {*terms.content, *terms.names}
        if len(words) >= LEAST_TERMS:
            return True
    return False


def _greatest_lack(grounds: Grounds) -> str:
    """Say what a text with a low score lacks most, so that a model can be told."""
    features = grounds.features
    terms = grounds.terms
    marked = {*terms.numbers, *terms.names}
    known = sum(1 for term in grounds.grounded if term.kind != "word")
    if len(marked) >= LEAST_MARKED and known * 2 < len(marked):
        return f"of {len(marked):,} names and numbers in it, the messages have {known:,}"
    if features["dialogue"] > MOST_DIALOGUE_SHARE or features["questions"] > MOST_QUESTION_SHARE:
        return SPEAKS_TO_SOMEBODY
    if features["apologies"] > MOST_APOLOGIES_IN_REASON:
        return APOLOGISES
    new_words = features["new_words"]
    if new_words > MOST_NEW_WORDS_SHARE:
        return f"{new_words:.0%} of its words are in none of the messages"
    if not grounds.places:
        return "no name, number or rare word of the messages is in it"
    return (
        f"it tells of {grounds.places:,} of {grounds.messages:,} messages, and not in their order"
    )
