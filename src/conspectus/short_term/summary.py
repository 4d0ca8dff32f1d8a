"""Define the running summary, which the caller keeps, and the result of a call."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conspectus.errors import InputError


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


def read_running(given: object) -> RunningSummary | None:
    """Read a running summary of a state: ours, LangMem's, or a dict."""
    if given is None:
        return None
    parts: list[Any] = [
        given.get(name) if isinstance(given, Mapping) else getattr(given, name, None)
        for name in ("summary", "summarized_message_ids", "last_summarized_message_id")
    ]
    summary, ids, last = parts
    if not isinstance(summary, str) or not isinstance(ids, (set, frozenset, list, tuple)):
        raise InputError(
            "running_summary must be a RunningSummary, or a dict with summary, "
            f"summarized_message_ids and last_summarized_message_id, not {given!r:.200}; pass what "
            "the last call gave back, or None"
        )
    return RunningSummary(summary, ids if isinstance(ids, set) else set(ids), last)


def name_of(running: RunningSummary | None) -> str:
    """Name a running summary: the records that led to it are found by this name."""
    if running is None:
        return "short-term\nnone"
    ids = "\0".join(sorted(map(str, running.summarized_message_ids)))
    digest = hashlib.sha256(ids.encode("utf-8", "backslashreplace")).hexdigest()
    return f"short-term\n{digest}\n{running.summary}"
