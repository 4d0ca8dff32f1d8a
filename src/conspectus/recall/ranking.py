"""Rank passages for a query: BM25 over a passage and its surroundings, and who speaks.

The index only says which passages have a term. So a term counts once in a passage, and its rarity
is that in the history of the query. An answer often has no term of the question: "It is 5433." So
it borrows terms of the messages before it, and a little of those after it, as BM25F does from the
fields of one document.

BM25 is described by Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and
Beyond" (2009). BM25F is its form for documents of several fields. `benchmarks/recall.py` measures
the effect of the bonuses.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from conspectus.recall.chain_index import ChainIndex

POOL_SIZE = 100
"""Passages with most of the terms by rarity; the candidates are among them."""

CANDIDATES = 30
"""Ranked passages, without the short messages around them."""

K1 = 1.2
"""BM25: how fast further occurrences of a term stop to count; 1.2 is the usual value."""

B = 0.75
"""BM25: how much the length of a passage counts, from 0 to 1; 0.75 is the usual value."""

COVERAGE = 0.5
"""Weight of the share of the query that is in or around a passage."""

AFTER_QUESTION = 0.06
"""Bonus of a message after a question, in a talk."""

BRIEF_STATEMENT = 0.1
"""Bonus of a user's short statement near an assistant's long answer with the same terms."""

LONG_SPEECH = 0.65
"""Share that a long speech keeps of its score in a talk: a long answer has something about each
term. If calls are near, a long text is an agent's own reasoning, or its task, and keeps its whole
score."""

MAX_PASSAGES_TYPED = 2
"""The most passages of a typed text; a longer one is pasted, and counts as a long speech."""

LEAST_SHARE = 0.2
"""Nothing with less than this share of the best score is shown."""

Postings = Mapping[str, Collection[int]]
"""The numbers of the passages that have each term."""


class PassageMatch(NamedTuple):
    """A matching passage: its message's position, its number in the index, its score."""

    position: int
    passage: int
    score: float


class QueryTerm(NamedTuple):
    """A term that some passages have: its value, which grows with its rarity, and the passages."""

    value: float
    passages: Collection[int]


def ranked_passages(
    index: ChainIndex, weights: Mapping[str, float], passage_count: int, postings: Postings
) -> list[PassageMatch]:
    """Return the passages that match a query, the best first; of equal ones, the later first.

    Args:
        index: the messages that may be found. Messages around the candidates are read into it.
        weights: of the query's terms.
        passage_count: passages of the whole history.
        postings: the passages of each term.
    """
    terms = [
        QueryTerm(weights[term] * _rarity(passage_count, len(passages)), passages)
        for term, passages in postings.items()
        if passages
    ]
    value_of_query = sum(term.value for term in terms)
    value_of_query += _rarity_of_unknown(passage_count) * sum(
        weight for term, weight in weights.items() if not postings.get(term)
    )

    candidates = _candidates(index, terms)
    candidates |= _short_messages_around(index, candidates.values())
    lengths = [index[position].words_per_passage for position in candidates.values()]
    scoring = _Scoring(index, terms, value_of_query, sum(lengths) / max(1, len(lengths)))
    matches = [
        PassageMatch(position, passage, score)
        for passage, position in candidates.items()
        if (score := scoring.score(passage, position)) is not None
    ]
    best = max((match.score for match in matches), default=0.0)
    matches = [match for match in matches if match.score >= LEAST_SHARE * best]
    return sorted(matches, key=lambda match: (-match.score, -match.position, match.passage))


def _rarity(passage_count: int, holding: int) -> float:
    """Return the inverse document frequency of a term that so many passages hold."""
    return math.log(1 + passage_count / (holding + 0.5))


def _rarity_of_unknown(passage_count: int) -> float:
    """Return the value of a term in no passage, somewhat less than `_rarity` with 0."""
    return math.log(2 + 2 * passage_count)


def _candidates(index: ChainIndex, terms: Sequence[QueryTerm]) -> dict[int, int]:
    """Return the passages with most of the terms, by rarity, and their messages' positions.

    Among passages with the same terms, shorter ones come first, then later ones.
    """
    values: dict[int, float] = {}
    for term in terms:
        for passage in term.passages:
            values[passage] = values.get(passage, 0.0) + term.value
    pool = heapq.nlargest(POOL_SIZE, zip(values.values(), values, strict=True))

    position_of = index.read_passages([passage for _, passage in pool])
    lengths = [index[position].words_per_passage for position in position_of.values()]
    mean_length = sum(lengths) / max(1, len(lengths))
    scores: list[tuple[float, int]] = []
    for passage, position in position_of.items():
        relative_length = index[position].words_per_passage / mean_length
        score = values[passage] / (1 + _saturation_point(relative_length))
        scores.append((score, passage))
    best = heapq.nlargest(CANDIDATES, scores)
    return {passage: position_of[passage] for _, passage in best}


