"""Recall originals by id, range or query, as text without authority."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from conspectus._core.records import Chain
from conspectus._drive import Flow
from conspectus.archive.flows import ArchiveFlows
from conspectus.archive.scope import Scope
from conspectus.archive.values import Archived, manifest
from conspectus.errors import InputError, NotFoundError
from conspectus.events import Recall, observing
from conspectus.messages.recalled import says_again
from conspectus.recall.index import index_of
from conspectus.recall.layout import Hit, Piece, excerpt, hit_of, onwards
from conspectus.recall.packing import Packing
from conspectus.recall.search import Match, search_flow
from conspectus.recall.words import query_of

WHOLE_UP_TO = 720  # Characters up to which a found message is shown whole
AT_ONCE = 50  # Messages read at a time, as the last of them seldom fit
RESULTS_WITHIN = 100  # Messages from a call on among which its results are looked for


@dataclass(frozen=True, slots=True)
class RecallResult:
    """Recalled messages, and the text that shows them.

    Attributes:
        hits: the messages, in the order of the text.
        text: the text to show to a model; empty if nothing was found or fits.
        tokens: size of the text.
        truncated: whether something was shortened or left out to fit.
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
    start: int = 0,
    tokens: int = 1024,
    most: int | None = None,
    without: Collection[str] = (),
    cited: bool = True,
    count: Callable[[str], int],
) -> Flow[RecallResult]:
    """Find originals of a chain; give exactly one of `query`, `id` and `range`.

    Messages found by a query come best first, with neighbours that complete them; consecutive
    messages are grouped. Messages that fit far worse than the best, or repeat others, are left out.
    Messages of abandoned branches are not found.

    Args:
        archive, scope, chain: where to look.
        query: words, names, paths, in any language.
        id: a message's id, or its citation in a summary; of a call with its results.
        range: the first and the last message, each by id or citation.
        start: characters to skip in a message asked for by id, to read on in a long one.
        tokens: the largest size of the text.
        most: the most messages for a query; None for no limit.
        without: ids of messages that a query does not show.
        cited: whether all messages show their citation, or only shortened ones, to save tokens.
        count: counts the tokens of a text.

    Raises:
        InputError: not exactly one way of asking, or an invalid one.
        NotFoundError: no message of the chain has that id.
        ArchiveError: the archive cannot be read.
    """
    asked = {"query": query, "id": id, "range": range}
    kind = next((name for name, given in asked.items() if given is not None), "")
    with observing(Recall, scope.whose, kind=kind) as seen:
        if sum(given is not None for given in asked.values()) != 1:
            raise InputError("recall takes exactly one of query, id and range")
        if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1:
            raise InputError(f"tokens must be a whole number of at least 1, got {tokens!r}")
        if isinstance(start, bool) or not isinstance(start, int) or start < 0 or (start and not id):
            raise InputError(
                f"start is a whole number of characters, and goes with id; got {start!r}"
            )
        room = Packing(tokens, count, cited=cited, most=most)
        try:
            if query is not None:
                yield from _by_query(archive, scope, chain, query, room, without)
            elif id is not None:
                yield from _by_id(archive, scope, chain, id, room, start)
            elif range is not None:
                yield from _by_range(archive, scope, chain, range, room)
        except NotFoundError:
            seen.tell(outcome="not_found")
            raise
        pieces, text, size, truncated = room.result()
        seen.tell(results=len(pieces), tokens=size, truncated=truncated)
        return RecallResult(tuple(piece.hit for piece in pieces), text, size, truncated)


def unknown_thread(tenant: str, thread: str) -> NotFoundError:
    """Return the error for an unknown thread: a typing error must not look like an empty one."""
    return NotFoundError(
        f"the archive keeps no thread {_shown(thread)} of {_shown(tenant)}; 'conspectus archive "
        "list', or Archive.threads in Python, names those that it keeps"
    )


def _by_query(
    archive: ArchiveFlows,
    scope: Scope,
    chain: Chain,
    query: str,
    room: Packing,
    without: Collection[str],
) -> Flow[None]:
    _text("query", query)
    matches = yield from search_flow(archive, scope, chain, query)
    room.marks = query_of(query).surfaces
    for start in range(0, len(matches), AT_ONCE):
        part = matches[start : start + AT_ONCE]
        found = yield from archive.find_flow(scope, [match.key for match in part])
        gone = [match.key for match in part if match.key not in found]
        if gone:  # expired or forgotten elsewhere: the index must not remember them either
            yield from index_of(archive).drop_flow(scope, chain, gone)
        for match in part:
            one = found.get(match.key)
            if one is None or room.full or one.id in without or _again(one):
                continue
            room.offer(_found(one, match), alone=len(matches) == 1)
        if room.full:
            return


