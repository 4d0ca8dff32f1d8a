"""Find the thread of a history that the client does not name.

A history joins a thread if it holds the thread's last answer and most of what was said before;
otherwise it begins a new one. If it has left a known thread, the compactions that still fit are
copied into the new one, so that nothing is summarised twice.

What a client clears stays known: what the endpoint has seen whole is archived and summarised whole,
and a record goes on fitting its history.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import is_, itemgetter
from typing import Any

from conspectus._newest import Newest
from conspectus.archive import Archive, Scope
from conspectus.core.records import Record
from conspectus.messages import read_messages
from conspectus_serve.trails import Mark, Trail

TAIL = 48  # a thread's newest messages that are compared with those of a history

ALIKE, HINTED = 0.75, 0.5
"""Share of the tail that a history must have to belong to a thread; with a client's hint, less."""

HINTS = ("x-claude-code-session-id", "session-id", "session_id", "x-session-id")
"""Headers in which clients name their session: Claude Code, Codex, others."""


@dataclass(frozen=True, slots=True)
class Match:
    """The thread of a history."""

    thread: str
    head: str = ""  # id of the record in force, as far as is known
    tail: Sequence[str] = ()  # what had been said there at its last request
    left: str = ""  # the thread that the history has left, with compactions


def find(archive: Archive, tenant: str, trail: Trail, hint: str = "") -> Match:
    """Find the thread from which a history goes on, or begin a new one.

    An answer names a thread, and the thread its last answer: of two histories that continue one at
    the same moment, one leaves it with its next request. The name of a new thread follows from what
    it is new for, so that a request that is sent again has it too. `hint` is the client's name of
    its session; empty for none. Raises ArchiveError.
    """
    slips = [f"answer {name}" for name in trail.names()] + ([f"hint {hint}"] if hint else [])
    known = archive.notes(tenant, "thread", slips)
    threads = dict.fromkeys(str(known[slip].get("thread")) for slip in slips if slip in known)
    names = [f"thread {one}" for one in threads]
    places = archive.notes(tenant, "thread", names) if names else {}
    left, begun = "", list[str]()
    for thread, name in zip(threads, names, strict=True):
        if (place := places.get(name)) is None:  # it was forgotten
            continue
        if _goes_on(trail, place, hint):
            return Match(thread, place["head"], place["tail"])
        begun = begun or place["tail"]
        left = left or (thread if place["head"] else "")
    new = json.dumps([tenant, trail.answered, begun])
    return Match(f"t-{hashlib.sha256(new.encode()).hexdigest()[:16]}", left=left)


def _goes_on(trail: Trail, place: Mapping[str, Any], hint: str) -> bool:
    """Return whether a history goes on from the place of a thread."""
    tail, said, theirs = place["tail"], trail.said, place["hint"]
    ends = {name: end for end, name in enumerate(said, 1)}
    if (end := ends.get(tail[-1])) is None:
        return False
    if said[max(0, end - len(tail)) : end] == tail and len(tail) in (end, TAIL):
        return True
    if hint and theirs not in ("", hint):
        return False
    both = tail[next(at for at, name in enumerate(tail) if name in ends) :]
    there, hinted = sum(name in ends for name in both), bool(hint and theirs)
    own = {one.name for one in trail.marks if one.name and one.said and one.unique}
    # Something must be theirs alone: the hint, an id, or the message that they begin with.
    sure = hinted or said[0] == place["first"] or not own.isdisjoint(tail)
    return sure and there >= max(2, (HINTED if hinted else ALIKE) * len(both))


def keep(
    archive: Archive, tenant: str, match: Match, trail: Trail, head: str, hint: str = ""
) -> None:
    """Note how far a thread has come. Raises ArchiveError."""
    tail = trail.answered[-TAIL:]
    thread = {"thread": match.thread}
    slips: dict[str, dict[str, Any]] = {f"answer {trail.names()[0]}": thread}
    if hint:
        slips[f"hint {hint}"] = thread
    place = {"head": head, "tail": tail, "first": trail.said[0], "hint": hint}
    archive.note(tenant, "thread", {**slips, f"thread {match.thread}": place})


def hint_of(headers: Mapping[str, str], body: Mapping[str, Any]) -> str:
    """Return the client's name of its session, hashed; empty for none."""
    metadata = body.get("metadata")
    user = metadata.get("user_id") if isinstance(metadata, Mapping) else None
    named = [*map(headers.get, HINTS), body.get("prompt_cache_key")]
    if isinstance(user, str) and "session" in user:  # Claude Code's
        named.append(user)
    first = next((one for one in named if isinstance(one, str) and one.strip()), "")
    return hashlib.sha256(first.encode("utf-8", "replace")).hexdigest()[:24] if first else ""


THREADS, CHARACTERS, EACH = 256, 32_000_000, 1_000
"""Threads whose newest request is remembered, and characters of all of these; each message counts
for so many more."""

SMALL = 200  # characters of a message that no client would clear
HEAD = 40  # characters by which a text is known to be the beginning of another
MEDIA = frozenset(("source", "image_url", "file", "file_id", "file_data", "input_audio"))
CHAINS = 64  # threads for which the covered messages are remembered


