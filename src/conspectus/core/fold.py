"""The view of a history: the chain of records in force, folded over what the caller sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from conspectus.core.records import Chain, ClipMark, Record


@dataclass(frozen=True, slots=True)
class Sent:
    """One message of a history as a caller sent it.

    `record` is the record whose summary it is, if ours; `text` the hash of its text and `original`
    the original's key if it is a clip of ours; `user` whether a user said it.
    """

    key: str
    system: bool = False
    record: str | None = None
    text: str = ""
    original: str = ""
    user: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """One place in the view: a message as sent, a clip of it, or the standing summary.

    `index` is its place in the history as sent, None for the summary; `key` the original's. `back`:
    it came back clipped, so its text is not the original's.
    """

    index: int | None
    key: str
    clip: ClipMark | None = None
    back: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """The messages that the model sees, by the chain in force.

    `dropped` counts messages that were left out because the chain covers them.
    """

    chain: tuple[Record, ...]
    shown: tuple[Shown, ...]
    dropped: int


def fold(chain: Chain, history: Sequence[Sent]) -> View:
    """Return the view of a history, given the records of its thread.

    A caller sends either its whole history or the view it got back the last time, with the summary
    message of a record. Records that do not fit the history are dropped, never trusted: the ones
    after a summary message that came back, or, in a whole history, the first one whose messages are
    not all there, unchanged and in order, and all after it. A record that covers the user's newest
    message does not fit either: a client has gone back to it, to ask it again.
    """
    at = next((i for i in range(len(history) - 1, -1, -1) if history[i].record), None)
    marker = None if at is None else history[at].record
    number = next((i for i, record in enumerate(chain) if record.id == marker), None)
    if at is None or number is None:
        live, at = _fitting(chain, history), len(history)
    else:
        live = tuple(chain[: number + 1])
    covered = {key for record in live for key in record.covers}
    clips = {mark.key: mark for record in live for mark in record.clips}
    back = {(mark.shown, mark.key) for record in live for mark in record.clips}
    known = {record.id for record in live}
    shown: list[Shown] = []
    dropped = 0
    summary = next((r for r in reversed(live) if r.summary), None)
    pending = summary
    first = place_of_summary([sent.system for sent in history])
    for index, sent in enumerate(history):
        if pending is not None and index == first:
            shown.append(Shown(None, f"summary:{pending.id}"))
            pending = None
        if sent.record in known:
            continue  # the standing summary takes its place
        came_back = (sent.text, sent.original) in back
        key = sent.original if came_back else sent.key
        if key in covered and index < at:
            dropped += 1
        else:
            shown.append(Shown(index, key, clips.get(key), back=came_back))
    if pending is not None:
        shown.append(Shown(None, f"summary:{pending.id}"))
    return View(live, tuple(shown), dropped)


def place_of_summary(system: Sequence[bool]) -> int:
    """Return the index before which the summary stands: behind the leading system messages.

    Whoever looks for the user's newest message from the end then finds the request, and no summary.
    """
    return next((i for i, one in enumerate(system) if not one), len(system))


def originals_of(chain: Chain) -> dict[str, list[str]]:
    """Map the hash of each clipped text to the keys of its originals, in order.

    Messages with equal texts have equal clips, so there may be several.
    """
    found: dict[str, dict[str, None]] = {}
    for record in chain:
        for mark in record.clips:
            if mark.shown:
                found.setdefault(mark.shown, {})[mark.key] = None
    return {text: list(keys) for text, keys in found.items()}


def _fitting(chain: Chain, history: Sequence[Sent]) -> tuple[Record, ...]:
    """Return the leading records whose messages a whole history holds, in order.

    None of them covers the user's newest message.
    """
    newest = next((sent.original or sent.key for sent in reversed(history) if sent.user), None)
    place = {sent.original or sent.key: index for index, sent in enumerate(history)}
    taken: set[str] = set()
    for count, record in enumerate(chain):
        before = -1
        for key in record.covers:
            if key == newest or key in taken or place.get(key, -1) <= before:
                return tuple(chain[:count])
            before = place[key]
            taken.add(key)
        if not all(mark.key in place for mark in record.clips):
            return tuple(chain[:count])
    return tuple(chain)
