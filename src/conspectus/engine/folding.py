"""Fold records over a history: which of its messages stay in view, and which have left.

A caller sends either its whole history or the view that it got back the last time, with the summary
message of a record. Records that do not fit the history are dropped, never trusted.

Where the view has no two messages of the user in a row, the summary is one message with those that
follow it. One that comes back is taken apart by its record before anything else is looked for.

Users paste summaries and clips, and agents repeat them. Of several equal clips the first stands for
the original, unless a summary before it covers that. A LangChain message is labelled as a summary;
a dict is not. Without labels one summary is known: the first in the user's role, before any answer
of the agent. Others are messages, so that a pasted one brings no abandoned branch back. Messages
after a summary are counted on from the covered ones, so that repeated words are another message.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from conspectus.core.records import Chain, Record, RecordedClip
from conspectus.engine.begun_later import BegunLater, begun_later, stem_of
from conspectus.messages import SUMMARY_LINE, Message, is_summary_message, read_message
from conspectus.messages.alternation import ReceivedJoined, is_labelled_joined, taken_apart
from conspectus.messages.framing import summary_text
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
    """The view of a history, by the records that fit it."""

    chain: Chain
    entries: list[Message]  # of the history, each message that came joined taken apart
    remaining: list[Remaining]
    dropped: int  # messages that were left out because the records cover them
    came_joined: tuple[ReceivedJoined, ...] = ()
    clients_own: frozenset[str] = frozenset()
    """Keys of messages that the client has put in the place of others, such as its own summary."""


class KnownClip(NamedTuple):
    """A message that is known for a clip that a view has shown."""

    text_hash: str
    original: str  # key of the original


class _Matched(NamedTuple):
    """The records that fit a history, and its messages by the names that these give them."""

    chain: Chain
    entries: list[Message]
    keys: list[str]  # of the original that each message is, or stands for
    clients_own: frozenset[str] = frozenset()


def fold(chain: Chain, entries: Sequence[Message], *, is_continuation: bool = False) -> Folded:
    """Return the view of a history, given the records of its thread.

    The history may begin later than the records do; `begun_later` says how, and what
    `is_continuation` means. The messages of the result have the keys that they have behind these
    records; `entries` stay as they are.

    A record is dropped if it comes after a summary message that came back. In a history without
    one, it is dropped if its messages are not there from some place on, unchanged and in order, or
    if it covers the user's newest message, which a client has gone back to, to ask it again.
    """
    if not chain:
        everything = [Remaining(at, entry.key, None, False) for at, entry in enumerate(entries)]
        return Folded((), list(entries), everything, 0)
    parted, came_joined = _take_joined_apart(entries, chain)
    summaries = _record_index_by_place(parted, chain)
    clips = _known_clips(parted, chain, summaries)
    named = _named_behind(parted, chain, summaries, clips)
    keys = [clips[at].original if at in clips else entry.key for at, entry in enumerate(named)]
    if summaries:
        matched = _match_behind_summary(chain, named, keys, summaries)
    else:
        matched = _match_whole_history(chain, named, keys, is_continuation)
    remaining, dropped = _left_in_view(matched, summaries, clips)
    return Folded(
        matched.chain, matched.entries, remaining, dropped, came_joined, matched.clients_own
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
        if key in covered:  # no message behind a summary: `_named_behind` gave it another key
            dropped += 1
        else:
            remaining.append(Remaining(place, key, newest.get(key), came_clipped))
    return remaining, dropped


def newest_clips(chain: Chain) -> dict[str, RecordedClip]:
    """Return how each message is clipped now, by the key of its original."""
    return {clip.key: clip for record in chain for clip in record.clips}


def _take_joined_apart(
    entries: Sequence[Message], chain: Chain
) -> tuple[list[Message], tuple[ReceivedJoined, ...]]:
    """Take messages apart that begin with a summary of the chain, as views have joined them.

    A dict is only taken for one before any answer of the agent: elsewhere somebody has pasted it.
    """
    parted: list[Message] = []
    came_joined: list[ReceivedJoined] = []
    may_be_joined = True
    for entry in entries:
        parts = None
        begins_with_summary = entry.role == "user" and entry.text.startswith(SUMMARY_LINE)
        if begins_with_summary and (may_be_joined or is_labelled_joined(entry.source)):
            summaries = (record for record in reversed(chain) if record.summary)
            attempts = (taken_apart(entry.source, record) for record in summaries)
            parts = next(filter(None, attempts), None)
        may_be_joined = may_be_joined and parts is None and entry.role in ("system", "user")
        if parts is None:
            parted.append(entry)
        else:
            parted += map(read_message, parts)
            came_joined.append(ReceivedJoined(entry.source, tuple(parts)))
    if came_joined:
        assign_keys(parted)
    return parted, tuple(came_joined)


# Summaries and clips that come back


def is_labelled_summary(entry: Message) -> bool:
    """Return whether a message is labelled as a summary; dicts cannot be."""
    return not isinstance(entry.source, dict) and is_summary_message(entry.source)


def _record_index_by_place(entries: Sequence[Message], chain: Chain) -> dict[int, int]:
    """Return, by place, the index in the chain of the record whose summary a message is.

    The text must be equal. If one of several is labelled, the others are pasted messages.
    Without labels it is the first one of the user before any answer of the agent.
    """
    equal: dict[int, int] = {}
    for place, entry in enumerate(entries):
        if entry.text.startswith(SUMMARY_LINE):
            record_index = _record_with_text(chain, entry.text)
            if record_index is not None:
                equal[place] = record_index
    labelled = {
        at: record_index for at, record_index in equal.items() if is_labelled_summary(entries[at])
    }
    if labelled or not equal:
        return labelled
    first_answer = _first_answer(entries)
    of_user = (at for at in equal if entries[at].role == "user" and at < first_answer)
    first = next(of_user, None)
    return {} if first is None else {first: equal[first]}


def _first_answer(entries: Sequence[Message]) -> int:
    """Return the place of the first message of the agent or a tool; the end if there is none."""
    answers = (at for at, entry in enumerate(entries) if entry.role in ("assistant", "tool"))
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

    Equal messages may have clips with one text: the first such clip stands for the first original
    that no earlier message is, and that no summary before it covers.
    """
    originals = _originals_by_clip(chain)
    if not originals:
        return {}
    all_originals = {key for keys in originals.values() for key in keys}
    summary_at = max(summaries, default=len(entries))
    covered = set(_covered_below(chain, summaries))
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
    """Return the keys of the originals that each text of a clip may stand for, oldest first."""
    originals: dict[str, list[str]] = {}
    for record in chain:
        for clip in record.clips:
            if not clip.text_hash:
                continue  # no archive holds its original, so no clip comes back
            keys = originals.setdefault(clip.text_hash, [])
            if clip.key not in keys:
                keys.append(clip.key)
    return originals


