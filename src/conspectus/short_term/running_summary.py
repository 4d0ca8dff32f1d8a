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
    """The summary so far, and the messages that it stands for.

    LangGraph's serializers bring it back; a strict one brings a dict with the same names, which is
    accepted everywhere.

    Attributes:
        summary: its text.
        summarized_message_ids: ids of the messages that it stands for.
        last_summarized_message_id: the id of the last of them in the history.

    Example:
        >>> RunningSummary("They said hello.", {"m1", "m2"}, "m2").last_summarized_message_id
        'm2'
    """

    summary: str
    summarized_message_ids: set[str]
    last_summarized_message_id: str | None


@dataclass
class SummarizationResult:
    """The result of one call.

    Attributes:
        messages: the messages to send to the model.
        running_summary: the value to pass the next time; None while nothing was summarised.
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
    """Name a running summary, so that the records that led to it are found."""
    if running is None:
        return "short-term\nnone"
    ids = "\0".join(sorted(map(str, running.summarized_message_ids)))
    digest = hashlib.sha256(ids.encode("utf-8", "backslashreplace")).hexdigest()
    return f"short-term\n{digest}\n{running.summary}"
