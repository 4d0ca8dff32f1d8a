"""Recall originals by id, range or query, as text without authority."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from conspectus._core.records import Chain
from conspectus.archive.backend import MOST
from conspectus.archive.flows import Archive
from conspectus.archive.scope import Scope
from conspectus.archive.values import Archived, manifest, spans
from conspectus.errors import InputError, NotFoundError
from conspectus.observe import observing
from conspectus.recall.catalog import Catalog
from conspectus.recall.layout import Hit, Packing, Piece, piece_of
from conspectus.recall.rank import Match, ranked
from conspectus.recall.words import Query, query_of, words_of

WHOLE_UP_TO = 720  # Characters up to which a found message is shown whole
AT_ONCE = 50  # Messages read at a time, as the last of them seldom fit
RESULTS_WITHIN = 100  # Messages from a call on among which its results are looked for
EXACT = 0.3  # Bonus of a passage that holds all identifiers of the query; less for some of them
COMMON = 500  # Passages that hold a word, above which they are kept in memory
NONE: frozenset[int] = frozenset()
ALIKE = 0.9  # Share of common words above which a second message says nothing new


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

    def __repr__(self) -> str:
        ids = ", ".join(hit.cite for hit in self.hits[:5]) + ", …" * (len(self.hits) > 5)
        short = ", shortened" if self.truncated else ""
        return f"<RecallResult {len(self.hits):,} messages ({ids}), {self.tokens:,} tokens{short}>"


async def recall_flow(
    archive: Archive,
    scope: Scope,
    chain: Chain,
    *,
    query: str | None = None,
    id: str | None = None,
    range: tuple[str, str] | None = None,
    at: int | None = None,
    tokens: int = 1024,
    most: int | None = None,
    without: Collection[str] = (),
    cited: bool = True,
    found: set[str] | None = None,
    count: Callable[[str], int],
) -> RecallResult:
    """Find originals of a chain by `query`, `id` or `range`; `query` may go with `id`.

    Messages found by a query come best first, with neighbours that complete them; those that follow
    each other are grouped. Messages that fit far worse than the best, or repeat others, are left
    out. Messages of abandoned branches are not found.

    Args:
        archive, scope, chain: where to look.
        query: words, names, paths, in any language; with `id`, in that message alone.
        id: a message's id, or its citation in a summary; of a call with its results. `id/2` is the
            second of the calls that a message makes.
        range: the first and the last message, each by id or citation.
        at: characters to skip in a message asked for by id, to read on in a long one.
        tokens: the largest size of the text.
        most: the most messages for a query; None for no limit.
        without: ids of messages that a query does not show.
        cited: whether all messages show their citation, or only shortened ones, to save tokens.
        found: gets the words of the query that what is shown holds.
        count: counts the tokens of a text.

    Raises:
        InputError: another way of asking, or an invalid one.
        NotFoundError: no message of the chain has that id, or it holds none of the words.
        ArchiveError: the archive cannot be read.
    """
    kind = "query" if query is not None and id is None else "id" if id is not None else "range"
    asked = [one for one in (query if id is None else None, id, range) if one is not None]
    with observing("recall", scope, name=kind if asked else "") as seen:
        if len(asked) != 1 or (query is not None and at is not None):
            raise InputError(
                "recall takes exactly one of query, id and range; a query or at= may go with an id"
            )
        if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1:
            raise InputError(f"tokens must be a whole number of at least 1, got {tokens!r}")
        if at is not None and (isinstance(at, bool) or not isinstance(at, int) or at < 0 or not id):
            raise InputError(f"at is a whole number of characters, and goes with id; got {at!r}")
        room = Packing(tokens, count, cited=cited, most=most)
        looking = _Looking(archive, scope, room)
        try:
            await archive.flow(looking.look, chain, query, id, range, at or 0, without)
        except NotFoundError:
            seen.add(outcome="not_found")
            raise
        pieces, text, size, truncated = room.result()
        seen.add(messages=len(pieces), tokens_after=size, truncated=truncated)
        if found is not None:
            shown = {piece.place for piece in pieces}
            found.update(*(looking.held[place] for place in shown if place in looking.held))
        return RecallResult(tuple(piece.hit for piece in pieces), text, size, truncated)


def unknown_thread(tenant: str, thread: str) -> NotFoundError:
    """Return the error for an unknown thread: a typing error must not look like an empty one."""
    return NotFoundError(
        f"the archive keeps no thread {_shown(thread)} of {_shown(tenant)}; 'conspectus archive "
        "list', or Archive.threads in Python, names those that it keeps"
    )


class _Looking:
    """One recall. `held` are the words of the query that the message at a place holds."""

    def __init__(self, archive: Archive, scope: Scope, room: Packing) -> None:
        self._archive, self._scope, self._room = archive, scope, room
        self._catalog = Catalog([], [])
        self.held: dict[int, frozenset[str]] = {}

    def look(
        self,
        chain: Chain,
        query: str | None,
        name: str | None,
        ends: tuple[str, str] | None,
        at: int,
        without: Collection[str],
    ) -> None:
        """Fill the room with what is asked for."""
        self._catalog = _catalog(self._archive, self._scope, chain)
        if name is not None:
            self.by_id(name, at, query)
        elif query is not None:
            self.by_query(query, without)
        elif ends is not None:
            self.by_range(ends)

    def by_query(self, text: str, without: Collection[str]) -> None:
        query, catalog = _query(text), self._catalog
        matches = self._ranked(query, catalog.passages(without))
        shown: list[tuple[frozenset[str], int]] = []
        exact = query.whole.exact
        for start in range(0, len(matches), AT_ONCE):
            part = matches[start : start + AT_ONCE]
            read = self._archive.find(self._scope, [catalog.keys[one.place] for one in part])
            offers = [
                (one, self._found(read[key], one))
                for one in part
                if (key := catalog.keys[one.place]) in read
            ]
            if exact:
                offers = [(_bonus(one, piece, exact), piece) for one, piece in offers]
                offers.sort(key=lambda offer: -offer[0].score)
            for one, piece in offers:
                if self._room.full:
                    return
                if _known(piece, shown):
                    continue
                self._offer(one, piece, shown, alone=len(matches) == 1)

    def _offer(
        self, one: Match, piece: Piece, shown: list[tuple[frozenset[str], int]], *, alone: bool
    ) -> None:
        piece = replace(piece, hit=replace(piece.hit, score=one.score))
        if not self._room.offer(piece, alone=alone, small=not piece.short):
            return
        shown.append((frozenset(piece.hit.text.casefold().split()), one.place))
        self.held[one.place] = self.held.get(one.place, frozenset()) | one.words

    def _found(self, one: Archived, match: Match) -> Piece:
        parts = spans(one.text, one.calls)
        begin, end, _ = parts[min(match.passage, len(parts) - 1)]
        follows = self._catalog.before(match.place)
        span = None if len(one.text) <= WHOLE_UP_TO else (begin, end)
        return piece_of(
            one,
            span,
            place=match.place,
            follows=follows,
            score=match.score,
            neighbour=not match.direct,
        )

    def _ranked(self, query: Query, hidden: frozenset[int]) -> list[Match]:
        """Rank the passages but the hidden ones, which would fit their own words best."""
        words = list(dict.fromkeys(w for ask in (query.whole, *query.parts) for w in ask.words))
        held = self._holding(words, hidden)
        rarer = {word: one for word, one in held.items() if len(one) < MOST}
        found = ranked(self._catalog, query, rarer if any(rarer.values()) else held)
        if not found and query.loose:
            held = self._holding(query.loose, hidden)
            weights = dict.fromkeys(query.loose, 1.0)
            alone = Query(replace(query.whole, words=weights), (), ())
            found = ranked(self._catalog, alone, held)
        return found

    def _holding(self, words: Sequence[str], hidden: frozenset[int]) -> dict[str, frozenset[int]]:
        """Return the passages that hold each word; those of common words are kept in memory."""
        known = self._catalog.common
        new = [word for word in words if known.get(word) is None]
        found = self._archive.backend.holding(self._scope, new)
        for word, one in found.items():
            if len(one) > COMMON:
                known.put(word, one)
        every = {word: found[word] if word in found else known.get(word) or NONE for word in words}
        return {
            word: one if one.isdisjoint(hidden) else one - hidden for word, one in every.items()
        }

    def by_id(self, name: str, at: int, query: str | None) -> None:
        keys, call = self._keys(name)
        read = self._archive.find(self._scope, keys)
        if not read:
            raise NotFoundError(
                f"{_shown(name)} was archived here and is gone: it has expired or was forgotten; "
                "go on without it"
            )
        if query is not None:
            return self._within(
                read[keys[-1]] if keys[-1] in read else next(iter(read.values())), name, query
            )
        results = [] if at or call else self._results(keys[-1], read.get(keys[-1]))
        pieces = []
        for place, key in enumerate(keys):
            if key in read:
                span = _span_of(read[key], call)
                begin = min((span[0] if span else 0) + at, len(read[key].text))
                pieces.append(
                    piece_of(
                        read[key], (begin, span[1] if span else len(read[key].text)), place=place
                    )
                )
        pieces += [
            piece_of(one, place=len(keys) + n, neighbour=True) for n, one in enumerate(results)
        ]
        self._take(pieces)
        return None

    def _within(self, one: Archived, name: str, text: str) -> None:
        """Show the passages of a message that hold words, those with the rarest first."""
        query, catalog = _query(text), self._catalog
        first, parts = catalog.first(catalog.keys.index(one.key)), spans(one.text, one.calls)
        asked = [*query.whole.words, *query.loose] if first >= 0 else []
        held = self._archive.backend.holding(self._scope, asked)
        fits: dict[int, float] = {}
        for numbers in held.values():
            for number in numbers:
                if 0 <= number - first < len(parts):
                    fits[number - first] = fits.get(number - first, 0.0) + 1 / len(numbers)
        if not fits:  # it is not in the index, as an answer of recall, or its words are too common
            held_here = [words_of(one.text[begin:end]) for begin, end, _ in parts]
            shared = [len(words & query.whole.words.keys()) for words in held_here]
            fits = {at: float(count) for at, count in enumerate(shared) if count}
        if not fits:
            raise NotFoundError(f"{_shown(name)} holds none of these words; read it from at=0 on")
        for part in sorted(fits, key=lambda part: (-fits[part], part)):
            if self._room.full:
                return
            self._room.offer(piece_of(one, parts[part][:2]), alone=True)

    def _results(self, key: str, one: Archived | None) -> list[Archived]:
        """Return the results of the calls that a message makes: notes cite the call for both."""
        waiting = {call.id for call in one.calls} if one is not None else set[str]()
        if not waiting:
            return []
        place = self._catalog.keys.index(key)
        near = self._catalog.keys[place + 1 : place + RESULTS_WITHIN]
        read = self._archive.find(self._scope, near)
        results: list[Archived] = []
        for other in (read[name] for name in near if name in read):
            waiting -= {call.id for call in other.calls}  # made anew: it has another result
            if waiting & {*other.answers}:
                results += [] if other.speaks else [other]
                waiting -= {*other.answers}
        return results

    def by_range(self, ends: tuple[str, str]) -> None:
        if not isinstance(ends, (tuple, list)) or len(ends) != 2:
            raise InputError("range is a pair: the id of the first message and that of the last")
        order = self._catalog.keys
        start, end = order.index(self._keys(ends[0])[0][0]), order.index(self._keys(ends[1])[0][-1])
        if start > end:
            raise InputError(
                f"the range runs backwards: {_shown(ends[0])} comes after {_shown(ends[1])}; swap "
                "them"
            )
        keys = order[start : end + 1]
        for first in range(0, len(keys), AT_ONCE):
            read = self._archive.find(self._scope, keys[first : first + AT_ONCE])
            part = [
                piece_of(read[key], place=at)
                for at, key in enumerate(keys[first : first + AT_ONCE], first)
                if key in read
            ]
            if not self._take(part, more=len(keys) - first - len(part), single=len(keys) == 1):
                return
        if not self._room.pieces:
            raise NotFoundError("all messages of that range have expired or were forgotten")

    def _take(self, pieces: Sequence[Piece], more: int = 0, *, single: bool = False) -> bool:
        """Add messages in order until the text is full; then say how many are left out."""
        room = self._room
        for at, piece in enumerate(pieces):
            last = single or len(pieces) == 1
            if room.offer(piece, alone=last) or (not room.pieces and room.offer(piece, alone=True)):
                continue
            room.left_out, room.next = len(pieces) - at + more, piece.hit.cite
            return False
        return True

    def _keys(self, name: str) -> tuple[list[str], int]:
        """Return the keys that a name means, and the number of a call in it (0 for none)."""
        if not isinstance(name, str):
            raise InputError(f"an id must be text, not {type(name).__name__}")
        bare = name.strip().removeprefix("[").removesuffix("]").strip()
        base, _, call = bare.rpartition("/")
        ways = [(name, 0), (bare, 0)]
        ways += [(base, int(call))] if base and call.isascii() and call.isdigit() else []
        for one, number in ways:
            if keys := self._catalog.named(one):
                return keys, number
        raise NotFoundError(
            f"no archived message of this branch has the id {_shown(name)}; it may be still in "
            "view, expired, forgotten or of another branch; try a query"
        )


def _catalog(archive: Archive, scope: Scope, chain: Chain) -> Catalog:
    """Return the messages of a chain, from memory where its head is the one asked last."""
    if not chain:
        return Catalog([], [])
    known = archive.catalogs.get(scope)
    if known is None or known[0] != chain[-1].id:
        keys = manifest(chain)
        known = chain[-1].id, Catalog(keys, archive.backend.listed(scope, keys))
        archive.catalogs.put(scope, known)
    made: Catalog = known[1]
    return made


def _span_of(one: Archived, call: int) -> tuple[int, int] | None:
    """Return where the call of a number stands in the text of a message; None for no number."""
    if not call:
        return None
    if call > len(one.calls):
        raise NotFoundError(f"the message makes {len(one.calls)} calls; there is no call {call}")
    at = len(one.text) - sum(len(each.reading) + 1 for each in one.calls) + 1
    at += sum(len(each.reading) + 1 for each in one.calls[: call - 1])
    return max(0, at), max(0, at) + len(one.calls[call - 1].reading)


def _bonus(one: Match, piece: Piece, exact: Sequence[str]) -> Match:
    """Return a match that counts more for identifiers that stand in it as in the query."""
    text = piece.hit.text.casefold()
    share = sum(word in text for word in exact) / len(exact)
    return replace(one, score=one.score + EXACT * share)


def _known(piece: Piece, shown: Sequence[tuple[frozenset[str], int]]) -> bool:
    """Return whether another message already says the same, numbers included."""
    said = frozenset(piece.hit.text.casefold().split())
    for other, place in shown:
        common = len(said & other)
        if place == piece.place or common < ALIKE * len(said | other):
            continue
        if not any(c.isdigit() for word in said ^ other for c in word):
            return True
    return False


def _query(text: object) -> Query:
    if not isinstance(text, str):
        raise InputError(f"query must be text, not {type(text).__name__}")
    query = query_of(text)
    if not query.whole.words:
        raise InputError("the query holds no word to look for; give words, a name, a path or an id")
    return query


def _shown(name: str) -> str:
    return repr(name if len(name) <= 80 else name[:80] + "...")
