"""Recall originals by id, range or query, as text without authority."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from conspectus.archive.passages import one_line, spans
from conspectus.archive.store import Archive
from conspectus.archive.tables import MOST
from conspectus.archive.values import Archived, Scope
from conspectus.core.records import Chain
from conspectus.errors import InputError, NotFoundError
from conspectus.observe import observing
from conspectus.recall.catalog import ON, Row, Rows
from conspectus.recall.layout import Hit, Packing, RecallResult, hit_of
from conspectus.recall.ranking import ranked
from conspectus.recall.words import names_of, query_of, stem

WHOLE_UP_TO = 720  # Characters up to which a message that fits is shown whole
AT_ONCE = 10  # Messages read at a time, as the last of them seldom fit
ROUND = 100  # Messages after a call among which its results are looked for
READ = 64  # Passages with all words of a name that are read, to see whether it stands there


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
    count: Callable[[str], int],
) -> RecallResult:
    """Find originals of a chain, which never are those of an abandoned branch.

    Asked by `query` (words in any language; the best come first), by `id` (`id/2` is the second of
    the calls that a message makes; a call comes with its results; `at` skips characters), or by
    `range`, from one id to another. A `query` beside an id or a range looks there alone. `most` and
    `without` bound what a query shows; without `cited` only shortened messages are named.

    Raises:
        InputError: another way of asking, or an invalid one.
        NotFoundError: no message of the chain has that id, or it holds none of the words.
        ArchiveError: the archive cannot be read.
    """
    ways = {"id": id, "range": range}
    asked = [kind for kind, value in ways.items() if value is not None]
    asked = asked or ["query"] * (query is not None)
    with observing("recall", scope, name=asked[0] if asked else "") as seen:
        if len(asked) != 1 or (query is not None and at is not None):
            raise InputError(
                "recall takes exactly one of query, id and range; a query may go with an id or a "
                "range, and at= with an id"
            )
        if type(tokens) is not int or tokens < 1:
            raise InputError(f"tokens must be a whole number of at least 1, got {tokens!r}")
        if at is not None and (type(at) is not int or at < 0 or not id):
            raise InputError(f"at is a whole number of characters, and goes with id; got {at!r}")

        def search() -> RecallResult:
            room = Packing(tokens, count, cited, most)
            found = _Search(archive, scope, chain, room, without)
            if id is not None:
                found.by_id(id, at or 0, query)
            elif query is not None:
                found.by_query(query, range)
            elif range is not None:
                found.by_range(range)
            return room.result()

        try:
            result = await archive.flow(search)
        except NotFoundError:
            seen.add(outcome="not_found")
            raise
        seen.add(messages=len(result.hits), tokens_after=result.tokens, truncated=result.truncated)
        return result


def unknown_thread(tenant: str, thread: str) -> NotFoundError:
    """Return the error for an unknown thread: a typing error must not look like an empty one."""
    return NotFoundError(
        f"the archive keeps no thread {_shown(thread)} of {_shown(tenant)}: nothing is archived "
        "before its first compaction; 'conspectus archive list', or Archive.threads in Python, "
        "names those that it keeps"
    )


class _Search:
    """One recall, which fills the room."""

    def __init__(
        self,
        archive: Archive,
        scope: Scope,
        chain: Chain,
        room: Packing,
        without: Collection[str],
    ) -> None:
        self._archive, self._scope, self._room = archive, scope, room
        self._rows = Rows(archive, scope, chain, without)
        self._tables = self._rows.tables
        self._keys, self._places = self._rows.keys_in_order, self._rows.places

    def by_query(self, text: str, ends: tuple[str, str] | None = None) -> None:
        """Show the passages that fit words, the best first; with `ends` those of a range."""
        query, names, rows = _query(text), names_of(text), self._rows
        total, held = self._tables.holding(self._scope, [*query, *names.values()])
        start, end = (0, len(self._keys)) if ends is None else self._stretch(ends)
        if ends is not None:
            within = rows.rows(self._keys[start : end + 1])
            own = {number for row in within for number in row.numbers}
            held = {word: numbers & own for word, numbers in held.items()}
        # Words that too many passages hold say little.
        rarer = {word: held[word] for word in query if len(held[word]) < MOST}
        kept = rarer if any(rarer.values()) else {word: held[word] for word in query}
        exact = self._exact(rows, names, held)
        matches = ranked(rows, query | dict.fromkeys(exact, 1.0), total, kept | exact)
        matches = [one for one in matches if start <= one.place <= end]
        best = [self._keys[one.place] for one in matches]
        read, said = self._archive.find(self._scope, best[:AT_ONCE]), set[str]()
        for at, (place, passage, score, direct) in enumerate(matches):
            if self._room.full:
                break
            if at and at % AT_ONCE == 0:
                read = self._archive.find(self._scope, best[at : at + AT_ONCE])
            if (one := read.get(self._keys[place])) is None:
                continue
            parts = spans(one.text, one.calls)
            first = min(passage, len(parts) - 1)
            # What fits best is shown with the passage after it: the words of a question often head
            # what answers it.
            last = min(first + 1, len(parts) - 1) if at == 0 else first
            span = None if len(one.text) <= WHOLE_UP_TO else (parts[first][0], parts[last][1])
            hit = hit_of(one, span, place=place, score=score, neighbour=not direct)
            if hit.text in said or not self._room.offer(hit):
                continue
            said.add(hit.text)
            # What came of a call says more than the call; of several, each result has its own rank.
            after = (rows[at] for at in range(place + 1, place + ON + 1) if at in rows)
            for result in self._results(one, after) if len(one.calls) == 1 else ():
                if result.key not in said:
                    # A long one says at its end what came of the call.
                    begin = spans(result.text, ())[-1][0] if len(result.text) > WHOLE_UP_TO else 0
                    span, at_result = (begin, len(result.text)), self._places[result.key]
                    shown = hit_of(result, span, place=at_result, neighbour=True)
                    self._room.offer(shown)
                    said |= {result.key, shown.text}

    def _exact(
        self, rows: Rows, names: Mapping[str, str], held: Mapping[str, set[int]]
    ) -> dict[str, set[int]]:
        """Return the passages that hold names as they stand, of names that are there.

        Each word of one may be common, as in `10.0.3.17`; so the newest that hold all are read.
        """
        newest = {name: rows.at(sorted(held[each])[-READ:]) for name, each in names.items()}
        keys = {rows[place].key for places in newest.values() for place in places.values()}
        read = self._archive.find(self._scope, [*keys])
        parts = {key: spans(one.text, one.calls) for key, one in read.items()}
        exact: dict[str, set[int]] = {}
        for name, places in newest.items():
            words = r"\s+".join(map(re.escape, name.split()))
            whole = re.compile(rf"(?<!\w){words}(?!\w)")
            for number, row in ((number, rows[place]) for number, place in places.items()):
                for begin, end, _ in parts.get(row.key, [])[number - row.numbers[0] :][:1]:
                    if whole.search(read[row.key].text[begin:end].casefold()):
                        exact.setdefault(name, set()).add(number)
        return exact

    def by_id(self, name: str, at: int, query: str | None) -> None:
        """Show a message, from a character on, or where words stand in it; a call with results."""
        places, call = self._named(name)
        keys = [self._keys[place] for place in places]
        read = self._archive.find(self._scope, keys)
        if not read:
            raise NotFoundError(
                f"{_shown(name)} was archived here and is gone: it has expired or was forgotten; "
                "go on without it"
            )
        if query is not None:
            return self._within(read.get(keys[-1]) or next(iter(read.values())), name, query)
        parts = [(one, *_span_of(one, call)) for one in read.values()]
        hits = [hit_of(one, (begin + at, end)) for one, begin, end in parts]
        if not at and not call and keys[-1] in read:
            after = self._keys[places[-1] + 1 :][:ROUND] if read[keys[-1]].calls else []
            results = self._results(read[keys[-1]], self._rows.rows(after))
            hits += [hit_of(one, neighbour=True) for one in results]
        self._take([replace(hit, place=place) for place, hit in enumerate(hits)])
        return None

    def _within(self, one: Archived, name: str, text: str) -> None:
        """Show the passages of a message that hold words, those with the rarest first."""
        parts, folded = [span[:2] for span in spans(one.text, one.calls)], one.text.casefold()
        fits: dict[tuple[int, int], float] = {}
        for word in _query(text):
            holding = [span for span in parts if folded.find(stem(word), *span) >= 0]
            for span in holding:
                fits[span] = fits.get(span, 0.0) + 1 / len(holding)
        if not fits:
            raise NotFoundError(f"{_shown(name)} holds none of these words; read it from at=0 on")
        for span in sorted(fits, key=lambda span: (-fits[span], span)):
            if not self._room.full:
                self._room.offer(hit_of(one, span), self._room.tokens)

    def _results(self, one: Archived, after: Iterable[Row]) -> list[Archived]:
        """Return those of the messages after one that are results of its calls."""
        made = {one_line(call.id) for call in one.calls}
        beside = takewhile(lambda row: row.act in "rx", after)
        keys = [row.key for row in beside if made.intersection(row.links)]
        return list(self._archive.find(self._scope, keys).values()) if keys else []

    def _stretch(self, ends: tuple[str, str]) -> tuple[int, int]:
        """Return the places of the first and the last message of a range."""
        if not isinstance(ends, (tuple, list)) or len(ends) != 2:
            raise InputError("range is a pair: the id of the first message and that of the last")
        start, end = self._named(ends[0])[0][0], self._named(ends[1])[0][-1]
        if start > end:
            raise InputError(
                f"the range runs backwards: {_shown(ends[0])} comes after {_shown(ends[1])}; swap "
                "them"
            )
        return start, end

    def by_range(self, ends: tuple[str, str]) -> None:
        """Show all messages from one to another."""
        (start, end), order = self._stretch(ends), self._keys
        self._room.until = ends[1].strip(" []")
        for first in range(start, end + 1, AT_ONCE):
            places = range(first, min(first + AT_ONCE, end + 1))
            read = self._archive.find(self._scope, [order[place] for place in places])
            kept = [(read[order[place]], place) for place in places if order[place] in read]
            hits = [hit_of(one, place=place) for one, place in kept]
            if not self._take(hits, more=end + 1 - first - len(hits)):
                return
        if not self._room.hits:
            raise NotFoundError("all messages of that range have expired or were forgotten")

    def _take(self, hits: Sequence[Hit], more: int = 0) -> bool:
        """Add messages in order until the text is full; then say how many are left out."""
        room = self._room
        most = room.share(hits) if len(hits) + more > 1 else room.tokens
        for at, hit in enumerate(hits):
            if not room.offer(hit, most) and (room.hits or not room.offer(hit, room.tokens)):
                room.left_out, room.next_cite = len(hits) - at + more, hit.cite
                return False
        return True

    def _named(self, name: str) -> tuple[Sequence[int], int]:
        """Return the places that a name means, and the number of a call there (0 for none)."""
        if not isinstance(name, str):
            raise InputError(f"an id must be text, not {type(name).__name__}")
        bare = name.strip().removeprefix("[").removesuffix("]").strip()
        base, _, call = bare.rpartition("/")
        ways = [(name, 0), (bare, 0)]
        ways += [(base, int(call))] if base and call.isascii() and call.isdigit() else []
        for one, number in ways:
            start = len(one) >= 8 and all(c in "0123456789abcdef" for c in one)
            keys = [key for key in self._keys if key == one or (start and key.startswith(one))]
            keys += self._tables.named(self._scope, one_line(one))
            if places := sorted({self._places[key] for key in keys if key in self._places}):
                return places, number
        raise NotFoundError(
            f"no archived message of this branch has the id {_shown(name)}; it may be still in "
            "view, expired, forgotten or of another branch; try a query"
        )


def _span_of(one: Archived, call: int) -> tuple[int, int]:
    """Return where the call of a number stands in the text of a message; all without one."""
    if call > len(one.calls):
        raise NotFoundError(f"the message makes {len(one.calls)} calls; there is no call {call}")
    if not call:
        return 0, len(one.text)
    after = sum(len(each.reading) + 1 for each in one.calls[call - 1 :]) - 1
    begin = max(0, len(one.text) - after)
    return begin, begin + len(one.calls[call - 1].reading)


def _query(text: object) -> dict[str, float]:
    if not isinstance(text, str):
        raise InputError(f"query must be text, not {type(text).__name__}")
    if not (query := query_of(text)):
        raise InputError("the query holds no word to look for; give words, a name, a path or an id")
    return query


def _shown(name: str) -> str:
    return repr(name if len(name) <= 80 else name[:80] + "...")
