"""Fold the records of a thread over a history, whose summaries and clips of ours are recognised.

A caller sends either its whole history or the view that it got back the last time, with the summary
message of a record. Records that do not fit the history are dropped, never trusted.

Users paste summaries and clips, and agents repeat them. A clip is known once in a history: where it
comes first, and not behind the summary that covers its original. Equal clips get their originals in
order. A LangChain message bears our mark; a dict, or a converted history, has none. Without marks
one summary is known, in the user's role, where the view puts it: first behind system messages, or
further on behind messages that callers put before their history, if its record is in force. Other
messages with its text are messages, so a pasted summary brings no abandoned branch back. Messages
after a summary are counted on from the covered ones, so that repeated words are another message.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from conspectus.core.records import Chain, ClipMark
from conspectus.messages import (
    POINTER,
    SUMMARY_LINE,
    Message,
    is_summary_message,
    name_entries,
    occurrences,
    summary_text,
)
from conspectus.messages.framing import summary_name


class Remaining(NamedTuple):
    """One message of the view: its position in the history as sent, and its original's key."""

    position: int
    key: str
    clip: ClipMark | None  # how it is truncated
    back: bool  # it came back clipped, so its text is not the original's


class Folded(NamedTuple):
    """The view of a history, by the records that fit it."""

    chain: Chain
    remaining: list[Remaining]
    dropped: int  # messages that were left out because the records cover them


def fold(chain: Chain, entries: list[Message]) -> Folded:
    """Return the view of a history, given the records of its thread; messages get their keys.

    What drops a record: it comes after a summary message that came back. In a whole history, its
    messages are not all there, unchanged and in order, or it covers the user's newest message,
    which a client has gone back to, to ask it again.
    """
    summaries = _summaries(entries, chain) if chain else {}
    clips = _clips(entries, chain, summaries) if chain else {}
    keys = [clips[i][1] if i in clips else entry.key for i, entry in enumerate(entries)]
    number = summaries[max(summaries)] if summaries else None
    live = _fitting(chain, entries, keys) if number is None else tuple(chain[: number + 1])
    covered = {key for record in live for key in record.covers}
    marks = {mark.key: mark for record in live for mark in record.clips}
    back = {(mark.shown, mark.key) for record in live for mark in record.clips}
    remaining, dropped = list[Remaining](), 0
    for index, entry in enumerate(entries):
        if summaries.get(index, len(live)) < len(live):
            continue  # the standing summary takes its place
        came_back = clips.get(index) in back
        key = keys[index] if came_back else entry.key
        if key in covered:  # none after a summary: it has another key there
            dropped += 1
        else:
            remaining.append(Remaining(index, key, marks.get(key), came_back))
    return Folded(live, remaining, dropped)


def _fitting(chain: Chain, entries: list[Message], keys: list[str]) -> Chain:
    """Return the leading records whose messages a whole history holds, in order."""
    users = (i for i in reversed(range(len(entries))) if _is_user(entries[i])) if chain else ()
    newest = next((keys[i] for i in users), None)
    positions = {key: index for index, key in enumerate(keys)} if chain else {}
    taken: set[str] = set()
    for count, record in enumerate(chain):
        before = -1
        for key in record.covers:
            if key == newest or key in taken or positions.get(key, -1) <= before:
                return tuple(chain[:count])
            before = positions[key]
            taken.add(key)
        if not all(mark.key in positions for mark in record.clips):
            return tuple(chain[:count])
    return tuple(chain)


def _is_user(entry: Message) -> bool:
    return entry.role == "user" and not bears_mark(entry)


def bears_mark(entry: Message) -> bool:
    """Return whether a message is marked as a summary; dicts cannot be."""
    return not isinstance(entry.source, dict) and is_summary_message(entry.source)


def _first(entries: Sequence[Message]) -> int:
    return next((i for i, entry in enumerate(entries) if entry.role != "system"), -1)


# Summaries


def may_be_summaries(entries: Sequence[Message], *, marked: bool) -> list[str]:
    """Name the summaries whose records are not in force but may belong here, last first.

    With `marked`, only messages with our mark count. Otherwise one without it counts too, where the
    view puts a summary.
    """
    first = _first(entries)
    names = [
        summary_name(entry.text)
        for i, entry in reversed(list(enumerate(entries)))
        if entry.text.startswith(SUMMARY_LINE)
        and (bears_mark(entry) or (i == first and entry.role == "user" and not marked))
    ]
    return list(dict.fromkeys(names))


