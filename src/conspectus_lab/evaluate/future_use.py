"""Find the identifiers that an agent writes again after a cut, and whether they were kept.

A history is cut at several places. An identifier is *needed* if it occurs before the cut and
the agent itself writes it after the cut before anything else has shown it again: then it can
only come from the context. It is *far* if neither the kept tail nor the first message holds it:
then only the summary can have it. It is *quoted* if it stands there in its old surroundings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, BaseMessage

from conspectus_lab.evaluate.identifiers import IdentifierKind, identifiers
from conspectus_lab.evaluate.texts import TokenCount, folded, lines_of, text_of

FRACTIONS = (0.4, 0.6, 0.8)
"""Shares of a history's tokens at which it is cut."""

LEAST_AFTER = 3
"""Messages of the agent that must follow a cut."""

WINDOW = 6
"""Consecutive words in which an identifier must stand to count as quoted."""


@dataclass(frozen=True, slots=True)
class Need:
    """One identifier that the agent needs again.

    Attributes:
        kind: as it first stood before the cut.
        distance: messages from its last place before the cut to where it is needed.
    """

    value: str
    kind: IdentifierKind
    distance: int


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


def needs(messages: Sequence[BaseMessage], cut: int) -> list[Need]:
    """Find identifiers after a cut that the agent can only know from before it."""
    last: dict[str, int] = {}
    kinds: dict[str, IdentifierKind] = {}
    for place, message in enumerate(messages[:cut]):
        for value, kind in identifiers(text_of(message)).items():
            last[value] = place
            kinds.setdefault(value, kind)
    shown: set[str] = set()
    found: dict[str, Need] = {}
    for place in range(cut, len(messages)):
        here = identifiers(text_of(messages[place]))
        if isinstance(messages[place], AIMessage):
            for value in here:
                if value in last and value not in shown and value not in found:
                    found[value] = Need(value, kinds[value], place - last[value])
        shown.update(here)
    return list(found.values())


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
        named: Mapping[str, IdentifierKind] = identifiers(line)
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
