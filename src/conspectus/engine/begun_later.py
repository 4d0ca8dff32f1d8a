"""Know a history that begins later than its records do.

Many clients send their newest messages only: the last twenty, or as many as some tokens hold. What
they have dropped at the beginning is covered by records, which go on standing for it. Some keep the
first messages, such as the task, and some put a message of their own behind those: a summary, or a
note that something was left out. A history is known so if it goes on, message by message, from what
a record has left in view; what a client has changed or deleted elsewhere fits no record, as before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from typing import NamedTuple

from conspectus.core.records import Chain
from conspectus.messages import SUMMARY_LINE, Message

MOST_KEPT = 8
"""First messages that a client keeps, such as its task, or examples."""

MOST_OWN = 2
"""Messages that a client puts in the place of others, such as a summary."""

LEAST_SHARED = 2
"""Messages in a row that a history must share with the end of what is known."""

MANY_SHARED = 8
"""Messages in a row that it must share with what is known where it leaves that before its end."""

ASKED_ANEW = 2
"""Messages at the end of what is known that a client may put in other words."""

LEAST_DROPPED = 2
"""Messages that are missing behind those that a client keeps."""

RECENT = 1_000
"""Messages at most by which a later history is known."""


class RecentStems(NamedTuple):
    """Stems of the newest messages of a history, by which the next one is known."""

    answered: Sequence[str] = ()  # up to the model's last answer, `RECENT` at most
    unanswered: Sequence[str] = ()  # after it, where a question may come back reworded, or not

    def with_later(self, entries: Sequence[Message]) -> RecentStems:
        """Return the stems of the history with the messages that have come since."""
        stems = stems_of(entries)
        count = up_to_last_answer(entries)
        if not count:
            return self._replace(unanswered=[*self.unanswered, *stems])
        answered = [*self.answered, *self.unanswered, *stems[:count]]
        return RecentStems(answered[-RECENT:], stems[count:])


class BegunLater(NamedTuple):
    """A history whose client sends its beginning no more."""

    start: int  # the place in it where what is known goes on
    missing: tuple[str, ...]
    """Keys of the messages that stood before that and that a record names; see `begun_later`."""
    own: tuple[int, ...] = ()
    """Places of messages before that, which the client has put there in the place of others."""


class _Known(NamedTuple):
    """The messages that a chain of records knows, in the order of the conversation."""

    keys: tuple[str, ...]
    stems: list[str]  # of each key
    placed: int  # how many of them have a place in the chain; those behind them stayed at its end
    covered: frozenset[str]  # keys of all that has left, whoever had put it there


def stem_of(key: str) -> str:
    """Return the part of a message's key that is the same wherever it stands."""
    return key.partition("-")[0]


def stems_of(entries: Sequence[Message]) -> list[str]:
    """Return `stem_of` for each message that is no system message."""
    return [stem_of(entry.key) for entry in entries if entry.role != "system"]


def up_to_last_answer(entries: Sequence[Message]) -> int:
    """Return how many messages there are up to the model's last answer, without system messages."""
    roles = [entry.role for entry in entries if entry.role != "system"]
    return next((at for at in range(len(roles), 0, -1) if roles[at - 1] == "assistant"), 0)


def begun_later(
    chain: Chain, entries: Sequence[Message], stems: Sequence[str], *, is_continuation: bool
) -> BegunLater | None:
    """Return where a history joins the messages that a chain knows; None if it does not.

    Args:
        chain: records, the oldest first.
        entries: the history.
        stems: of the key of each message.
        is_continuation: the history is known to go on from the chain, even if the client has
            dropped all that was in view at its last record.

    An example: the last record covers a to d, and e, f and g stayed in view then.

        known      a b c d e f g    the first four are placed
        sent       a x e f g h      the client keeps its first message, and puts x for the others
        own        x                place 1
        start      e                place 2
        missing    a b c d

    Had the client dropped e as well, e would not be missing: it stayed, so that no record names it,
    and a message that is equal to it must not be counted on from it.
    """
    if not chain:
        return None
    known = _known_to(chain)
    places = [at for at, entry in enumerate(entries) if entry.role != "system"]
    if any(entries[at].text.startswith(SUMMARY_LINE) for at in places[: MOST_OWN + 1]):
        return None  # a view that was given back, of another branch
    sent = [stems[at] for at in places]
    joint = _joint_with(known, sent)
    if joint is None:
        return _without_joint(known, places, sent, len(entries)) if is_continuation else None
    first, at = joint
    if _asks_covered_question_again(known, entries, places, sent, at - first):
        return None
    kept = run_of(known.stems, 0, sent[:first], 0)
    missing = known.keys[: min(at, known.placed)]
    return BegunLater(places[first], missing, tuple(places[kept:first]))


