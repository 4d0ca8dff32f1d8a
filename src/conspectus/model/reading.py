"""One compaction's reading: at once where it fits, else notes on its pieces, then one answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from conspectus._drive import Flow, Gather
from conspectus.errors import SummarizerOverflow, SummaryError
from conspectus.messages import as_data
from conspectus.model.base import SummaryRequest
from conspectus.model.calls import PER_MESSAGE, Caller, Check
from conspectus.model.checks import cut_short, wrong_with
from conspectus.model.chunks import Part, divide, parts_of
from conspectus.model.prompts import Prompts, framed, message_frame

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

LEAST_READING = 200  # tokens of messages in one reading; below that, frames are most of it
LEAST_NOTES = 50  # tokens that notes on one piece may take at least
FLOOR = 500  # tokens down to which readings are halved after an overflow


@dataclass(slots=True)
class Reading:
    """The reading of one span; `SummarizerOverflow` where the window is too small for any.

    `window` is the model's input limit and then what of it is left for messages, `trim` the tokens
    of messages in one reading at most (None for as many as fit), `concurrency` calls at once.
    """

    request: SummaryRequest
    caller: Caller
    prompts: Prompts
    window: int
    trim: int | None
    concurrency: int
    min_tokens: int | None
    _frame: int = field(init=False)

    def __post_init__(self) -> None:
        # Measured with frames around nothing, so that no estimate is below what is really sent.
        limit, size = self.request.limit, self.caller.size
        notes = self.prompts.notes(_messages("-"), self.request.focus, limit)
        taken = max(size(self._prompt(_messages("-") + "\n\n-")), size(notes)) + limit
        self._frame = self.request.count(framed("notes", "-", "999 of 999")) + 1
        left = self.window - taken - PER_MESSAGE
        if left < LEAST_READING:
            raise SummarizerOverflow(
                f"the window of {self.caller.name} is {self.window:,} tokens; prompt, notes so far "
                f"and answer take {taken:,} of them, which leaves too few to read with; use a "
                "model with a larger window, or ask for a smaller summary"
            )
        self.window = left

    def text(self) -> Flow[str]:
        """Return the summary."""
        count = self.request.count
        parts: Sequence[Part] = parts_of(
            self.request.entries,
            lambda entry: (
                count(message_frame(entry, entry.reading)) + 1,
                count(message_frame(entry, "", "99 of 99 of part 99 of 99")) + 1,
            ),
        )
        room = min(self.window, max(self.trim or self.window, LEAST_READING))
        if _size(parts) <= room:
            try:
                prompt = self._prompt(self._shown(parts))
                return (yield from self._short_enough(prompt))
            except SummarizerOverflow as error:
                room = self._halved(_size(parts), error)
        pieces = divide(parts, room, self._count)
        share = self.window // (len(pieces) + 1) - self._frame  # so that all fit one reading
        limit = max(LEAST_NOTES, min(self.request.limit, share))
        flows = [self._notes_on(piece, limit) for piece in pieces]
        answers: list[list[str]] = yield Gather(flows, self.concurrency)
        return (yield from self._merged([one for answer in answers for one in answer]))

    def _notes_on(self, piece: Sequence[Part], limit: int) -> Flow[list[str]]:
        """Return notes on one piece, or on its halves if it is too long."""
        prompt = self.prompts.notes(self._shown(piece), self.request.focus, limit)
        try:
            return [(yield from self.caller.ask(prompt, self._check(piece, limit)))]
        except SummarizerOverflow as error:
            room = self._halved(_size(piece), error)
        notes: list[str] = []
        for smaller in divide(piece, room, self._count):
            notes += yield from self._notes_on(smaller, limit)
        return notes

    def _merged(self, notes: list[str]) -> Flow[str]:
        """Return the answer from all notes, of each its share where not all fit."""
        room = self.window
        while True:
            share = max(1, room // len(notes) - self._frame)
            if sum(self._count(text) + self._frame for text in notes) > room:
                notes = [cut_short(text, share, self._count)[0] for text in notes]
            shown = "\n".join(
                framed("notes", text, f"{n} of {len(notes)}") for n, text in enumerate(notes, 1)
            )
            try:
                return (yield from self._short_enough(self._prompt(shown)))
            except SummarizerOverflow as error:
                room = self._halved(self._count(shown), error)

    def _short_enough(self, prompt: list[BaseMessage]) -> Flow[str]:
        text = yield from self.caller.ask(prompt, self._check())
        return (yield from within_limit(text, self.request, self.caller, self._check()))

    def _check(self, piece: Sequence[Part] = (), limit: int = 0) -> Check:
        """Return the check of the summary, or of notes on one piece."""
        request, leaving = self.request, _size(piece) or None
        if piece:
            entries = [request.entries[n] for n in dict.fromkeys(part.index for part in piece)]
            request = replace(request, entries=entries, notes="", kept=(), limit=limit)
        return lambda text: wrong_with(
            text, request, min_tokens=self.min_tokens, leaving=leaving, prompted=True
        )

    def _prompt(self, material: str) -> list[BaseMessage]:
        return self.prompts.final(material, self.request)

    def _shown(self, piece: Sequence[Part]) -> str:
        """Return a piece as the model sees it."""
        entries = self.request.entries
        frames = (message_frame(entries[part.index], part.text, part.label) for part in piece)
        return _messages("\n".join(frames))

    def _count(self, text: str) -> int:
        return self.request.count(as_data(text))

    def _halved(self, size: int, error: SummarizerOverflow) -> int:
        half = min(self.window, size) // 2
        if half < min(FLOOR, max(self.trim or FLOOR, LEAST_READING)):
            raise SummarizerOverflow(
                f"{error}; smaller pieces than {FLOOR} tokens are not tried: give `window` the "
                "real input limit of the model, or use one with a larger window"
            ) from error
        return half


def _size(piece: Sequence[Part]) -> int:
    return sum(part.size for part in piece)


def _messages(shown: str) -> str:
    return f"<messages>\n{shown}\n</messages>"


def within_limit(text: str, request: SummaryRequest, caller: Caller, check: Check) -> Flow[str]:
    """Return a text that is not too long, else the shorter one of it and a second try."""
    if request.count(text) <= (request.limit if request.most is None else request.most):
        return text
    try:
        prompt = Prompts().shorten(text, request.limit)
        shorter = yield from caller.ask(prompt, check, tries=1)
    except SummaryError:  # the long one is paid for and whole; the checks decide about it
        return text
    return min(shorter, text, key=request.count)
