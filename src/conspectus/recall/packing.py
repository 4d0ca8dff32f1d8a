"""Lay out recalled messages within their tokens."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from conspectus.archive.passages import best_division
from conspectus.notes.cutting import common_limit
from conspectus.recall.hits import Hit, label

LEAST_CHARACTERS = 16
"""The fewest characters of a message that is shown in part."""

MAX_MISSES = 8
"""After so many messages in a row that do not fit, no other is tried."""

SHARED_ROOM = 0.95
"""Share of the tokens that the messages of a range divide: a joined text may have more tokens than
its parts."""

FAIR_TOKENS = 160
"""Each message of a range gets at least this number, if it has that many."""

MAX_TOKEN_LENGTH = 128
"""The most characters of a token: the longest runs of blanks in vocabularies."""

NO_ROOM = "(what was found takes more than {:,} tokens; ask with more tokens)"


@dataclass(frozen=True, slots=True)
class RecallResult:
    """Recalled messages, and the text that shows them to a model.

    Attributes:
        hits: the messages, in the order of the text.
        text: the recalled messages as text; empty if nothing was found. If no message fits the
            size, the text says so.
        tokens: the tokens of the text.
        truncated: True if something was left out, apart from the characters before `at`.
    """

    hits: tuple[Hit, ...]
    text: str
    tokens: int
    truncated: bool

    def __repr__(self) -> str:
        ids = ", ".join(hit.cite for hit in self.hits[:5]) + ", …" * (len(self.hits) > 5)
        truncated = ", shortened" if self.truncated else ""
        return (
            f"<RecallResult {len(self.hits):,} messages ({ids}), {self.tokens:,} tokens{truncated}>"
        )


class Packing:
    """A text to which messages are added one at a time, up to a number of tokens.

    Each message is counted as it is added, and the whole text at the end.

    Args:
        tokens: the most tokens of the text.
        count: counts the tokens of a text.
        cited: whether each message is named; if not, only those that are shown in part.
        max_messages: the most messages of the text; None for any number.

    Attributes:
        hits: the messages of the text, in the order in which they were offered.
        left_out: known messages that do not fit; the text says how many.
        next_cite: names the first of them.
        until: names the last message of the range that was asked for; empty if there is none.
        reads_on: it shows a message from a given place onwards; the part before does not count as
            left out.
    """

    def __init__(
        self,
        tokens: int,
        count: Callable[[str], int],
        cited: bool = True,
        max_messages: int | None = None,
    ) -> None:
        self.tokens = tokens
        self.hits: list[Hit] = []
        self.left_out = 0
        self.next_cite = ""
        self.until = ""
        self.reads_on = False
        self._count = count
        self._cited = cited
        self._max_messages = max_messages
        self._tokens_used = 0
        self._has_missed = False
        self._misses_in_a_row = 0
        self._overhead = count("")  # a counter may add tokens for each text

    @property
    def is_full(self) -> bool:
        """Whether no more messages should be offered."""
        if self._max_messages is not None and len(self.hits) >= self._max_messages:
            return True
        return self._misses_in_a_row >= MAX_MISSES

    @property
    def _tokens_left(self) -> int:
        return self.tokens - self._tokens_used

    def fits(self, hit: Hit) -> bool:
        """Tell whether all of a hit fits the remaining room."""
        return self._size_within(hit, self._tokens_left) is not None

    def offer_found(self, hit: Hit) -> bool:
        """Add a hit of a query, unless it is shown already. Return False if it is not added.

        Only the first hit is shortened to fit; after that, a smaller one may still fit.
        """
        if any(_shows(shown, hit) for shown in self.hits):
            return False
        return self._add(hit, self._tokens_left, may_shorten=not self.hits)

    def offer(self, hit: Hit, max_tokens: float) -> bool:
        """Add a message, or as much of it as takes `max_tokens`; False if it is not added."""
        room = min(self._tokens_left, max(1, int(max_tokens)))
        return self._add(hit, room, may_shorten=True)

    def _add(self, hit: Hit, room: int, may_shorten: bool) -> bool:
        size = self._size_within(hit, room)
        if size is None:
            part = self._shortened(hit, room) if may_shorten else None
            if part is None:
                self._misses_in_a_row += 1
                self._has_missed = True
                return False
            hit = part
            size = self._size(part)
        self._misses_in_a_row = 0
        self._tokens_used += size
        self.hits.append(hit)
        return True

    def fair_share(self, hits: Sequence[Hit]) -> float:
        """Return the tokens that each of some messages may take, so that all are shown in part."""
        longest = MAX_TOKEN_LENGTH * self.tokens
        sizes = (self._count(hit.line(self._cited)[:longest]) + 1 for hit in hits)
        room = SHARED_ROOM * self.tokens - self._tokens_used
        return max(common_limit(sizes, room), FAIR_TOKENS)

    def _size(self, hit: Hit) -> int:
        """Return the tokens by which a hit lengthens the text."""
        line = hit.line(self._cited)
        return self._count("\n" + line) - self._overhead if self.hits else self._count(line)

    def _size_within(self, hit: Hit, room: int) -> int | None:
        """Return the size of a hit if it fits a room, else None; a huge one is not counted."""
        if len(hit.text) > MAX_TOKEN_LENGTH * self._tokens_left:
            return None
        size = self._size(hit)
        return size if size <= room else None

    def _shortened(self, hit: Hit, room: int) -> Hit | None:
        """Return the part of a hit that fits a room; None if that is next to nothing."""

        def size_of(length: int) -> int:
            return self._size(replace(hit, text=hit.text[:length]))

        whole = len(hit.text)
        lengths = range(min(LEAST_CHARACTERS, whole), min(whole, MAX_TOKEN_LENGTH * room) + 1)
        fitting = bisect_right(lengths, room, key=size_of)
        if not fitting:
            return None
        longest = lengths[fitting - 1]
        end = longest
        if longest < whole:
            division = best_division(hit.text, longest // 2, longest)
            if size_of(division) <= room:  # a shorter text may have more tokens
                end = division
        return replace(hit, text=hit.text[:end])

    def result(self) -> RecallResult:
        """Return the messages in order, and their text, which takes at most the tokens."""
        hits, text, size = self._laid_out()
        while size > self.tokens:
            self._has_missed = True
            self._take_newest_out()
            hits, text, size = self._laid_out()
        is_truncated = self._has_missed or self.left_out > 0 or any(map(self._lacks_text, hits))
        if is_truncated and not hits:
            text = NO_ROOM.format(self.tokens)
            size = self._count(text)
        return RecallResult(tuple(hits), text, size, is_truncated)

    def _laid_out(self) -> tuple[list[Hit], str, int]:
        """Return the messages in order, their text, and its tokens."""
        hits = self._arranged()
        lines = [hit.line(self._cited) for hit in hits]
        if hits and self.left_out:
            lines.append(self._left_out_line())
        text = "\n".join(lines)
        return hits, text, self._count(text) if text else 0

    def _left_out_line(self) -> str:
        next_asked = ""
        if self.next_cite:
            next_asked = f"; next: id={label(self.next_cite)}"
            if self.until not in ("", self.next_cite):
                next_asked += f" until={label(self.until)}"
        return f"({self.left_out:,} more left out for lack of room{next_asked})"

    def _take_newest_out(self) -> None:
        """Take out the message that was added last.

        If it is the only one, and others are left out, it is shortened instead.
        """
        last = self.hits.pop()
        if self.hits or not self.left_out:
            self.left_out += self.left_out > 0
            self.next_cite = last.cite if self.next_cite else ""
            return
        room = self.tokens - self._count("\n" + self._left_out_line())
        part = self._shortened(last, min(room, self._size(last) - 1))
        self.hits = [part or last]
        if part is None or part == last:
            self.left_out = 0  # a part of it is worth more than the note on what is missing

    def _lacks_text(self, hit: Hit) -> bool:
        return hit.end < hit.whole if self.reads_on else hit.is_part

    def _arranged(self) -> list[Hit]:
        """Put messages that follow each other together, in their order; the best of them first."""
        rank_of = {id(hit): rank for rank, hit in enumerate(self.hits)}
        runs: list[list[Hit]] = []
        for hit in sorted(self.hits, key=lambda hit: (hit.position, hit.begin)):
            if runs and hit.position <= runs[-1][-1].position + 1:
                runs[-1].append(hit)
            else:
                runs.append([hit])
        runs.sort(key=lambda run: min(rank_of[id(hit)] for hit in run))
        return [hit for run in runs for hit in run]


def _shows(shown: Hit, hit: Hit) -> bool:
    """Tell whether another hit shows a hit, or its beginning."""
    if hit.text == shown.text:
        return True
    return hit.key == shown.key and shown.begin <= hit.begin < shown.end
