"""Divide a history: system message, earlier summary, covered messages, the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from langchain_core.messages import BaseMessage, SystemMessage

from conspectus.errors import InputError, MessageError
from conspectus.messages.recalled import is_users
from conspectus.short_term.summary import RunningSummary

AROUND = 400
"""Characters of a template around a summary that is known by its text."""


@dataclass(frozen=True, slots=True)
class HistoryParts:
    """A history in its parts; `rest` is what no summary covers, and the newest human message."""

    messages: list[BaseMessage]
    system: list[BaseMessage]
    rest: list[BaseMessage]

    @property
    def leading(self) -> int:
        return sum(1 for _ in takewhile(lambda m: isinstance(m, SystemMessage), self.rest))


def divide(
    messages: Sequence[Any], running: RunningSummary | None, shown: Sequence[BaseMessage]
) -> HistoryParts:
    """Divide a history; `shown` are the messages that show the running summary now."""
    if not isinstance(messages, Sequence) or isinstance(messages, (str, bytes)):
        raise MessageError(f"messages must be a list of messages, not {type(messages).__name__}")
    given = list(messages)
    if not all(issubclass(kind, BaseMessage) for kind in set(map(type, given))):
        at, other = next((n, m) for n, m in enumerate(given) if not isinstance(m, BaseMessage))
        raise MessageError(
            f"message {at} is {type(other).__name__}; give LangChain messages, as "
            "langchain_core.messages.convert_to_messages makes them"
        )
    known = set(map(_words, shown))
    system: list[BaseMessage] = []
    start = 0
    while start < len(given) and isinstance(given[start], SystemMessage):
        if running is None or not _shows(given[start], given, running, known):
            if start:
                break
            system = [given[0]]
        start += 1
    rest = given[start:]
    if running is not None:
        covered = running.summarized_message_ids
        refuse_equal_ids(
            (m.id for m in rest if m.id in covered),
            "Message with ID {} has already been summarized, and another that has not been read "
            "has the same ID",
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
    return HistoryParts(given, system, rest)


def _words(message: BaseMessage) -> tuple[type, str]:
    return type(message), str(message.content)


def _shows(
    message: BaseMessage,
    given: Sequence[BaseMessage],
    running: RunningSummary,
    known: Collection[tuple[type, str]],
) -> bool:
    """Return whether a leading system message shows the summary.

    One of another template, with the summary among other text, does so only if nothing else can: a
    history that is whole has no summary in it, and a prompt may contain the same words.
    """
    if _words(message) in known:
        return True
    said, text = str(message.text), running.summary.strip()
    if not text or len(said) > len(text) + AROUND or text not in said:
        return False
    covered = running.summarized_message_ids
    return not any(m.id in covered or _words(m) in known for m in given)


def refuse_equal_ids(
    ids: Iterable[str | None], said: str = "{} is the ID of several messages"
) -> None:
    """Refuse equal ids: a summary is known by the ids of the messages that it stands for."""
    name, count = next(iter(Counter(ids).most_common(1)), (None, 0))
    if count > 1:
        raise InputError(
            f"{said.format(name)}: {count} messages have the ID {name}; give each its own"
        )