def _by_id(
    archive: ArchiveFlows, scope: Scope, chain: Chain, name: str, room: Packing, start: int
) -> Flow[None]:
    keys = yield from _keys(archive, scope, chain, name)
    results = [] if start else (yield from _results(archive, scope, chain, keys[-1]))
    yield from _take(archive, scope, keys, room, start, len(results))
    if not room.read:
        raise NotFoundError(
            f"{_shown(name)} was archived here and is gone: it has expired or was forgotten; go on "
            "without it"
        )
    for at, one in enumerate(results):
        piece = Piece(hit_of(one, neighbour=True), len(keys) + at)
        if room.left_out or not room.add(piece, len(results) - at - 1, alone=len(results) == 1):
            room.left_out += len(results) - at
            return


def _results(archive: ArchiveFlows, scope: Scope, chain: Chain, key: str) -> Flow[list[Archived]]:
    """Return the results of the calls that a message makes: notes cite the call for both."""
    order = manifest(chain)
    at = order.index(key)
    near = order[at : at + RESULTS_WITHIN]
    found = yield from archive.find_flow(scope, near)
    waiting = {call.id for call in found[key].calls} if key in found else set[str]()
    results: list[Archived] = []
    for one in (found[name] for name in near[1:] if waiting and name in found):
        waiting -= {call.id for call in one.calls}  # made anew: what answers it is another result
        if waiting & {*one.answers}:
            results += [] if one.speaks else [one]
            waiting -= {*one.answers}
    return results


def _by_range(
    archive: ArchiveFlows, scope: Scope, chain: Chain, ends: tuple[str, str], room: Packing
) -> Flow[None]:
    if not isinstance(ends, (tuple, list)) or len(ends) != 2:
        raise InputError("range is a pair: the id of the first message and that of the last one")
    first = yield from _keys(archive, scope, chain, ends[0])
    last = yield from _keys(archive, scope, chain, ends[1])
    order = manifest(chain)
    start, end = order.index(first[0]), order.index(last[-1])
    if start > end:
        raise InputError(
            f"the range runs backwards: {_shown(ends[0])} comes after {_shown(ends[1])}; swap them"
        )
    yield from _take(archive, scope, order[start : end + 1], room)
    if not room.read:
        raise NotFoundError("all messages of that range have expired or were forgotten")


def _take(
    archive: ArchiveFlows,
    scope: Scope,
    keys: Sequence[str],
    room: Packing,
    start: int = 0,
    more: int = 0,
) -> Flow[None]:
    """Add messages in order, before so many others, until the text is full."""
    for first in range(0, len(keys), AT_ONCE):
        part = keys[first : first + AT_ONCE]
        found = yield from archive.find_flow(scope, part)
        for at, key in enumerate(part, first):
            if key not in found:
                continue
            piece = onwards(Piece(hit_of(found[key]), at), start)
            left, one = len(keys) - at - 1 + more, len(keys) == 1
            added = room.add(piece, left, alone=one and not more)
            if not added and not (one and room.add(piece, left, alone=True)):
                room.left_out = len(keys) - at
                return


def _keys(archive: ArchiveFlows, scope: Scope, chain: Chain, name: str) -> Flow[list[str]]:
    _text("an id", name)
    index = index_of(archive)
    keys = yield from index.named_flow(scope, chain, name)
    bare = name.strip().removeprefix("[").removesuffix("]").strip()
    if not keys and bare != name:  # as a summary shows it
        keys = yield from index.named_flow(scope, chain, bare)
    if not keys:
        raise NotFoundError(
            f"no archived message of this branch has the id {_shown(name)}; it may be still in "
            "view, expired, forgotten or of another branch; try a query"
        )
    return keys


def _again(one: Archived) -> bool:
    """Return whether a message only repeats an earlier recall, which would crowd out others."""
    return one.role == "tool" and says_again(one.text)


def _found(one: Archived, match: Match) -> Piece:
    piece = Piece(hit_of(one, match.score, not match.direct), match.place, match.follows)
    if match.end is not None and len(one.text) > WHOLE_UP_TO:
        piece = excerpt(piece, match.end - match.start, match.start)
    return piece


def _text(what: str, value: object) -> None:
    if not isinstance(value, str):
        raise InputError(f"{what} must be text, not {type(value).__name__}")


def _shown(name: str) -> str:
    return repr(name if len(name) <= 80 else name[:80] + "...")
