"""Align a history with the remembered one of its thread, and find what the client has dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from conspectus.engine.truncated import LEAST_OVERLAP, MOST_KEPT, find_overlap, run_length
from conspectus_serve.fingerprints import Fingerprint, without_number

MESSAGE_OVERHEAD = 1_000
"""Characters that a remembered message counts in addition to its own."""


@dataclass(frozen=True, slots=True)
class DroppedMessages:
    """Messages that a client no longer sends, and that no record covers yet."""

    start: int = 0  # their place in the history that the client sends now
    fingerprints: list[Fingerprint] = field(default_factory=list)
    messages: list[Any] = field(default_factory=list)
    substitutes: int = 0
    """The number of messages before `start` that the client has put there instead of others."""

    @property
    def tokens(self) -> int:
        return sum(fingerprint.tokens for fingerprint in self.fingerprints)

    def put_back(self, rows: Sequence[Any], dropped_rows: Sequence[Any]) -> list[Any]:
        """Insert the rows of the dropped messages into rows that are one for each sent message."""
        return [*rows[: self.start], *dropped_rows, *rows[self.start :]]


@dataclass(frozen=True, slots=True)
class RememberedHistory:
    """The remembered history of a thread: whole messages, and dropped ones not yet covered."""

    fingerprints: list[Fingerprint]
    messages: list[Any]
    substitutes: int = 0
    """Messages at the beginning that replace others, such as the client's own summary."""

    @property
    def characters(self) -> int:
        in_messages = sum(fingerprint.characters for fingerprint in self.fingerprints)
        return in_messages + MESSAGE_OVERHEAD * len(self.fingerprints)


@dataclass(frozen=True, slots=True)
class AlignedHistory:
    """A history, aligned with the remembered one of its thread."""

    fingerprints: list[Fingerprint]  # of the history, with the names that its messages had before
    dropped: DroppedMessages = field(default_factory=DroppedMessages)
    suspected: DroppedMessages = field(default_factory=DroppedMessages)
    """One missing message after the first ones. Either somebody has deleted it, or the client
    begins to drop messages; its next request shows which."""

    remembered: Sequence[Fingerprint] = ()  # the remembered history
    continues: bool = False  # the history continues the remembered one
    begins_anew: bool = False  # it has nothing in common with the remembered one

    def left_names(self) -> frozenset[str]:
        """Return the names of remembered messages that are gone, for example after a rewind."""
        rows = (self.fingerprints, self.dropped.fingerprints, self.suspected.fingerprints)
        names = {fingerprint.name for row in rows for fingerprint in row}
        return frozenset(fingerprint.name for fingerprint in self.remembered) - names


def align_with_remembered(
    remembered: RememberedHistory,
    fingerprints: list[Fingerprint],
    *,
    least_shared: int = LEAST_OVERLAP,
) -> AlignedHistory:
    """Find the messages that a client has dropped at the beginning of a history.

    A message keeps the name that it had when more messages were before it.

    Args:
        remembered: the remembered history of the thread.
        fingerprints: the fingerprints of the history.
        least_shared: messages that both histories must have in common.
    """
    if _begin_alike(remembered.fingerprints, fingerprints):
        return AlignedHistory(fingerprints, remembered=remembered.fingerprints)
    known_talk = _indexes_of_talk(remembered.fingerprints)
    talk = _indexes_of_talk(fingerprints)
    known_names = [without_number(remembered.fingerprints[at].name) for at in known_talk]
    names = [without_number(fingerprints[at].name) for at in talk]
    # Messages after the last answer may have other words now.
    up_to = _end_of_last_answer(remembered.fingerprints, known_talk)

    overlap = find_overlap(known_names, names, up_to=up_to, least=least_shared)
    if overlap is not None:
        position, known_position = overlap
        kept = run_length(known_names, 0, names[:position], 0)
        start = talk[position]
        known_start = known_talk[known_position]
        return AlignedHistory(
            _with_known_names(fingerprints, start, remembered.fingerprints[known_start:]),
            dropped=_find_dropped(
                remembered,
                first=known_talk[kept],
                end=known_start,
                start=start,
                has_substitutes=kept < position,
            ),
            remembered=remembered.fingerprints,
            continues=True,
        )
    kept = run_length(known_names, 0, names, 0)
    if _lacks_one_message(known_names, names, kept, up_to):
        suspected = _find_dropped(
            remembered, first=known_talk[kept], end=known_talk[kept + 1], start=talk[kept]
        )
        return AlignedHistory(fingerprints, suspected=suspected, remembered=remembered.fingerprints)
    return AlignedHistory(
        fingerprints,
        remembered=remembered.fingerprints,
        continues=kept > 0 and kept >= up_to,
        begins_anew=kept == 0,
    )


