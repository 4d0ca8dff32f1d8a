"""Divide a history: system message, earlier summary, covered messages, the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import compress, takewhile
from operator import attrgetter, not_
from typing import Any

from langchain_core.messages import BaseMessage, SystemMessage

from conspectus.errors import InputError, MessageError
from conspectus.messages.recalled import is_users
from conspectus.short_term.running_summary import RunningSummary

AROUND = 400
"""Characters of a template around a summary that is known by its text."""


_id = attrgetter("id")


@dataclass(frozen=True, slots=True)
class HistoryParts:
    """A history in its parts.

    Attributes:
        back: messages that show the running summary and came back, as with one key for both.
        rest: messages not summarised yet, and the newest human message in any case.
    """

    messages: list[BaseMessage]
    system: BaseMessage | None
    back: list[BaseMessage]
    rest: list[BaseMessage]

    @property
    def alone(self) -> list[BaseMessage]:
        return [] if self.system is None else [self.system]

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
        place, other = next((n, m) for n, m in enumerate(given) if not isinstance(m, BaseMessage))
        raise MessageError(
            f"message {place} is {type(other).__name__}; give LangChain messages, as "
            "langchain_core.messages.convert_to_messages makes them"
        )
    back: list[BaseMessage] = []
    system, start = None, 0
    known = {_words(message) for message in shown}
    while start < len(given) and isinstance(given[start], SystemMessage):
        if running is not None and _came_back(given[start], given, running, known):
            back.append(given[start])
        elif start == 0:
            system = given[start]
        else:
            break
        start += 1
    rest = given[start:]
    ids: list[str | None] = [*map(_id, rest)]
    if running is not None:
        covered = running.summarized_message_ids
        is_covered = [*map(covered.__contains__, ids)]
        _refuse_twice(ids, is_covered, covered)
        places = (n for n in range(len(rest) - 1, -1, -1) if is_users(rest[n]))
        newest = next((n for n in places if _words(rest[n]) not in known), None)
        if newest is not None:  # a client has gone back to it, or another library's summary has it
            is_covered[newest] = False
        new = [*compress(rest, map(not_, is_covered))]
        again = [m for m in new if _words(m) in known] if known else []
        if again:
            back += again
            new = [m for m in new if _words(m) not in known]
        rest, ids = new, [*map(_id, new)]
    if None in ids:
        raise InputError(
            "Messages are required to have ID field. LangGraph's add_messages gives them ids; "
            "elsewhere set message.id, and let it stay the same from call to call."
        )
    return HistoryParts(given, system, back, rest)


def _words(message: BaseMessage) -> tuple[type, str]:
    return type(message), str(message.content)


def _came_back(
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


def _refuse_twice(ids: list[str | None], is_covered: list[bool], covered: set[str]) -> None:
    """Refuse a second message with an id that the summary covers: it was never read."""
    if sum(is_covered) > len(covered.intersection(ids)):
        counts = Counter(compress(ids, is_covered))
        name = next(one for one, count in counts.items() if count > 1)
        raise InputError(
            f"Message with ID {name} has already been summarized. Another message in the history "
            "has the same ID and has not been read; give it one of its own."
        )


def refuse_equal_ids(messages: Sequence[BaseMessage]) -> None:
    """Refuse equal ids before anything is summarised."""
    counts = Counter(message.id for message in messages)
    name = next((one for one, count in counts.items() if count > 1), None)
    if name is not None:
        raise InputError(
            f"{counts[name]} messages have the ID {name}; give each its own, as a summary is known "
            "by the IDs of the messages that it stands for"
        )