def _summaries(entries: Sequence[Message], chain: Chain) -> dict[int, int]:
    """Map messages that are summaries of the chain to the number of their record.

    The text must be equal. If one of several bears our mark, the others are pasted messages.
    """
    equal: dict[int, int] = {}
    for i, entry in enumerate(entries):
        if entry.text.startswith(SUMMARY_LINE):
            for number, record in reversed([*enumerate(chain)]):
                body = record.summary
                if body and body in entry.text and entry.text == summary_text(
                    body, archived=record.archived, mark=record.mark
                ):  # fmt: skip
                    equal[i] = number
                    break
    if marked := {i: number for i, number in equal.items() if bears_mark(entries[i])}:
        return marked
    at = _unmarked(equal, entries, chain) if equal else None
    return {} if at is None else {at: equal[at]}


def _unmarked(equal: Mapping[int, int], entries: Sequence[Message], chain: Chain) -> int | None:
    """Return the place of the one summary among unmarked messages with a summary's text.

    The view puts it first, in the user's role. Callers may put covered or new messages before it. A
    text behind all that it covers, or behind a dialogue of which it covers a part, is a message; so
    is the user's newest message.
    """
    first = _first(entries)
    newest = max((i for i, entry in enumerate(entries) if entry.role == "user"), default=-1)
    number_of = {key: n for n, record in reversed([*enumerate(chain)]) for key in record.covers}
    before: list[set[str]] = [set() for _ in chain]  # covered messages that came, by record
    new, talk = False, False
    for i, entry in enumerate(entries):
        if i in equal and entry.role == "user":
            upto = equal[i] + 1
            here, all_of_it = sum(map(len, before[:upto])), sum(len(r.covers) for r in chain[:upto])
            beyond = new or any(before[upto:])
            ours = not here or (here < all_of_it and not (beyond and talk))
            if i == first or (i != newest and ours):
                return i
        if entry.key in number_of:
            before[number_of[entry.key]].add(entry.key)
        elif entry.role != "system":
            new = True
        talk = talk or entry.role in ("assistant", "tool")
    return None


# Clips


def clip_text(entry: Message) -> str:
    """Hash a clip with its role and calls; return an empty text for other messages."""
    if POINTER not in entry.reading:
        return ""
    parts = "\0".join((entry.role, *entry.answers, entry.reading))
    return hashlib.sha256(parts.encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _clips(
    entries: list[Message], chain: Chain, summaries: Mapping[int, int]
) -> dict[int, tuple[str, str]]:
    """Map messages that are clips to the hash of their text and the key of their original.

    Messages get new keys where some are missing: those that a summary or a clip replaces count too,
    so that a new message with an old text is another one.
    """
    at = max(summaries, default=len(entries))
    below = chain[: summaries[at] + 1] if summaries else ()
    covered = [key for record in below for key in record.covers]
    originals: dict[str, dict[str, None]] = {}
    for record in chain:
        for mark in record.clips:
            if mark.shown:
                originals.setdefault(mark.shown, {})[mark.key] = None
    waiting = {text: deque(keys) for text, keys in originals.items()}
    known = {key for keys in waiting.values() for key in keys}
    answered, taken, clips = set(covered), set[str](), dict[int, tuple[str, str]]()
    for i, entry in enumerate(entries) if waiting else ():
        text = clip_text(entry)
        left = waiting.get(text, deque())
        while left and (left[0] in taken or (i > at and left[0] in answered)):
            left.popleft()
        key = left[0] if left else entry.key
        if key in known:
            taken.add(key)
        if left:
            clips[i] = text, key
    missing = {i: [key] for i, (_, key) in clips.items()}
    if summaries:
        missing[at] = covered
    if missing:
        stems = {entry.stem for entry in entries}
        keys = (*covered, *(key for _, key in clips.values()))
        again = occurrences(key for key in keys if key.partition("-")[0] in stems)
        name_entries(entries, again, missing)
    return clips
