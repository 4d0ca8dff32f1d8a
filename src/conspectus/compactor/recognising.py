"""Which messages of a history, as it was sent, are our own: summaries, and clips of others."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from conspectus._core.records import Record, Sent, originals_of
from conspectus.messages import (
    POINTER,
    SUMMARY_LINE,
    Entry,
    is_summary_message,
    name_entries,
    occurrences,
    summary_text,
)


def clip_text(entry: Entry) -> str:
    """Hash of a clip, by which it is known again; empty for any other message.

    Who says it and what it answers belong to it: others may repeat its text.
    """
    if POINTER not in entry.reading:
        return ""
    said = "\0".join((entry.role, *entry.answers, entry.reading))
    return hashlib.sha256(said.encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _bears_mark(entry: Entry) -> bool:
    return not isinstance(entry.source, dict) and is_summary_message(entry.source)


def summaries_of(entries: Sequence[Entry], chain: Sequence[Record]) -> list[str | None]:
    """Of each message the record whose summary it is; None for any other.

    Its text must be that record's, to the letter. Anybody may paste that text, so where one of them
    bears our mark the others are messages; dicts bear none.
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
    if marked := [i for i in found if _bears_mark(entries[i])]:
        found = {i: found[i] for i in marked}
    else:
        found = _not_pasted(found, entries, chain)
    return [found[i][1] if i in found else None for i in range(len(entries))]


def _not_pasted(
    found: Mapping[int, tuple[int, str]], entries: Sequence[Entry], chain: Sequence[Record]
) -> dict[int, tuple[int, str]]:
    """Texts of summaries without a mark, less those that somebody has said.

    A summary stands for what is not there; a later one is that of a later record; and the newest
    message of a user is none, unless nothing stands before it.
    """
    first = next((i for i, entry in enumerate(entries) if entry.role != "system"), -1)
    newest = max((i for i, entry in enumerate(entries) if entry.role == "user"), default=-1)
    keys = [entry.key for entry in entries]
    kept: dict[int, tuple[int, str]] = {}
    latest = -1
    for i, (number, record) in found.items():
        covered = {key for one in chain[: number + 1] for key in one.covers}
        there = covered and covered.issubset(keys[:i])
        if number > latest and not there and (i != newest or i == first):
            kept[i] = number, record
            latest = number
    return kept


def _in_force(records: Sequence[str | None], chain: Sequence[Record]) -> tuple[int, list[str]]:
    """Where the last summary stands, and the messages that it answers for.

    Without one that is behind all messages, and it answers for none.
    """
    at = max((i for i, record in enumerate(records) if record), default=None)
    if at is None:
        return len(records), []
    number = next(n for n, record in enumerate(chain) if record.id == records[at])
    return at, [key for record in chain[: number + 1] for key in record.covers]


def _clips_of(
    entries: Sequence[Entry], originals: Mapping[str, str], at: int, covered: Sequence[str]
) -> list[str]:
    """Of each message that is a clip of ours the hash of it; empty for any other.

    Each original stands in a history once: what repeats the text of its clip further on, or behind
    the summary that answers for it, is somebody's message.
    """
    answered, keys, taken = set(covered), set(originals.values()), set[str]()
    found = []
    for i, entry in enumerate(entries):
        text = clip_text(entry) if originals else ""
        key = originals.get(text)
        if key is None or key in taken or (i > at and key in answered):
            text, key = "", entry.key
        if key in keys:
            taken.add(key)
        found.append(text)
    return found


def sent_of(entries: Sequence[Entry], chain: Sequence[Record]) -> list[Sent]:
    """What the core sees of a history as it was sent.

    Messages are named by their id, if any, their content and its occurrence. Where the start of a
    history is missing, because a summary or a clip stands in its place, those that are missing
    are counted too, so that a new message with an old text is not taken for the old one.
    """
    records = summaries_of(entries, chain)
    at, covered = _in_force(records, chain)
    originals = originals_of(chain)
    clips = _clips_of(entries, originals, at, covered)
    missing = {place: [originals[text]] for place, text in enumerate(clips) if text}
    if at < len(entries):
        missing[at] = covered
    if missing:
        gone = (key for keys in missing.values() for key in keys)
        name_entries(entries, occurrences(gone), missing)
    return [
        Sent(entry.key, entry.role == "system", record, text)
        for entry, record, text in zip(entries, records, clips, strict=True)
    ]