def _known_to(chain: Chain) -> _Known:
    """Return the messages that a chain knows, but those that a client had put there itself."""
    clients_own = {key for record in chain for key in record.clients_own}
    placed = dict.fromkeys(key for record in chain for key in record.order or record.covers)
    known_places = tuple(key for key in placed if key not in clients_own)
    seen = set(known_places)
    stayed = (key for key in chain[-1].stayed if key not in seen)
    keys = (*known_places, *stayed)
    covered = frozenset(key for record in chain for key in record.covers)
    return _Known(keys, [stem_of(key) for key in keys], len(known_places), covered)


def _joint_with(known: _Known, sent: Sequence[str]) -> tuple[int, int] | None:
    """Return where a history goes on from what is known, by its end or by many messages."""
    near_end = max(known.placed, len(known.stems) - ASKED_ANEW)
    by_end = joint_of(known.stems, sent, near_end)
    return by_end or joint_of(known.stems, sent, known.placed, least=MANY_SHARED)


def _without_joint(
    known: _Known, places: Sequence[int], sent: Sequence[str], length: int
) -> BegunLater | None:
    """Return where a history goes on that is known to, though it shares nothing with its end.

    None if it holds a message that was said once and has left: then it has gone back.
    """
    count = Counter(known.stems)
    covered = (stem_of(key) for key in known.covered)
    said_once = {stem for stem in covered if count[stem] == 1}
    kept = min(MOST_KEPT, run_of(known.stems, 0, sent, 0))
    if not said_once.isdisjoint(sent[max(kept, MOST_OWN) :]):
        return None
    return BegunLater([*places, length][kept], known.keys[: known.placed])


def _asks_covered_question_again(
    known: _Known,
    entries: Sequence[Message],
    places: Sequence[int],
    sent: Sequence[str],
    shift: int,
) -> bool:
    """Tell whether a client has gone back to a covered question, and asks it again.

    A message at a place in the history stands at `place + shift` in what is known.
    """
    users = (at for at in range(len(places) - 1, -1, -1) if entries[places[at]].role == "user")
    newest = next(users, None)
    if newest is None:
        return False
    place = newest + shift
    if place >= len(known.keys) or known.keys[place] not in known.covered:
        return False
    return known.stems[place] == sent[newest]


def continues(recent: Sequence[str], stems: Sequence[str]) -> bool:
    """Return whether a history holds the end of another one, of whose beginning it may have less.

    `recent` and `stems` are of messages that are no system messages.
    """
    return bool(recent) and joint_of(recent, stems, len(recent)) is not None


def joint_of(
    known: Sequence[str], stems: Sequence[str], reaching: int, *, least: int = LEAST_SHARED
) -> tuple[int, int] | None:
    """Return where a history that begins later goes on from what is known, and its place there.

    All that is known from there up to the place `reaching` must be in it, in a row, and `least`
    messages at least, one of which was said once: short answers are said again and again. None if
    it does not go on, begins where what is known begins, or repeats what it would have dropped.
    """
    if run_of(known, 0, stems, 0) > MOST_KEPT:
        return None  # it begins where what is known begins
    places: dict[str, list[int]] = {}
    for at, stem in enumerate(known):
        places.setdefault(stem, []).append(at)
    for first in range(min(MOST_KEPT + MOST_OWN + 1, len(stems))):
        for at in places.get(stems[first], ()):
            if not _may_precede(known, stems[:first], at, places.keys()):
                continue
            shared = run_of(known, at, stems, first)
            if shared < least or at + shared < reaching:
                continue
            if _repeats_dropped(known[:at], known, stems[first + shared :], reaching):
                continue
            if _holds_unique(known[at : at + shared], places):
                return first, at
    return None


def _repeats_dropped(
    dropped: Sequence[str], known: Sequence[str], following: Sequence[str], reaching: int
) -> bool:
    """Tell whether a history goes on with messages that it would have dropped, and what followed.

    Then it has dropped nothing: a turn before them was asked again, and ends like a later one.
    """
    return any(
        stem == following[0] and at + run_of(known, at, following, 0) >= reaching
        for at, stem in enumerate(dropped)
        if following
    )


def _holds_unique(stems: Sequence[str], places: dict[str, list[int]]) -> bool:
    """Tell whether one of these stems was said once."""
    return any(len(places[stem]) == 1 for stem in stems)


def _may_precede(
    known: Sequence[str], first: Sequence[str], at: int, stems: Container[str]
) -> bool:
    """Return whether these messages may stand before a history that begins at a place.

    They are the first ones that are known, and behind them the client's own in the place of more
    others. Where one message is missing behind the former, somebody has deleted it; one in the
    place of one is an edit.
    """
    kept = run_of(known, 0, first, 0)
    own = first[kept:]
    if not own:
        return kept <= MOST_KEPT and at >= kept + (LEAST_DROPPED if kept else 1)
    if kept > MOST_KEPT or len(own) > MOST_OWN:
        return False
    return at > len(first) and not any(stem in stems for stem in own)


def run_of(known: Sequence[str], at: int, stems: Sequence[str], first: int) -> int:
    """Return how many messages are alike from two places on."""
    count = 0
    for left, right in zip(known[at:], stems[first:], strict=False):
        if left != right:
            break
        count += 1
    return count