def _is_taken(original: str, taken: Collection[str], covered: Collection[str]) -> bool:
    """Tell whether a clip cannot stand for an original: it is there already, or has left."""
    return original in taken or original in covered


def _covered_below(chain: Chain, summaries: Mapping[int, int]) -> list[str]:
    """Return the keys that the newest summary in a history stands for."""
    if not summaries:
        return []
    newest = summaries[max(summaries)]
    return [key for record in chain[: newest + 1] for key in record.covers]


def _named_behind(
    entries: Sequence[Message],
    chain: Chain,
    summaries: Mapping[int, int],
    clips: Mapping[int, KnownClip],
) -> list[Message]:
    """Return messages with new keys where a summary or a clip replaces some, which count too."""
    named = list(entries)
    missing = _stood_for(chain, summaries, clips)
    if missing:
        stems = {entry.stem for entry in entries}
        covered = _covered_below(chain, summaries)
        absent = (*covered, *(clip.original for clip in clips.values()))
        alike = (key for key in absent if "-" in key and stem_of(key) in stems)
        assign_keys(named, occurrences(alike), missing)
    return named


def _stood_for(
    chain: Chain, summaries: Mapping[int, int], clips: Mapping[int, KnownClip]
) -> dict[int, list[str]]:
    """Return, by its place, the keys of the originals that a summary or a clip stands for."""
    missing = {at: [clip.original] for at, clip in clips.items()}
    if summaries:
        missing[max(summaries)] = _covered_below(chain, summaries)
    return missing


