"""One compaction's reading: what goes into which call, what an overflow changes, what is paid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

from conspectus._drive import Flow, Gather
from conspectus.errors import SummarizerOverflow, SummaryError
from conspectus.ledger import Ledger
from conspectus.messages import Entry, as_data
from conspectus.summarize.base import SummaryRequest
from conspectus.summarize.calls import PER_MESSAGE, Caller, CannotPay
from conspectus.summarize.checks import cut_short
from conspectus.summarize.chunks import Piece, divide, part_size, texts_of, whole
from conspectus.summarize.prompts import Prompts, framed, message_frame

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

LEAST_READING = 200
"""Tokens of messages that one reading holds at least; below that, frames are most of it."""

FLOOR = 500
"""After an overflow readings are halved down to so many tokens; a model that cannot take even
that is not one to summarise with."""

LEAST_NOTES = 50
"""Tokens that notes on one piece may take at least."""


class Reading:
    """The reading of one span: at once where it fits, else notes on its pieces, then one answer.

    Args:
        request: what is to be read.
        caller: the model.
        prompts: what it is asked.
        window: its input limit, in tokens.
        trim: tokens of messages in one reading at most; None for as many as fit.
        concurrency: calls at once.

    Raises:
        SummarizerOverflow: the window is too small for any reading.
    """

    def __init__(
        self,
        request: SummaryRequest,
        caller: Caller,
        prompts: Prompts,
        window: int,
        trim: int | None,
        concurrency: int,
    ) -> None:
        self._request, self._caller, self._prompts = request, caller, prompts
        self._concurrency = concurrency
        count = request.count
        self._count: Callable[[str], int] = lambda text: count(as_data(text))
        # Measured with frames around nothing, so that no estimate is below what is really sent.
        self._asked = caller.size(self._prompt(_messages("-") + "\n\n-")) + request.limit
        self._frame = count(framed("notes", "-", "999 of 999")) + 1
        self._notes_asked = caller.size(
            prompts.notes(_messages("-"), focus=request.focus, limit=request.limit)
        )
        taken = max(self._asked, self._notes_asked + request.limit)
        self._window = window - taken - PER_MESSAGE
        if self._window < LEAST_READING:
            raise SummarizerOverflow(
                f"the window of {caller.name} is {window:,} tokens; prompt, standing summary and "
                f"answer take {taken:,} of them, which leaves too few to read with; use a model "
                "with a larger window, or ask for a smaller summary"
            )
        most = self._window if trim is None else max(trim, LEAST_READING)
        self._room = min(self._window, most)
        self._texts = texts_of(
            request.entries,
            lambda entry: (
                count(message_frame(entry, entry.reading)) + 1,
                count(message_frame(entry, "", "99 of 99 of part 99 of 99")) + 1,
            ),
        )
        self._pieces: list[Piece] = []

    def choose(self, cap: int | None) -> list[Entry]:
        """Decide what the model reads, and in which pieces.

        Args:
            cap: tokens that it may take; None for any number.

        Returns:
            The entries that are left for the embedded summariser, the oldest.

        Raises:
            CannotPay: not even one reading can be paid for.
        """
        texts, sizes = self._texts, [text.size for text in self._texts]
        at_once = sum(sizes) <= self._room
        self._pieces = [whole(texts)] if at_once else divide(texts, self._room, self._count)
        if cap is None or self._cost(self._pieces) <= cap:
            return []
        while self._pieces and self._cost(self._pieces, older=True) > cap:
            self._pieces = self._pieces[1:]
        # One reading that the rest of the money pays for may hold more than the last pieces.
        room = min(self._room, cap - self._cost([()], older=True))
        one: Piece = ()
        if room >= LEAST_READING:
            left = list(accumulate(reversed(sizes)))[::-1]
            fit = (n for n, text in enumerate(texts) if text.legal and left[n] <= room)
            one = whole(texts)[next(fit, len(texts)) :]
            one = one or divide(texts, room, self._count, whole(texts)[-1:])[-1]
        if self._size(one) >= sum(map(self._size, self._pieces)):
            self._pieces = [one] if one else []
        if not self._pieces:
            raise CannotPay
        seen: Counter[int] = Counter()
        for part in (part for piece in self._pieces for part in piece):
            seen[part.index] += part.stop - part.start
        return [
            entry
            for index, entry in enumerate(self._request.entries)
            if index not in seen or seen[index] < len(texts[index].text)
        ]

    def left_over(self, entries: Sequence[Entry]) -> SummaryRequest:
        """Return the request to the embedded summariser, for the part that is not paid."""
        limit = self._notes_limit(len(self._pieces))
        return replace(self._request, entries=entries, standing="", ledger=Ledger(), limit=limit)

    def text(self, older: str) -> Flow[str]:
        """Return the summary.

        Args:
            older: the embedded summariser's notes on entries before those read here.
        """
        notes, pieces = [older] if older else [], self._pieces
        if len(pieces) == 1:
            earlier = framed("notes", older, "earlier messages")
            material = "\n\n".join(part for part in (earlier, self._shown(pieces[0])) if part)
            try:
                text = yield from self._caller.ask(self._prompt(material), self._request.limit)
                return (yield from within_limit(text, self._request, self._caller, self._prompts))
            except SummarizerOverflow as error:
                room = self._halved(self._size(pieces[0]), error)
                pieces = divide(self._texts, room, self._count, pieces[0])
        flows = [self._notes_on(piece, self._notes_limit(len(pieces))) for piece in pieces]
        answers: list[list[str]] = yield Gather(flows, self._concurrency)
        notes += [one for answer in answers for one in answer]
        text = yield from self._merged(notes)
        return (yield from within_limit(text, self._request, self._caller, self._prompts))

    def _notes_on(self, piece: Piece, limit: int) -> Flow[list[str]]:
        """Return notes on one piece, or on its halves if it is too long."""
        prompt = self._prompts.notes(self._shown(piece), focus=self._request.focus, limit=limit)
        try:
            return [(yield from self._caller.ask(prompt, limit))]
        except SummarizerOverflow as error:
            room = self._halved(self._size(piece), error)
        notes: list[str] = []
        for smaller in divide(self._texts, room, self._count, piece):
            notes += yield from self._notes_on(smaller, limit)
        return notes

    def _merged(self, notes: list[str]) -> Flow[str]:
        """Return the answer from all notes, of each its share where not all fit."""
        room = self._window
        while True:
            share = max(1, room // len(notes) - self._frame)
            if sum(self._count(text) + self._frame for text in notes) > room:
                notes = [cut_short(text, share, self._count)[0] for text in notes]
            shown = [
                framed("notes", text, f"{n} of {len(notes)}") for n, text in enumerate(notes, 1)
            ]
            try:
                return (
                    yield from self._caller.ask(self._prompt("\n".join(shown)), self._request.limit)
                )
            except SummarizerOverflow as error:
                room = self._halved(sum(map(self._count, shown)), error)

    def _prompt(self, material: str) -> list[BaseMessage]:
        request = self._request
        return self._prompts.update(
            material,
            standing=request.standing,
            focus=request.focus,
            limit=request.limit,
            whole=not request.shares.parts,
        )

    def _shown(self, piece: Piece) -> str:
        """Return a piece as the model sees it."""
        return _messages(
            "\n".join(
                message_frame(
                    self._request.entries[part.index],
                    self._texts[part.index].text[part.start : part.stop],
                    part.label,
                )
                for part in piece
            )
        )

    def _halved(self, size: int, error: SummarizerOverflow) -> int:
        half = min(self._window, size) // 2
        if half < min(FLOOR, self._room):
            raise SummarizerOverflow(
                f"{error}; smaller pieces than {FLOOR} tokens are not tried: give `window` the "
                "real input limit of the model, or use one with a larger window"
            ) from error
        return half

    def _notes_limit(self, pieces: int) -> int:
        """Tokens of the notes on each of some pieces, so that all fit one reading."""
        share = self._window // (pieces + 1) - self._frame
        return max(LEAST_NOTES, min(self._request.limit, share))

    def _size(self, piece: Piece) -> int:
        return sum(part_size(self._texts, part, self._count) for part in piece)

    def _cost(self, pieces: Sequence[Piece], older: bool = False) -> int:
        """Tokens of reading pieces and putting the notes together, at the most."""
        limit, number = self._notes_limit(len(pieces)), len(pieces)
        cost = self._asked + older * (limit + self._frame)
        if number == 1:
            return cost + self._size(pieces[0])
        read = sum(self._notes_asked + self._size(piece) + limit for piece in pieces)
        return cost + read + number * (limit + self._frame)


def _messages(shown: str) -> str:
    return f"<messages>\n{shown}\n</messages>"


def within_limit(text: str, request: SummaryRequest, caller: Caller, prompts: Prompts) -> Flow[str]:
    """Return the text, or a shorter one where another call can be paid for."""
    limit, most = request.limit, request.most
    if request.count(text) <= (limit if most is None else most):
        return text
    prompt = prompts.shorten(text, limit)
    if not caller.bill.affords(caller.size(prompt) + limit):
        return text
    try:
        shorter = yield from caller.ask(prompt, limit)
    except SummaryError:  # the long one is paid for and whole; the checks decide about it
        return text
    return min(shorter, text, key=request.count)