def _short_messages_around(index: ChainIndex, positions: Collection[int]) -> dict[int, int]:
    """Return the passages of short messages from which candidates borrow terms.

    A call without a term of the query is left out, because it says less than its result.
    """
    index.read(other for position in positions for other in index.around(position))
    lenders = {lender for position in positions for lender in index.lenders_of(position)}
    return {
        index[lender].passages[0]: lender
        for lender in lenders
        if index[lender].is_short and index[lender].act != "calls"
    }


def _saturation_point(relative_length: float) -> float:
    """Return the number of occurrences at which a term counts half, for a length (mean = 1)."""
    return K1 * (1 - B + B * relative_length)


@dataclass(frozen=True)
class _Scoring:
    """The scores of passages for one query."""

    index: ChainIndex
    terms: Sequence[QueryTerm]
    value_of_query: float
    mean_length: float
    _terms_of_passage: dict[int, list[int]] = field(default_factory=dict)

    def score(self, passage: int, position: int) -> float | None:
        """Return the score of a passage of a message; None if no term is in or around it."""
        lenders = self.index.lenders_of(position)
        occurrences: dict[int, list[float]] = {}  # for each term: the weights of its places
        weighted_length = 0.0
        total_weight = 0.0
        for lender, weight in [(position, 1.0), *lenders.items()]:
            passages = [passage] if lender == position else self._lent_passages(position, lender)
            if not passages:
                continue
            length = self.index[lender].words_per_passage
            weighted_length += weight * length * len(passages)
            total_weight += weight
            for lent in passages:
                for term in self._terms_in(lent):
                    occurrences.setdefault(term, []).append(weight)
        if not occurrences:
            return None
        relative_length = weighted_length / total_weight / self.mean_length
        fit = self._fit(occurrences, _saturation_point(relative_length))
        if not fit:
            return None
        share, bonus = self._by_speaker(position, lenders)
        return share * (fit / self.value_of_query + bonus)

    def _lent_passages(self, position: int, lender: int) -> Sequence[int]:
        """Return the passages that a message borrows from; a result borrows from its own call."""
        borrower = self.index[position]
        first_passage_of_call = self.index[lender].first_passage_of_call
        if borrower.act == "answers":
            of_own_calls = [
                first_passage_of_call[call]
                for call in borrower.links
                if call in first_passage_of_call
            ]
            if of_own_calls:
                return of_own_calls
        return self.index[lender].lent_passages

    def _terms_in(self, passage: int) -> list[int]:
        """Return which terms a passage has, by their numbers."""
        held = self._terms_of_passage.get(passage)
        if held is None:
            held = [number for number, term in enumerate(self.terms) if passage in term.passages]
            self._terms_of_passage[passage] = held
        return held

    def _fit(self, occurrences: Mapping[int, Sequence[float]], saturation_point: float) -> float:
        """Return how much of the query's value is in and around a passage."""
        fit = 0.0
        for term, weights in occurrences.items():
            count = sum(weights)
            frequency = count / (count + saturation_point)
            coverage = COVERAGE * math.sqrt(max(weights))
            fit += self.terms[term].value * (frequency + coverage)
        return fit

    def _by_speaker(self, position: int, lenders: Mapping[int, float]) -> tuple[float, float]:
        """Return the share that a message keeps of its score, and its bonus, by its speaker."""
        index = self.index
        message = index[position]
        if message.act != "speaks":
            return 1.0, 0.0
        around = index.around(position)
        bonus = 0.0
        states_briefly = message.is_users and message.is_short and not message.is_question
        if states_briefly and not index.long_answers.isdisjoint(around):
            bonus += BRIEF_STATEMENT
        if not index.calls_and_results.isdisjoint(around):
            return 1.0, bonus

        # The lenders before a message come first, the nearest first.
        before = next((lender for lender in lenders if lender < position), None)
        if before is not None and index[before].is_question:
            bonus += AFTER_QUESTION
        is_typed = message.is_users and len(message.passages) <= MAX_PASSAGES_TYPED
        return 1.0 if message.is_short or is_typed else LONG_SPEECH, bonus
