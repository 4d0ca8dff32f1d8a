"""Lay out recalled messages within their tokens: one framed line each, which none can imitate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from conspectus.archive.passages import last_end
from conspectus.archive.values import Archived
from conspectus.messages.codec import sendable
from conspectus.messages.framing import as_notes

LEAST = 16  # Least characters of a message that are shown
MISSES = 12  # Messages in a row that do not fit, after which no other is tried
WHOLE = 2 / 3  # Share of the tokens up to which one of several messages is shown whole
PART = 1 / 2  # Share that a longer one gets at most, so that others get some
LARGE = 1 / 4  # Share above which a message is cut; a smaller one that does not fit is skipped
LONGEST = 128  # Most characters of a token: the longest runs of blanks in vocabularies


@dataclass(frozen=True, slots=True)
class Hit:
    """One recalled message.

    Attributes:
        id: its id; a derived one if it had none.
        cite: its name in summaries.
        key: identity and version.
        role: of the speaker.
        name: the speaker's or the tool's name, if given.
        date: when it was said, as the caller wrote it, if known.
        text: the shown text, without its frame; a part if it was shortened.
        score: fit to the query, higher is better, comparable within one answer only; 0 without a
            query.
        neighbour: whether it only stands near a message that fits the query.
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

    def __repr__(self) -> str:
        return f"<Hit {self.cite} {self.role}, score {self.score:.3f}: {self.text[:80]!r}>"


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a message: its place in the history, where it begins and how long the whole is.

    `follows` holds places of the messages that it follows over others; `columns` is the first line
    of a table of which it shows later rows.
    """

    hit: Hit
    place: int = 0
    follows: tuple[int, ...] = ()
    begin: int = 0
    whole: int = 0
    columns: str = ""

    @property
    def end(self) -> int:
        return self.begin + len(self.hit.text)

    @property
    def short(self) -> bool:
        return bool(self.begin or self.end < self.whole)


def piece_of(
    one: Archived,
    span: tuple[int, int] | None = None,
    *,
    place: int = 0,
    follows: tuple[int, ...] = (),
    score: float = 0.0,
    neighbour: bool = False,
) -> Piece:
    """Return a part of a message; the whole without `span`."""
    begin, end = span or (0, len(one.text))
    names = (one.id, one.cite, one.key, one.role, one.name, one.date)
    hit = Hit(*names, one.text[begin:end], score, neighbour)
    columns = _columns(one.text, begin)
    return Piece(hit, place, follows, min(begin, len(one.text)), len(one.text), columns)


def _columns(text: str, begin: int) -> str:
    """Return the first line of a table, if a later row of it stands where a part begins."""
    first, _, _ = text[: min(begin, 400)].partition("\n")
    row = text[begin : begin + 400].lstrip("\n").partition("\n")[0]
    marks = [mark for mark in "|\t," if first.count(mark) > 1]
    return first if marks and first.count(marks[0]) == row.count(marks[0]) else ""


def arranged(pieces: Sequence[Piece]) -> list[Piece]:
    """Group messages that follow each other, in the order of the history.

    The groups keep the order of the best message of each; parts of one message that touch are one.
    """
    groups: dict[int, list[int]] = {}
    follows = {piece.place: piece.follows for piece in pieces}
    for place in sorted(follows):
        group = [place]
        near = [groups[one] for one in {place - 1, *follows[place]} if one in groups]
        for other in sorted(near, key=lambda other: other[0]):
            if other[0] != group[0]:
                group = sorted({*other, *group})
        groups.update(dict.fromkeys(group, group))
    order = dict.fromkeys(one for piece in pieces for one in groups[piece.place])
    return [one for place in order for one in _joined([p for p in pieces if p.place == place])]


def _joined(parts: list[Piece]) -> list[Piece]:
    made: list[Piece] = []
    for part in sorted(parts, key=lambda one: one.begin):
        if made and made[-1].place == part.place and part.begin <= made[-1].end:
            last = made[-1]
            text = last.hit.text + part.hit.text[max(0, last.end - part.begin) :]
            made[-1] = replace(last, hit=replace(last.hit, text=text))
        else:
            made.append(part)
    return made


def render(
    pieces: Sequence[Piece], left_out: int = 0, *, cited: bool = True, next: str = ""
) -> str:
    """Return all messages as one text, with the number left out and the id of the next one.

    Without `cited`, only shortened messages are named, as more of them can be read.
    """
    lines = [_line(piece, cited or piece.short) for piece in pieces]
    if left_out:
        more = f"; next: id={label(next)}" if next else ""
        lines.append(f"({left_out:,} more left out for lack of room{more})")
    return "\n".join(lines)


def _line(piece: Piece, cited: bool) -> str:
    # The frame is short, as it is paid for with each message.
    hit, notes = piece.hit, list[str]()
    who = hit.role + (f"/{label(hit.name)}" if hit.name else "")
    date = f" · {label(hit.date)}" if hit.date else ""
    name = f"{label(hit.cite)} " if cited else ""
    if piece.short:
        notes.append(f"characters {piece.begin + 1:,}-{piece.end:,} of {piece.whole:,}")
        if not hit.text:
            notes = [f"the message ends at character {piece.whole:,}"]
        elif piece.end < piece.whole:
            notes.append(f"next: at={piece.end}")
    if piece.columns:
        notes.append(f"columns: {label(piece.columns)}")
    note = f" ({'; '.join(notes)})" if notes else ""
    # Lines after the first are indented, so that none can pass for the line of another message.
    text = "\n  ".join(as_notes(sendable(hit.text)).splitlines())
    return f"[{name}{who}{date}]{note} {text}".rstrip()


def label(text: str) -> str:
    """Return a name or date on one line of 64 characters that cannot close its bracket."""
    bare = " ".join(sendable(text).split())[:64]
    return as_notes(bare).translate(str.maketrans("[]·", "()-"))


def _until(piece: Piece, end: int) -> Piece:
    return replace(piece, hit=replace(piece.hit, text=piece.hit.text[:end]))


@dataclass(slots=True)
class Packing:
    """The growing text. Each piece is counted alone, and the whole at the end.

    `left_out` counts known messages that do not fit, `next` names the first of them, and `missed`
    says whether some that were found did not fit.
    """

    tokens: int
    count: Callable[[str], int]
    cited: bool = True
    most: int | None = None
    pieces: list[Piece] = field(default_factory=list)
    left_out: int = 0
    next: str = ""
    missed: bool = False
    _used: int = 0
    _in_a_row: int = 0
    _nothing: int | None = None

    @property
    def full(self) -> bool:
        """Whether no more messages should be offered."""
        return self._in_a_row >= MISSES or len(self.pieces) == self.most

    def offer(self, piece: Piece, *, alone: bool = False, small: bool = False) -> bool:
        """Add a message, cut at a sentence or a field if it must be; False if nothing of it fits.

        `alone`, it may take all that is left; else a share, so that others fit too. A `small` one
        is skipped rather than cut, as a smaller one may still fit.
        """
        left = self.tokens - self._used
        size = self._own(piece) if len(piece.hit.text) <= LONGEST * left else left + 1
        part: Piece | None = piece
        if size > left or not (alone or size <= self.tokens * WHOLE):
            share = left if alone else min(left, max(1, int(self.tokens * PART)))
            skipped = small and not alone and size <= self.tokens * LARGE
            part = None if skipped else self._cut(piece, share) or self._cut(piece, left)
        if part is None:
            self.missed = True
            self._in_a_row += 1
            return False
        self._in_a_row = 0
        self._used += self._own(part)
        self.pieces.append(part)
        return True

    def _own(self, piece: Piece) -> int:
        if not self.pieces:
            return self.count(self._text([piece]))
        # A counter may add some for each text, which only the first one pays.
        if self._nothing is None:
            self._nothing = self.count("")
        return self.count("\n" + self._text([piece])) - self._nothing

    def _cut(self, piece: Piece, share: int) -> Piece | None:
        """Return as much of a piece as takes a share; None if that is next to nothing."""
        text, best = piece.hit.text, 0
        low, high = min(LEAST, len(text)), min(len(text), LONGEST * share)
        while low <= high:
            middle = (low + high) // 2
            if self._own(_until(piece, middle)) <= share:
                best, low = middle, middle + 1
            else:
                high = middle - 1
        if not best:
            return None
        part = _until(piece, best if best == len(text) else last_end(text, best // 2, best))
        return part if self._own(part) <= share else _until(piece, best)

    def result(self) -> tuple[list[Piece], str, int, bool]:
        """Return the messages in order, the text, its tokens, and whether anything is missing."""
        while True:
            pieces = arranged(self.pieces)
            text = self._text(pieces, self.left_out) if pieces else ""
            size = self.count(text) if text else 0
            if size <= self.tokens:
                break
            self.missed = True
            if len(self.pieces) == 1 and self.left_out:
                self.left_out = 0  # something of it is worth more than how much is missing
                continue
            last = self.pieces.pop()
            self.left_out += self.left_out > 0
            self.next = last.hit.cite if self.next else ""
        missing = self.missed or self.left_out > 0 or any(piece.short for piece in pieces)
        return pieces, text, size, missing

    def _text(self, pieces: Sequence[Piece], left_out: int = 0) -> str:
        return render(pieces, left_out, cited=self.cited, next=self.next)