# The records that fit


def _match_behind_summary(
    chain: Chain, entries: list[Message], keys: list[str], summaries: Mapping[int, int]
) -> _Matched:
    """Match a history that holds a summary: later records must fit what stands behind it."""
    place = max(summaries)
    record_index = summaries[place]
    behind = place + 1
    later = _fitting(chain[record_index + 1 :], entries[behind:], keys[behind:])
    return _Matched((*chain[: record_index + 1], *later), entries, keys)


def _match_whole_history(
    chain: Chain, entries: list[Message], keys: list[str], is_continuation: bool
) -> _Matched:
    """Match a history without a summary: it is whole, or begins later than the records do.

    In the latter, equal messages are counted on from those that are missing, so that repeated words
    are another message.
    """
    fitting = _fitting(chain, entries, keys)
    contents = [stem_of(key) for key in keys]
    for count in range(len(chain), len(fitting), -1):
        begun = begun_later(chain[:count], entries, contents, is_continuation=is_continuation)
        if begun is None:
            continue
        later = entries[begun.start :]
        assign_keys(later, _counted_before(keys, begun), {0: begun.missing})
        is_clip = [key != entry.key for key, entry in zip(keys, entries, strict=True)]
        renamed = [*entries[: begun.start], *later]
        names = [keys[at] if is_clip[at] else entry.key for at, entry in enumerate(renamed)]
        return _Matched(chain[:count], renamed, names, frozenset(names[at] for at in begun.own))
    return _Matched(fitting, entries, keys)


def _counted_before(keys: Sequence[str], begun: BegunLater) -> Mapping[str, int]:
    """Count the contents that came before a history goes on, those that are missing included."""
    return occurrences([*keys[: begun.start], *begun.missing])


def _fitting(chain: Chain, entries: Sequence[Message], keys: Sequence[str]) -> Chain:
    """Return the leading records whose messages a whole history holds, in order."""
    newest_place = _newest_user_message(entries)
    newest = None if newest_place is None else keys[newest_place]
    places = {key: place for place, key in enumerate(keys)}
    taken: set[str] = set()
    for count, record in enumerate(chain):
        is_there = _stand_in_order(record.covers, places) and taken.isdisjoint(record.covers)
        if not is_there or not _clips_stand(record, places) or newest in record.covers:
            return tuple(chain[:count])
        taken.update(record.covers)
    return tuple(chain)


def _clips_stand(record: Record, places: Mapping[str, int]) -> bool:
    """Tell whether all that a record clips is there."""
    return all(clip.key in places for clip in record.clips)


def _stand_in_order(keys: Sequence[str], places: Mapping[str, int]) -> bool:
    """Tell whether messages with these keys are all there, one behind the other."""
    found = [places.get(key, -1) for key in keys]
    return all(earlier < later for earlier, later in pairwise([-1, *found]))


def _newest_user_message(entries: Sequence[Message]) -> int | None:
    """Return the place of the user's newest message, as `core.exchanges.newest_user_item` does."""
    in_role = [at for at, entry in enumerate(entries) if entry.role == "user"]
    unlabelled = [at for at in in_role if not is_labelled_summary(entries[at])]
    of_user = (at for at in reversed(unlabelled) if not is_host_message(entries[at]))
    return next(of_user, unlabelled[-1] if unlabelled else None)
