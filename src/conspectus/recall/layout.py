"""Lay out recalled messages within their tokens: one framed line each, which none can imitate."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from conspectus.archive.passages import best_division
from conspectus.archive.values import Archived
from conspectus.messages.framing import BREAKS, as_notes
from conspectus.messages.message import sendable
from conspectus.notes.text import shared

LEAST = 16  # Least characters of a message that are shown
MISSES = 8  # Messages in a row that do not fit, after which no other is tried
WITHIN = 0.95  # Share that messages of a range divide, as a joined text may count for more
FAIR = 160  # Tokens that each message of a range gets at least, if it has so many
LONGEST = 128  # Most characters of a token: the longest runs of blanks in vocabularies
ROW = 400  # Characters in which the names of a table's columns, and a row of it, are looked for

NO_ROOM = "(what was found takes more than {:,} tokens; ask with more tokens)"

_CODE = re.compile(r"[{}()=;]")


@dataclass(frozen=True, slots=True)
class Hit:
    """One recalled message, or a part of it: `text`, from `begin` on, of `whole` characters.

    `score` is comparable within one answer only; a result that its call brings has the call's.
    `columns` is the first line of a table of which later rows are shown; `place` its place among
    the messages that left the view.
    """

    id: str
    cite: str
    key: str
    role: str
    name: str | None
    date: str | None
    text: str
    score: float = 0.0
    begin: int = 0
    whole: int = 0
    columns: str = ""
    place: int = 0

    @property
    def end(self) -> int:
        """Where the shown text ends, in characters of the message."""
        return self.begin + len(self.text)

    @property
    def short(self) -> bool:
        """Whether only a part is shown."""
        return bool(self.begin or self.end < self.whole)

    @property
    def note(self) -> str:
        """What of the message is shown, and where to read on; empty for a whole one."""
        notes: list[str] = []
        if self.short and not self.text:
            notes.append(f"the message ends at character {self.whole:,}")
        elif self.short:
            notes.append(f"characters {self.begin + 1:,}-{self.end:,} of {self.whole:,}")
            notes += [f"next: at={self.end}"] if self.end < self.whole else []
        if self.columns:
            notes.append(f"columns: {label(self.columns)}")
        return "; ".join(notes)

    @property
    def name_in_order(self) -> str:
        """Its name; where that is derived, also its place, which says what is older."""
        return label(self.cite) + (f" #{self.place + 1}" if self.id == self.key else "")

    def line(self, cited: bool) -> str:
        """Return the message with its frame, which is short, as it is paid for each time."""
        who = self.role + (f"/{label(self.name)}" if self.name else "")
        date = f" · {label(self.date)}" if self.date else ""
        name = f"{self.name_in_order} " if cited or self.short else ""
        note = f" ({self.note})" if self.note else ""
        # Lines after the first are indented, so that none can pass for the line of another message.
        text = as_notes(sendable(self.text))
        ends = "  " if text[-1:] and text[-1] in BREAKS else ""
        text = "  ".join(text.splitlines(keepends=True)) + ends
        return f"[{name}{who}{date}]{note} {text}" if text else f"[{name}{who}{date}]{note}"


@dataclass(frozen=True, slots=True)
class RecallResult:
    """Recalled messages in the order of the text that shows them to a model, and its size.

    `text` is empty if nothing was found, and says so if nothing fits; `truncated` says that
    something was left out, not counting what stands before the `at` of a question.
    """

    hits: tuple[Hit, ...]
    text: str
    tokens: int
    truncated: bool

    def __repr__(self) -> str:
        ids = ", ".join(hit.cite for hit in self.hits[:5]) + ", …" * (len(self.hits) > 5)
        short = ", shortened" if self.truncated else ""
        return f"<RecallResult {len(self.hits):,} messages ({ids}), {self.tokens:,} tokens{short}>"


def hit_of(
    one: Archived, span: tuple[int, int] | None = None, *, place: int = 0, score: float = 0.0
) -> Hit:
    """Return a part of a message; the whole without `span`."""
    size = len(one.text)
    begin, end = span or (0, size)
    begin = min(begin, size)
    first, end_of_line, _ = one.text[: min(begin, ROW)].partition("\n")
    row = one.text[begin : begin + ROW].lstrip("\n").partition("\n")[0]
    # A line of code or of JSON names no columns.
    named = end_of_line and not _CODE.search(first)
    marks = [mark for mark in "|\t," if named and first.count(mark) > 1]
    columns = first if marks and first.count(marks[0]) == row.count(marks[0]) else ""
    names = (one.id, one.cite, one.key, one.role, one.name, one.date)
    return Hit(*names, one.text[begin:end], score, begin, size, columns, place)


def label(text: str) -> str:
    """Return a name or date on one line of 64 characters that cannot close its bracket."""
    bare = " ".join(sendable(text).split())[:64]
    return as_notes(bare).translate(str.maketrans("[]·", "()-"))


class Packing:
    """The growing text of at most `tokens`, as `count` counts each hit, and the whole at the end.

    Without `cited` only shortened messages are named, as more of them can be read; at most `most`
    are shown. `left_out` is the number of known messages that do not fit, `next_cite` names the
    first of them, and `until` the last of a range.
    """

    def __init__(
        self, tokens: int, count: Callable[[str], int], cited: bool = True, most: int | None = None
    ) -> None:
        self.tokens, self.count, self.cited, self.most = tokens, count, cited, most
        self.hits: list[Hit] = []
        self.left_out, self.next_cite, self.until = 0, "", ""
        self.reads_on = False  # behind a place that is known: what comes before is not left out
        self._missed, self._used, self._in_a_row = False, 0, 0
        self._nothing = count("")  # a counter may add some for each text

    @property
    def full(self) -> bool:
        """Whether no more messages should be offered."""
        enough = self.most is not None and len(self.hits) >= self.most
        return enough or self._in_a_row >= MISSES

    def fits(self, hit: Hit) -> bool:
        """Tell whether all of a hit fits what is left."""
        left = self.tokens - self._used
        return len(hit.text) <= LONGEST * left and self._size(hit) <= left

    def offer(self, hit: Hit, most: float | None = None) -> bool:
        """Add a message, of a long one `most` tokens; False if it does not fit.

        Without `most`, for what a query finds, only the first is cut, as a smaller one may still
        fit, and what is shown already is not shown again.
        """
        if most is None and any(
            hit.text == one.text or (hit.key == one.key and one.begin <= hit.begin < one.end)
            for one in self.hits
        ):
            return False
        left, whole = self.tokens - self._used, most is None and bool(self.hits)
        room = min(left, max(1, int(left if most is None else most)))
        size = self._size(hit) if len(hit.text) <= LONGEST * left else left + 1
        part = hit if size <= room else None if whole else self._cut(hit, room)
        self._in_a_row = 0 if part else self._in_a_row + 1
        self._missed = self._missed or not part
        if part is not None:
            self._used += size if part is hit else self._size(part)
            self.hits.append(part)
        return part is not None

    def share(self, hits: Sequence[Hit]) -> float:
        """Return the tokens that each of some messages may take so that all are shown in part."""
        longest = LONGEST * self.tokens
        sizes = (self.count(hit.line(self.cited)[:longest]) + 1 for hit in hits)
        return max(shared(sizes, WITHIN * self.tokens - self._used), FAIR)

    def _size(self, hit: Hit) -> int:
        text = hit.line(self.cited)
        return self.count("\n" + text) - self._nothing if self.hits else self.count(text)

    def _cut(self, hit: Hit, room: int) -> Hit | None:
        """Return as much of a hit as takes a room; None if that is next to nothing."""

        def size(length: int) -> int:
            return self._size(replace(hit, text=hit.text[:length]))

        longest = len(hit.text)
        lengths = range(min(LEAST, longest), min(longest, LONGEST * room) + 1)
        fitting = bisect_right(lengths, room, key=size)
        if not fitting:
            return None
        best = lengths[fitting - 1]
        end = best if best == longest else best_division(hit.text, best // 2, best)
        # A shorter text may count for more.
        return replace(hit, text=hit.text[: end if size(end) <= room else best])

    def result(self) -> RecallResult:
        """Return the messages in order, and their text; without those that do not fit together."""
        while True:
            hits = self._arranged()
            lines = [hit.line(self.cited) for hit in hits]
            if hits and self.left_out:
                more = f"; next: id={label(self.next_cite)}" if self.next_cite else ""
                if more and self.until not in ("", self.next_cite):
                    more += f" until={label(self.until)}"
                lines.append(f"({self.left_out:,} more left out for lack of room{more})")
            text = "\n".join(lines)
            size = self.count(text) if text else 0
            if size <= self.tokens:
                break
            self._missed = True
            last = self.hits.pop()
            if not self.hits and self.left_out:
                room = self.tokens - self.count("\n" + lines[-1])
                part = self._cut(last, min(room, self._size(last) - 1))
                self.hits = [part or last]
                if part in (None, last):
                    self.left_out = 0  # something of it is worth more than how much is missing
                continue
            self.left_out += self.left_out > 0
            self.next_cite = last.cite if self.next_cite else ""
        short = (hit.end < hit.whole if self.reads_on else hit.short for hit in hits)
        missing = self._missed or self.left_out > 0 or any(short)
        if missing and not hits:
            text = NO_ROOM.format(self.tokens)
            size = self.count(text)
        return RecallResult(tuple(hits), text, size, missing)

    def _arranged(self) -> list[Hit]:
        """Put messages that follow each other together, in their order; the best of them first."""
        ranks, runs = {id(hit): at for at, hit in enumerate(self.hits)}, list[list[Hit]]()
        for hit in sorted(self.hits, key=lambda hit: (hit.place, hit.begin)):
            if runs and hit.place <= runs[-1][-1].place + 1:
                runs[-1].append(hit)
            else:
                runs.append([hit])
        runs.sort(key=lambda run: min(ranks[id(hit)] for hit in run))
        return [hit for run in runs for hit in run]
