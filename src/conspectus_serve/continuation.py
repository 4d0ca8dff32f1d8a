"""Tell whether a history continues a thread, by how far the thread had come.

A history continues a thread if it holds the thread's last answer and most of what was said before,
or what was said just before and at the beginning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conspectus.engine.begun_later import joint_of
from conspectus_serve.fingerprints import Fingerprint, FingerprintedHistory, without_number

TAIL_LENGTH = 48  # newest talk messages of a thread that are kept to compare histories with

LEAST_COMMON_SHARE = 0.75
"""Share of a thread's tail, from where both have something in common, that a history must hold."""

LEAST_COMMON_SHARE_WITH_HINT = 0.5  # the same, if the client names the thread's session

SUFFICIENT_END = 4
"""Newest messages of a thread that suffice, whatever its client drops or clears before them."""

LEAST_SHARED_MESSAGES = 4
"""Messages that a history must share with the end of a thread whose beginning it does not hold."""

LEAST_SHARED_CHARACTERS = 400
"""Characters of JSON that these messages must have, so that no greeting joins conversations."""

MANY_SHARED_MESSAGES = 8  # so many suffice, however short they are


@dataclass(frozen=True, slots=True)
class ThreadProgress:
    """How far a thread had come at its last request, as it is kept in the archive."""

    head: str  # id of the record in force; empty for none
    tail: list[str]  # names of the newest talk, up to the last answer; never empty
    first: str  # name of the first talk
    hint: str  # the client's name of its session; empty for none

    @classmethod
    def of(cls, history: FingerprintedHistory, head: str, hint: str) -> ThreadProgress:
        tail = list(history.answered_names[-TAIL_LENGTH:])
        return cls(head, tail, history.compared_names[0], hint)

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> ThreadProgress:
        return cls(row["head"], row["tail"], row["first"], row["hint"])

    def row(self) -> dict[str, Any]:
        """Return what the archive keeps."""
        return {"head": self.head, "tail": self.tail, "first": self.first, "hint": self.hint}


def continues_thread(history: FingerprintedHistory, progress: ThreadProgress, hint: str) -> bool:
    """Return whether a history continues a thread, also if its client changed much before."""
    tail = progress.tail
    names = history.compared_names
    if tail[-1] not in names:
        return False
    end = _index_behind_last(names, tail[-1])
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
    possible = len(tail) - is_common.index(True)  # from the first message in common on
    share = LEAST_COMMON_SHARE_WITH_HINT if has_same_hint else LEAST_COMMON_SHARE
    if sum(is_common) >= max(2, share * possible):
        return True
    return names[max(0, end - SUFFICIENT_END) : end] == tail[-SUFFICIENT_END:]


def _shares_what_is_unique(history: FingerprintedHistory, progress: ThreadProgress) -> bool:
    """Return whether history and thread begin alike, or have the random id of a call in common."""
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
    least_shared: int = LEAST_SHARED_MESSAGES,
) -> bool:
    """Return whether a history holds the end of a thread, of whose beginning it has less.

    So it is with clients that send their newest messages only. What both share must hold an answer
    of the model, and be too long to be said in two conversations, such as a greeting.
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
        and (least_shared == 1 or _is_much(shared))
    )


def _is_much(shared: Sequence[Fingerprint]) -> bool:
    """Return whether messages are too many or too long to be said in two conversations."""
    characters = sum(fingerprint.characters for fingerprint in shared)
    return characters >= LEAST_SHARED_CHARACTERS or len(shared) >= MANY_SHARED_MESSAGES


def _shared_with_end(tail: Iterable[str], talk: list[Fingerprint]) -> list[Fingerprint]:
    """Return the messages of a history that are the end of a thread, up to its last one."""
    # The numbers of equal messages change where a client drops its beginning.
    tail_names = list(map(without_number, tail))
    names = [without_number(fingerprint.name) for fingerprint in talk]
    joint = joint_of(tail_names, names, reaching=len(tail_names))
    if joint is not None:
        start, start_in_tail = joint
        return talk[start : start + len(tail_names) - start_in_tail]
    if len(tail_names) < TAIL_LENGTH:
        return []
    # The thread is longer than its tail, and the history may hold more of it than that.
    for end in range(len(names), TAIL_LENGTH - 1, -1):
        is_candidate = names[end - 1] == tail_names[-1]  # which spares most comparisons
        if is_candidate and names[end - TAIL_LENGTH : end] == tail_names:
            return talk[end - TAIL_LENGTH : end]
    return []


def _index_behind_last(names: Sequence[str], name: str) -> int:
    return len(names) - names[::-1].index(name)
