"""Search a chain's messages for passages that fit a query, and those near them."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from conspectus._core.records import Chain
from conspectus._drive import Flow, Io
from conspectus.archive.flows import ArchiveFlows
from conspectus.archive.scope import Scope
from conspectus.errors import InputError
from conspectus.recall.corpus import Corpus
from conspectus.recall.index import WHOLE, index_of
from conspectus.recall.postings import DamagedError
from conspectus.recall.rank import Asked, fused, holding_enough, merged, plain, scores, strong
from conspectus.recall.words import Ask, Query, query_of

CANDIDATES = 120
"""Passages with terms of a query whose neighbours are ranked; half as many for each sentence."""

EXACT = 2.0  # Weight of an identifier that stands in a message as in the query
MEANT = 48  # Messages asked of a semantic index
MEANT_WEAK = 0.5  # Share of the best semantic score that others must have


@dataclass(frozen=True, slots=True)
class Match:
    """One found passage.

    `direct`: it holds a good part of the query itself. `follows`: places one step before its
    message. `end` is None for a whole message.
    """

    key: str
    place: int
    score: float
    direct: bool
    follows: tuple[int, ...] = ()
    start: int = 0
    end: int | None = None


def search_flow(archive: ArchiveFlows, scope: Scope, chain: Chain, text: str) -> Flow[list[Match]]:
    """Return matches of a query in a chain, best first.

    The ranking of a semantic index, if the store has one, is fused in. A query without a word is an
    `InputError`.
    """
    query = query_of(text)
    if not (query.whole.words or query.whole.wholes):
        raise InputError("the query holds no word to look for; give words, a name, a path or an id")
    corpus = yield from index_of(archive).corpus_flow(scope, chain)
    try:
        by_words: list[Match] = yield Io(partial(look_up, corpus, query))
    except DamagedError:
        corpus = yield from index_of(archive).corpus_flow(scope, chain, anew=True)
        by_words = yield Io(partial(look_up, corpus, query))
    meant = yield from archive.meant_flow(scope, text, MEANT)
    return _both(by_words, meant, corpus.covered) if meant else by_words


def _both(
    by_words: list[Match], meant: list[tuple[str, float]], keys: Sequence[str]
) -> list[Match]:
    """Fuse two rankings; of semantic matches only those in the chain."""
    place = {key: at for at, key in enumerate(keys)}
    least = MEANT_WEAK * max(score for _, score in meant)
    near = [place[key] for key, score in meant if key in place and (least <= 0 or score >= least)]
    known: dict[int, Match] = {}
    for match in by_words:  # of each message its best passage
        known.setdefault(match.place, match)
    scores = fused([list(known), near])
    direct = {match.place for match in known.values() if match.direct}.union(near)
    return [
        replace(known[at], score=scores[at], direct=at in direct)
        if at in known
        else Match(keys[at], at, scores[at], at in direct)
        for at in sorted(scores, key=lambda at: (-scores[at], at not in known, -at))
    ]


def look_up(corpus: Corpus, query: Query) -> list[Match]:
    """Return the passages that fit a query, best first."""
    found = _ranked(corpus, (query.whole, *query.parts))
    if not found and query.single:
        names = query.whole.names
        found = _ranked(corpus, (Ask(dict.fromkeys(query.single, 1.0), (), names),))
    return found


def _ranked(corpus: Corpus, asks: Sequence[Ask]) -> list[Match]:
    weights = [{**ask.words, **dict.fromkeys(_exact(ask), EXACT)} for ask in asks]
    terms = {term for one in weights for term in one}
    held = {term: found for term in terms if (found := corpus.holding(term))}
    if not held:
        return []
    asked = [
        Asked(weight, ask.names, _exact(ask), held, corpus)
        for ask, weight in zip(asks, weights, strict=True)
    ]
    each, direct = [], set[int]()
    for number, one in enumerate(asked):
        most = CANDIDATES // (2 if number else 1)
        fits = plain(one)
        hits = _best(fits, most, corpus.place)
        each.append(scores(one, hits))
        direct.update(holding_enough(one, each[-1]))
    best = merged(each[0], each[1:])
    holding_any = {number for found in held.values() for number in found}
    matches = []
    for number in strong(best, holding_any, corpus.place):
        place = corpus.place[number]
        end = None if len(corpus.numbers[place]) == 1 else corpus.ends[number]
        matches.append(
            Match(
                corpus.covered[place],
                place,
                best[number],
                number in direct,
                corpus.steps.follows(place),
                corpus.starts[number],
                end,
            )
        )
    return matches


def _best(fits: Mapping[int, float], most: int, place: Sequence[int]) -> list[int]:
    """Return the passages that fit best; of equals the later first."""
    least = min(heapq.nlargest(most, fits.values()), default=0.0)
    among = [number for number, fit in fits.items() if fit >= least]
    return heapq.nlargest(most, among, key=lambda number: (fits[number], place[number]))


def _exact(ask: Ask) -> list[str]:
    return [WHOLE + whole for whole in ask.wholes]
