"""Find the thread of a history that the client does not name.

A history is known by what clients do not change: the user's words, the model's words, the ids of
its calls. Results of tools, thoughts, reminders and marks for a cache count for nothing, as clients
clear them. A history joins a thread if it holds the thread's last answer and most of what was said
before; otherwise it begins a new one. If it has left a known thread, the compactions that still fit
are copied into the new one, so that nothing is summarised twice.

What a client clears stays known: what the endpoint has seen whole is archived and summarised whole,
and a record goes on fitting its history.
"""

from __future__ import annotations

import hashlib
import json
import marshal
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conspectus._newest import Newest
from conspectus.archive import Archive, Scope
from conspectus.core.records import Record
from conspectus.messages import read_messages

_WRITE = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode

_TAG = re.compile("(</?(?:system-reminder|think|thinking|thought|reasoning)>)", re.IGNORECASE)
"""Around parts of texts that clients add to messages, or take out, from request to request."""

_THOUGHTS = ("thinking", "redacted_thinking", "reasoning")
_ARGUMENTS = ("name", "input", "arguments", "function")

_PART = re.compile(r"[A-Za-z0-9]{8,}+")
"""A part of an id; one of letters and digits is of no other conversation."""

NEWEST, SPARSE = 32, 16  # answers by which a thread is looked for; of those before, each 16th
TOGETHER = 4  # messages that name an answer, with those before it
TAIL = 48  # a thread's newest messages that are compared with those of a history

ALIKE, HINTED = 0.75, 0.5
"""Share of the tail that a history must have to belong to a thread; with a client's hint, less."""

HINTS = ("x-claude-code-session-id", "session-id", "session_id", "x-session-id")
"""Headers in which clients name their session: Claude Code, Codex, others."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A message as it is known again."""

    name: str  # hash of what clients leave alone; empty if there is nothing such
    digest: bytes  # of the whole message
    size: int  # characters of its JSON
    said: bool  # it holds more than results of tools, and is no system message
    by_model: bool
    unique: bool  # no other conversation has its name


@dataclass(frozen=True, slots=True)
class Trail:
    """A history as it is known again."""

    marks: list[Mark]
    said: list[str]  # names of the messages that were said
    answers: list[int]  # how many of these an earlier request may have held

    @property
    def answered(self) -> list[str]:
        """The names up to the last answer of the model; without one, all."""
        return self.said[: self.answers[-1]]

    def names(self) -> list[str]:
        """Return the names of the answers by which a thread is looked for, the newest first."""
        ends = self.answers[-NEWEST:][::-1] + self.answers[:-NEWEST:SPARSE][::-1]
        return ["-".join(self.said[max(0, end - TOGETHER) : end]) for end in ends]


def trail_of(history: Sequence[Any], protocol: str) -> Trail:
    """Read a history of messages without cache marks; two protocols have none in common.

    System messages do not count, as they may hold a clock, unless there is nothing else. Raises
    ValueError, TypeError or RecursionError for a message that is not JSON.
    """
    seen, marks, said, answers = dict[str, int](), list[Mark](), list[str](), list[int]()
    answered = False
    for message in history:
        mark = mark_of(message, protocol)
        if mark.name and not mark.unique:
            number = seen[mark.name] = seen.get(mark.name, 0) + 1
            if number > 1:  # the same words again are another message
                mark = replace(mark, name=f"{mark.name}-{number}")
        marks.append(mark)
        if mark.said and mark.name:
            said.append(mark.name)
            answered = answered or mark.by_model
            answers += [len(said)] if mark.by_model or not answered else []
    said = said or [_hashed([protocol, *history])]
    return Trail(marks, said, answers or [len(said)])


_KNOWN = Newest[tuple[str, bytes], Mark](65_536)
"""Marks of messages, as a client sends most of them again; about 20 MB."""


def mark_of(message: Any, protocol: str = "") -> Mark:
    """Read what a message is known by, without its number among equal ones."""
    digest = hashlib.sha256(marshal.dumps(message, 2)).digest()[:16]  # the fastest of all
    if (mark := _KNOWN.get((protocol, digest))) is not None:
        return mark
    parts: dict[str, list[str]] = {"said": [], "result": [], "id": [], "arguments": []}
    for kind, value in _parts(message):
        parts[kind].append(value)
    fields = message if isinstance(message, Mapping) else {}
    role, type_ = fields.get("role"), str(fields.get("type") or "")
    ids, said = [*parts["id"], *parts["result"]], list(filter(None, parts["said"]))
    if role is None and not (ids or said) and type_ not in ("reasoning", ""):
        said = [str(fields.get("id") or _WRITE(message))]
    unique = bool(ids) and all(map(_is_random, ids))
    if not unique:  # then the arguments tell a call from another one
        said += parts["arguments"]
    by_model = role in ("assistant", "model")
    if role is None:
        by_model = not type_.endswith(("_output", "_response", "_reference", "_trigger"))
    mark = Mark(
        name=_hashed([protocol, role or type_, *said, *ids]) if said or ids else "",
        digest=digest,
        size=len(_WRITE(message)),
        said=bool(parts["id"] or said) and role not in ("system", "developer"),
        by_model=by_model,
        unique=unique,
    )
    _KNOWN.put((protocol, digest), mark)
    return mark


def _hashed(values: Sequence[Any]) -> str:
    return hashlib.sha256(_WRITE(values).encode()).hexdigest()[:24]


