"""Recognise our own summaries and clips among the messages of a history.

Users paste them, and agents repeat them. A clip is known once in a history: where it comes first,
and not behind the summary that covers its original. Equal clips get their originals in order.

A LangChain message bears our mark; a dict, or a converted history, has none. Without marks one
summary is known, in the user's role, where the view puts it: first behind system messages, or
further on behind messages that callers put before their history, if its record is in force. Other
messages with its text are messages, so a pasted summary brings no abandoned branch back. Messages
after a summary are counted on from the covered ones, so that repeated words are another message.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import accumulate

from conspectus.core.fold import Sent, originals_of
from conspectus.core.records import Record
from conspectus.messages import (
    POINTER,
    SUMMARY_LINE,
    Entry,
    is_summary_message,
    name_entries,
    occurrences,
    summary_text,
)
from conspectus.messages.summary import summary_name


def clip_text(entry: Entry) -> str:
    """Hash a clip with its role and calls; return an empty text for other messages."""
    if POINTER not in entry.reading:
        return ""
    said = "\0".join((entry.role, *entry.answers, entry.reading))
    return hashlib.sha256(said.encode("utf-8", "backslashreplace")).hexdigest()[:32]


def bears_mark(entry: Entry) -> bool:
    """Return whether a message is marked as a summary; dicts cannot be."""
    return not isinstance(entry.source, dict) and is_summary_message(entry.source)


def may_be_summaries(entries: Sequence[Entry], *, marked: bool) -> list[str]:
    """Name the summaries whose records are not in force but may belong here, last first.

    With `marked`, only messages with our mark count. Otherwise one without it counts too, where the
    view puts a summary.
    """
    first = _first(entries)
    found = [
        summary_name(entry.text)
        for i, entry in reversed(list(enumerate(entries)))
        if entry.text.startswith(SUMMARY_LINE)
        and (bears_mark(entry) or (i == first and entry.role == "user" and not marked))
    ]
    return list(dict.fromkeys(found))


def summaries_of(entries: Sequence[Entry], chain: Sequence[Record]) -> list[str | None]:
    """Return for each message the id of the record whose summary it is, or None.

    The text must be equal. If one of several bears our mark, the others are pasted messages.
    """
    texts = {
        summary_text(r.summary, archived=r.archived, mark=r.mark): (number, r.id)
        for number, r in enumerate(chain)
        if r.summary
    }
    found = {
        i: texts[entry.text]
        for i, entry in enumerate(entries)
        if entry.text.startswith(SUMMARY_LINE) and entry.text in texts
    }
    if marked := [i for i in found if bears_mark(entries[i])]:
        found = {i: found[i] for i in marked}
    elif found:
        place = _unmarked({i: number for i, (number, _) in found.items()}, entries, chain)
        found = {i: found[i] for i in found if i == place}
    return [found[i][1] if i in found else None for i in range(len(entries))]


def _unmarked(
    found: Mapping[int, int], entries: Sequence[Entry], chain: Sequence[Record]
) -> int | None:
    """Return the place of the one summary among unmarked messages with a summary's text.

    The view puts it first, in the user's role. Callers may put covered or new messages before it. A
    text behind all that it covers, or behind a dialogue of which it covers a part, is a message; so
    is the user's newest message. `found` has the record's place in the chain, by message.
    """
    first = _first(entries)
    newest = max((i for i, entry in enumerate(entries) if entry.role == "user"), default=-1)
    number_of: dict[str, int] = {}
    for place, record in enumerate(chain):
        for key in record.covers:
            number_of.setdefault(key, place)
    sums = list(accumulate(len(record.covers) for record in chain))
    covered: list[set[str]] = [set() for _ in chain]  # of what stands before, by the record
    new, talk = False, False
    for i, entry in enumerate(entries):
        if i in found and entry.role == "user":
            number = found[i]
            there = sum(map(len, covered[: number + 1]))
            beyond = new or any(covered[number + 1 :])
            own = not there or (there < sums[number] and not (beyond and talk))
            if i == first or (i != newest and own):
                return i
        if entry.key in number_of:
            covered[number_of[entry.key]].add(entry.key)
        elif entry.role != "system":
            new = True
        talk = talk or entry.role in ("assistant", "tool")
    return None


def _first(entries: Sequence[Entry]) -> int:
    return next((i for i, entry in enumerate(entries) if entry.role != "system"), -1)


def _in_force(records: Sequence[str | None], chain: Sequence[Record]) -> tuple[int, list[str]]:
    """Return the place of the last summary, or the end, and the keys that it covers."""
    at = max((i for i, record in enumerate(records) if record), default=None)
    if at is None:
        return len(records), []
    number = next(n for n, record in enumerate(chain) if record.id == records[at])
    return at, [key for record in chain[: number + 1] for key in record.covers]


def _clips_of(
    entries: Sequence[Entry], chain: Sequence[Record], at: int, covered: Sequence[str]
) -> list[tuple[str, str]]:
    """Return for each message the hash and the original of our clip, or empty texts.

    Each original is known once: further copies of its clip are messages, as are copies behind the
    summary that covers it.
    """
    waiting = {text: deque(keys) for text, keys in originals_of(chain).items()}
    originals = {key for keys in waiting.values() for key in keys}
    answered, taken = set(covered), set[str]()
    found = []
    for i, entry in enumerate(entries):
        text = clip_text(entry) if waiting else ""
        left = waiting.get(text, deque())
        while left and (left[0] in taken or (i > at and left[0] in answered)):
            left.popleft()
        key = left[0] if left else entry.key
        if key in originals:
            taken.add(key)
        found.append((text, key) if left else ("", ""))
    return found


def sent_of(entries: list[Entry], chain: Sequence[Record]) -> list[Sent]:
    """Return the messages of a history as the core sees them.

    They are named by id, content and occurrence. Messages that a summary or a clip replaces count
    too, so that a new message with an old text is another one.
    """
    records = summaries_of(entries, chain)
    at, covered = _in_force(records, chain)
    clips = _clips_of(entries, chain, at, covered)
    missing = {place: [key] for place, (text, key) in enumerate(clips) if text}
    if at < len(entries):
        missing[at] = covered
    if missing:
        gone = (key for keys in missing.values() for key in keys)
        name_entries(entries, occurrences(gone), missing)
    return [
        Sent(
            entry.key,
            system=entry.role == "system",
            record=record,
            text=text,
            original=original,
            user=entry.role == "user" and not bears_mark(entry),
        )
        for entry, record, (text, original) in zip(entries, records, clips, strict=True)
    ]
