"""Judge whether a right answer still stands on one line, with enough of its surroundings.

No model answers here. An item of an answer counts as kept if one line holds all of its terms
and either enough of the message that was the evidence, or enough of the question; a date counts
if its event stands on a line with it. So a bare list of dates and names scores nothing.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage

from conspectus_lab.evaluate.texts import lines_of
from conspectus_lab.evaluate.transcripts import DATE_QUESTION, UNANSWERABLE, Question, Transcript
from conspectus_lab.evaluate.words import DAY, asked_for, dates, terms

ANCHORS = 6
"""Terms by which a message is recognised: the rarest of the conversation."""

_BETWEEN = re.compile(r",|;|\band\b|&")


@dataclass(frozen=True, slots=True)
class Gold:
    """The evidence that one question needs.

    Attributes:
        evidence: ids of the messages.
        items: for words, the terms of each thing named, with the messages that hold them all.
        dates: for a date, the most exact form of it; None for words.
    """

    question: Question
    evidence: tuple[str, ...]
    items: tuple[tuple[frozenset[str], tuple[str, ...]], ...] = ()
    dates: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class ContextLine:
    """One line of a context: its terms and its dates."""

    terms: frozenset[str]
    dates: frozenset[str]


def lines(texts: Iterable[str]) -> list[ContextLine]:
    """Parse lines; empty ones are left out."""
    return [ContextLine(terms(text), dates(text)) for text in texts if text.strip()]


class Marker:
    """Judge answers about one conversation.

    Attributes:
        gold: the evidence of each question that can be marked: it has an answer, evidence in the
            conversation, and the answer stands there.
    """

    def __init__(self, transcript: Transcript) -> None:
        self._words = transcript.words
        about = {name: terms(text) for name, text in transcript.words.items()}
        spread = Counter(term for found in about.values() for term in found)
        self._anchors = {
            name: frozenset(sorted(found, key=lambda term: (spread[term], term))[:ANCHORS])
            for name, found in about.items()
        }
        self._days = {
            name: {date for date in dates(time) if len(date) == DAY}
            for name, time in transcript.times.items()
        }
        self.gold = tuple(g for q in transcript.questions if (g := _gold(q, about)) is not None)

    def share(self, gold: Gold, context: Sequence[ContextLine]) -> float:
        """Return the share of an answer that stands in lines, from 0 to 1."""
        if gold.dates is not None:
            return float(any(self._dates_it(gold.dates, line, gold) for line in context))
        asked = asked_for(gold.question.question)
        there = 0
        for item, holders in gold.items:
            rest = asked - item
            there += any(
                item <= line.terms
                and (
                    any(self._near(line, name) for name in holders)
                    or (bool(rest) and len(line.terms & rest) >= math.ceil(len(rest) / 2))
                )
                for line in context
            )
        return there / len(gold.items)

    def evidence(self, gold: Gold, context: str) -> float:
        """Return the share of evidence messages that stand whole in a context of `shown_lines`."""
        texts = (
            "\n".join(filter(str.strip, self._words[name].split("\n"))) for name in gold.evidence
        )
        whole = [text.strip() in context for text in texts]
        return sum(whole) / len(whole)

    def _dates_it(self, wanted: frozenset[str], line: ContextLine, gold: Gold) -> bool:
        return any(
            self._near(line, name)
            and bool(wanted & line.dates or self._days.get(name, set()) & line.dates)
            for name in gold.evidence
        )

    def _near(self, line: ContextLine, name: str) -> bool:
        """Return whether a line shares enough terms with a message."""
        anchors = self._anchors[name]
        return len(line.terms & anchors) >= max(2, len(anchors) / 2)


def shown_lines(context: Iterable[BaseMessage]) -> Iterator[str]:
    """Return the lines of a context in which an answer can stand."""
    return (line for line in lines_of(context) if line.strip())


def _gold(question: Question, about: Mapping[str, frozenset[str]]) -> Gold | None:
    evidence = tuple(name for name in question.evidence if name in about)
    if not evidence or not question.answer or question.category == UNANSWERABLE:
        return None
    if question.category == DATE_QUESTION:
        exact = sorted(dates(question.answer), key=lambda date: (len(date), date))[-1:]
        return Gold(question, evidence, dates=frozenset(exact))
    parts = [found for part in _BETWEEN.split(question.answer) if (found := terms(part))]
    items = []
    for item in parts or [terms(question.answer)]:
        holders = tuple(name for name in evidence if item <= about[name])
        if holders:
            items.append((item, holders))
    return Gold(question, evidence, tuple(items)) if items else None
