"""Names by which callers choose a summariser and the reaction to its failure."""

from __future__ import annotations

from typing import Literal

OnFailure = Literal["degrade", "keep", "raise"]
FAILURES: tuple[OnFailure, ...] = ("degrade", "keep", "raise")

EMBEDDED = "embedded"
"""Name of the embedded summariser, the last resort: offline, never fails, obeys its limit."""


def names_embedded(given: object) -> bool:
    """Tell whether a setting asks for the embedded summariser by its name."""
    return isinstance(given, str) and given == EMBEDDED
