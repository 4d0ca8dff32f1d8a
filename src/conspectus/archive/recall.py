"""Recall: archived originals found again by id, by range or by query, as text with no authority."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from conspectus._core.records import Chain
from conspectus._drive import Flow, Io
from conspectus.archive.flows import ArchiveFlows
from conspectus.archive.index import IndexLost
from conspectus.archive.layout import Piece, excerpt, render, smallest
from conspectus.archive.scope import Scope
from conspectus.archive.search import resolve_flow, search_flow
from conspectus.archive.values import Archived, manifest
from conspectus.archive.words import query_of
from conspectus.errors import InputError, NotFoundError

BEST = 24
"""Messages found by a query that are considered."""

AT_ONCE = 50
"""Messages of a range read at a time, as its end seldom fits."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One message recalled.

    Attributes:
        id: its id; a derived one where it had none.
        cite: how summaries name it.
        key: identity and version.
        role: who speaks.
        name: the speaker's or the tool's name, if given.
        date: when it was said, as the caller wrote it, if known.
        text: what is shown of it, without its frame; a part where it was shortened.
        score: how well it fits the query, higher is better; 0 where there was no query.
        neighbour: it stands next to one that fits, and was not found itself.
    """

    id: str
    cite: str
    key: str
    role: str
    name: str | None
    date: str | None
    text: str
    score: float
    neighbour: bool


@dataclass(frozen=True, slots=True)
class RecallResult:
    """What was recalled.

    Attributes:
        hits: the messages, in the order of the text.
        text: all of them as one text to show to a model; empty where nothing was found or fits.
        tokens: size of the text.
        truncated: something was shortened or left out for lack of room.
    """

    hits: tuple[Hit, ...]
    text: str
    tokens: int
    truncated: bool


def recall_flow(
    archive: ArchiveFlows,
    scope: Scope,
    chain: Chain,
    *,
    query: str | None = None,
    id: str | None = None,
    range: tuple[str, str] | None = None,
    tokens: int = 1024,
    count: Callable[[str], int],
) -> Flow[RecallResult]:
    """Find archived originals among those that a chain answers for.

    Exactly one of `query`, `id` and `range` is given. Messages found by a query come best first,
    each with the one before and the one after it where there is room.

    Args:
        archive: where the originals are.
        scope: whose history.
        chain: the records in force; what only an abandoned branch holds is not found.
        query: words, names, paths, in any language.
        id: a message's id, or how a summary cites it.
        range: the first and the last message, each by id or citation.
        tokens: the most that the text may take.
        count: tokens of a text.

    Raises:
        InputError: not exactly one way of asking, or one that cannot mean anything.
        NotFoundError: no message of the chain has that id.
        ArchiveError: the archive cannot be read.

    Example:
        `run(recall_flow(archive, scope, chain, query="database password", count=len))`
    """
    if sum(way is not None for way in (query, id, range)) != 1:
        raise InputError("recall takes exactly one of query, id and range")
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1:
        raise InputError(f"tokens must be a whole number of at least 1, got {tokens!r}")
    room = _Room(tokens, count)
    if query is not None:
        _text("query", query)
        return (yield from _by_query(archive, scope, chain, query, room))
    if id is not None:
        keys = yield from _keys(archive, scope, chain, id)
        yield from _take(archive, scope, keys, room)
        if not room.read:
            raise NotFoundError(
                f"{_shown(id)} was archived here and is gone: it has expired or was forgotten; go "
                "on without it"
            )
        return room.result()
    assert range is not None
    if not isinstance(range, (tuple, list)) or len(range) != 2:
        raise InputError("range is a pair: the id of the first message and that of the last one")
    first = yield from _keys(archive, scope, chain, range[0])
    last = yield from _keys(archive, scope, chain, range[1])
    order = manifest(chain)
    start, end = order.index(first[0]), order.index(last[-1])
    if start > end:
        raise InputError(
            f"the range runs backwards: {_shown(range[0])} comes after {_shown(range[1])}; "
            "swap them"
        )
    yield from _take(archive, scope, order[start : end + 1], room)
    if not room.read:
        raise NotFoundError("all messages of that range have expired or were forgotten")
    return room.result()


@dataclass(slots=True)
class _Room:
    """The text as it grows, held against its limit as a whole at every step."""

    tokens: int
    count: Callable[[str], int]
    pieces: list[Piece] = field(default_factory=list)
    left_out: int = 0
    read: int = 0
    marks: tuple[str, ...] = ()

    def fits(self, pieces: Sequence[Piece], left_out: int) -> bool:
        return self.count(render(pieces, left_out)) <= self.tokens

    def add(self, piece: Piece, more: int, *, alone: bool) -> bool:
        """Put a message in, whole or shortened; False if there is no room even for a bit of it.

        Args:
            piece: the message.
            more: how many others are still to come.
            alone: it may have all the room; else at most half, so that others get some.
        """
        self.read += 1
        share = self.tokens if alone else max(1, self.tokens // 2)

        def good(tried: Piece) -> bool:
            own = self.count(render([tried], 0))
            return own <= share and self.fits([*self.pieces, tried], more)

        if good(piece):
            self.pieces.append(piece)
            return True
        low, high, best = smallest(piece), len(piece.text), None
        while low <= high:
            middle = (low + high) // 2
            tried = excerpt(piece, middle, self.marks)
            if good(tried):
                best, low = tried, middle + 1
            else:
                high = middle - 1
        if best is None:
            return False
        self.pieces.append(best)
        return True

    def result(self) -> RecallResult:
        # What was counted step by step is counted once more, for counters that are not monotone.
        while self.pieces and not self.fits(self.pieces, self.left_out):
            self.pieces.pop()
            self.left_out += 1
        text = render(self.pieces, self.left_out) if self.pieces else ""
        short = any(piece.shortened for piece in self.pieces)
        return RecallResult(
            hits=tuple(_hit(piece) for piece in self.pieces),
            text=text,
            tokens=self.count(text) if text else 0,
            truncated=short or self.left_out > 0,
        )


def _by_query(
    archive: ArchiveFlows, scope: Scope, chain: Chain, query: str, room: _Room
) -> Flow[RecallResult]:
    matches = (yield from search_flow(archive, scope, chain, query))[:BEST]
    order = manifest(chain)
    place = {key: at for at, key in enumerate(order)}
    beside = {
        match.key: [
            order[at] for at in (place[match.key] - 1, place[match.key] + 1) if 0 <= at < len(order)
        ]
        for match in matches
    }
    wanted = [key for match in matches for key in (match.key, *beside[match.key])]
    found = yield from archive.find_flow(scope, wanted)
    gone = [match.key for match in matches if match.key not in found]
    if gone:  # expired or forgotten elsewhere: the index must not remember them either
        yield Io(partial(_drop, archive, scope, gone))
    live = [match for match in matches if match.key in found]
    room.marks = query_of(query).surfaces
    for at, match in enumerate(live):
        piece = _piece(found[match.key], match.score)
        if not room.add(piece, len(live) - at - 1, alone=len(live) == 1):
            room.left_out = len(live) - at
            break
    for match in live:
        for key in beside[match.key]:
            if key in found and all(piece.key != key for piece in room.pieces):
                tried = _beside(
                    room.pieces,
                    match.key,
                    replace(_piece(found[key]), neighbour=True),
                    before=place[key] < place[match.key],
                )
                if room.fits(tried, room.left_out):
                    room.pieces = tried
    return room.result()


def _beside(pieces: list[Piece], key: str, new: Piece, *, before: bool) -> list[Piece]:
    """The pieces with one more, next to the one of that key; as they are if that is not there."""
    for at, piece in enumerate(pieces):
        if piece.key == key:
            at += not before
            return [*pieces[:at], new, *pieces[at:]]
    return pieces


def _take(archive: ArchiveFlows, scope: Scope, keys: Sequence[str], room: _Room) -> Flow[None]:
    """Messages in order until the room is used up."""
    for start in builtins.range(0, len(keys), AT_ONCE):
        part = keys[start : start + AT_ONCE]
        found = yield from archive.find_flow(scope, part)
        for at, key in enumerate(part, start):
            if key not in found:
                continue
            if not room.add(_piece(found[key]), len(keys) - at - 1, alone=len(keys) == 1):
                room.left_out = len(keys) - at
                return


def _keys(archive: ArchiveFlows, scope: Scope, chain: Chain, name: str) -> Flow[list[str]]:
    _text("an id", name)
    keys = yield from resolve_flow(archive, scope, chain, name)
    bare = name.strip().removeprefix("[").removesuffix("]").strip()
    if not keys and bare != name:  # as a summary shows it
        keys = yield from resolve_flow(archive, scope, chain, bare)
    if not keys:
        raise NotFoundError(
            f"no archived message of this branch has the id {_shown(name)}; it may be still in "
            "view, expired, forgotten or of another branch; try a query"
        )
    return keys


def _drop(archive: ArchiveFlows, scope: Scope, keys: list[str]) -> None:
    try:
        archive.indexes.drop(scope, keys)
    except IndexLost:
        return  # then it remembers nothing at all


def _piece(one: Archived, score: float = 0.0) -> Piece:
    return Piece(
        id=one.id,
        cite=one.cite,
        key=one.key,
        role=one.role,
        name=one.name,
        date=one.date,
        text=one.text,
        score=score,
    )


def _hit(piece: Piece) -> Hit:
    return Hit(
        id=piece.id,
        cite=piece.cite,
        key=piece.key,
        role=piece.role,
        name=piece.name,
        date=piece.date,
        text=piece.text,
        score=piece.score,
        neighbour=piece.neighbour,
    )


def _text(what: str, value: object) -> None:
    if not isinstance(value, str):
        raise InputError(f"{what} must be text, not {type(value).__name__}")


def _shown(name: str) -> str:
    return repr(name if len(name) <= 80 else name[:80] + "...")
