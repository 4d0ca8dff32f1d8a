"""Define the running summary, and divide a history by it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage, SystemMessage

from conspectus.errors import InputError, MessageError
from conspectus.messages.recalled import is_users

AROUND = 400
"""Characters of a template around a summary that is known by its text."""


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
    names = ("summary", "summarized_message_ids", "last_summarized_message_id")
    own = given if isinstance(given, Mapping) else getattr(given, "__dict__", {})
    summary, ids, last = map(own.get, names)
    if not isinstance(summary, str) or not isinstance(ids, (set, frozenset, list, tuple)):
        raise InputError(
            f"running_summary must be a RunningSummary, or a dict with {', '.join(names)}, not "
            f"{given!r:.200}; pass what the last call gave back, or None"
        )
    return RunningSummary(summary, ids if isinstance(ids, set) else set(ids), last)


def name_of(running: RunningSummary | None) -> str:
    """Name a running summary, so that the records that led to it are found."""
    if running is None:
        return "short-term\nnone"
    ids = "\0".join(sorted(map(str, running.summarized_message_ids)))
    digest = hashlib.sha256(ids.encode("utf-8", "backslashreplace")).hexdigest()
    return f"short-term\n{digest}\n{running.summary}"


def divide(
    messages: Sequence[Any], running: RunningSummary | None, standing: Sequence[BaseMessage]
) -> tuple[list[BaseMessage], list[BaseMessage]]:
    """Return the leading system message, and what no summary covers, with the newest question."""
    listed = isinstance(messages, Sequence) and not isinstance(messages, (str, bytes))
    for other in messages if listed else [messages]:
        if not isinstance(other, BaseMessage):
            raise MessageError(
                f"messages must be a list of LangChain messages, not of {type(other).__name__}; "
                "langchain_core.messages.convert_to_messages makes them"
            )
    given, known = list(messages), set(map(_words, standing))
    covered = running.summarized_message_ids if running else set[str]()

    def shows(message: BaseMessage) -> bool:
        """Return whether a leading system message shows the summary."""
        if running is None or _words(message) in known:
            return running is not None
        said, text = str(message.text), running.summary.strip()
        if not text or len(said) > len(text) + AROUND or text not in said:
            return False
        return not any(m.id in covered or _words(m) in known for m in given)

    system: list[BaseMessage] = []
    start = 0
    while start < len(given) and isinstance(given[start], SystemMessage):
        if not shows(given[start]):
            if start:
                break
            system = [given[0]]
        start += 1
    rest = given[start:]
    if running is not None:
        refuse_equal_ids(
            (m.id for m in rest if m.id in covered),
            "Message with ID {} has already been summarized, and another has the same ID",
        )
        newest = next((m for m in reversed(rest) if is_users(m) and _words(m) not in known), None)
        # A client has gone back to the newest, or another library's summary has it.
        rest = [m for m in rest if m is newest or m.id not in covered]
        rest = [m for m in rest if _words(m) not in known] if known else rest
    if any(m.id is None for m in rest):
        raise InputError(
            "Messages are required to have ID field. LangGraph's add_messages gives them ids; "
            "elsewhere set message.id, and let it stay the same from call to call."
        )
    return system, rest


def _words(message: BaseMessage) -> tuple[type, str]:
    return type(message), str(message.content)


def refuse_equal_ids(ids: Iterable[str | None], said: str = "{} is no ID of one message") -> None:
    """Refuse equal ids: a summary is known by the ids of the messages that it stands for."""
    for name, count in Counter(ids).most_common(1):
        if count > 1:
            raise InputError(
                f"{said.format(name)}: {count} messages have the ID {name}; give each its own"
            )
