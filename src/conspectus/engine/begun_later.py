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

MOST_KEPT = 8  # first messages that a client keeps, such as its task, or examples
MOST_OWN = 2  # messages that a client puts in the place of others, such as a summary
LEAST_SHARED = 2  # messages in a row that a history must share with the end of what is known
MANY_SHARED = 8  # the same with what is known, where it goes on in another way before its end
ASKED_ANEW = 2  # messages at the end of what is known that a client may put in other words
LEAST_DROPPED = 2  # messages that are missing behind those that a client keeps
RECENT = 1_000  # newest messages of a history by which the next one is known


class BegunLater(NamedTuple):
    """A history whose client sends its beginning no more."""

    start: int  # the place in it where what is known goes on
    # keys of the messages that stood before that and that a record names; see `begun_later`
    missing: tuple[str, ...]
    # places of messages before that, which the client has put there in the place of others
    own: tuple[int, ...] = ()


class _Known(NamedTuple):
    """The messages that a chain of records knows, in the order of the conversation."""

    keys: tuple[str, ...]
    contents: list[str]  # what `stem_of` gives for each key
    evicted: int  # how many of them have left the view; those behind them have stayed
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
    chain: Chain, entries: Sequence[Message], contents: Sequence[str], *, goes_on: bool
) -> BegunLater | None:
    """Return where a history joins the messages that a chain knows; None if it does not.

    Args:
        chain: records, the oldest first.
        entries: the history.
        contents: what `stem_of` gives for the key of each message.
        goes_on: the history is known to go on from the chain, even if the client has dropped all
            that was in view at its last record.

    What stayed at the last record, and was dropped before it left, is not among the missing ones:
    the next record names it no more, and equal messages would then have other keys.
    """
    if not chain:
        return None
    known = _known_to(chain)
    places = [at for at, entry in enumerate(entries) if entry.role != "system"]
    if any(entries[at].text.startswith(SUMMARY_LINE) for at in places[: MOST_OWN + 1]):
        return None  # a view that was given back, of another branch
    texts = [contents[at] for at in places]
    joint = _joint_with(known, texts)
    if joint is None:
        return _without_joint(known, places, texts, len(entries)) if goes_on else None
    first, at = joint
    if _asks_covered_question_again(known, entries, places, texts, at - first):
        return None
    kept = run_of(known.contents, 0, texts[:first], 0)
    evicted = known.keys[: known.evicted]
    return BegunLater(places[first], evicted[:at], tuple(places[kept:first]))


def _known_to(chain: Chain) -> _Known:
    """Return the messages that a chain knows, but those that a client had put there itself."""
    clients_own = {key for record in chain for key in record.clients_own}
    placed = dict.fromkeys(key for record in chain for key in record.order or record.covers)
    evicted = tuple(key for key in placed if key not in clients_own)
    seen = set(evicted)
    stayed = (key for key in chain[-1].stayed if key not in seen)
    keys = (*evicted, *stayed)
    covered = frozenset(key for record in chain for key in record.covers)
    return _Known(keys, [stem_of(key) for key in keys], len(evicted), covered)


def _joint_with(known: _Known, texts: Sequence[str]) -> tuple[int, int] | None:
    """Return where a history goes on from what is known, by its end or by many messages."""
    near_end = max(known.evicted, len(known.contents) - ASKED_ANEW)
    by_end = joint_of(known.contents, texts, near_end)
    return by_end or joint_of(known.contents, texts, known.evicted, least=MANY_SHARED)


def _without_joint(
    known: _Known, places: Sequence[int], texts: Sequence[str], length: int
) -> BegunLater | None:
    """Return where a history goes on that is known to, though it shares nothing with its end.

    None if it holds a message that was said once and has left: then it has gone back.
    """
    contents = known.contents
    count = Counter(contents)
    covered = (stem_of(key) for key in known.covered)
    said_once = {content for content in covered if count[content] == 1}
    kept = min(MOST_KEPT, run_of(contents, 0, texts, 0))
    if not said_once.isdisjoint(texts[max(kept, MOST_OWN) :]):
        return None
    return BegunLater([*places, length][kept], known.keys[: known.evicted])


def _asks_covered_question_again(
    known: _Known,
    entries: Sequence[Message],
    places: Sequence[int],
    texts: Sequence[str],
    shift: int,
) -> bool:
    """Tell whether a client has gone back to a covered question, and asks it again.

    `shift` is by how much the place of a message in the history is less than in what is known.
    """
    users = (at for at in range(len(places) - 1, -1, -1) if entries[places[at]].role == "user")
    newest = next(users, None)
    if newest is None:
        return False
    place = newest + shift
    if place >= len(known.keys) or known.keys[place] not in known.covered:
        return False
    return known.contents[place] == texts[newest]


def goes_on_from(recent: Sequence[str], contents: Sequence[str]) -> bool:
    """Return whether a history holds the end of another one, of whose beginning it may have less.

    `recent` and `contents` are of messages that are no system messages.
    """
    return bool(recent) and joint_of(recent, contents, len(recent)) is not None


def joint_of(
    known: Sequence[str], contents: Sequence[str], reaching: int, *, least: int = LEAST_SHARED
) -> tuple[int, int] | None:
    """Return where a history that begins later goes on from what is known, and its place there.

    All that is known from there up to the place `reaching` must be in it, in a row, and `least`
    messages at least, one of which was said once: short answers are said again and again. None if
    it does not go on, begins where what is known begins, or repeats what it would have dropped.
    """
    if run_of(known, 0, contents, 0) > MOST_KEPT:
        return None  # it begins where what is known begins
    places: dict[str, list[int]] = {}
    for at, content in enumerate(known):
        places.setdefault(content, []).append(at)
    for first in range(min(MOST_KEPT + MOST_OWN + 1, len(contents))):
        for at in places.get(contents[first], ()):
            if not _may_stand_first(known, contents[:first], at, places.keys()):
                continue
            shared = run_of(known, at, contents, first)
            if shared < least or at + shared < reaching:
                continue
            if _repeats_dropped(known[:at], known, contents[first + shared :], reaching):
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
        content == following[0] and at + run_of(known, at, following, 0) >= reaching
        for at, content in enumerate(dropped)
        if following
    )


def _holds_unique(contents: Sequence[str], places: dict[str, list[int]]) -> bool:
    """Tell whether one of these contents was said once."""
    return any(len(places[content]) == 1 for content in contents)


def _may_stand_first(
    known: Sequence[str], first: Sequence[str], at: int, contents: Container[str]
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
    return at > len(first) and not any(content in contents for content in own)


def run_of(known: Sequence[str], at: int, contents: Sequence[str], first: int) -> int:
    """Return how many messages are alike from two places on."""
    count = 0
    for left, right in zip(known[at:], contents[first:], strict=False):
        if left != right:
            break
        count += 1
    return count
