"""Tell which sentences of a text bind: rules, prohibitions, decisions, corrections, limits.

Words count, and little else: what obliges, forbids, decides or limits, in the language of the text.
The guess decides only the order in which quotations give way, so it takes rather too many sentences
for rules than too few. Words and their points stand in `words.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice

from conspectus._bounded_cache import BoundedCache
from conspectus.rules.sentences import ITEM, sentence_ends
from conspectus.rules.vocabulary import (
    PlainSentence,
    Vocabulary,
    plain_form,
    points_of,
    vocabularies_for,
    words_of,
)

BINDING_POINTS = 3
"""A sentence binds from so many points on."""

NUMBER_POINTS = 1
"""The points of a number beside a phrase that needs one, as in "at most 5"."""

QUESTION_POINTS = -2
"""The points of a question. Most questions do not bind, but ask what is the case."""

LONGEST_SENTENCE = 480
"""Characters. A longer text without the end of a sentence is divided at its clauses."""

LONGEST_PAIR = 240
"""Characters of a sentence and the one before it. If both have more, only the second is quoted."""

MOST_RULES = 64
"""The most rules of one message. A text with more is a document."""

READ_CHARACTERS = 32_000
"""Characters at each end of a message that are read. What lies between them was pasted."""

MOST_REMEMBERED_TEXTS = 2_000
"""The most texts that are remembered with their rules."""

MOST_REMEMBERED_CHARACTERS = 8_000
"""Characters. A longer text is not remembered."""

_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
_QUOTED = re.compile(
    r"\"[^\"\n]{12,400}\"|“[^”\n]{12,400}”|«[^»\n]{12,400}»|「[^」\n]{8,400}」|『[^』\n]{8,400}』|„[^“”\n]{12,400}[“”]"
)
"""What stands in quotation marks, if it is longer than a name: the words of others."""

_CLAUSE = re.compile(r"[;,；，、،؛:]\s*|\s[–—-]\s|\n")
_QUESTION = re.compile(r"[?？؟;]\W*\Z|か[。.]?\Z|吗[。.]?\Z")
_ORDINAL = re.compile(r"(?:^|\s)\d{1,2}\.\Z")
"""A day before its month, as in "18. September"; also a number at the end of a sentence."""

_POINTS_BACK = frozenset(
    "it this that these those they them its their das dies diese dieser dieses es sie ce cela ceci "
    "ces cette il elle ils elles ça este esta esto estos estas eso esa él ella ellos isso isto "
    "ele ela eles questo questa questi queste dit dat deze ten ta te это этот эта эти он она "
    "они".split()
)
"""Words with which a sentence points back to the one before it."""

_ARTICLES = frozenset(
    "the der die das den le la les el los las o a os as il lo i gli de het".split()
)
"""Words with which a sentence may point back, if it has no number."""

LEAST_SIGNS_OF_CODE = 3
"""A sentence with fewer signs of code is no code."""

LEAST_SHARE_OF_CODE = 0.04
"""Nor is one in which signs of code are no larger share of all characters."""

_WITHOUT_SIGNS_OF_CODE = str.maketrans("", "", "{}[]<>=;")


@dataclass(frozen=True, slots=True)
class Rule:
    """A statement that binds, as it stands in a text.

    Attributes:
        text: the words.
        start: their place in the text.
    """

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    start: int
    binds: bool
    heads_list: bool  # it ends with a colon, and items below it bind
    is_item: bool


def rule_id(text: str) -> str:
    """Return the id by which a person takes a rule out: eight digits and letters.

    Equal statements have the same id, wherever they were said.

    Example:
        >>> rule_id("Never push  to main.") == rule_id("Never push to main.")
        True
    """
    return sha256(" ".join(text.split()).encode("utf-8", "replace")).hexdigest()[:8]


def statements_in(text: str) -> tuple[str, ...]:
    """Return the rules of a text, word for word and in their order."""
    return tuple(rule.text for rule in find_rules(text))


def find_rules(text: str) -> tuple[Rule, ...]:
    """Return the sentences of a text that bind, in their order.

    A sentence that points back to the one before it ("They must never be printed") is returned with
    that one. Below a heading that binds ("Rules:"), each item of the list does.

    Example:
        >>> [rule.text for rule in find_rules("The build is green. Never push to main, please.")]
        ['Never push to main, please.']
    """
    rules = _remembered.get(text)
    if rules is None:
        rules = tuple(islice(_rules_at_ends(text), MOST_RULES))
        if len(text) <= MOST_REMEMBERED_CHARACTERS:
            _remembered.put(text, rules)
    return rules


_remembered: BoundedCache[str, tuple[Rule, ...]] = BoundedCache(MOST_REMEMBERED_TEXTS)


def _rules_at_ends(text: str) -> Iterator[Rule]:
    if len(text) <= 2 * READ_CHARACTERS:
        yield from _find(text)
        return
    yield from _find(text[:READ_CHARACTERS])
    start = len(text) - READ_CHARACTERS
    for rule in _find(text[start:]):
        yield Rule(rule.text, start + rule.start)


def _find(text: str) -> Iterator[Rule]:
    vocabularies = vocabularies_for(text)
    if not vocabularies:
        return
    previous: _Sentence | None = None
    in_list = False
    for start, end in _sentence_spans(text):
        sentence = _judge(text[start:end], start, vocabularies)
        in_list = in_list and sentence.is_item
        if sentence.binds or in_list or sentence.heads_list:
            yield _rule_of(sentence, previous, text)
        in_list = in_list or sentence.heads_list
        previous = sentence


def _judge(text: str, start: int, vocabularies: list[Vocabulary]) -> _Sentence:
    plain = plain_form(text)
    without_quotations = _QUOTED.sub(" ", plain)
    own_words = without_quotations if any(map(str.isalnum, without_quotations)) else plain
    is_question = bool(_QUESTION.search(plain))
    has_digit = any(map(str.isdigit, own_words))
    best = 0
    parts = PlainSentence(own_words)
    for vocabulary in vocabularies:
        found = points_of(parts, vocabulary)
        points = found.points
        if has_digit and found.binds_with_number:
            points += NUMBER_POINTS
        best = max(best, points)
    heads_list = plain.rstrip("*_ ").endswith((":", "：")) and best >= BINDING_POINTS - 1
    if is_question:
        best += QUESTION_POINTS
    return _Sentence(
        text,
        start,
        binds=best >= BINDING_POINTS,
        heads_list=heads_list,
        is_item=bool(ITEM.match(text)),
    )


def _rule_of(sentence: _Sentence, previous: _Sentence | None, text: str) -> Rule:
    """Return a sentence as a rule, with the one before it if it points back to that one."""
    if previous is not None and not previous.binds:
        first_word = next(iter(words_of(plain_form(sentence.text))), "")
        has_digit = any(map(str.isdigit, sentence.text))
        points_back = first_word in _POINTS_BACK or (first_word in _ARTICLES and not has_digit)
        both = text[previous.start : sentence.start + len(sentence.text)]
        if points_back and len(both) <= LONGEST_PAIR and "\n\n" not in both:
            return Rule(both, previous.start)
    return Rule(sentence.text, sentence.start)


def _sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each sentence begins and ends, without space around it and without code."""
    code = _code_spans(text)
    ends = sorted({*sentence_ends(text), *(edge for span in code for edge in span), len(text)})
    begin = 0
    spans = iter(code)
    span = next(spans, None)
    for end in ends:
        is_full_stop = text[end - 1 : end + 1] == ". "
        if is_full_stop and _ORDINAL.search(text[max(0, end - 4) : end]):
            continue
        while span is not None and span[1] <= begin:
            span = next(spans, None)
        is_code = span is not None and span[0] <= begin < span[1]
        start = begin + len(text[begin:end]) - len(text[begin:end].lstrip())
        stop = begin + len(text[begin:end].rstrip())
        begin = end
        if is_code or start >= stop or text[start] == ">" or _looks_like_code(text[start:stop]):
            continue
        if stop - start <= LONGEST_SENTENCE:
            yield start, stop
        else:
            yield from _clause_spans(text, start, stop)


def _looks_like_code(sentence: str) -> bool:
    """Tell whether a sentence without fences is code: many of its characters are signs of code."""
    signs = len(sentence) - len(sentence.translate(_WITHOUT_SIGNS_OF_CODE))
    return signs >= LEAST_SIGNS_OF_CODE and signs > LEAST_SHARE_OF_CODE * len(sentence)


def _code_spans(text: str) -> list[tuple[int, int]]:
    """Return where code stands between fences."""
    if "```" not in text and "~~~" not in text:
        return []
    fences = [fence.start() for fence in _FENCE.finditer(text)]
    if len(fences) % 2:
        fences.append(len(text))
    return [*zip(fences[::2], fences[1::2], strict=True)]


def _clause_spans(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a text that is too long for a sentence, divided at its clauses."""
    begin = start
    last_clause = start
    for clause in _CLAUSE.finditer(text, start, stop):
        if clause.end() - begin > LONGEST_SENTENCE and last_clause > begin:
            yield begin, begin + len(text[begin:last_clause].rstrip())
            begin = last_clause
        last_clause = clause.end()
    if stop - begin <= LONGEST_SENTENCE:
        yield begin, stop
