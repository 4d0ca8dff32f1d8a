"""Find the thread of a history that the client does not name, and what the client has cleared.

A message is known by what clients do not change: the user's words, the model's words, the ids of
its calls. Results of tools, thoughts, reminders and marks for a cache count for nothing, as clients
clear them.

A history joins a thread if it holds the thread's last answer and most of what was said before;
otherwise it begins a new one. If it has left a known thread, the compactions that still fit are
copied into the new one, so that nothing is summarised twice.
"""

from __future__ import annotations

import hashlib
import json
import logging
import marshal
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import is_, itemgetter
from typing import Any

from conspectus._newest import Newest
from conspectus.archive import Archive, Scope
from conspectus.core.records import Record
from conspectus.errors import ArchiveError, MessageError
from conspectus.messages import read_messages
from conspectus.messages.blocks import blocks_of, kind_of, without_cache_marks
from conspectus.tokens import TokenMeter

logger = logging.getLogger("conspectus.serve")

_WRITE = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode

_PASSING = ("system-reminder", "think", "thinking", "thought", "reasoning")
"""Tags around parts of texts that clients add to messages, or take out, from request to request."""

_THOUGHTS = ("thinking", "redacted_thinking", "reasoning", "reasoning_content", "reasoning_details")
"""Types of blocks and items, and fields of messages."""

_PART = re.compile(r"[A-Za-z0-9]{8,}+")  # of an id; with letters and digits it is a random one

KNOWN = 16_384  # messages whose marks are kept: clients send most of them again
NEWEST = 32  # answers by which a thread is looked for; of those before, each at twice the distance
TOGETHER = 4  # messages that name an answer, with those before it
NEAR, GUESSED = 3, 4_096  # of them: which nearly always suffice, and whose thread is remembered
TAIL = 48  # a thread's newest messages that are compared with those of a history

ALIKE, HINTED = 0.75, 0.5
"""Share of the tail that a history must have to belong to a thread; with a client's hint, less."""

HINTS = ("x-claude-code-session-id", "session-id", "session_id", "x-session-id")
"""Headers in which clients name their session: Claude Code, Codex, others."""

THREADS, CHARACTERS = 256, 32_000_000  # of which the newest request is remembered, and in all
EACH = 1_000  # characters for which a message counts beside its own
SMALL = 200  # characters of a message that no client would clear
HEAD = 40  # characters by which a text is known to be the beginning of another
CHAINS = 64  # threads for which the covered messages are remembered


class Odd(dict[str, Any]):
    """What stands for a message that the engine does not understand; it stays in view."""


@dataclass(frozen=True, slots=True, eq=False)
class Mark:
    """A message as it is known again."""

    name: str  # hash of what clients leave alone; empty if there is nothing such
    size: int  # characters of its JSON
    said: bool  # it holds more than results of tools, and is no system message
    by_model: bool
    unique: bool  # no other conversation has its name
    as_is: bool  # it is read as it came
    tokens: int


@dataclass(frozen=True, slots=True)
class Trail:
    """A history as it is known again."""

    kind: int  # of the protocol and the estimate of tokens
    history: Sequence[Any] = ()
    marks: list[Mark] = field(default_factory=list)
    messages: list[Any] = field(default_factory=list)  # as the engine reads them: no cache marks
    tokens: int = 0
    seen: dict[str, int] = field(default_factory=dict)  # how often there is a name
    talk: list[str] = field(default_factory=list)  # names of the messages that were said
    answers: list[int] = field(default_factory=list)  # ends of the model's own in these
    said: Sequence[str] = ()  # the same names; without one, a name of the whole
    answered: Sequence[str] = ()  # those up to the last answer of the model; without one, all
    names: Sequence[str] = ()  # of the answers by which a thread is looked for, the newest first

    def begins(self, history: Sequence[Any], kind: int) -> bool:
        """Return whether a history goes on from this one."""
        known = self.history
        return kind == self.kind and len(known) <= len(history) and all(map(is_, known, history))


_KNOWN: dict[int, Mark] = {}


