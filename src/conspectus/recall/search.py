"""Searching what a chain answers for: the index is filled from the archive, then asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from conspectus._core.records import Chain
from conspectus._drive import Flow, Io
from conspectus.archive.flows import ArchiveFlows
from conspectus.archive.scope import Scope
from conspectus.errors import InputError
from conspectus.recall.index import index_of
from conspectus.recall.lookup import Match, look_up
from conspectus.recall.postings import DamagedError
from conspectus.recall.rank import fused
from conspectus.recall.words import query_of

MEANT = 48
"""Messages near in meaning that are asked for."""

MEANT_WEAK = 0.5
"""Share of the best one's nearness that others must have."""


def search_flow(archive: ArchiveFlows, scope: Scope, chain: Chain, text: str) -> Flow[list[Match]]:
    """Messages that fit a query, the best first, among those that the chain answers for.

    Where the store has a semantic index, its ranking and that by words are fused.

    Raises:
        InputError: there is no word in the query.
        ArchiveError: the archive cannot be read.
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
    """Two rankings as one; of what is near in meaning, only what the chain answers for."""
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


def resolve_flow(archive: ArchiveFlows, scope: Scope, chain: Chain, name: str) -> Flow[list[str]]:
    """Keys of messages with an id or cited by a name, in order, among those of the chain."""
    return index_of(archive).named_flow(scope, chain, name)
