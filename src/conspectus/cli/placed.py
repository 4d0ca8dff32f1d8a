"""A message with its place in a file, so that an error can name it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Placed:
    """A message with its place in the list (None for a system prompt beside it) and line."""

    data: Any
    index: int | None
    line: int | None = None

    @property
    def where(self) -> str:
        """Its name in an error."""
        name = "the system prompt" if self.index is None else f"message {self.index}"
        return name if self.line is None else f"line {self.line}: {name}"
