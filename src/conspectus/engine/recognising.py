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

from conspectus._newest import Newest
from conspectus.core.fold import Sent, originals_of
from conspectus.core.records import Record
from conspectus.messages import (
    POINTER,
    SUMMARY_LINE,
    Message,
    is_summary_message,
    name_entries,
    occurrences,
    summary_text,
)
from conspectus.messages.summary import summary_name


def clip_text(entry: Message) -> str:
    """Hash a clip with its role and calls; return an empty text for other messages."""
    if POINTER not in entry.reading:
        return ""
    parts = "\0".join((entry.role, *entry.answers, entry.reading))
    return hashlib.sha256(parts.encode("utf-8", "backslashreplace")).hexdigest()[:32]


def bears_mark(entry: Message) -> bool:
    """Return whether a message is marked as a summary; dicts cannot be."""
    return not isinstance(entry.source, dict) and is_summary_message(entry.source)


def may_be_summaries(entries: Sequence[Message], *, marked: bool) -> list[str]:
    """Name the summaries whose records are not in force but may belong here, last first.

    With `marked`, only messages with our mark count. Otherwise one without it counts too, where the
    view puts a summary.
    """
    first = next((i for i, entry in enumerate(entries) if entry.role != "system"), -1)
    names = [
        summary_name(entry.text)
        for i, entry in reversed(list(enumerate(entries)))
        if entry.text.startswith(SUMMARY_LINE)
        and (bears_mark(entry) or (i == first and entry.role == "user" and not marked))
    ]
    return list(dict.fromkeys(names))


def _standing(entries: Sequence[Message], chain: Sequence[Record]) -> dict[int, int]:
    """Map messages that are summaries of the chain to the number of their record.

    The text must be equal. If one of several bears our mark, the others are pasted messages.
    """
    equal: dict[int, int] = {}
    for i, entry in enumerate(entries):
        if entry.text.startswith(SUMMARY_LINE):
            for number, record in reversed([*enumerate(chain)]):
                text, own = entry.text, record.summary  # a cheap look first: chains are long
                if own in text and text == _text_of(record):
                    equal[i] = number
                    break
    if marked := {i: number for i, number in equal.items() if bears_mark(entries[i])}:
        return marked
    place = _unmarked(equal, entries, chain) if equal else None
    return {} if place is None else {place: equal[place]}


def _text_of(record: Record) -> str:
    """Return the text of the message that shows a record's summary."""
    if not record.summary:
        return ""
    return summary_text(record.summary, archived=record.archived, mark=record.mark)


def _unmarked(
    equal: Mapping[int, int], entries: Sequence[Message], chain: Sequence[Record]
) -> int | None:
    """Return the place of the one summary among unmarked messages with a summary's text.

    The view puts it first, in the user's role. Callers may put covered or new messages before it. A
    text behind all that it covers, or behind a dialogue of which it covers a part, is a message; so
    is the user's newest message.
    """
    first = next((i for i, entry in enumerate(entries) if entry.role != "system"), -1)
    newest = max((i for i, entry in enumerate(entries) if entry.role == "user"), default=-1)
    number_of = {key: n for n, record in reversed([*enumerate(chain)]) for key in record.covers}
    before: list[set[str]] = [set() for _ in chain]  # covered messages that came, by record
    new, talk = False, False
    for i, entry in enumerate(entries):
        if i in equal and entry.role == "user":
            upto = equal[i] + 1
            here, all_of_it = sum(map(len, before[:upto])), sum(len(r.covers) for r in chain[:upto])
            beyond = new or any(before[upto:])
            own = not here or (here < all_of_it and not (beyond and talk))
            if i == first or (i != newest and own):
                return i
        if entry.key in number_of:
            before[number_of[entry.key]].add(entry.key)
        elif entry.role != "system":
            new = True
        talk = talk or entry.role in ("assistant", "tool")
    return None


_COUNTED: Newest[str, Mapping[str, int]] = Newest(64, 262_144, len)
"""Counts by the head of their chain, beside the newest of so many contents at most."""


def _counted(chain: Sequence[Record]) -> Mapping[str, int]:
    """Count the contents that a chain covers, from what is known of its beginning."""
    known, counts = len(chain), dict[str, int]()
    while known:
        if (before := _COUNTED.get(chain[known - 1].id)) is not None:
            counts = dict(before)
            break
        known -= 1
    for record in chain[known:]:
        for stem, count in occurrences(record.covers).items():
            counts[stem] = max(counts.get(stem, 0), count)
    if known < len(chain):
        _COUNTED.put(chain[-1].id, counts)
    return counts


def sent_of(entries: list[Message], chain: Sequence[Record]) -> list[Sent]:
    """Return the messages of a history as the core sees them.

    They are named by id, content and occurrence. Messages that a summary or a clip replaces count
    too, so that a new message with an old text is another one.
    """
    summaries = _standing(entries, chain) if chain else {}
    at = max(summaries, default=len(entries))
    covered = [k for r in chain[: summaries[at] + 1] for k in r.covers] if summaries else []
    # Each original is known once: further copies of its clip are messages, as are copies behind
    # the summary that covers it.
    waiting = {text: deque(keys) for text, keys in originals_of(chain).items()}
    originals = {key for keys in waiting.values() for key in keys}
    answered, taken, clips = set(covered), set[str](), dict[int, tuple[str, str]]()
    for i, entry in enumerate(entries) if waiting else ():
        text = clip_text(entry)
        left = waiting.get(text, deque())
        while left and (left[0] in taken or (i > at and left[0] in answered)):
            left.popleft()
        key = left[0] if left else entry.key
        if key in originals:
            taken.add(key)
        if left:
            clips[i] = text, key
    missing = {i: [key] for i, (_, key) in clips.items()}
    if summaries:
        missing[at] = covered
    if missing:
        counts = dict(_counted(chain[: summaries[at] + 1])) if summaries else {}
        for stem, count in occurrences(key for _, key in clips.values()).items():
            counts[stem] = max(counts.get(stem, 0), count)
        name_entries(entries, counts, missing)
    return [
        Sent(
            entry.key,
            system=entry.role == "system",
            record=chain[summaries[i]].id if i in summaries else None,
            text=clips.get(i, ("", ""))[0],
            original=clips.get(i, ("", ""))[1],
            user=entry.role == "user" and not bears_mark(entry),
        )
        for i, entry in enumerate(entries)
    ]
