"""Recalled messages put together as one text that never takes more than its tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from conspectus.recall.layout import Piece, arranged, best_place, excerpt, render, smallest
from conspectus.recall.words import terms_of

WHOLE = 2 / 3
"""Share of the limit up to which one of several messages is shown whole, if there is room."""

PART = 1 / 2
"""Share of the limit that a longer one gets at most, so that others get some."""

LARGE = 1 / 4
"""Share of the limit above which a message is shortened to what room is left; a smaller one waits
for none, as others may fit as they are."""

MISSES = 12
"""Messages in a row that do not fit, after which no other is tried."""

ALIKE = 0.9
"""Share of their words that two messages have in common if the second says nothing new."""

LONGEST = 128
"""Characters of a token at most: the longest runs of blanks that vocabularies hold as one."""

READ = 4_000
"""Characters of a message that are compared with others."""


@dataclass(slots=True)
class Room:
    """The text as it grows, held against its limit as a whole at every step.

    Attributes:
        tokens: the most that the text may take.
        count: tokens of a text.
        marks: pieces of the query as they may stand in a text.
        cited: whole messages are named too, not only those that are shortened.
        most: the most messages that a query may put in; None for as many as there is room for.
        pieces: what is in it, in the order in which it came.
        left_out: how many others are known for which there was no room; said in the text.
        read: how many messages were looked at.
        missed: some of what was offered was not taken.
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
        """Whether it is not worth while to offer more."""
        return self._in_a_row >= MISSES or len(self.pieces) == self.most

    def add(self, piece: Piece, more: int, *, alone: bool) -> bool:
        """Put a message in, whole or shortened; False if there is no room even for a bit of it.

        Args:
            piece: the message.
            more: how many others are still to come.
            alone: it may have all the room; else at most half, so that others get some.
        """
        self.read += 1
        share = self.tokens if alone else max(1, int(self.tokens * PART))
        return self._put(piece, more, share) or self._put_short(piece, more, share)

    def offer(self, piece: Piece, *, alone: bool) -> bool:
        """Put in a message that a query found, if it has room and says something new.

        Messages come best first. One that is too large for what is left is shortened if it is so
        large that it would seldom fit; any other is passed over, as a smaller one may still fit.
        """
        self.read += 1
        said = _said(piece)
        if any(_alike(said, other) for other in self._said):
            return False
        own = self.count(self._text([piece]))
        left = self.tokens - self._used
        taken = own <= (self.tokens if alone else self.tokens * WHOLE) and (
            # A counter may add something for each text: near the limit only the whole text says.
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
        """The messages as they stand in the text, the text, its tokens, and if anything lacks."""
        # What was counted step by step is counted once more, for counters that are not monotone.
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
    """The words of a message, and what tells messages of the same words apart."""
    terms = terms_of(piece.text[:READ])
    numbers = {word for word in terms.words if any(c.isdigit() for c in word)}
    return frozenset(terms.words), frozenset(terms.wholes) | numbers


def _alike(
    one: tuple[frozenset[str], frozenset[str]], other: tuple[frozenset[str], frozenset[str]]
) -> bool:
    """Whether two messages say nearly the same: most words, and all numbers and identifiers."""
    common = len(one[0] & other[0])
    return one[1] == other[1] and common >= ALIKE * len(one[0] | other[0])