class Originals:
    """Remember messages whole, and find them again in the archive once they are covered."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._seen = Newest[Scope, tuple[int, list[Mark], list[Any]]](
            THREADS, CHARACTERS, itemgetter(0)
        )
        self._covered = Newest[tuple[Scope, str], dict[str, tuple[str, int]]](CHAINS)

    def restored(
        self, scope: Scope, head: str, marks: list[Mark], messages: list[Any]
    ) -> tuple[list[Any], list[Any], list[Mark]]:
        """Return a history with its originals, and their marks; `head` is the record in force.

        Between them is the history with those originals alone that the record knows: it takes as
        much of the window as what the client has sent.
        """
        _, before, kept = self._seen.get(scope) or (0, [], [])
        covered = self._covered_until(scope, head)
        if not covered and all(map(is_, before, marks)):  # nothing is another message now
            return messages, messages, marks
        pairs = zip(before, kept, strict=True)
        seen = {one[0].name: one for one in pairs if one[0].size > SMALL and one[0].name}
        made, short, whole = list(messages), list(messages), list(marks)
        wanted: dict[int, str] = {}
        for place, mark in enumerate(marks):
            known, (key, size) = seen.get(mark.name), covered.get(mark.name, ("", 0))
            if known is not None:
                changed = bool(key) and _says_the_same(mark, messages[place], known[1])
                if changed or _was_cleared(mark, messages[place], known[0].size, known[1]):
                    whole[place], made[place] = known
                    short[place] = made[place] if key else short[place]
            elif key and (mark.said or mark.size < size):
                wanted[place] = key
        originals = self._archive.find(scope, list(wanted.values())) if wanted else {}
        for place, key in wanted.items():
            original, mark = originals.get(key), marks[place]
            size = covered[mark.name][1]
            if original is None or not original.lossless:
                continue
            message = messages[place], original.message
            if _says_the_same(mark, *message) or _was_cleared(mark, message[0], size, message[1]):
                made[place] = short[place] = original.message
                whole[place] = replace(mark, size=size)
        return made, short, whole

    def remember(self, scope: Scope, marks: list[Mark], messages: list[Any]) -> None:
        """Remember a request's messages, as `restored` returns them."""
        size = sum(mark.size for mark in marks) + EACH * len(marks)
        self._seen.put(scope, (size, marks, messages))

    def cover(
        self, scope: Scope, record: Record, marks: Sequence[Mark], messages: Sequence[Any]
    ) -> None:
        """Note which messages a new record covers or shortens: by mark their keys and sizes."""
        covers = {*record.covers, *(clip.key for clip in record.clips)}
        rows = {
            mark.name: (entry.key, mark.size)
            for mark, entry in zip(marks, read_messages(messages), strict=True)
            if mark.name and mark.size > SMALL and entry.key in covers
        }
        self._archive.note(scope, "covered", {record.id: {"messages": rows}})

    def _covered_until(self, scope: Scope, head: str) -> Mapping[str, tuple[str, int]]:
        if not head:
            return {}
        made = self._covered.get((scope, head))
        if made is None:
            names = [record.id for record in self._archive.chain_at(scope, head)]
            notes = self._archive.notes(scope, "covered", names).values()
            made = {name: row for note in notes for name, row in note["messages"].items()}
            self._covered.put((scope, head), made)
        return made


def _says_the_same(mark: Mark, message: Any, original: Any) -> bool:
    """Return whether two messages of one name differ in passing parts alone, such as reminders."""
    return mark.said and _media(message) == _media(original)


def _media(message: Any) -> list[Any]:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return [one for one in blocks if isinstance(one, Mapping) and not MEDIA.isdisjoint(one)]


def _was_cleared(mark: Mark, message: Any, size: int, original: Any) -> bool:
    """Return whether a message is what a client has left of a known one of this size.

    One whose name another conversation may have too must have become much shorter, or have a text
    that begins like one of the original.
    """
    if mark.size >= size or mark.unique or mark.size < size // 2:
        return mark.size < size
    begun = {text[:HEAD] for text in _texts(original)}
    return any(text[:HEAD] in begun for text in _texts(message))


def _texts(part: Any) -> Iterator[str]:
    """Yield the longer texts of a message, also those in its blocks."""
    if isinstance(part, str) and len(part) >= HEAD:
        yield part
    elif isinstance(part, list):
        for one in part:
            yield from _texts(one)
    elif isinstance(part, Mapping):
        yield from _texts([part.get(name) for name in ("content", "output", "text")])


KNOWN = 16  # histories left to the server that are remembered, beside the archive


class Held:
    """Keep the histories that clients leave to the server, by the ids of responses.

    A client that sends `previous_response_id` sends no history. The items of each response are kept
    in the namespace of their thread, so that the whole history can be compacted and any upstream
    can answer it.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._known = Newest[tuple[str, str], tuple[str, list[Any]]](KNOWN)

    def history(self, tenant: str, response: str) -> tuple[str, list[Any]] | None:
        """Return the thread and the history up to a response, with it; None if it is unknown."""
        slip = self._archive.notes(tenant, "response", [response]).get(response, {})
        thread, items, name = slip.get("thread"), list[Any](), response
        passed = set[str]()
        while isinstance(thread, str) and name not in passed:  # an upstream may give one id twice
            passed.add(name)
            if (known := self._known.get((tenant, name))) is not None:
                name, items = "", [*known[1], *items]
            else:
                row = self._archive.notes(Scope(tenant, thread), "response", [name]).get(name)
                if row is None:  # expired or forgotten: the rest is not the whole history
                    return None
                name, items = row["parent"], [*row["items"], *items]
            if not name:
                self._known.put((tenant, response), (thread, items))
                return thread, items
        return None

    def keep(
        self, scope: Scope, response: str, parent: str, before: Sequence[Any], new: Sequence[Any]
    ) -> None:
        """Keep a response after its parent: items before it, and new ones. Raises ArchiveError."""
        row = {response: {"parent": parent, "items": list(new)}}
        self._archive.note(scope, "response", row)
        slip = {response: {"thread": scope.thread}}
        self._archive.note(scope.tenant, "response", slip, durable=True)  # and the row before it
        self._known.put((scope.tenant, response), (scope.thread, [*before, *new]))
