"""Recognise a truncated history: one of which the client no longer sends the beginning.

Many clients send only their newest messages: the last twenty, or as many as fit some tokens.
Records cover the messages that are missing, and their summary still replaces them. Some clients
keep the first messages, such as the task. Some insert a message of their own after these: a
summary, or a note that messages were left out.

Such a history is recognised by its overlap: a run of messages that a record has left in view. If a
client has changed or deleted other messages, the history fits no record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from typing import NamedTuple

from conspectus.core.records import Chain
from conspectus.messages import SUMMARY_LINE, Message

MOST_KEPT = 8
"""The most messages that a client keeps at the beginning, such as its task, or examples."""

MOST_INSERTED = 2
"""The most messages that a client inserts for those that it leaves out, such as a summary."""

LEAST_OVERLAP = 2
"""The fewest messages of an overlap that reaches the end of the known messages."""

LONG_OVERLAP = 8
"""The fewest messages of an overlap that ends before the end of the known messages."""

MOST_REWORDED = 2
"""The most messages at the end of the known ones that a client may send in other words."""

LEAST_DROPPED = 2
"""The fewest messages that are missing after those that a client keeps."""

RECENT = 1_000
"""The most messages of a history that are remembered, to recognise the next one."""


class RecentStems(NamedTuple):
    """Stems of the newest messages of a history, by which the next one is recognised."""

    answered: Sequence[str] = ()  # up to the model's last answer; `RECENT` at most
    unanswered: Sequence[str] = ()  # after that answer, where a question may come back reworded

    def with_later(self, entries: Sequence[Message]) -> RecentStems:
        """Return the stems of the history with the messages that have come since."""
        stems = stems_of(entries)
        count = up_to_last_answer(entries)
        if not count:
            return self._replace(unanswered=[*self.unanswered, *stems])
        answered = [*self.answered, *self.unanswered, *stems[:count]]
        return RecentStems(answered[-RECENT:], stems[count:])


class Truncation(NamedTuple):
    """Where a truncated history begins again, and what it lacks."""

    first_known: int  # the place in the history from which on its messages are known
    missing: tuple[str, ...]
    """Keys of the messages before that place that a record names; see `find_truncation`."""
    inserted: tuple[int, ...] = ()
    """Places of the messages before it that the client has inserted for others."""


class _Known(NamedTuple):
    """The messages that a chain of records knows, in the order of the conversation."""

    keys: tuple[str, ...]
    stems: list[str]  # of each key
    named: int  # how many of them the records name in order; those after them stayed in view
    covered: frozenset[str]  # keys of all that has left, inserted messages too


class _Overlap(NamedTuple):
    """Where a history and the known messages begin to be the same."""

    sent_place: int  # in the history, without its system messages
    known_place: int  # in the known messages


def stem_of(key: str) -> str:
    """Return the part of a message's key that does not depend on its position."""
    return key.partition("-")[0]


def stems_of(entries: Sequence[Message]) -> list[str]:
    """Return `stem_of` for each message that is no system message."""
    return [stem_of(entry.key) for entry in entries if entry.role != "system"]


def up_to_last_answer(entries: Sequence[Message]) -> int:
    """Return how many messages there are up to the model's last answer, without system messages."""
    roles = [entry.role for entry in entries if entry.role != "system"]
    return next((count for count in range(len(roles), 0, -1) if roles[count - 1] == "assistant"), 0)


def find_truncation(
    chain: Chain, entries: Sequence[Message], stems: Sequence[str], *, is_continuation: bool
) -> Truncation | None:
    """Return where a history begins again to be what a chain knows; None if it does not.

    Args:
        chain: records, the oldest first.
        entries: the history.
        stems: of the key of each message.
        is_continuation: the history is known to continue the chain, even if the client has
            dropped all that was in view at its last record.

    An example: the last record covers a to d, and e, f and g stayed in view then.

        known         a b c d e f g    the records name the first four
        sent          a x e f g h      the client keeps its first message, and inserts x
        inserted      x                place 1
        first_known   e                place 2
        missing       a b c d

    If the client had dropped e as well, e would not be missing: it stayed in view, so no record
    names it, and a message that is equal to it must not be counted after it.
    """
    if not chain:
        return None
    known = _known_to(chain)
    places = [place for place, entry in enumerate(entries) if entry.role != "system"]
    beginning = places[: MOST_INSERTED + 1]
    if any(entries[place].text.startswith(SUMMARY_LINE) for place in beginning):
        return None  # it is a view of another branch, given back
    sent = [stems[place] for place in places]
    overlap = _overlap_with(known, sent)
    if overlap is None:
        return _without_overlap(known, places, sent, len(entries)) if is_continuation else None
    first, known_place = overlap
    if _asks_covered_question_again(known, entries, places, sent, known_place - first):
        return None
    kept = run_length(known.stems, 0, sent[:first], 0)
    missing = known.keys[: min(known_place, known.named)]
    return Truncation(places[first], missing, tuple(places[kept:first]))