def trail_of(
    history: Sequence[Any], protocol: str, meter: TokenMeter, before: Trail | None = None
) -> Trail:
    """Read a history; two protocols have no names in common.

    System messages do not count, as they may hold a clock, unless there is nothing else. The trail
    of `before` need not be read again where the history goes on from it. Raises
    ValueError, TypeError or RecursionError for a message that is no JSON object.
    """
    kind, known = hash((protocol, meter.family, meter.maker)), _KNOWN.get
    begin = before if before is not None and before.begins(history, kind) else Trail(kind)
    new = history[len(begin.history) :]
    # The fastest of all; its 64 bits have a secret key.
    keys = [hash(marshal.dumps(message, 2)) ^ kind for message in new]
    pairs = list(zip(keys, new, strict=True))
    marks = [known(key) or _newly_read(key, message, protocol, meter) for key, message in pairs]
    read = [one if mark.as_is else _read(one) for mark, one in zip(marks, new, strict=True)]
    messages, seen = begin.messages + read, {**begin.seen}
    for at, mark in enumerate(marks):  # the same words again are another message
        if mark.name:
            seen[mark.name] = number = seen.get(mark.name, 0) + 1
            marks[at] = replace(mark, name=f"{mark.name}-{number}") if number > 1 else mark
    talk = begin.talk + [mark.name for mark in marks if mark.said]
    tokens = begin.tokens + sum(mark.tokens for mark in marks)
    said = talk or [_hashed([protocol, *messages])]
    new_talk = enumerate((mark for mark in marks if mark.said), len(begin.talk) + 1)
    answers = begin.answers + [end for end, mark in new_talk if mark.by_model]
    # How many of them an earlier request may have held.
    ends = [*range(1, answers[0] if answers else len(talk) + 1), *answers] or [1]
    back = [*range(1, NEWEST), *(NEWEST << n for n in range(24))]
    names = [
        "-".join(said[max(0, end - TOGETHER) : end])
        for end in (ends[-at] for at in back if at <= len(ends))
    ]
    return Trail(
        kind=kind,
        history=history,
        marks=begin.marks + marks,
        messages=messages,
        tokens=tokens,
        seen=seen,
        talk=talk,
        answers=answers,
        said=said,
        answered=said[: ends[-1]],
        names=names,
    )


def _read(message: Any) -> Any:
    """Return a message as the engine reads it: without cache marks, or what stands for it."""
    bare = without_cache_marks(message)
    try:
        [entry] = read_messages([bare])
        if "role" in bare or "call_id" not in bare or entry.calls or entry.answers:
            return bare
    except MessageError:
        pass
    return Odd(role="system", content=json.dumps(bare, sort_keys=True))


def _newly_read(key: int, message: Any, protocol: str, meter: TokenMeter) -> Mark:
    """Read what a message is known by, without its number among equal ones."""
    if not isinstance(message, dict):
        raise TypeError("a message is no object")
    read = _read(message)
    lasting = {name: part for name, part in read.items() if name not in _THOUGHTS}
    if isinstance(content := read.get("content"), list):
        lasting["content"] = [one for one in content if not _passes(one)]
    [entry] = read_messages([lasting])
    ids, said = [*(call.id for call in entry.calls), *entry.answers], [_plain(entry.own)]
    unique = bool(ids) and all(map(_is_random, ids))
    if not unique:  # then the arguments tell a call from another one
        said += [f"{call.name} {call.args}" for call in entry.calls]
    said = [] if _passes(message) else list(filter(None, said))
    mark = Mark(
        name=_hashed([protocol, entry.role, *said, *ids]) if said or ids else "",
        size=len(_WRITE(read)),
        said=bool(entry.calls or said) and entry.role != "system",
        by_model=entry.role == "assistant",
        unique=unique,
        as_is=read is message,
        tokens=meter.message(read),
    )
    if len(_KNOWN) >= KNOWN:
        _KNOWN.clear()
    _KNOWN[key] = mark
    return mark


def _passes(part: Any) -> bool:
    """Return whether a part is a thought or a picture, which clients clear."""
    known = isinstance(part, Mapping)
    return known and (part.get("type") in _THOUGHTS or bool(kind_of(part).media))


def _hashed(values: Sequence[Any]) -> str:
    return hashlib.sha256(_WRITE(values).encode()).hexdigest()[:24]


def _is_random(name: str) -> bool:
    return any(not (part.isalpha() or part.isdigit()) for part in _PART.findall(name))


