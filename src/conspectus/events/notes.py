"""Names for the sentences in the log, so that programs can tell them apart as people do."""

from __future__ import annotations

from typing import Any


def noted(event: str) -> dict[str, Any]:
    """What goes along with a sentence as `extra=`: its name, as `record.conspectus["event"]`.

    Example:
        >>> noted("history_kept")
        {'conspectus': {'event': 'history_kept'}}
    """
    return {"conspectus": {"event": event}}
