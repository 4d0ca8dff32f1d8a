"""Pack recalled messages into one text that never takes more than its tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from conspectus.recall.layout import Piece, arranged, best_place, excerpt, render, smallest
from conspectus.recall.words import terms_of

WHOLE = 2 / 3  # Share of the limit up to which one of several messages is shown whole
PART = 1 / 2  # Share of the limit that a longer message gets at most, so that others get some

LARGE = 1 / 4
"""Share of the limit above which a message is shortened; a smaller one that does not fit is
skipped."""

MISSES = 12  # Messages in a row that do not fit, after which no other is tried
ALIKE = 0.9  # Share of common words above which a second message says nothing new
LONGEST = 128  # Most characters of a token: the longest runs of blanks in vocabularies
READ = 4_000  # Characters of a message that are compared with others


@dataclass(slots=True)
class Packing:
    """The growing text, checked as a whole against its limit at every step.

    `count` counts tokens, `marks` are words of the query as they stand in texts, `left_out` counts
    known messages that do not fit, `read` those tried, and `missed` says whether some that were
    offered did not fit.
    """

    tokens: int
    count: Callable[[str], int]
    marks: tuple[str, ...] = ()
    cited: bool = True
    most: int | None = None
    pieces: list[Piece] = field(default_factory=list)
    left_out: int = 0
    read: int = 0
    missed: bool = False
    _used: int = 0
    _in_a_row: int = 0
    _said: list[tuple[frozenset[str], frozenset[str]]] = field(default_factory=list)

    @property
    def full(self) -> bool:
        """Whether no more messages should be offered."""
        return self._in_a_row >= MISSES or len(self.pieces) == self.most

    def add(self, piece: Piece, more: int, *, alone: bool) -> bool:
        """Add a message, whole or shortened, before `more` others; False if nothing of it fits.

        `alone`, it may take the whole limit; otherwise a share, so that others fit too.
        """
        self.read += 1
        share = self.tokens if alone else max(1, int(self.tokens * PART))
        return self._put(piece, more, share) or self._put_short(piece, more, share)

    def offer(self, piece: Piece, *, alone: bool) -> bool:
        """Add a message that a query found, if it fits and says something new.

        Messages come best first. One that would seldom fit whole is shortened; any other is
        skipped, as a smaller one may still fit.
        """
        self.read += 1
        said = _said(piece)
        if any(_alike(said, other) for other in self._said):
            return False
        own = self.count(self._text([piece]))
        left = self.tokens - self._used
        taken = own <= (self.tokens if alone else self.tokens * WHOLE) and (
            # A counter may add tokens for each text: near the limit only the whole text is exact.
            own <= left + self.tokens // 16 + 8 and self._put(piece, 0, self.tokens)
        )
        if not taken and own > self.tokens * LARGE:
            share = self.tokens if alone else max(1, int(self.tokens * PART))
            taken = self._put_short(piece, 0, min(share, left)) or self._put(piece, 0, left)
        if taken:
            self._said.append(said)
            self._in_a_row = 0
        else:
            self.missed = True
            self._in_a_row += 1
        return taken

    def result(self) -> tuple[list[Piece], str, int, bool]:
        """Return the messages in order, the text, its tokens, and whether anything is missing."""
        # The whole is counted once more, for counters that are not monotone.
        while self.pieces and not self._fits(self.pieces, self.left_out):
            self.pieces.pop()
            self.left_out += self.left_out > 0
            self.missed = True
        pieces = arranged(self.pieces)
        text = self._text(pieces, self.left_out) if pieces else ""
        short = any(piece.shortened for piece in pieces)
        missing = short or self.missed or self.left_out > 0
        return pieces, text, self.count(text) if text else 0, missing

    def _text(self, pieces: Sequence[Piece], left_out: int = 0) -> str:
        return render(pieces, left_out, cited=self.cited)

    def _fits(self, pieces: Sequence[Piece], left_out: int) -> bool:
        used = self.count(self._text(arranged(pieces), left_out))
        if used > self.tokens:
            return False
        self._used = used
        return True

    def _put(self, piece: Piece, more: int, share: int) -> bool:
        if len(piece.text) > LONGEST * share:
            return False  # counting a text of megabytes takes seconds
        if self.count(self._text([piece])) > share or not self._fits([*self.pieces, piece], more):
            return False
        self.pieces.append(piece)
        return True

    def _put_short(self, piece: Piece, more: int, share: int) -> bool:
        low, high = smallest(piece), min(len(piece.text), LONGEST * share)
        best, centre = None, best_place(piece.text, self.marks)
        while low <= high:
            middle = (low + high) // 2
            tried = excerpt(piece, middle, centre - middle // 3)
            own = self.count(self._text([tried]))
            if own <= share and self._fits([*self.pieces, tried], more):
                best, low = tried, middle + 1
            else:
                high = middle - 1
        return best is not None and self._put(best, more, share)


def _said(piece: Piece) -> tuple[frozenset[str], frozenset[str]]:
    """Return the words of a message, and its numbers and identifiers."""
    terms = terms_of(piece.text[:READ])
    numbers = {word for word in terms.words if any(c.isdigit() for c in word)}
    return frozenset(terms.words), frozenset(terms.wholes) | numbers


def _alike(
    one: tuple[frozenset[str], frozenset[str]], other: tuple[frozenset[str], frozenset[str]]
) -> bool:
    """Return whether two messages share most words, and all numbers and identifiers."""
    common = len(one[0] & other[0])
    return one[1] == other[1] and common >= ALIKE * len(one[0] | other[0])
