"""Recalled messages, each in a frame that no text in it can imitate."""

from __future__ import annotations

import re
from dataclasses import dataclass

from conspectus.archive.values import Archived
from conspectus.messages.harmless import BREAKS, as_notes
from conspectus.messages.message import sendable

MAX_LABEL = 64
"""Characters of a name or a date that are shown."""

ROW_CHARACTERS = 400
"""Characters in which the head of a table and a row are looked for."""

COLUMN_DIVIDERS = "|\t,"

_CODE = re.compile(r"[{}()=;]")
_BRACKETS_AND_DOT = str.maketrans("[]·", "()-")  # because they separate the parts of a frame


@dataclass(frozen=True, slots=True)
class Hit:
    """One recalled message, or a part of it.

    Attributes:
        id: the id that the caller gave it; without one, an id that is made from its content.
        cite: the id that summaries cite.
        key: the hash under which it is archived.
        role: `user`, `assistant`, `tool` or `system`; `damaged` if it cannot be read.
        name: the speaker, if the message names one.
        date: when the message was written, in the caller's form.
        text: the part of the message that is shown.
        score: how well it matches the query. Scores can be compared within one answer only. A tool
            result that is shown because of its call has the score of the call.
        begin: the number of the character at which the text begins.
        whole: the number of characters of the whole message.
        columns: if the text shows later rows of a table: the first line of the table; else empty.
        position: the position of the message among all evicted messages.
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
    position: int = 0

    @property
    def end(self) -> int:
        """Where the text ends in the message, in characters."""
        return self.begin + len(self.text)

    @property
    def is_part(self) -> bool:
        """Whether only a part of the message is shown."""
        return self.begin > 0 or self.end < self.whole

    @property
    def note(self) -> str:
        """Which part of the message is shown, and where to read on; empty for a whole message."""
        hints: list[str] = []
        if self.is_part and not self.text:
            hints.append(f"the message ends at character {self.whole:,}")
        elif self.is_part:
            hints.append(f"characters {self.begin + 1:,}-{self.end:,} of {self.whole:,}")
            if self.end < self.whole:
                hints.append(f"next: at={self.end}")
        if self.columns:
            hints.append(f"columns: {label(self.columns)}")
        return "; ".join(hints)

    @property
    def shown_name(self) -> str:
        """Its name. A derived name is followed by the position, which shows what is older."""
        is_derived = self.id == self.key
        return f"{label(self.cite)} #{self.position + 1}" if is_derived else label(self.cite)

    def line(self, cited: bool) -> str:
        """Return the message in its frame, which is short because each use of it costs tokens.

        Without `cited`, only a message that is shown in part is named, because more of it can be
        read.
        """
        name = f"{self.shown_name} " if cited or self.is_part else ""
        speaker = f"{self.role}/{label(self.name)}" if self.name else self.role
        date = f" · {label(self.date)}" if self.date else ""
        note = f" ({self.note})" if self.note else ""
        frame = f"[{name}{speaker}{date}]{note}"
        text = _indented(as_notes(sendable(self.text)))
        return f"{frame} {text}" if text else frame


def _indented(text: str) -> str:
    """Indent the lines after the first, so that none looks like the line of another message."""
    lines = text.splitlines(keepends=True)
    if text and text[-1] in BREAKS:
        lines.append("")
    return "  ".join(lines)


def label(text: str) -> str:
    """Return a name or date on one line of 64 characters that cannot close its bracket."""
    one_line = " ".join(sendable(text).split())[:MAX_LABEL]
    return as_notes(one_line).translate(_BRACKETS_AND_DOT)


def hit_of(
    original: Archived,
    span: tuple[int, int] | None = None,
    *,
    position: int = 0,
    score: float = 0.0,
) -> Hit:
    """Return the part of a message between two characters; the whole without `span`."""
    whole = len(original.text)
    begin, end = span or (0, whole)
    begin = min(begin, whole)
    return Hit(
        id=original.id,
        cite=original.cite,
        key=original.key,
        role=original.role,
        name=original.name,
        date=original.date,
        text=original.text[begin:end],
        score=score,
        begin=begin,
        whole=whole,
        columns=_columns_above(original.text, begin),
        position=position,
    )


def _columns_above(text: str, begin: int) -> str:
    """Return the first line of a text if it names the columns of the row at `begin`.

    A line of code or of JSON names none.
    """
    first_line, line_end, _ = text[: min(begin, ROW_CHARACTERS)].partition("\n")
    if not line_end or _CODE.search(first_line):
        return ""
    row = text[begin : begin + ROW_CHARACTERS].lstrip("\n").partition("\n")[0]
    for divider in COLUMN_DIVIDERS:
        dividers = first_line.count(divider)
        if dividers > 1:
            return first_line if row.count(divider) == dividers else ""
    return ""
