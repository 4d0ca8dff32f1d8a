"""Recall originals by id, range or query, as text without authority."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from conspectus.archive.passages import (
    PASSAGE_BYTES,
    UNDIVIDED_PASSAGES,
    Span,
    one_line,
    plain,
    spans,
    words,
)
from conspectus.archive.store import Archive
from conspectus.archive.tables import MAX_PASSAGES_OF_WORD
from conspectus.archive.values import DAMAGED, Archived, Scope
from conspectus.core.records import Chain
from conspectus.errors import ArchiveError, InputError, NotFoundError
from conspectus.observe import observing
from conspectus.recall.layout import Hit, Packing, RecallResult, hit_of
from conspectus.recall.ranking import ON, Match, Rows, ranked
from conspectus.recall.words import names_of, query_of, stem

WHOLE_UP_TO = int(UNDIVIDED_PASSAGES * PASSAGE_BYTES)  # Bytes up to which a message is shown whole
AT_ONCE = 10  # Messages read at a time, as the last of them seldom fit
_PARTS = re.compile(r"(?<=\n)|(?<=[.!?] )|(?<=[。！？])")  # Lines and sentences
ROUND = 100  # Messages after a call among which its results are looked for
NEWEST = 20  # newest messages among which they are looked for, too: a result may come late


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
                "ask by a query, by an id, or by a range; a query may also look in one id or in "
                "one range alone, and a place to read on from goes with an id"
            )
        if type(tokens) is not int or tokens < 1:
            raise InputError(f"tokens must be a whole number of at least 1, got {tokens!r}")
        if at is not None and (type(at) is not int or at < 0 or not id):
            raise InputError(f"at is a whole number of characters, and goes with id; got {at!r}")

        def search() -> RecallResult:
            room = Packing(tokens, count, cited, most)
            found = _Search(archive, Rows(archive, scope, chain, without), room)
            if id is not None:
                found.by_id(id, at or 0, query)
            elif query is not None:
                found.by_query(query, range)
            elif range is not None:
                found.by_range(range)
            return room.result()

        try:
            result = await archive.call_either_way(search)
        except NotFoundError:
            seen.add(outcome="not_found")
            raise
        seen.add(messages=len(result.hits), tokens_after=result.tokens, truncated=result.truncated)
        return result


def unknown_thread(scope: Scope, sessions: Sequence[str]) -> NotFoundError:
    """Return the error for a thread without this session: it must not look like an empty one."""
    named = f"thread {_shown(scope.thread)} of {_shown(scope.tenant)}"
    if sessions:
        return NotFoundError(
            f"the archive keeps no session {_shown(scope.session)} of {named}; pass a session that "
            f"it has: {', '.join(map(_shown, sessions[:5]))}"
        )
    return NotFoundError(
        f"the archive keeps no {named}: nothing is archived before its first compaction, and what "
        "has expired or was forgotten is gone; check the archive and the tenant; 'conspectus "
        "archive list', or Archive.threads in Python, names the threads that it keeps"
    )


class _Search:
    """One recall, which fills the room."""

    def __init__(self, archive: Archive, rows: Rows, room: Packing) -> None:
        self._archive, self._rows, self._room = archive, rows, room
        self._spans: dict[str, list[Span]] = {}

    def _find(self, places: Iterable[int]) -> dict[int, Archived]:
        """Return originals by their places, without those that are gone."""
        keys = {place: self._rows.order[place] for place in places}
        read = self._archive.find(self._rows.scope, [*keys.values()]) if keys else {}
        return {place: read[key] for place, key in keys.items() if key in read}

    def by_query(self, text: str, ends: tuple[str, str] | None = None) -> None:
        """Show the passages that fit words, the best first; with `ends` those of a range."""
        query, names, rows = _query(text), names_of(text), self._rows
        query |= dict.fromkeys(names.values(), 1.0)
        total, held = rows.tables.passages_holding(rows.scope, [*query])
        start, end = (0, len(rows.order)) if ends is None else self._stretch(ends)
        if ends is not None:
            rows.read(range(start, end + 1))
            within = {n for at in range(start, end + 1) if at in rows for n in rows[at].numbers}
            held = {word: numbers & within for word, numbers in held.items()}
        # Words that too many passages hold say little.
        rarer = {
            word: numbers for word, numbers in held.items() if len(numbers) < MAX_PASSAGES_OF_WORD
        }
        held = rarer if any(rarer.values()) else held
        matches = [one for one in ranked(rows, query, total, held) if start <= one.place <= end]
        named = set[int]().union(*(held.get(its, ()) for its in names.values()))
        read = self._find({one.place for one in matches if one.number in named})
        scores = {one: one.score * (1 + self._exact(one, read, names)) for one in matches}
        matches.sort(key=lambda match: -scores[match])

        found = [(word, its) for word, its in held.items() if its]
        for at, (place, number, score) in enumerate(matches):
            if self._room.full:
                break
            if at % AT_ONCE == 0:
                some = {one.place for one in matches[at : at + AT_ONCE]}
                read |= self._find(some - read.keys())
            if (one := read.get(place)) is None:
                continue
            # What fits best is shown with the passage after it: the words of a question often head
            # what answers it.
            span = self._passage(one, number - rows[place].numbers[0], more=at == 0)
            hit = hit_of(one, span, place=place, score=score)
            if not self._room.hits and not self._room.fits(hit):
                span = self._from_words(one, span, query)
                hit = hit_of(one, span, place=place, score=score)
            if not self._room.offer(hit) or not one.calls:
                continue
            # What came of a call says more than the call: where the rarest of the other words of
            # the query stand in it, else at its end.
            rest = [(query[word] / len(its), its) for word, its in found if number not in its]
            own = self._spans_of(one)
            call = own[min(number - rows[place].numbers[0], len(own) - 1)][2]
            results = self._results(one, range(place + 1, place + ON + 1), call)
            for after, result in results.items():
                fits = {n: sum(part for part, its in rest if n in its) for n in rows[after].numbers}
                best = max(fits, key=lambda n: (fits[n], n), default=-1)
                span = self._passage(result, best - min(fits, default=0))
                self._room.offer(hit_of(result, span, place=after, score=score))

    def _from_words(
        self, one: Archived, span: tuple[int, int], query: Mapping[str, float]
    ) -> tuple[int, int]:
        """Return a passage from its line, or its sentence, on that has most words of the query."""
        best, begin, at = 0.0, *(span[:1] * 2)
        for part in _PARTS.split(one.text[slice(*span)]):
            held = words(part).casefold()
            if (fits := sum(query[word] for word in query if stem(word) in held)) > best:
                best, begin = fits, at
            at += len(part)
        return begin, span[1]

    def _exact(self, match: Match, read: Mapping[int, Archived], names: Iterable[str]) -> int:
        """Return how many names stand in a passage as the query has them."""
        if (one := read.get(match.place)) is None:
            return 0
        span = self._passage(one, match.number - self._rows[match.place].numbers[0])
        text = " ".join(plain(one.text[slice(*span)]).casefold().split())
        return sum(bool(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)) for name in names)

    def _spans_of(self, one: Archived) -> list[Span]:
        if one.key not in self._spans:
            self._spans[one.key] = spans(one.text, one.calls)
        return self._spans[one.key]

    def _passage(self, one: Archived, number: int, more: bool = False) -> tuple[int, int]:
        """Return where a passage stands in a text, `more`: with the next one; all of a short."""
        if len(one.text.encode("utf-8", "surrogatepass")) <= WHOLE_UP_TO:
            return 0, len(one.text)
        parts, last = self._spans_of(one), len(self._spans_of(one)) - 1
        return parts[min(number, last)][0], parts[min(number + more, last)][1]

    def by_id(self, name: str, at: int, query: str | None) -> None:
        """Show a message, from a character on, or where words stand in it; a call with results."""
        places, call = self._named(name)
        read = self._find(places)
        if not read:
            raise NotFoundError(
                f"{_shown(name)} was archived here and is gone: it has expired or was forgotten; "
                "go on without it"
            )
        last = max(read)
        if read[last].role == DAMAGED:
            raise ArchiveError(read[last].text)
        if query is not None:
            self._within(read[last], name, query)
            return
        if not at and not call and read[last].calls:
            # What is truncated in view and archived comes last, behind all that has left.
            end = len(self._rows.order)
            near = range(last + 1, min(end, last + 1 + ROUND))
            after = [*near, *range(max(near.stop, end - NEWEST), end)]
            self._rows.read(after)
            read |= self._results(read[last], after)
        self._room.reads_on = at > 0
        parts = {place: _span_of(one, call, at) for place, one in read.items()}
        self._take([hit_of(one, parts[place], place=place) for place, one in read.items()])

    def _within(self, one: Archived, name: str, text: str) -> None:
        """Show the passages of a message that hold words, those with the rarest first."""
        parts = [span[:2] for span in spans(one.text, one.calls)]
        held = {span: words(one.text[slice(*span)]).casefold() for span in parts}
        fits: dict[tuple[int, int], float] = {}
        for word in _query(text):
            holding = [span for span in parts if stem(word) in held[span]]
            for span in holding:
                fits[span] = fits.get(span, 0.0) + 1 / len(holding)
        if not fits:
            raise NotFoundError(f"{_shown(name)} holds none of these words; read it from at=0 on")
        for span in sorted(fits, key=lambda span: (-fits[span], span)):
            if not self._room.full:
                self._room.offer(hit_of(one, span), self._room.tokens)

    def _results(self, one: Archived, after: Iterable[int], call: str = "") -> dict[int, Archived]:
        """Return those of the messages after one that are results of its calls, or of one.

        A result may come late, behind what was said meanwhile. An id that a later call bears is
        that call's from there on.
        """
        made = {one_line(each.id) for each in one.calls if call in ("", each.id)}
        results: list[int] = []
        for at in after:
            row = self._rows.get(at)
            if row is None:
                continue
            if row.act == "c":
                made -= row.calls.keys()
            elif made.intersection(row.links):
                results.append(at)
        return self._find(results)

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
        start, end = self._stretch(ends)
        self._room.until = ends[1].strip(" []")
        for first in range(start, end + 1, AT_ONCE):
            read = self._find(range(first, min(first + AT_ONCE, end + 1)))
            hits = [hit_of(one, place=place) for place, one in read.items()]
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
        rows, bare = self._rows, name.strip().removeprefix("[").removesuffix("]").strip()
        base, _, call = bare.rpartition("/")
        ways = [(name, 0), (bare, 0), (bare.partition(" #")[0], 0)]
        ways += [(base, int(call))] if base and call.isascii() and call.isdigit() else []
        for one, number in ways:
            start = len(one) >= 8 and all(c in "0123456789abcdef" for c in one)
            keys = [key for key in rows.order if key == one or (start and key.startswith(one))]
            keys += rows.tables.keys_named(rows.scope, one_line(one))
            if places := sorted({rows.places[key] for key in keys if key in rows.places}):
                return places, number
        raise NotFoundError(
            f"no archived message of this branch has the id {_shown(name)}; it may be still in "
            "view, expired, forgotten or of another branch; try a query"
        )


def _span_of(one: Archived, call: int, at: int) -> tuple[int, int]:
    """Return where the call of a number stands in a message, or all, from a character on."""
    if call > len(one.calls):
        raise NotFoundError(f"the message makes {len(one.calls)} calls; there is no call {call}")
    if not call:
        return at, len(one.text)
    after = sum(len(each.reading) + 1 for each in one.calls[call - 1 :]) - 1
    begin = max(0, len(one.text) - after)
    return begin + at, begin + len(one.calls[call - 1].reading)


def _query(text: object) -> dict[str, float]:
    if not isinstance(text, str):
        raise InputError(f"query must be text, not {type(text).__name__}")
    if not (query := query_of(text)):
        raise InputError("the query holds no word to look for; give words, a name, a path or an id")
    return query


def _shown(name: str) -> str:
    return repr(name if len(name) <= 80 else name[:80] + "...")