def _parts(part: Any) -> Iterator[tuple[str, str]]:
    """Yield the parts of a message that clients leave alone, with their kind."""
    if isinstance(part, str):
        yield "said", _plain(part)
    elif isinstance(part, list):
        for one in part:
            yield from _parts(one)
    elif isinstance(part, Mapping) and part.get("type") not in _THOUGHTS:
        kind = str(part.get("type") or "")
        answered = part.get("tool_call_id") or part.get("tool_use_id")
        if answered or (kind.endswith("_output") and part.get("call_id")):
            yield "result", str(answered or part["call_id"])
            return
        calls = kind.endswith("tool_use") or "function" in part
        if called := part.get("call_id") or (calls and part.get("id")):
            yield "id", str(called)
            yield "arguments", _WRITE([part.get(name) for name in _ARGUMENTS])
            return
        for name in ("text", "content", "tool_calls"):
            yield from _parts(part.get(name))


def _is_random(name: str) -> bool:
    return any(not (part.isalpha() or part.isdigit()) for part in _PART.findall(name))


def _plain(text: str) -> str:
    """Return a text without passing parts, its spaces made one."""
    pieces = _TAG.split(text)  # each second one is a tag
    closings = {piece.lower(): at for at, piece in enumerate(pieces) if at % 2}
    kept, closing = list[str](), ""
    for at, piece in enumerate(pieces):
        tag = piece.lower() if at % 2 else ""
        if closing:
            closing = "" if tag == closing else closing
        elif closings.get(f"</{tag[1:]}", -1) > at and not tag.startswith("</"):
            closing = f"</{tag[1:]}"
        else:
            kept.append(piece)
    return " ".join("".join(kept).split())


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
    places = archive.notes(tenant, "thread", [f"thread {one}" for one in threads])
    held, left, begun = {name: at for at, name in enumerate(trail.said, 1)}, "", list[str]()
    own = {one.name for one in trail.marks if one.name and one.said and one.unique}
    for thread in threads:
        place = places.get(f"thread {thread}")
        if place is None:  # forgotten
            continue
        tail, head, theirs = place["tail"], place["head"], place["hint"]
        begun = begun or tail
        left = left or (thread if head else "")
        if (end := held.get(tail[-1])) is None:
            continue
        if trail.said[max(0, end - len(tail)) : end] == tail and len(tail) in (end, TAIL):
            return Match(thread, head, tail)
        if hint and theirs not in ("", hint):
            continue
        first = next(at for at, name in enumerate(tail) if name in held)
        there, hinted = sum(name in held for name in tail[first:]), bool(hint and theirs)
        # Something must be theirs alone: the hint, an id, or the message that they begin with.
        sure = hinted or trail.said[0] == place["first"] or not own.isdisjoint(tail)
        if sure and there >= max(2, (HINTED if hinted else ALIKE) * len(tail[first:])):
            return Match(thread, head, tail)
    new = _WRITE([tenant, trail.answered, begun])
    return Match(f"t-{hashlib.sha256(new.encode()).hexdigest()[:16]}", left=left)


def keep(
    archive: Archive, tenant: str, match: Match, trail: Trail, head: str, hint: str = ""
) -> None:
    """Note how far a thread has come, if that has changed. Raises ArchiveError."""
    tail = trail.answered[-TAIL:]
    if tail == match.tail and head == match.head:
        return
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


THREADS, CHARACTERS = 512, 64_000_000  # threads whose newest request is remembered, and its size
SMALL = 200  # characters of a message that no client would clear
CHAINS = 64  # threads for which the covered messages are remembered

Seen = dict[str, tuple[Mark, Any]]
"""The large messages of a thread's newest request, with their marks, by the marks' names."""


class Originals:
    """Remember messages whole, and find them again in the archive once they are covered."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._seen = Newest[Scope, Seen](
            THREADS, CHARACTERS, lambda seen: sum(mark.size for mark, _ in seen.values())
        )
        self._covered = Newest[tuple[Scope, str], dict[str, tuple[str, int]]](CHAINS)

    def restored(
        self, scope: Scope, head: str, marks: Sequence[Mark], messages: Sequence[Any]
    ) -> tuple[list[Any], list[Any], list[Mark]]:
        """Return a history with its originals, and their marks; `head` is the record in force.

        Between them is the history with those originals alone that the record knows: it takes as
        much of the window as what the client has sent.
        """
        made, short, whole = list(messages), list(messages), list(marks)
        seen, covered = self._seen.get(scope) or {}, self._covered_until(scope, head)
        wanted: dict[int, str] = {}
        for place, mark in enumerate(marks):
            row = covered.get(mark.name)
            if (known := seen.get(mark.name)) is not None:
                if _was_cleared(mark, known[0].size):
                    whole[place], made[place] = known
                    short[place] = made[place] if row is not None else short[place]
            elif row is not None and _was_cleared(mark, row[1]):
                wanted[place] = row[0]
        originals = self._archive.find(scope, list(wanted.values())) if wanted else {}
        for place, key in wanted.items():
            if (original := originals.get(key)) is not None and original.lossless:
                made[place] = short[place] = original.message
                whole[place] = replace(mark_of(original.message), name=marks[place].name)
        return made, short, whole

    def remember(self, scope: Scope, marks: Sequence[Mark], messages: Sequence[Any]) -> None:
        """Remember a request's messages, as `restored` returns them."""
        pairs = zip(marks, messages, strict=True)
        self._seen.put(scope, {m.name: (m, one) for m, one in pairs if m.name and m.size > SMALL})

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


def _was_cleared(mark: Mark, size: int) -> bool:
    """Return whether a message is what a client has left of a known one of this size.

    One whose name another conversation may have too must have become much shorter.
    """
    return mark.size < (size if mark.unique else size // 2)


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
        self._archive.note(scope.tenant, "response", {response: {"thread": scope.thread}})
        self._known.put((scope.tenant, response), (scope.thread, [*before, *new]))