def _plain(text: str) -> str:
    """Return a text without passing parts, its spaces made one."""
    for tag in _PASSING:
        begin, end = f"<{tag}>", f"</{tag}>"
        first, *parts = text.split(begin)
        left = (one.partition(end)[2] if end in one else begin + one for one in parts)
        text = "".join((first, *left))
    return " ".join(text.split())


@dataclass(frozen=True, slots=True)
class Match:
    """The thread of a history."""

    thread: str
    head: str = ""  # id of the record in force, as far as is known
    tail: Sequence[str] = ()  # what had been said there at its last request
    left: str = ""  # the thread that the history has left, with compactions


class Places:
    """How far each thread has come: notes of its tenant, of which the newest wait to be written.

    A writer may hold the archive for a while, and no answer waits for that.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive, self._turn, self._lock = archive, threading.Lock(), threading.Lock()
        self._waiting = dict[tuple[str, str], dict[str, Any]]()
        self._near = Newest[tuple[str, str], str](GUESSED)

    def find(self, tenant: str, trail: Trail, hint: str = "") -> Match:
        """Find the thread from which a history goes on, or begin a new one.

        An answer names a thread, and the thread its last answer: of two histories that continue one
        at the same moment, one leaves it with its next request. The name of a new thread follows
        from what it is new for, so that a request that is sent again has it too. `hint` is the
        client's name of its session; empty for none. Raises ArchiveError.
        """
        slips = [f"answer {name}" for name in trail.names] + ([f"hint {hint}"] if hint else [])
        for asked in dict.fromkeys((tuple(slips[:NEAR]), tuple(slips))):
            guessed = filter(None, (self._near.get((tenant, slip)) for slip in asked))
            known = self._notes(tenant, {*asked, *(f"thread {one}" for one in guessed)})
            named = [str(known[slip].get("thread")) for slip in asked if slip in known]
            known |= self._notes(tenant, {f"thread {one}" for one in named} - known.keys())
            left, begun = "", list[str]()
            for thread in dict.fromkeys(named):
                if (place := known.get(f"thread {thread}")) is None:  # it was forgotten
                    continue
                if _goes_on(trail, place, hint):
                    return Match(thread, place["head"], place["tail"])
                begun = begun or place["tail"]
                left = left or (thread if place["head"] else "")
        new = json.dumps([tenant, trail.answered, begun])
        return Match(f"t-{hashlib.sha256(new.encode()).hexdigest()[:16]}", left=left)

    def keep(self, tenant: str, match: Match, trail: Trail, head: str, hint: str = "") -> None:
        """Note how far a thread has come, and let `write` write it."""
        slips = [f"answer {trail.names[0]}"] + ([f"hint {hint}"] if hint else [])
        place = {"head": head, "tail": trail.answered[-TAIL:], "first": trail.said[0], "hint": hint}
        self._near.put((tenant, slips[0]), match.thread)
        with self._lock:
            self._waiting[tenant, f"thread {match.thread}"] = place
            self._waiting.update({(tenant, slip): {"thread": match.thread} for slip in slips})

    def write(self) -> None:
        """Write what waits; a failure is logged."""
        with self._turn:
            rows, tenants = {**self._waiting}, dict[str, dict[str, Any]]()
            for (tenant, name), row in rows.items():
                tenants.setdefault(tenant, {})[name] = row
            for tenant, notes in tenants.items():
                try:
                    self._archive.note(tenant, "thread", notes)
                except ArchiveError as error:
                    logger.warning("how far threads have come could not be kept: %s", error)
            with self._lock:  # what has come since waits on
                for at in [at for at, row in rows.items() if self._waiting.get(at) is row]:
                    del self._waiting[at]

    def _notes(self, tenant: str, names: set[str]) -> dict[str, dict[str, Any]]:
        known = {one: row for one in names if (row := self._waiting.get((tenant, one))) is not None}
        left = sorted(names - known.keys())
        return (self._archive.notes(tenant, "thread", left) if left else {}) | known


def _goes_on(trail: Trail, place: Mapping[str, Any], hint: str) -> bool:
    """Return whether a history goes on from the place of a thread."""
    tail, said, theirs = place["tail"], trail.said, place["hint"]
    if tail[-1] not in said:
        return False
    end = len(said) - said[::-1].index(tail[-1])
    if said[max(0, end - len(tail)) : end] == tail and len(tail) in (end, TAIL):
        return True
    if hint and theirs not in ("", hint):
        return False
    known = frozenset(said)
    both = tail[next(at for at, name in enumerate(tail) if name in known) :]
    there, hinted = sum(name in known for name in both), bool(hint and theirs)
    own = {one.name for one in trail.marks if one.name and one.said and one.unique}
    # Something must be theirs alone: the hint, an id, or the message that they begin with.
    sure = hinted or said[0] == place["first"] or not own.isdisjoint(tail)
    return sure and there >= max(2, (HINTED if hinted else ALIKE) * len(both))


def hint_of(headers: Mapping[str, str], body: Mapping[str, Any]) -> str:
    """Return the client's name of its session, hashed; empty for none."""
    metadata = body.get("metadata")
    user = metadata.get("user_id") if isinstance(metadata, Mapping) else None
    named = [*map(headers.get, HINTS), body.get("prompt_cache_key")]
    if isinstance(user, str) and "session" in user:  # Claude Code's
        named.append(user)
    first = next((one for one in named if isinstance(one, str) and one.strip()), "")
    return hashlib.sha256(first.encode("utf-8", "replace")).hexdigest()[:24] if first else ""


