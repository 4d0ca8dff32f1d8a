"""Fold records over a history: which of its messages stay in view, and which have left.

A caller sends its whole history, or the view that it got the last time, with the summary message
of a record. Records that do not fit the history are dropped, never trusted.

Users paste summaries and clips, and agents repeat them. So there are rules:

1. A message in which a summary was joined with messages of the user is first separated into them
   (`_take_joined_apart`).
2. A LangChain message is a summary if it is marked as one. A dict has no mark: of dicts only one
   is a summary, the first in the user's role before any answer of the agent. All others are
   messages, so that a pasted summary brings no abandoned branch back (`_record_index_by_place`).
3. The first of several equal clips takes the place of the original, unless a summary before it
   covers that original (`_known_clips`).
4. A message after a summary that repeats the words of a covered one is another message, with a key
   of its own (`_with_counted_keys`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from conspectus.core.records import Chain, Record, RecordedClip
from conspectus.engine.truncated import Truncation, find_truncation, stem_of
from conspectus.messages import SUMMARY_LINE, Message, is_summary_message, read_message
from conspectus.messages.alternation import JoinedMessage, is_marked_joined, take_apart
from conspectus.messages.framing import signatures_in, summary_text
from conspectus.messages.hosts import is_host_message
from conspectus.messages.message import assign_keys, occurrences
from conspectus.messages.shortening import POINTER


class Remaining(NamedTuple):
    """One message of the view: its place in the history as sent, and its original's key."""

    place: int
    key: str
    clip: RecordedClip | None  # how it is clipped
    came_clipped: bool  # it came back clipped, so its text is not the original's


class Folded(NamedTuple):
    """A history, folded: what stays in view by the records that fit."""

    chain: Chain
    entries: list[Message]  # of the history; joined messages are separated
    remaining: list[Remaining]
    dropped: int  # messages that were left out because the records cover them
    received_joined: tuple[JoinedMessage, ...] = ()
    clients_own: frozenset[str] = frozenset()
    """Keys of messages that the client has inserted for others, such as its own summary."""


class KnownClip(NamedTuple):
    """A message that is recognised as a clip that a view has shown."""

    text_hash: str
    original: str  # key of the original


class _Matched(NamedTuple):
    """The records that fit a history, and the keys of its messages by these records."""

    chain: Chain
    entries: list[Message]
    keys: list[str]  # of each message, or of the original whose clip it is
    clients_own: frozenset[str] = frozenset()


def fold(chain: Chain, entries: Sequence[Message], *, is_continuation: bool = False) -> Folded:
    """Return the view of a history, given the records of its thread.

    The history may be truncated: `find_truncation` says how, and what `is_continuation` means.
    The messages of the result have the keys that they have after these records; `entries` are not
    changed.

    If the history has a summary message, the records after that summary must fit the messages
    after it. If it has none, a record fits if its messages are there, unchanged and in order. It
    does not fit if it covers the user's newest message: then the client has gone back to that
    message, to ask it again.
    """
    if not chain:
        everything = [
            Remaining(place, entry.key, None, False) for place, entry in enumerate(entries)
        ]
        return Folded((), list(entries), everything, 0)
    parted, received_joined = _take_joined_apart(entries, chain)
    summaries = _record_index_by_place(parted, chain)
    clips = _known_clips(parted, chain, summaries)
    counted = _with_counted_keys(parted, chain, summaries, clips)
    keys = [
        clips[place].original if place in clips else entry.key
        for place, entry in enumerate(counted)
    ]
    if summaries:
        matched = _match_after_summary(chain, counted, keys, summaries)
    else:
        matched = _match_without_summary(chain, counted, keys, is_continuation)
    remaining, dropped = _left_in_view(matched, summaries, clips)
    return Folded(
        matched.chain, matched.entries, remaining, dropped, received_joined, matched.clients_own
    )


