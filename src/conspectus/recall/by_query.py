"""Recall by a query: the matching passages, the best first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from conspectus.archive.passages import index_words, plain
from conspectus.archive.tables import MAX_PASSAGES_OF_WORD
from conspectus.archive.values import Archived
from conspectus.errors import InputError, NotFoundError
from conspectus.recall.by_id import positions_named, quoted_id, range_positions, read_named
from conspectus.recall.chain_index import POSITIONS_AFTER
from conspectus.recall.hits import Hit, hit_of
from conspectus.recall.originals import READ_AT_ONCE, ChainOriginals
from conspectus.recall.packing import Packing
from conspectus.recall.query_terms import exact_phrases, stem, weighted_terms
from conspectus.recall.ranking import PassageMatch, Postings, ranked_passages

LAST_PASSAGE = -1

_LINES_AND_SENTENCES = re.compile(r"(?<=\n)|(?<=[.!?] )|(?<=[。！？])")


def recall_by_query(
    originals: ChainOriginals,
    packing: Packing,
    query: str,
    ends: tuple[str, str] | None = None,
) -> None:
    """Show the passages that match a query, the best first; with `ends`, those of a range.

    The results of a call are shown with it.

    Raises:
        InputError: the query has no word, or the end of the range is before its start.
        NotFoundError: an end of the range is unknown.
    """
    weights = terms_of(query)
    phrases = exact_phrases(query)
    weights |= dict.fromkeys(phrases.values(), 1.0)
    index = originals.index
    postings: Postings
    passage_count, postings = index.words.passages_holding(index.scope, [*weights])
    positions = range(len(index.order.keys))
    if ends is not None:
        positions = range_positions(originals.index, ends)
        postings = _postings_within(originals, positions, postings)
    postings = _without_frequent_terms(postings)

    matches = ranked_passages(index, weights, passage_count, postings)
    matches = [match for match in matches if match.position in positions]
    candidates = originals.read(_positions_with_words_of(phrases, matches, postings))
    matches = _those_with_phrases_first(originals, candidates, matches, phrases)
    _QueryResults(originals, packing, weights, postings).show(matches, candidates)


def terms_of(query: object) -> dict[str, float]:
    """Return the terms of a query, with their weights.

    Raises:
        InputError: it is no text, or has no word.
    """
    if not isinstance(query, str):
        raise InputError(f"query must be text, not {type(query).__name__}")
    weights = weighted_terms(query)
    if not weights:
        raise InputError("the query holds no word to look for; give words, a name, a path or an id")
    return weights


def _postings_within(
    originals: ChainOriginals, positions: range, postings: Postings
) -> dict[str, set[int]]:
    """Return the passages of each term in the messages at some positions."""
    index = originals.index
    index.read(positions)
    inside = {
        passage
        for position in positions
        if position in index
        for passage in index[position].passages
    }
    return {term: inside.intersection(passages) for term, passages in postings.items()}


def _without_frequent_terms(postings: Postings) -> Postings:
    """Leave out terms that occur in too many passages, unless all terms do."""
    rarer = {
        term: passages
        for term, passages in postings.items()
        if len(passages) < MAX_PASSAGES_OF_WORD
    }
    return rarer if any(rarer.values()) else postings


def _positions_with_words_of(
    phrases: Mapping[str, str], matches: Iterable[PassageMatch], postings: Postings
) -> set[int]:
    """Return the positions of matches that may have a phrase, because they have all its words."""
    passages = {passage for term in phrases.values() for passage in postings.get(term, ())}
    return {match.position for match in matches if match.passage in passages}


def _those_with_phrases_first(
    originals: ChainOriginals,
    candidates: Mapping[int, Archived],
    matches: list[PassageMatch],
    phrases: Mapping[str, str],
) -> list[PassageMatch]:
    """Order matches by their scores; multiply each by one more than its number of phrases.

    `candidates` are the originals that may have a phrase, by their positions.
    """

    def score(match: PassageMatch) -> float:
        original = candidates.get(match.position)
        if original is None:
            return match.score
        number = match.passage - originals.index[match.position].passages[0]
        begin, end = originals.passage_span(original, number)
        return match.score * (1 + _phrases_in(original.text[begin:end], phrases))

    return sorted(matches, key=score, reverse=True)


def _phrases_in(text: str, phrases: Iterable[str]) -> int:
    """Return how many phrases of the query a text has literally."""
    folded = " ".join(plain(text).casefold().split())
    return sum(
        re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", folded) is not None for phrase in phrases
    )


@dataclass(frozen=True)
class _QueryResults:
    """Shows the matches of a query."""

    originals: ChainOriginals
    packing: Packing
    weights: Mapping[str, float]
    postings: Postings

    def show(self, matches: list[PassageMatch], already_read: Mapping[int, Archived]) -> None:
        """Offer matches in their order until the text is full; a call with its results.

        `already_read` are originals by their positions.
        """
        read = dict(already_read)
        for rank, match in enumerate(matches):
            if self.packing.is_full:
                return
            if rank % READ_AT_ONCE == 0:
                positions = {later.position for later in matches[rank : rank + READ_AT_ONCE]}
                read |= self.originals.read(positions - read.keys())
            original = read.get(match.position)
            if original is None:
                continue
            hit = self._hit(match, original, is_best=rank == 0)
            if self.packing.offer_found(hit) and original.calls:
                self._offer_results(match, original)

    def _hit(self, match: PassageMatch, original: Archived, is_best: bool) -> Hit:
        """Return the matching passage; in little room, from the words of the query onwards.

        The best match is shown with the passage after it: words of a question are often the heading
        of its answer.
        """
        number = self._number_in_message(match)
        span = self.originals.passage_span(original, number, with_next=is_best)
        hit = hit_of(original, span, position=match.position, score=match.score)
        if self.packing.hits or self.packing.fits(hit):
            return hit
        begin, end = span
        begin += _place_of_words(original.text[begin:end], self.weights)
        return hit_of(original, (begin, end), position=match.position, score=match.score)

    def _number_in_message(self, match: PassageMatch) -> int:
        return match.passage - self.originals.index[match.position].passages[0]

    def _offer_results(self, match: PassageMatch, original: Archived) -> None:
        """Offer the result of the call in a passage, because it says more than the call.

        Of a long result, the passage is shown that has most of the query's other terms, weighted by
        rarity; else its last passage.
        """
        other_terms = [
            (self.weights[term] / len(passages), passages)
            for term, passages in self.postings.items()
            if passages and match.passage not in passages
        ]
        spans = self.originals.spans_of(original)
        call = spans[min(self._number_in_message(match), len(spans) - 1)].call_id
        soon = range(match.position + 1, match.position + POSITIONS_AFTER + 1)
        for position, result in self.originals.results_of(original, soon, call).items():
            passages = self.originals.index[position].passages
            values = {
                passage: sum(value for value, holding in other_terms if passage in holding)
                for passage in passages
            }
            number = LAST_PASSAGE
            if values:
                number = max(values, key=lambda passage: (values[passage], passage)) - passages[0]
            span = self.originals.passage_span(result, number)
            self.packing.offer_found(hit_of(result, span, position=position, score=match.score))


def _place_of_words(text: str, weights: Mapping[str, float]) -> int:
    """Return where the line or sentence begins that has most words of a query."""
    best_value = 0.0
    best_begin = 0
    begin = 0
    for part in _LINES_AND_SENTENCES.split(text):
        held = index_words(part).casefold()
        value = sum(weights[term] for term in weights if stem(term) in held)
        if value > best_value:
            best_value = value
            best_begin = begin
        begin += len(part)
    return best_begin


def recall_within(originals: ChainOriginals, packing: Packing, name: str, query: str) -> None:
    """Show the passages of one message that have words of a query, the rarest words first.

    If several messages have the id, it is the newest one.

    Raises:
        InputError: the query holds no word.
        NotFoundError: the message is unknown or gone, or has none of the words.
        ArchiveError: the message is damaged.
    """
    positions, _ = positions_named(originals.index, name)
    named = read_named(originals, name, positions)
    position = max(named)
    original = named[position]
    spans = [span[:2] for span in originals.spans_of(original)]
    held = {span: index_words(original.text[slice(*span)]).casefold() for span in spans}
    values: dict[tuple[int, int], float] = {}
    for term in terms_of(query):
        holding = [span for span in spans if stem(term) in held[span]]
        for span in holding:
            values[span] = values.get(span, 0.0) + 1 / len(holding)
    if not values:
        raise NotFoundError(f"{quoted_id(name)} holds none of these words; read it from at=0 on")
    for span in sorted(values, key=lambda span: (-values[span], span)):
        if packing.is_full:
            return
        packing.offer(hit_of(original, span, position=position), packing.tokens)
