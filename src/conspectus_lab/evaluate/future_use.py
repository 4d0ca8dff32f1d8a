"""Find the identifiers that an agent writes again after a cut, and whether they were kept.

A history is cut at several places. An identifier is *needed* if it occurs before the cut and
the agent itself writes it after the cut before anything else has shown it again: then it can
only come from the context. It is *far* if neither the kept tail nor the first message holds it:
then only the summary can have it. It is *quoted* if it stands there in its old surroundings.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from conspectus_lab.evaluate.identifiers import identifiers

TokenCount = Callable[[Iterable[Any]], int]
"""Count the tokens of messages; the form of LangChain's `token_counter`."""

FRACTIONS = (0.4, 0.6, 0.8)
"""Shares of a history's tokens at which it is cut."""

LEAST_AFTER = 3
"""Messages of the agent that must follow a cut."""

WINDOW = 6
"""Consecutive words in which an identifier must stand to count as quoted."""


def text_of(message: BaseMessage) -> str:
    """Return the text of a message, then each tool call with its arguments on lines."""
    content = message.content
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    for call in message.tool_calls if isinstance(message, AIMessage) else ():
        text += f"\n{call['name']} " + "\n".join(str(value) for value in call["args"].values())
    return text


def lines_of(messages: Iterable[BaseMessage]) -> Iterator[str]:
    """Yield the lines of messages."""
    for message in messages:
        yield from text_of(message).split("\n")


def folded(messages: Iterable[BaseMessage]) -> str:
    """Join the lines of messages, with single white space."""
    return "\n".join(" ".join(line.split()) for line in lines_of(messages))


def cut_places(messages: Sequence[BaseMessage], count: TokenCount) -> Iterator[int]:
    """Yield the first message of the agent past each fraction of a history."""
    total = count(messages)
    sizes = [count([message]) for message in messages]
    agents = [isinstance(message, AIMessage) for message in messages]
    given: set[int] = set()
    for fraction in FRACTIONS:
        spent = 0
        for place, size in enumerate(sizes):
            if agents[place] and spent >= fraction * total:
                if place not in given and sum(agents[place:]) >= LEAST_AFTER:
                    given.add(place)
                    yield place
                break
            spent += size


def needs(messages: Sequence[BaseMessage], cut: int) -> list[str]:
    """Find identifiers after a cut that the agent can only know from before it."""
    before = held_by(messages[:cut])
    shown: set[str] = set()
    found: dict[str, None] = {}
    for message in messages[cut:]:
        here = identifiers(text_of(message))
        if isinstance(message, AIMessage):
            found |= dict.fromkeys(v for v in here if v in before and v not in shown)
        shown.update(here)
    return list(found)


def held_by(messages: Sequence[BaseMessage]) -> set[str]:
    """Find all identifiers in messages."""
    return {value for message in messages for value in identifiers(text_of(message))}


def quoted(
    wanted: Collection[str], context: Sequence[BaseMessage], prefix: Sequence[BaseMessage]
) -> set[str]:
    """Find the wanted identifiers that stand in the context in their old words.

    `WINDOW` consecutive words of a line of the prefix that hold the identifier must stand in one
    line of the context, or the whole line if it is shorter: a bare list of identifiers and word
    salad score nothing.
    """
    shown = folded(context)
    open_, kept = set(wanted), set[str]()
    for line in lines_of(prefix):
        if not open_:
            break
        inside = [value for value in open_ if value in line]
        if not inside:
            continue
        named = identifiers(line)
        words = line.split()
        for value in inside:
            if value in named and any(piece in shown for piece in _windows(value, words)):
                kept.add(value)
                open_.discard(value)
    return kept


def _windows(value: str, words: Sequence[str]) -> Iterator[str]:
    """Yield all runs of `WINDOW` words of a line around an identifier."""
    for place, word in enumerate(words):
        if value not in word and word not in value:
            continue
        first = max(0, place - WINDOW + 1)
        last = max(0, min(place, len(words) - WINDOW))
        for start in range(first if len(words) > WINDOW else 0, last + 1):
            piece = " ".join(words[start : start + WINDOW])
            if value in piece:
                yield piece
