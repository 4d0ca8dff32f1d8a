"""Searching what a chain answers for: the index is filled from the archive, then asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from conspectus._core.records import Chain
from conspectus._drive import Flow, Io
from conspectus.archive.flows import ArchiveFlows
from conspectus.archive.index import Doc, IndexLost
from conspectus.archive.lookup import Match
from conspectus.archive.rank import fused
from conspectus.archive.scope import Scope
from conspectus.archive.steps import Kind
from conspectus.archive.values import Archived, manifest
from conspectus.archive.words import names_of, query_of, terms_of
from conspectus.errors import ArchiveError, InputError
from conspectus.messages.recalled import says_again

T = TypeVar("T")

_SPEAKER = re.compile(r"\s*(?:\[[^\]\n]{1,60}\]\s*)?(?P<name>[^\W\d_][^\n:：\[\]]{0,40}?)\s?[:：]")
"""How a transcript names who speaks, where the message itself does not: `[date] Name: ...`."""

_ASKS = re.compile(r"[?？][\s\"'”’)»」』]*(?:\[[^\]]*\]\s*)?\Z")
"""A text that ends in a question, but for a bracket behind it, such as a picture's description."""

MEANT = 48
"""Messages near in meaning that are asked for."""

MEANT_WEAK = 0.5
"""Share of the best one's nearness that others must have."""

LAST = 400
"""Characters at the end of a message in which its question mark is looked for."""

AT_ONCE = 200
"""Messages read and indexed at a time."""


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
    keys = manifest(chain)
    ask = partial(archive.indexes.query, scope, query, keys)
    by_words = yield from _asked(archive, scope, chain, ask)
    meant = yield from archive.meant_flow(scope, text, MEANT)
    return _both(by_words, meant, keys) if meant else by_words


def _both(
    by_words: list[Match], meant: list[tuple[str, float]], keys: Sequence[str]
) -> list[Match]:
    """Two rankings as one; of what is near in meaning, only what the chain answers for."""
    place = {key: at for at, key in enumerate(keys)}
    least = MEANT_WEAK * max(score for _, score in meant)
    near = [place[key] for key, score in meant if key in place and (least <= 0 or score >= least)]
    known = {match.place: match for match in by_words}
    scores = fused([[match.place for match in by_words], near])
    direct = {match.place for match in by_words if match.direct}.union(near)
    return [
        replace(known[at], score=scores[at], direct=at in direct)
        if at in known
        else Match(keys[at], at, scores[at], at in direct)
        for at in sorted(scores, key=lambda at: (-scores[at], at not in known, -at))
    ]


def resolve_flow(archive: ArchiveFlows, scope: Scope, chain: Chain, name: str) -> Flow[list[str]]:
    """Keys of messages with an id or cited by a name, in order, among those of the chain."""
    ask = partial(archive.indexes.resolve, scope, name)
    found = yield from _asked(archive, scope, chain, ask)
    return [key for key in manifest(chain) if key in found]


def _asked(archive: ArchiveFlows, scope: Scope, chain: Chain, ask: Callable[[], T]) -> Flow[T]:
    """Ask the index, and build it again if it turns out to be lost; at last, in memory."""
    with archive.indexes.in_use(scope):
        for final in (False, False, True):
            try:
                if final:
                    yield Io(partial(archive.indexes.without_file, scope))
                yield from _fill(archive, scope, chain)
                answer: T = yield Io(ask)
                return answer
            except IndexLost as error:
                if final:
                    raise ArchiveError(
                        f"The search index cannot be built ({error}); check that this Python's "
                        "SQLite has FTS5, and that there is memory for it."
                    ) from error
    raise AssertionError("unreachable")


def _fill(archive: ArchiveFlows, scope: Scope, chain: Chain) -> Flow[None]:
    """Index the records that are not indexed yet.

    A record of which an original is gone is looked at again each time: it may come back with a
    restored archive.
    """
    indexes = archive.indexes
    held = yield Io(partial(indexes.held, scope, [record.id for record in chain]))
    for record in chain:
        if record.id in held:
            continue
        new = yield Io(partial(indexes.unknown, scope, manifest([record])))
        whole = True
        for start in range(0, len(new), AT_ONCE):
            part = new[start : start + AT_ONCE]
            found = yield from archive.find_flow(scope, part)
            whole = whole and len(found) == len(part)
            yield Io(partial(_index, archive, scope, list(found.values())))
        if whole:
            yield Io(partial(indexes.hold, scope, record.id))


def _index(archive: ArchiveFlows, scope: Scope, found: list[Archived]) -> None:
    archive.indexes.add(scope, [_doc(one) for one in found])


def _doc(one: Archived) -> Doc:
    text = f"{one.name or ''} {one.text}"
    said = _SPEAKER.match(one.text)
    speaker = one.name or (said.group("name") if said else one.role)
    if one.role == "tool" and says_again(one.text):
        text = ""  # its originals are found, and not what was shown of them as well
    terms = terms_of(f"{text}\n{one.date}" if one.date and one.date not in text else text)
    return Doc(
        one.key,
        one.id,
        one.cite,
        terms,
        names_of(speaker),
        bool(_ASKS.search(one.text[-LAST:])),
        kind_of(one),
        one.answers,
        {call.id: terms_of(call.reading) for call in one.calls} if len(one.calls) > 1 else {},
    )


def kind_of(one: Archived) -> Kind:
    """What a message does. Calls that a provider answers itself, in the message, are none here."""
    if any(call.id not in one.answers for call in one.calls):
        return Kind.CALLS
    return Kind.RESULT if one.answers and not one.speaks else Kind.SAYS