def _known_to(chain: Chain) -> _Known:
    """Return the messages that a chain knows, without those that a client had inserted."""
    inserted = {key for record in chain for key in record.clients_own}
    in_order = dict.fromkeys(key for record in chain for key in record.order or record.covers)
    named = tuple(key for key in in_order if key not in inserted)
    already_named = set(named)
    stayed = (key for key in chain[-1].stayed if key not in already_named)
    keys = (*named, *stayed)
    covered = frozenset(key for record in chain for key in record.covers)
    return _Known(keys, [stem_of(key) for key in keys], len(named), covered)


def _overlap_with(known: _Known, sent: Sequence[str]) -> _Overlap | None:
    """Return a history's overlap with the known messages: at their end, or else a long one."""
    near_end = max(known.named, len(known.stems) - MOST_REWORDED)
    at_end = find_overlap(known.stems, sent, near_end)
    return at_end or find_overlap(known.stems, sent, known.named, least=LONG_OVERLAP)


def _without_overlap(
    known: _Known, places: Sequence[int], sent: Sequence[str], length: int
) -> Truncation | None:
    """Return where a history begins that is known to continue, although it has no overlap.

    None if it holds a message that was said once and has left: then it has gone back.
    """
    count = Counter(known.stems)
    covered = (stem_of(key) for key in known.covered)
    said_once = {stem for stem in covered if count[stem] == 1}
    kept = min(MOST_KEPT, run_length(known.stems, 0, sent, 0))
    if not said_once.isdisjoint(sent[max(kept, MOST_INSERTED) :]):
        return None
    return Truncation([*places, length][kept], known.keys[: known.named])


def _asks_covered_question_again(
    known: _Known,
    entries: Sequence[Message],
    places: Sequence[int],
    sent: Sequence[str],
    shift: int,
) -> bool:
    """Tell whether a client has gone back to a covered question, and asks it again.

    A message that is at a place in the history is at `place + shift` in the known messages.
    """
    users = (
        place for place in range(len(places) - 1, -1, -1) if entries[places[place]].role == "user"
    )
    newest = next(users, None)
    if newest is None:
        return False
    known_place = newest + shift
    if known_place >= len(known.keys) or known.keys[known_place] not in known.covered:
        return False
    return known.stems[known_place] == sent[newest]


def shares_recent_messages(recent: Sequence[str], stems: Sequence[str]) -> bool:
    """Tell whether a history holds the end of another one, whose beginning it may lack.

    `recent` and `stems` are of messages that are no system messages.
    """
    return bool(recent) and find_overlap(recent, stems, len(recent)) is not None


def find_overlap(
    known: Sequence[str], sent: Sequence[str], up_to: int, *, least: int = LEAST_OVERLAP
) -> _Overlap | None:
    """Return where a truncated history begins to be the same as the known messages.

    From there on it must have all known messages up to the place `up_to`, in a row, and `least`
    messages at least. One of these must have been said only once, because short answers are
    repeated often. None if there is no such place, if the history is whole, or if it repeats
    messages that it would have dropped.
    """
    if run_length(known, 0, sent, 0) > MOST_KEPT:
        return None  # it is whole
    places: dict[str, list[int]] = {}
    for place, stem in enumerate(known):
        places.setdefault(stem, []).append(place)
    for first in range(min(MOST_KEPT + MOST_INSERTED + 1, len(sent))):
        for known_place in places.get(sent[first], ()):
            if not _may_precede(known, sent[:first], known_place, places.keys()):
                continue
            length = run_length(known, known_place, sent, first)
            if length < least or known_place + length < up_to:
                continue
            if _repeats_dropped(known[:known_place], known, sent[first + length :], up_to):
                continue
            if _holds_unique(known[known_place : known_place + length], places):
                return _Overlap(first, known_place)
    return None


def _repeats_dropped(
    dropped: Sequence[str], known: Sequence[str], following: Sequence[str], up_to: int
) -> bool:
    """Tell whether a history repeats messages that it is said to have dropped.

    After the overlap it has some of them once more, with all that is known after these, at least up
    to `up_to`. Then it has dropped nothing: an earlier question was asked again, with the same
    answers.
    """
    return any(
        stem == following[0] and place + run_length(known, place, following, 0) >= up_to
        for place, stem in enumerate(dropped)
        if following
    )


def _holds_unique(stems: Sequence[str], places: dict[str, list[int]]) -> bool:
    """Tell whether one of these stems was said only once."""
    return any(len(places[stem]) == 1 for stem in stems)


def _may_precede(
    known: Sequence[str], beginning: Sequence[str], known_place: int, stems: Container[str]
) -> bool:
    """Tell whether a client may send this beginning before the known message at a place.

    It must be first messages that are known, and after them messages that the client has inserted
    for a larger number of others. If one message is missing after the first ones, somebody has
    deleted it. If one message is inserted for one other, it is an edit.
    """
    kept = run_length(known, 0, beginning, 0)
    inserted = beginning[kept:]
    if not inserted:
        return kept <= MOST_KEPT and known_place >= kept + (LEAST_DROPPED if kept else 1)
    if kept > MOST_KEPT or len(inserted) > MOST_INSERTED:
        return False
    return known_place > len(beginning) and not any(stem in stems for stem in inserted)


def run_length(known: Sequence[str], known_place: int, sent: Sequence[str], sent_place: int) -> int:
    """Return how many messages are the same from two places on."""
    count = 0
    for left, right in zip(known[known_place:], sent[sent_place:], strict=False):
        if left != right:
            break
        count += 1
    return count
