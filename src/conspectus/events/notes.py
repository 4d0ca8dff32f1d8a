"""Name the sentences in the log, for programs."""

from __future__ import annotations

import logging
from typing import Any

logger = logging.getLogger("conspectus")


def noted(event: str) -> dict[str, Any]:
    """Return the `extra=` of a sentence: its name, as `record.conspectus["event"]`.

    Example:
        >>> noted("history_kept")
        {'conspectus': {'event': 'history_kept'}}
    """
    return {"conspectus": {"event": event}}


def log(event: str, sentence: str, *parts: object, level: int = logging.WARNING) -> None:
    """Log a sentence, with `%s` for its parts, under its name."""
    logger.log(level, sentence, *parts, extra=noted(event), stacklevel=2)