def _indexes_of_talk(fingerprints: Sequence[Fingerprint]) -> list[int]:
    return [index for index, fingerprint in enumerate(fingerprints) if fingerprint.is_talk]


def _end_of_last_answer(fingerprints: Sequence[Fingerprint], talk: Sequence[int]) -> int:
    """Return the number of talk messages up to the last answer of the model."""
    for position in range(len(talk), 0, -1):
        if fingerprints[talk[position - 1]].by_model:
            return position
    return 0


def _find_dropped(
    remembered: RememberedHistory,
    *,
    first: int,
    end: int,
    start: int,
    has_substitutes: bool = False,
) -> DroppedMessages:
    """Return messages of a remembered history that its client no longer sends.

    They were from `first` up to `end`, and would be at `start` in the sent history. Before that,
    there may be messages that replace others.
    """
    first = max(first, remembered.substitutes)
    return DroppedMessages(
        start,
        remembered.fingerprints[first:end],
        remembered.messages[first:end],
        start if has_substitutes else min(remembered.substitutes, start),
    )


def _lacks_one_message(
    known_names: Sequence[str], names: Sequence[str], kept: int, up_to: int
) -> bool:
    """Tell whether a history is the remembered one without one message."""
    if not 0 < kept <= MOST_KEPT or kept >= len(names):
        return False
    shared = run_length(known_names, kept + 1, names, kept)
    return shared >= LEAST_OVERLAP and kept + 1 + shared >= up_to


def _begin_alike(remembered: Sequence[Fingerprint], fingerprints: Sequence[Fingerprint]) -> bool:
    """Tell whether two histories begin with the same messages."""
    return _first_talk(remembered) == _first_talk(fingerprints)


def _first_talk(fingerprints: Sequence[Fingerprint]) -> list[str]:
    names = (fingerprint.name for fingerprint in fingerprints if fingerprint.is_talk)
    return list(islice(names, MOST_KEPT + 1))


def _with_known_names(
    fingerprints: list[Fingerprint], start: int, remembered: Sequence[Fingerprint]
) -> list[Fingerprint]:
    """Return fingerprints with the remembered names, from a place on, for the same messages.

    Numbers of equal messages, and names of results with repeated ids, depend on the messages before
    them.
    """
    renamed = list(fingerprints)
    for index, known_fingerprint in zip(range(start, len(fingerprints)), remembered, strict=False):
        fingerprint = fingerprints[index]
        if not _may_be_same(known_fingerprint, fingerprint):
            break
        if known_fingerprint.name != fingerprint.name:
            renamed[index] = replace(fingerprint, name=known_fingerprint.name)
    return renamed


def _may_be_same(remembered: Fingerprint, fingerprint: Fingerprint) -> bool:
    """Tell whether messages have the same words, or are results with a repeated id."""
    if without_number(remembered.name) == without_number(fingerprint.name):
        return True
    is_named_by_words = remembered.is_talk or fingerprint.is_talk
    is_named_by_id = remembered.has_unique_ids or fingerprint.has_unique_ids
    return not is_named_by_words and not is_named_by_id
