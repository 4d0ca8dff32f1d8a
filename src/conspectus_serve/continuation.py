"""Tell whether a history continues a thread, by comparing it with the thread's progress.

A history continues a thread if it has the thread's last answer and most messages before it; or the
messages just before it and those at the beginning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conspectus.engine.truncated import find_overlap
from conspectus_serve.fingerprints import Fingerprint, FingerprintedHistory, without_number

TAIL_LENGTH = 48
"""Newest talk messages of a thread that are stored for comparison."""

LEAST_COMMON_SHARE = 0.75
"""Share of a thread's tail that a history must have, counted from the first common message."""

LEAST_COMMON_SHARE_WITH_HINT = 0.5
"""The same share, if the client names the thread's session."""

SUFFICIENT_END = 4
"""This number of common newest messages suffices, whatever the client drops or clears before
them."""

LEAST_OVERLAP_MESSAGES = 4
"""Messages that a history must share with the end of a thread if it lacks the beginning."""

LEAST_SHARED_CHARACTERS = 400
"""Characters of JSON that these messages must have, so that a greeting does not connect two
conversations."""

MANY_SHARED_MESSAGES = 8
"""So many shared messages suffice, however short they are."""


@dataclass(frozen=True, slots=True)
class ThreadProgress:
    """The progress of a thread at its last request, as the archive stores it."""

    head_id: str  # id of the record in force; empty if none
    tail: list[str]  # names of the newest talk, up to the last answer; never empty
    first: str  # name of the first talk
    hint: str  # the client's name of its session; empty for none

    @classmethod
    def of(cls, history: FingerprintedHistory, head_id: str, hint: str) -> ThreadProgress:
        tail = list(history.answered_names[-TAIL_LENGTH:])
        return cls(head_id, tail, history.compared_names[0], hint)

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> ThreadProgress:
        return cls(row["head"], row["tail"], row["first"], row["hint"])

    def row(self) -> dict[str, Any]:
        """Return the value that the archive stores."""
        return {"head": self.head_id, "tail": self.tail, "first": self.first, "hint": self.hint}


def continues_thread(history: FingerprintedHistory, progress: ThreadProgress, hint: str) -> bool:
    """Tell whether a history continues a thread, even if its client changed much of it."""
    tail = progress.tail
    names = history.compared_names
    if tail[-1] not in names:
        return False
    end = _index_after_last(names, tail[-1])
    is_whole_tail = names[max(0, end - len(tail)) : end] == tail
    if is_whole_tail and len(tail) in (end, TAIL_LENGTH):
        return True
    if hint and progress.hint not in ("", hint):
        return False
    has_same_hint = bool(hint and progress.hint)
    if not (has_same_hint or _shares_what_is_unique(history, progress)):
        return False
    known_names = frozenset(names)
    is_common = [name in known_names for name in tail]
    possible = len(tail) - is_common.index(True)  # from the first common message on
    share = LEAST_COMMON_SHARE_WITH_HINT if has_same_hint else LEAST_COMMON_SHARE
    if sum(is_common) >= max(2, share * possible):
        return True
    return names[max(0, end - SUFFICIENT_END) : end] == tail[-SUFFICIENT_END:]


def _shares_what_is_unique(history: FingerprintedHistory, progress: ThreadProgress) -> bool:
    """Tell whether both begin with the same message, or share the random id of a call."""
    if history.compared_names[0] == progress.first:
        return True
    tail = frozenset(progress.tail)
    return any(
        fingerprint.is_talk and fingerprint.has_unique_ids and fingerprint.name in tail
        for fingerprint in history.fingerprints
    )


def holds_end_of_thread(
    history: FingerprintedHistory,
    progress: ThreadProgress,
    hint: str,
    least_shared: int = LEAST_OVERLAP_MESSAGES,
) -> bool:
    """Tell whether a history has the end of a thread, and lacks some of its beginning.

    Some clients send only their newest messages. The common part must have an answer of the model,
    and be too long to occur in two conversations, as a greeting does.
    """
    if hint and progress.hint not in ("", hint):
        return False
    talk = [fingerprint for fingerprint in history.fingerprints if fingerprint.is_talk]
    if len(talk) != len(history.compared_names):  # a history without talk
        return False
    shared = _shared_with_end(progress.tail, talk)
    return (
        len(shared) >= least_shared
        and any(fingerprint.by_model for fingerprint in shared)
        and (least_shared == 1 or _is_unmistakable(shared))
    )


def _is_unmistakable(shared: Sequence[Fingerprint]) -> bool:
    """Tell whether messages are too many or too long to occur in two conversations."""
    characters = sum(fingerprint.characters for fingerprint in shared)
    return characters >= LEAST_SHARED_CHARACTERS or len(shared) >= MANY_SHARED_MESSAGES


def _shared_with_end(tail: Iterable[str], talk: list[Fingerprint]) -> list[Fingerprint]:
    """Return the messages of a history that are the end of a thread."""
    # The numbers of equal messages change if a client drops the beginning.
    tail_names = list(map(without_number, tail))
    names = [without_number(fingerprint.name) for fingerprint in talk]
    overlap = find_overlap(tail_names, names, up_to=len(tail_names))
    if overlap is not None:
        start, start_in_tail = overlap
        return talk[start : start + len(tail_names) - start_in_tail]
    if len(tail_names) < TAIL_LENGTH:
        return []
    # The thread is longer than its tail, and the history may have more of it.
    for end in range(len(names), TAIL_LENGTH - 1, -1):
        is_candidate = names[end - 1] == tail_names[-1]  # this saves most comparisons
        if is_candidate and names[end - TAIL_LENGTH : end] == tail_names:
            return talk[end - TAIL_LENGTH : end]
    return []


def _index_after_last(names: Sequence[str], name: str) -> int:
    return len(names) - names[::-1].index(name)