def _left_in_view(
    matched: _Matched, summaries: Mapping[int, int], clips: Mapping[int, KnownClip]
) -> tuple[list[Remaining], int]:
    """Return the messages that stay in view, and how many the records cover."""
    covered = {key for record in matched.chain for key in record.covers}
    newest = newest_clips(matched.chain)
    shown = {
        KnownClip(clip.text_hash, clip.key) for record in matched.chain for clip in record.clips
    }
    remaining: list[Remaining] = []
    dropped = 0
    for place, entry in enumerate(matched.entries):
        record_index = summaries.get(place)
        if record_index is not None and record_index < len(matched.chain):
            continue  # the summary in force takes its place
        came_clipped = clips.get(place) in shown
        key = matched.keys[place] if came_clipped else entry.key
        # No message after a summary is covered: `_with_counted_keys` gave it another key.
        if key in covered:
            dropped += 1
        else:
            remaining.append(Remaining(place, key, newest.get(key), came_clipped))
    return remaining, dropped


def newest_clips(chain: Chain) -> dict[str, RecordedClip]:
    """Return how each message is clipped now, by the key of its original."""
    return {clip.key: clip for record in chain for clip in record.clips}


def _take_joined_apart(
    entries: Sequence[Message], chain: Chain
) -> tuple[list[Message], tuple[JoinedMessage, ...]]:
    """Separate messages that begin with a summary of the chain, as views have joined them.

    A dict is only separated before any answer of the agent: after one, somebody has pasted it.
    """
    parted: list[Message] = []
    received_joined: list[JoinedMessage] = []
    may_be_joined = True
    for entry in entries:
        parts = None
        begins_with_summary = entry.role == "user" and entry.text.startswith(SUMMARY_LINE)
        if begins_with_summary and (may_be_joined or is_marked_joined(entry.source)):
            summaries = (record for record in reversed(chain) if record.summary)
            attempts = (take_apart(entry.source, record) for record in summaries)
            parts = next(filter(None, attempts), None)
        may_be_joined = may_be_joined and parts is None and entry.role in ("system", "user")
        if parts is None:
            parted.append(entry)
        else:
            parted += map(read_message, parts)
            received_joined.append(JoinedMessage(entry.source, tuple(parts)))
    if received_joined:
        assign_keys(parted)
    return parted, tuple(received_joined)


# Summaries and clips that come back


def is_marked_summary(entry: Message) -> bool:
    """Tell whether a message is marked as a summary; a dict never is."""
    return not isinstance(entry.source, dict) and is_summary_message(entry.source)


def signatures_in_history(entries: Sequence[Message], *, marked_only: bool) -> list[str]:
    """Return the signatures of the summaries in a history, the last first.

    A summary without our mark counts only at the place where a view has its summary, and not with
    `marked_only`.
    """
    first = next((place for place, entry in enumerate(entries) if entry.role != "system"), -1)
    signatures: dict[str, None] = {}
    for place in range(len(entries) - 1, -1, -1):
        entry = entries[place]
        if not entry.text.startswith(SUMMARY_LINE):
            continue
        is_marked = is_marked_summary(entry) or is_marked_joined(entry.source)
        stands_first = place == first and entry.role == "user"
        if is_marked or (stands_first and not marked_only):
            signatures.update(dict.fromkeys(signatures_in(entry.text)))
    return list(signatures)


def _record_index_by_place(entries: Sequence[Message], chain: Chain) -> dict[int, int]:
    """Return the places of summaries, each with the index of its record in the chain.

    The text must be equal. If one of several is marked, the others are pasted messages. Without
    marks it is the first one in the user's role before any answer of the agent.
    """
    equal: dict[int, int] = {}
    for place, entry in enumerate(entries):
        if entry.text.startswith(SUMMARY_LINE):
            record_index = _record_with_text(chain, entry.text)
            if record_index is not None:
                equal[place] = record_index
    marked = {
        place: record_index
        for place, record_index in equal.items()
        if is_marked_summary(entries[place])
    }
    if marked or not equal:
        return marked
    first_answer = _first_answer(entries)
    of_user = (place for place in equal if entries[place].role == "user" and place < first_answer)
    first = next(of_user, None)
    return {} if first is None else {first: equal[first]}


