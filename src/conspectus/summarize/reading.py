"""One compaction's reading: what goes into which call, what an overflow changes, what is paid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from conspectus._core.boundaries import exchanges, legal_cuts
from conspectus._core.items import Item
from conspectus._drive import Flow, Gather
from conspectus.errors import SummarizerOverflow, SummaryError, SummaryRejected
from conspectus.ledger import Ledger
from conspectus.messages import Entry, as_data
from conspectus.summarize.base import SummaryRequest
from conspectus.summarize.calls import PER_MESSAGE, Caller, CannotPay
from conspectus.summarize.chunks import Part, Piece, Text, divide, newest, part_size, whole
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

FAN_IN = 4
"""Notes take at most one part in so many of a reading, so that merging makes progress."""

PROGRESS = 0.9
"""A round of merging must bring the notes to at most so much of their size."""


@dataclass(frozen=True, slots=True)
class _Source:
    """Texts that are read in pieces: the messages, or notes on them."""

    texts: Sequence[Text]
    show: Callable[[Part, str], str]
    frame: tuple[str, str] = ("", "")

    def shown(self, piece: Sequence[Part]) -> str:
        """A piece as the model sees it."""
        blocks = [
            self.show(part, self.texts[part.index].text[part.start : part.stop]) for part in piece
        ]
        return "\n".join(part for part in (self.frame[0], *blocks, self.frame[1]) if part)


class Reading:
    """The reading of one span.

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
        limit = request.limit
        # Measured with frames around nothing, so that no estimate is below what is really sent.
        empty = "<messages>\n-\n</messages>\n\n-"
        self._update_size = caller.size(self._update_prompt(empty))
        self._notes_size = caller.size(prompts.notes(empty, focus=request.focus, limit=limit))
        self._room = self._room_beside(window, trim, self._update_size + limit)
        reserve = min(limit, window // FAN_IN)
        self._notes_room = self._room_beside(window, trim, self._notes_size + reserve)
        self._messages = self._source_of(request.entries)
        self._pieces: list[Piece] = []
        self._direct = False

    def choose(self, cap: int | None) -> list[Entry]:
        """Decide what the model reads, and in which pieces.

        Args:
            cap: tokens that it may take; None for any number.

        Returns:
            The entries that are left for the embedded summariser.

        Raises:
            CannotPay: not even one reading can be paid for.
        """
        texts, limit = self._messages.texts, self._request.limit
        size = sum(text.size for text in texts)
        self._direct = size <= self._room
        if self._direct and (cap is None or self._update_size + size + limit <= cap):
            self._pieces = [whole(texts)]
            return []
        pieces = divide(texts, self._notes_room, self._count)
        if not self._direct and (
            cap is None or self._cost_of([self._size(piece) for piece in pieces], 0) <= cap
        ):
            self._pieces = pieces
            return []
        assert cap is not None
        return self._choose_newest(pieces, cap)

    def _choose_newest(self, pieces: list[Piece], cap: int) -> list[Entry]:
        """The most that can be paid from the end: several readings, or one that fits the rest."""
        texts, older = self._messages.texts, self._older_limit
        sizes = [self._size(piece) for piece in pieces]
        many = 0
        while many < len(pieces) and self._cost_of(sizes[-many - 1 :], older) <= cap:
            many += 1
        one: Piece = ()
        room = min(self._room, cap - self._update_size - self._request.limit) - older
        if room >= LEAST_READING:
            one = whole(texts)[newest(texts, room) :]
            one = one or divide(texts, room, self._count, whole(texts)[-1:])[-1]
        if not one and not many:
            raise CannotPay
        self._direct = self._size(one) >= sum(sizes[len(sizes) - many :])
        self._pieces = [one] if self._direct else pieces[len(pieces) - many :]
        seen: Counter[int] = Counter()
        for part in (part for piece in self._pieces for part in piece):
            seen[part.index] += part.stop - part.start
        return [
            entry
            for index, entry in enumerate(self._request.entries)
            if index not in seen or seen[index] < len(texts[index].text)
        ]

    def left_over(self, entries: Sequence[Entry]) -> SummaryRequest:
        """What the embedded summariser is asked for: notes on what cannot be paid for."""
        empty = Ledger()
        return replace(
            self._request, entries=entries, standing="", ledger=empty, limit=self._older_limit
        )

    def text(self, older: str) -> Flow[str]:
        """The summary.

        Args:
            older: the embedded summariser's notes on entries before those read here.
        """
        notes = [older] if older else []
        if self._direct:
            piece = self._pieces[0]
            earlier = [framed("notes", older, "earlier messages")] if older else []
            material = "\n\n".join([*earlier, self._messages.shown(piece)])
            try:
                text = yield from self._caller.ask(
                    self._update_prompt(material), self._request.limit
                )
                return (yield from self._within_limit(text))
            except SummarizerOverflow as error:
                room = self._halved(self._room, self._size(piece), error)
            pieces = divide(self._messages.texts, room, self._count, piece)
            notes += yield from self._read_all(self._messages, pieces, room)
        else:
            room = self._room
            notes += yield from self._read_all(self._messages, self._pieces, self._notes_room)
        text = yield from self._merge(notes, room)
        return (yield from self._within_limit(text))

    def _read_all(self, source: _Source, pieces: Sequence[Piece], room: int) -> Flow[list[str]]:
        """Notes on all pieces, read side by side."""
        flows = [self._notes_on(source, piece, room) for piece in pieces]
        answers: list[list[str]] = yield Gather(flows, self._concurrency)
        return [notes for answer in answers for notes in answer]

    def _notes_on(self, source: _Source, piece: Piece, room: int) -> Flow[list[str]]:
        """Notes on one piece; on its halves, one after the other, if it is too long."""
        limit = self._notes_limit(room)
        prompt = self._prompts.notes(source.shown(piece), focus=self._request.focus, limit=limit)
        try:
            return [(yield from self._caller.ask(prompt, limit))]
        except SummarizerOverflow as error:
            size = sum(part_size(source.texts, part, self._count) for part in piece)
            room = self._halved(room, size, error)
        notes: list[str] = []
        for smaller in divide(source.texts, room, self._count, piece):
            notes += yield from self._notes_on(source, smaller, room)
        return notes

    def _merge(self, notes: list[str], room: int) -> Flow[str]:
        """The summary from notes, in as many levels as it takes; each makes the notes smaller."""
        while True:
            source = self._notes_source(notes)
            pieces = divide(source.texts, room, self._count)
            size = sum(text.size for text in source.texts)
            if len(pieces) == 1:
                prompt = self._update_prompt(source.shown(pieces[0]))
                try:
                    return (yield from self._caller.ask(prompt, self._request.limit))
                except SummarizerOverflow as error:
                    room = self._halved(room, size, error)
                continue
            notes = yield from self._read_all(source, pieces, room)
            if sum(text.size for text in self._notes_source(notes).texts) > size * PROGRESS:
                problem = (
                    f"{self._caller.name} does not keep to the length that it is asked for, so its "
                    "notes cannot be merged; use another model, or one with a larger window"
                )
                raise SummaryRejected(problem, (problem,))

    def _within_limit(self, text: str) -> Flow[str]:
        """The text, or a shorter one if it is too long and another call can be paid for."""
        limit, most = self._request.limit, self._request.most
        if self._request.count(text) <= (limit if most is None else most):
            return text
        prompt = self._prompts.shorten(text, limit)
        if not self._caller.bill.affords(self._caller.size(prompt) + limit):
            return text
        try:
            shorter = yield from self._caller.ask(prompt, limit)
        except SummaryError:  # the long one is paid for and whole; the checks decide about it
            return text
        return min(shorter, text, key=self._request.count)

    def _update_prompt(self, material: str) -> list[BaseMessage]:
        request = self._request
        return self._prompts.update(
            material,
            standing=request.standing,
            focus=request.focus,
            limit=request.limit,
            whole=not request.shares.parts,
        )

    def _room_beside(self, window: int, trim: int | None, taken: int) -> int:
        room = window - taken - PER_MESSAGE
        if room < LEAST_READING:
            raise SummarizerOverflow(
                f"the window of {self._caller.name} is {window:,} tokens; prompt, standing "
                f"summary and answer take {taken:,} of them, which leaves too few to read with; "
                "use a model with a larger window, or ask for a smaller summary"
            )
        return room if trim is None else min(room, max(trim, LEAST_READING))

    def _halved(self, room: int, size: int, error: SummarizerOverflow) -> int:
        half = min(room, size) // 2
        if half < min(FLOOR, self._room, self._notes_room):
            raise SummarizerOverflow(
                f"{error}; smaller pieces than {FLOOR} tokens are not tried: give `window` the "
                "real input limit of the model, or use one with a larger window"
            ) from error
        return half

    def _notes_limit(self, room: int) -> int:
        return max(LEAST_NOTES, min(self._request.limit, room // FAN_IN, self._room // FAN_IN))

    @property
    def _older_limit(self) -> int:
        """Tokens for the embedded summariser's notes on what cannot be paid for."""
        return self._notes_limit(self._room)

    def _size(self, piece: Piece) -> int:
        return sum(part_size(self._messages.texts, part, self._count) for part in piece)

    def _cost_of(self, sizes: Sequence[int], older: int) -> int:
        """Tokens of reading pieces of these sizes and merging the notes, at the most."""
        limit = self._notes_limit(self._notes_room)
        frame = self._request.count(framed("notes", "-", "99 of 99")) + 1
        cost = sum(self._notes_size + size + limit for size in sizes)
        count, unit = len(sizes) + bool(older), max(limit, older) + frame
        per = max(2, self._room // unit)
        while count > 1 and count * unit > self._room:
            groups = -(-count // per)
            cost += count * unit + groups * (self._notes_size + limit)
            count = groups
        return cost + self._update_size + count * unit + self._request.limit

    def _source_of(self, entries: Sequence[Entry]) -> _Source:
        items = [Item(e.key, e.role, 0, calls=_ids(e), answers=e.answers) for e in entries]
        legal = legal_cuts(items, exchanges(items))
        count = self._request.count
        texts = [
            Text(
                text=entry.reading,
                size=count(message_frame(entry, entry.reading)) + 1,
                frame=count(message_frame(entry, "", "99 of 99 of part 99 of 99")) + 1,
                turn=entry.role == "user",
                legal=legal[index],
            )
            for index, entry in enumerate(entries)
        ]

        def show(part: Part, text: str) -> str:
            return message_frame(entries[part.index], text, part.label)

        return _Source(texts, show, ("<messages>", "</messages>"))

    def _notes_source(self, notes: Sequence[str]) -> _Source:
        count, total = self._request.count, len(notes)
        frame = count(framed("notes", "-", f"{total} of {total}, part 99 of 99")) + 1
        texts = [Text(text, self._count(text) + frame, frame) for text in notes]

        def show(part: Part, text: str) -> str:
            label = f"{part.index + 1} of {total}" + (f", {part.label}" if part.label else "")
            return framed("notes", text, label)

        return _Source(texts, show)


def in_order(request: SummaryRequest, keys: Iterable[str]) -> tuple[str, ...]:
    """Keys in the order of the entries."""
    wanted = set(keys)
    return tuple(entry.key for entry in request.entries if entry.key in wanted)


def _ids(entry: Entry) -> tuple[str, ...]:
    return tuple(call.id for call in entry.calls if call.id)