class Originals:
    """Remember messages whole, and find them again in the archive once they are covered.

    What a client clears stays known so: what the endpoint has seen whole is archived and summarised
    whole, and a record goes on fitting its history.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._seen = Newest[Scope, tuple[int, list[Mark], list[Any]]](
            THREADS, CHARACTERS, itemgetter(0)
        )
        self._covered = Newest[tuple[Scope, str], dict[str, tuple[str, int]]](CHAINS)

    def restored(
        self, scope: Scope, head: str, trail: Trail
    ) -> tuple[list[Any], list[Any], list[Mark]]:
        """Return a history with its originals, and their marks; `head` is the record in force.

        Between them is the history with those originals alone that the record knows: it takes as
        much of the window as what the client has sent.
        """
        marks, messages = trail.marks, trail.messages
        _, before, kept = self._seen.get(scope) or (0, [], [])
        covered = self._covered_until(scope, head)
        if not covered and all(map(is_, before, marks)):  # nothing is another message now
            return messages, messages, marks
        pairs = zip(before, kept, strict=True)
        seen = {one[0].name: one for one in pairs if one[0].size > SMALL and one[0].name}
        known = {at: seen[mark.name] for at, mark in enumerate(marks) if mark.name in seen}
        wanted = {
            at: covered[mark.name]
            for at, mark in enumerate(marks)
            if at not in known and mark.name in covered
            if mark.said or mark.size < covered[mark.name][1]
        }
        keys = [key for key, _ in wanted.values()]
        originals = self._archive.find(scope, keys) if keys else {}
        for at, (key, size) in wanted.items():
            if key in originals and originals[key].lossless:
                known[at] = replace(marks[at], size=size), originals[key].message
        made, short, whole = list(messages), list(messages), list(marks)
        for at, (mark, message) in known.items():
            is_covered = marks[at].name in covered
            if _is_left_of(marks[at], messages[at], mark.size, message, is_covered):
                whole[at], made[at] = mark, message
                short[at] = message if is_covered else short[at]
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


def _is_left_of(mark: Mark, message: Any, size: int, original: Any, covered: bool) -> bool:
    """Return whether a message is what a client has left of a known one of this size.

    A covered one may also differ in passing parts, such as reminders. One whose name another
    conversation may have too must have become much shorter, or begin like the original.
    """
    if covered and mark.said and _media(message) == _media(original):
        return True
    if mark.size >= size or mark.unique or mark.size < size // 2:
        return mark.size < size
    return not _beginnings(message).isdisjoint(_beginnings(original))


def _media(message: Any) -> list[Any]:
    return [one for one in blocks_of(message) if kind_of(one).media]


def _beginnings(message: Any) -> set[str]:
    [entry] = read_messages([message])
    return {text[:HEAD] for text in (entry.text, *(one.text for one in entry.results)) if text}