def _first_answer(entries: Sequence[Message]) -> int:
    """Return the place of the first message of the agent or a tool; the end if there is none."""
    answers = (place for place, entry in enumerate(entries) if entry.role in ("assistant", "tool"))
    return next(answers, len(entries))


def _record_with_text(chain: Chain, text: str) -> int | None:
    """Return the index of the newest record whose summary message has this text."""
    for record_index in range(len(chain) - 1, -1, -1):
        record = chain[record_index]
        if not record.summary or record.summary not in text:
            continue  # the whole text is made only where it may be equal
        if text == summary_text(
            record.summary, archived=record.archived, number=record.notes_number
        ):
            return record_index
    return None


def clip_hash(entry: Message) -> str:
    """Return the hash of a clip with its role and calls; empty for a message that is no clip."""
    if POINTER not in entry.reading:
        return ""
    parts = "\0".join((entry.role, *entry.answers, entry.reading))
    return hashlib.sha256(parts.encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _known_clips(
    entries: Sequence[Message], chain: Chain, summaries: Mapping[int, int]
) -> dict[int, KnownClip]:
    """Map messages that are clips of the chain to their originals.

    Equal messages may have clips with the same text. The first such clip belongs to the first
    original that is no earlier message, and that no summary before the clip covers.
    """
    originals = _originals_by_clip(chain)
    if not originals:
        return {}
    all_originals = {key for keys in originals.values() for key in keys}
    summary_at = max(summaries, default=len(entries))
    covered = set(_covered_up_to_summary(chain, summaries))
    taken: set[str] = set()
    clips: dict[int, KnownClip] = {}
    for place, entry in enumerate(entries):
        text_hash = clip_hash(entry)
        out_of_reach = covered if place > summary_at else set()
        original = next(
            (
                key
                for key in originals.get(text_hash, ())
                if not _is_taken(key, taken, out_of_reach)
            ),
            None,
        )
        key = entry.key if original is None else original
        if key in all_originals:
            taken.add(key)
        if original is not None:
            clips[place] = KnownClip(text_hash, original)
    return clips


def _originals_by_clip(chain: Chain) -> dict[str, list[str]]:
    """Return, by the hash of a clip, the keys of its possible originals, the oldest first."""
    originals: dict[str, list[str]] = {}
    for record in chain:
        for clip in record.clips:
            if not clip.text_hash:
                continue  # its original is in no archive, so the clip never comes back
            keys = originals.setdefault(clip.text_hash, [])
            if clip.key not in keys:
                keys.append(clip.key)
    return originals


def _is_taken(original: str, taken: Collection[str], covered: Collection[str]) -> bool:
    """Tell whether a clip cannot belong to an original, because that is here or has left."""
    return original in taken or original in covered


def _covered_up_to_summary(chain: Chain, summaries: Mapping[int, int]) -> list[str]:
    """Return the keys of all messages that the newest summary in a history replaces."""
    if not summaries:
        return []
    newest = summaries[max(summaries)]
    return [key for record in chain[: newest + 1] for key in record.covers]


def _with_counted_keys(
    entries: Sequence[Message],
    chain: Chain,
    summaries: Mapping[int, int],
    clips: Mapping[int, KnownClip],
) -> list[Message]:
    """Return messages with keys that also count the messages that summaries and clips replace."""
    counted = list(entries)
    missing = _keys_replaced_at(chain, summaries, clips)
    if missing:
        stems = {entry.stem for entry in entries}
        covered = _covered_up_to_summary(chain, summaries)
        absent = (*covered, *(clip.original for clip in clips.values()))
        # A key without a "-" is of a message with an id. Sent again, that is the same message.
        alike = (key for key in absent if "-" in key and stem_of(key) in stems)
        assign_keys(counted, occurrences(alike), missing)
    return counted


def _keys_replaced_at(
    chain: Chain, summaries: Mapping[int, int], clips: Mapping[int, KnownClip]
) -> dict[int, list[str]]:
    """Return, by the place of a summary or a clip, the keys of the originals that it replaces."""
    missing = {place: [clip.original] for place, clip in clips.items()}
    if summaries:
        missing[max(summaries)] = _covered_up_to_summary(chain, summaries)
    return missing


# The records that fit


def _match_after_summary(
    chain: Chain, entries: list[Message], keys: list[str], summaries: Mapping[int, int]
) -> _Matched:
    """Match a history that holds a summary: later records must fit the messages after it."""
    place = max(summaries)
    record_index = summaries[place]
    start = place + 1
    later = _fitting(chain[record_index + 1 :], entries[start:], keys[start:])
    return _Matched((*chain[: record_index + 1], *later), entries, keys)


def _match_without_summary(
    chain: Chain, entries: list[Message], keys: list[str], is_continuation: bool
) -> _Matched:
    """Match a history without a summary, which is whole or truncated.

    In a truncated one, a message that repeats the words of a missing one is another message, so the
    keys also count the missing messages.
    """
    fitting = _fitting(chain, entries, keys)
    stems = [stem_of(key) for key in keys]
    for count in range(len(chain), len(fitting), -1):
        truncation = find_truncation(chain[:count], entries, stems, is_continuation=is_continuation)
        if truncation is None:
            continue
        later = entries[truncation.first_known :]
        assign_keys(later, _counts_before(keys, truncation), {0: truncation.missing})
        is_clip = [key != entry.key for key, entry in zip(keys, entries, strict=True)]
        counted = [*entries[: truncation.first_known], *later]
        new_keys = [
            keys[place] if is_clip[place] else entry.key for place, entry in enumerate(counted)
        ]
        clients_own = frozenset(new_keys[place] for place in truncation.inserted)
        return _Matched(chain[:count], counted, new_keys, clients_own)
    return _Matched(fitting, entries, keys)


def _counts_before(keys: Sequence[str], truncation: Truncation) -> Mapping[str, int]:
    """Count equal messages before the first known one; missing messages count, too."""
    return occurrences([*keys[: truncation.first_known], *truncation.missing])


def _fitting(chain: Chain, entries: Sequence[Message], keys: Sequence[str]) -> Chain:
    """Return the leading records whose messages a whole history holds, in order."""
    newest_place = _newest_user_message(entries)
    newest = None if newest_place is None else keys[newest_place]
    places = {key: place for place, key in enumerate(keys)}
    taken: set[str] = set()
    for count, record in enumerate(chain):
        is_there = _are_in_order(record.covers, places) and taken.isdisjoint(record.covers)
        if not is_there or not _has_all_clipped(record, places) or newest in record.covers:
            return tuple(chain[:count])
        taken.update(record.covers)
    return tuple(chain)


def _has_all_clipped(record: Record, places: Mapping[str, int]) -> bool:
    """Tell whether the history has all messages that a record clips."""
    return all(clip.key in places for clip in record.clips)


def _are_in_order(keys: Sequence[str], places: Mapping[str, int]) -> bool:
    """Tell whether the history has the messages with these keys, in this order."""
    found = [places.get(key, -1) for key in keys]
    return all(earlier < later for earlier, later in pairwise([-1, *found]))


def _newest_user_message(entries: Sequence[Message]) -> int | None:
    """Return the place of the user's newest message, as `core.exchanges.newest_user_item` does."""
    in_role = [place for place, entry in enumerate(entries) if entry.role == "user"]
    unmarked = [place for place in in_role if not is_marked_summary(entries[place])]
    of_user = (place for place in reversed(unmarked) if not is_host_message(entries[place]))
    return next(of_user, unmarked[-1] if unmarked else None)
