"""A message with its place in a file, so that an error can name it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Placed:
    """A message with its place in the file.

    Attributes:
        data: the message as plain data.
        index: its place in the list, counted from 0 as in JSON paths; None for the system prompt
            that stood beside the list.
        line: number of its line, from 1, where the file has one message a line.
    """

    data: Any
    index: int | None
    line: int | None = None

    @property
    def where(self) -> str:
        """How an error names it."""
        name = "the system prompt" if self.index is None else f"message {self.index}"
        return name if self.line is None else f"line {self.line}: {name}"
