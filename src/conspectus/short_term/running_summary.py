"""The running summary that a caller passes from call to call, and the result of a call."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conspectus.errors import InputError

NAMES = ("summary", "summarized_message_ids", "last_summarized_message_id")


@dataclass
class RunningSummary:
    """The summary so far, and the ids of the messages that it replaces.

    LangGraph's serializers restore it. A strict serializer restores a dict with the same names; you
    can pass that dict wherever a `RunningSummary` is expected.

    Attributes:
        summary: the text of the summary.
        summarized_message_ids: the ids of the messages that it replaces.
        last_summarized_message_id: the id of the last of these messages in the history.

    Example:
        >>> RunningSummary("They said hello.", {"m1", "m2"}, "m2").last_summarized_message_id
        'm2'
    """

    summary: str
    summarized_message_ids: set[str]
    last_summarized_message_id: str | None


@dataclass
class SummarizationResult:
    """The result of one call of `summarize_messages`.

    Attributes:
        messages: the messages to send to the model.
        running_summary: the value to pass the next time; None if nothing was summarised so far.
    """

    messages: list[Any]
    running_summary: RunningSummary | None = None


def read_running(value: object) -> RunningSummary | None:
    """Read a running summary of a state: ours, LangMem's, or a dict."""
    if value is None:
        return None
    fields = value if isinstance(value, Mapping) else getattr(value, "__dict__", {})
    summary, ids, last = map(fields.get, NAMES)
    if not isinstance(summary, str) or not isinstance(ids, (set, frozenset, list, tuple)):
        raise InputError(
            f"running_summary must be a RunningSummary, or a dict with {', '.join(NAMES)}, not "
            f"{value!r:.200}; pass what the last call gave back, or None"
        )
    return RunningSummary(summary, set(ids), last)


def name_of(running: RunningSummary | None) -> str:
    """Return the name under which the records of a running summary are found."""
    if running is None:
        return "short-term\nnone"
    ids = "\0".join(sorted(map(str, running.summarized_message_ids)))
    digest = hashlib.sha256(ids.encode("utf-8", "backslashreplace")).hexdigest()
    return f"short-term\n{digest}\n{running.summary}"
