"""Compare a history with what is remembered of its thread, and find what its client has dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from conspectus.engine.begun_later import LEAST_SHARED, MOST_KEPT, joint_of, run_of
from conspectus_serve.fingerprints import Fingerprint, without_number

CHARACTERS_BESIDE = 1_000  # that a message takes in memory beside its own


@dataclass(frozen=True, slots=True)
class Dropped:
    """Messages that a client sent before and sends no more, which no record covers yet."""

    start: int = 0  # where they stood in the history that the client sends now
    fingerprints: list[Fingerprint] = field(default_factory=list)
    messages: list[Any] = field(default_factory=list)
    substitutes: int = 0
    """How many messages before `start` the client has put there in the place of others."""

    @property
    def tokens(self) -> int:
        return sum(fingerprint.tokens for fingerprint in self.fingerprints)

    def put_back(self, rows: Sequence[Any], dropped_rows: Sequence[Any]) -> list[Any]:
        """Return rows, one for each message of the history, with those of the dropped between."""
        return [*rows[: self.start], *dropped_rows, *rows[self.start :]]


@dataclass(frozen=True, slots=True)
class RememberedHistory:
    """What a client has sent of a thread, whole, with what it has dropped and nothing covers."""

    fingerprints: list[Fingerprint]
    messages: list[Any]
    substitutes: int = 0
    """Messages at the beginning that stand for others, such as the client's own summary."""

    @property
    def characters(self) -> int:
        in_messages = sum(fingerprint.characters for fingerprint in self.fingerprints)
        return in_messages + CHARACTERS_BESIDE * len(self.fingerprints)


@dataclass(frozen=True, slots=True)
class Joined:
    """A history beside what is remembered of its thread."""

    fingerprints: list[Fingerprint]  # of the history, with the names that are known
    dropped: Dropped = field(default_factory=Dropped)
    suspected: Dropped = field(default_factory=Dropped)
    """One message behind the first ones that is missing: somebody has deleted it, or the client
    begins to drop messages, which its next request shows."""

    remembered: Sequence[Fingerprint] = ()  # what the history was compared with
    continues: bool = False  # the history goes on from what is remembered
    begins_anew: bool = False  # it has nothing in common with what is remembered

    def left_names(self) -> frozenset[str]:
        """Return the names of remembered messages that the history has left, as by going back."""
        rows = (self.fingerprints, self.dropped.fingerprints, self.suspected.fingerprints)
        names = {fingerprint.name for row in rows for fingerprint in row}
        return frozenset(fingerprint.name for fingerprint in self.remembered) - names


def join_remembered(
    remembered: RememberedHistory,
    fingerprints: list[Fingerprint],
    *,
    least_shared: int = LEAST_SHARED,
) -> Joined:
    """Find what a client has dropped at the beginning of a history since its last request.

    A message keeps the name that it had when more stood before it.

    Args:
        remembered: what the client has sent of the thread.
        fingerprints: of the history.
        least_shared: messages that the history must have in common with what is remembered.
    """
    if _begin_alike(remembered.fingerprints, fingerprints):
        return Joined(fingerprints, remembered=remembered.fingerprints)
    known_talk = _indexes_of_talk(remembered.fingerprints)
    talk = _indexes_of_talk(fingerprints)
    known_names = [without_number(remembered.fingerprints[at].name) for at in known_talk]
    names = [without_number(fingerprints[at].name) for at in talk]
    # What stood behind the last answer may have been put in other words.
    reaching = _end_of_last_answer(remembered.fingerprints, known_talk)

    joint = joint_of(known_names, names, reaching=reaching, least=least_shared)
    if joint is not None:
        position, known_position = joint
        kept = run_of(known_names, 0, names[:position], 0)
        start = talk[position]
        known_start = known_talk[known_position]
        return Joined(
            _with_known_names(fingerprints, start, remembered.fingerprints[known_start:]),
            dropped=_dropped(
                remembered,
                first=known_talk[kept],
                end=known_start,
                start=start,
                has_substitutes=kept < position,
            ),
            remembered=remembered.fingerprints,
            continues=True,
        )
    kept = run_of(known_names, 0, names, 0)
    if _lacks_one_message(known_names, names, kept, reaching):
        suspected = _dropped(
            remembered, first=known_talk[kept], end=known_talk[kept + 1], start=talk[kept]
        )
        return Joined(fingerprints, suspected=suspected, remembered=remembered.fingerprints)
    return Joined(
        fingerprints,
        remembered=remembered.fingerprints,
        continues=kept > 0 and kept >= reaching,
        begins_anew=kept == 0,
    )


def _indexes_of_talk(fingerprints: Sequence[Fingerprint]) -> list[int]:
    return [index for index, fingerprint in enumerate(fingerprints) if fingerprint.is_talk]


def _end_of_last_answer(fingerprints: Sequence[Fingerprint], talk: Sequence[int]) -> int:
    """Return how many talk messages there are up to the last answer of the model."""
    for position in range(len(talk), 0, -1):
        if fingerprints[talk[position - 1]].by_model:
            return position
    return 0


def _dropped(
    remembered: RememberedHistory,
    *,
    first: int,
    end: int,
    start: int,
    has_substitutes: bool = False,
) -> Dropped:
    """Return messages of a remembered history that its client sends no more.

    They stood from `first` up to `end`, and would stand at `start` in the history that is sent now.
    Before that may be substitutes for others.
    """
    first = max(first, remembered.substitutes)
    return Dropped(
        start,
        remembered.fingerprints[first:end],
        remembered.messages[first:end],
        start if has_substitutes else min(remembered.substitutes, start),
    )


def _lacks_one_message(
    known_names: Sequence[str], names: Sequence[str], kept: int, reaching: int
) -> bool:
    """Return whether a history is the known one without one message behind the kept ones."""
    if not 0 < kept <= MOST_KEPT or kept >= len(names):
        return False
    shared = run_of(known_names, kept + 1, names, kept)
    return shared >= LEAST_SHARED and kept + 1 + shared >= reaching


def _begin_alike(remembered: Sequence[Fingerprint], fingerprints: Sequence[Fingerprint]) -> bool:
    """Return whether two histories begin with the same messages."""
    return _first_talk(remembered) == _first_talk(fingerprints)


def _first_talk(fingerprints: Sequence[Fingerprint]) -> list[str]:
    names = (fingerprint.name for fingerprint in fingerprints if fingerprint.is_talk)
    return list(islice(names, MOST_KEPT + 1))


def _with_known_names(
    fingerprints: list[Fingerprint], start: int, remembered: Sequence[Fingerprint]
) -> list[Fingerprint]:
    """Return fingerprints with known names from a place on, while the same messages stand there.

    The number among equal messages, and the name of a result behind an id that comes again, follow
    from what stood before a message.
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
    """Return whether messages have the same words, or are results behind ids that come again."""
    if without_number(remembered.name) == without_number(fingerprint.name):
        return True
    is_named_by_words = remembered.is_talk or fingerprint.is_talk
    is_named_by_id = remembered.has_unique_ids or fingerprint.has_unique_ids
    return not is_named_by_words and not is_named_by_id
