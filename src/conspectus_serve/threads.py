"""Find the thread of a history that the client does not name, and what the client has cleared.

A history joins a thread if it holds the thread's last answer and most of what was said before, or
what was said just before and at the beginning; otherwise it begins a new one. If it has left a
known thread, the compactions that still fit are copied into the new one, so that nothing is
summarised twice. Where the client names its session, such as one that it has compacted itself, the
new one is a session inside the thread of that name.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from operator import attrgetter, is_
from typing import Any

from conspectus._bounded_cache import BoundedCache
from conspectus.archive import Archive, Scope
from conspectus.engine.sliding import MOST_KEPT, joint_of, run_of
from conspectus.errors import ArchiveError
from conspectus.messages import read_messages
from conspectus_serve.cleared import is_left_of
from conspectus_serve.health import ArchiveHealth
from conspectus_serve.trails import Mark, Trail, bare, is_random

logger = logging.getLogger("conspectus.serve")

_SESSION = re.compile(r"(t-[0-9a-f]{16})/(t-[0-9a-f]{16})")  # in a thread, as one name
NEAR, GUESSED = 3, 4_096  # answers that nearly always suffice, and whose thread is remembered
TAIL = 48  # a thread's newest messages that are compared with those of a history

ALIKE, HINTED = 0.75, 0.5
"""Share of the tail that a history must have to belong to a thread; with a client's hint, less."""

END = 4  # newest messages of a thread that suffice, whatever its client drops or clears before them

LEAST_SHARED, SHARED_SIZE, SHARED_MANY = 4, 400, 8
"""Messages that a history must share with the end of a thread whose beginning it has not; they have
so many characters of JSON, or are so many."""

LOOSE = "~"
HINTS = "x-claude-code-session-id session-id session_id x-parent-session-id x-session-id".split()
"""Headers in which clients name their session: Claude Code, Codex, opencode (before a subagent's
own the one that has begun it), others."""

THREADS, CHARACTERS = 256, 32_000_000  # of which the newest request is remembered, and in all
EACH = 1_000  # characters for which a message counts beside its own
SMALL = 200  # characters of a message that no client would clear
CHAINS = 64  # threads for which the covered messages are remembered


@dataclass(frozen=True, slots=True)
class Match:
    """The thread of a history."""

    thread: str
    head: str = ""  # id of the record in force, as far as is known
    tail: Sequence[str] = ()  # what had been said there at its last request
    left: str = ""  # the thread that the history has left, with compactions
    goes_on: bool = False  # the history holds what had been said there last


@dataclass(frozen=True, slots=True)
class Dropped:
    """Messages that a client has sent before, and sends no more, with their marks."""

    start: int = 0  # where they stood in the history that it sends now
    marks: list[Mark] = field(default_factory=list)
    messages: list[Any] = field(default_factory=list)
    own: int = 0  # messages that the client has put there in the place of others, before `start`

    @property
    def tokens(self) -> int:
        return sum(mark.tokens for mark in self.marks)

    def put_back(self, into: Sequence[Any], own: Sequence[Any]) -> list[Any]:
        """Return a list, as long as the history, with their own at its place."""
        return [*into[: self.start], *own, *into[self.start :]]


class Places:
    """How far each thread has come: notes of its tenant, of which the newest wait to be written.

    A writer may hold the archive for a while, and no answer waits for that.
    """

    def __init__(self, archive: Archive, health: ArchiveHealth) -> None:
        self._archive, self._health = archive, health
        self._turn, self._lock = threading.Lock(), threading.Lock()
        self._waiting = dict[tuple[str, str], dict[str, Any]]()
        self._near = BoundedCache[tuple[str, str], str](GUESSED)

    def find(self, tenant: str, trail: Trail, hint: str = "") -> Match:
        """Find the thread from which a history goes on, or begin a new one.

        An answer names a thread, and the thread its last answer: of two histories that continue one
        at the same moment, one leaves it with its next request. The name of a new thread follows
        from what it is new for, so that a request that is sent again has it too. `hint` is the
        client's name of its session; empty for none. Raises ArchiveError.
        """
        slips = [f"answer {name}" for name in trail.names] + ([f"hint {hint}"] if hint else [])
        near = [one for slip in slips[:NEAR] if (one := self._near.get((tenant, slip)))]
        for asked in dict.fromkeys(((), tuple(slips[:NEAR]), tuple(slips))):
            known = self._notes(tenant, {*asked, *(f"thread {one}" for one in near)})
            named = [str(known[slip].get("thread")) for slip in asked if slip in known] or near
            known |= self._notes(tenant, {f"thread {one}" for one in named} - known.keys())
            left, begun = "", list[str]()
            for thread in dict.fromkeys(named):
                if (place := known.get(f"thread {thread}")) is None:  # it was forgotten
                    continue
                if _goes_on(trail, place, hint) or _slides(trail, place, hint):
                    return Match(thread, place["head"], place["tail"], goes_on=True)
                begun = begun or place["tail"]
                left = left or (thread if place["head"] else "")
        made = json.dumps([tenant, trail.answered, begun])
        new = f"t-{hashlib.sha256(made.encode()).hexdigest()[:16]}"
        theirs = str(known.get(f"hint {hint}", {}).get("thread"))
        if not hint.startswith(LOOSE) and known.get(f"thread {theirs}", {}).get("hint") == hint:
            new = f"{scope_of(tenant, theirs).thread}/{new}"
        return Match(new, left=left)

    def named(self, tenant: str, thread: str, trail: Trail) -> Match:
        """Return the thread that a client names. Raises ArchiveError."""
        head = self._archive.pointer(scope_of(tenant, thread)) or ""
        # Of a thread that was never compacted, nothing can have been dropped that is missed.
        name = f"thread {thread}"
        place = self._notes(tenant, {name}).get(name) if head else None
        if place is None:
            return Match(thread, head)
        goes_on = _goes_on(trail, place, "") or _slides(trail, place, "", least=1)
        return Match(thread, head, place["tail"], goes_on=goes_on)

    def keep_named(self, tenant: str, match: Match, trail: Trail, head: str) -> None:
        """Note how far a thread has come that the client names: no history finds it by itself."""
        place = {"head": head, "tail": trail.answered[-TAIL:], "first": trail.said[0], "hint": ""}
        with self._lock:
            self._waiting[tenant, f"thread {match.thread}"] = place

    def keep(self, tenant: str, match: Match, trail: Trail, head: str, hint: str = "") -> None:
        """Note how far a thread has come, and let `write` write it."""
        # A request without an answer may be one beside the conversation, such as for its title.
        named = hint and any(mark.by_model for mark in trail.marks)
        slips = [f"answer {name}" for name in trail.names[:NEAR]]
        # Some clients put other words behind the last answer at each request.
        slips = slips[:1] + [one for one in slips[1:] if self._near.get((tenant, one)) is None]
        for slip in slips:
            self._near.put((tenant, slip), match.thread)
        slips += [f"hint {hint}"] if named else []
        place = {"head": head, "tail": trail.answered[-TAIL:], "first": trail.said[0], "hint": hint}
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
                    self._health.note_failure()
                    logger.warning("how far threads have come could not be kept: %s", error)
            with self._lock:  # what has come since waits on
                for at in [at for at, row in rows.items() if self._waiting.get(at) is row]:
                    del self._waiting[at]

    def _notes(self, tenant: str, names: set[str]) -> dict[str, dict[str, Any]]:
        known = {one: row for one in names if (row := self._waiting.get((tenant, one))) is not None}
        left = sorted(names - known.keys())
        return (self._archive.notes(tenant, "thread", left) if left else {}) | known


@lru_cache(1_024)
def scope_of(tenant: str, thread: str) -> Scope:
    """Return the scope of a thread by its name, which may be that of a session in it."""
    both = _SESSION.fullmatch(thread)
    return Scope(tenant, *both.groups()) if both else Scope(tenant, thread)


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
    least = max(2, (HINTED if hinted else ALIKE) * len(both))
    return sure and (there >= least or said[max(0, end - END) : end] == tail[-END:])


def _slides(trail: Trail, place: Mapping[str, Any], hint: str, least: int = LEAST_SHARED) -> bool:
    """Return whether a history holds the end of a thread, of whose beginning it has less.

    So it is with clients that send their newest messages only. What both share must be one answer
    of the model at least, and too long to be said in two conversations, such as a greeting.
    """
    if hint and place["hint"] not in ("", hint):
        return False
    tail, said = [*map(bare, place["tail"])], [*map(bare, trail.said)]
    marks = [mark for mark in trail.marks if mark.said]
    if len(marks) != len(said):
        return False
    if (joint := joint_of(tail, said, reaching=len(tail))) is not None:
        start, shared = joint[0], len(tail) - joint[1]
    elif len(tail) == TAIL:  # the history has more of it than is noted
        ends = (at + 1 for at in reversed(range(len(said))) if said[at] == tail[-1])
        end = next((end for end in ends if said[max(0, end - TAIL) : end] == tail), 0)
        start, shared = end - TAIL, TAIL if end else 0
    else:
        return False
    both = marks[start : start + shared]
    size = sum(mark.size for mark in both)
    long = least == 1 or size >= SHARED_SIZE or shared >= SHARED_MANY
    return shared >= least and long and any(mark.by_model for mark in both)


def hint_of(headers: Mapping[str, str], body: Mapping[str, Any]) -> str:
    """Return the client's name of its session, hashed; empty for none.

    A key of a cache that is no random id may be one for many conversations; it begins with `LOOSE`.
    """
    metadata, key = body.get("metadata"), body.get("prompt_cache_key")
    user = metadata.get("user_id") if isinstance(metadata, Mapping) else None
    named = [*map(headers.get, HINTS), key]
    if isinstance(user, str) and "session" in user:  # Claude Code's
        named.append(user)
    first = next((one for one in named if isinstance(one, str) and one.strip()), "")
    digest = hashlib.sha256(first.encode("utf-8", "replace")).hexdigest()[:24] if first else ""
    return f"{LOOSE}{digest}" if first and first is key and not is_random(first) else digest


@dataclass(frozen=True, slots=True)
class Seen:
    """What a client has sent of a thread, whole, with what it has dropped and nothing covers."""

    marks: list[Mark]
    messages: list[Any]
    own: int = 0  # messages at the beginning that stand there for others: the client's own summary

    @property
    def size(self) -> int:
        return sum(mark.size for mark in self.marks) + EACH * len(self.marks)


class Originals:
    """Remember messages whole, and find them again in the archive once they are covered.

    What a client clears stays known so: what the endpoint has seen whole is archived and summarised
    whole, and a record goes on fitting its history.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._seen = BoundedCache[Scope, Seen](THREADS, CHARACTERS, attrgetter("size"))
        self._covered = BoundedCache[tuple[Scope, str], dict[str, dict[str, Any]]](CHAINS)

    def restored(
        self, scope: Scope, head: str, trail: Trail, marks: list[Mark]
    ) -> tuple[list[Any], list[Any], list[Mark]]:
        """Return a history with its originals, and their marks; `head` is the record in force.

        `marks` are those of the trail, with the names by which its messages were known first.

        Between them is the history with those originals alone that the record knows: it takes as
        much of the window as what the client has sent.
        """
        messages, known_before = trail.messages, self._seen.get(scope) or Seen([], [])
        before, kept = known_before.marks, known_before.messages
        about = self._covered_until(scope, head)
        covered, parts = about["messages"], about["parts"]
        if not covered and all(map(is_, before, marks)):  # nothing is another message now
            return messages, messages, marks
        pairs = zip(before, kept, strict=True)
        seen = {one[0].name: one for one in pairs if one[0].size > SMALL and one[0].name}
        wholes = Counter(parts.get(mark.name, mark.name) for mark in marks)
        names = [  # a client that has divided a message has left nothing out
            whole if wholes[whole := parts.get(mark.name, mark.name)] == 1 else mark.name
            for mark in marks
        ]
        known = {at: seen[name] for at, name in enumerate(names) if name in seen}
        wanted = {
            at: covered[name]
            for at, name in enumerate(names)
            if at not in known and name in covered
            if marks[at].said or marks[at].size < covered[name][1]
        }
        keys = [key for key, *_ in wanted.values()]
        originals = self._archive.find(scope, keys) if keys else {}
        for at, (key, size, unique) in wanted.items():
            if key in originals and originals[key].lossless:
                left = (marks[at].name,)
                unique = unique and marks[at].unique
                mark = replace(marks[at], name=names[at], size=size, unique=unique, parts=left)
                known[at] = mark, originals[key].message
        made, short, whole = list(messages), list(messages), list(marks)
        for at, (mark, message) in known.items():
            name, now = names[at], marks[at]
            is_covered = name in covered
            shorter = now.size < mark.size
            if not (shorter or (is_covered and now.said)):
                continue
            # What is shorter behind an id of its own is left of it.
            sure = shorter and now.unique and mark.unique
            if sure or is_left_of(messages[at], message):
                whole[at], made[at] = mark, message
                short[at] = message if is_covered else short[at]
        return made, short, whole

    def slid(self, scope: Scope, marks: list[Mark]) -> tuple[list[Mark], Dropped]:
        """Return what a client has dropped at the beginning of a history since its last request.

        It is known of what this process has seen, as long as that is remembered. The marks come
        with it: a message keeps the name that it had when more stood before it.
        """
        seen = self._seen.get(scope)
        if seen is None or _begin_alike(seen.marks, marks):
            return marks, Dropped()
        were = [at for at, mark in enumerate(seen.marks) if mark.said]
        are = [at for at, mark in enumerate(marks) if mark.said]
        known = [bare(seen.marks[at].name) for at in were]
        # What stood behind the last answer may have been put in other words.
        answers = (n for n in reversed(range(len(were))) if seen.marks[were[n]].by_model)
        reaching = next(answers, -1) + 1
        said = [bare(marks[at].name) for at in are]
        joint = joint_of(known, said, reaching=reaching)
        if joint is None:
            return marks, Dropped()
        first, at = joint
        kept = run_of(known, 0, said[:first], 0)
        gone = slice(max(were[kept], seen.own), were[at])
        own = are[first] if kept < first else min(seen.own, are[first])
        dropped = Dropped(are[first], seen.marks[gone], seen.messages[gone], own)
        return _with_names_of(seen.marks[were[at] :], marks, are[first]), dropped

    def remember(self, scope: Scope, marks: list[Mark], messages: list[Any], own: int = 0) -> None:
        """Remember a request's messages, as `restored` returns them; see `Seen`."""
        self._seen.put(scope, Seen(marks, messages, own))

    def cover(
        self, scope: Scope, head: str, marks: Sequence[Mark], messages: Sequence[Any]
    ) -> None:
        """Note once which messages a record covers or shortens.

        By mark, their keys and sizes, and whether their ids are of no other message.
        """
        chain = self._archive.chain_at(scope, head)
        if not chain or self._archive.notes(scope, "covered", [head]):
            return
        record = chain[-1]
        covers = {*record.covers, *(clip.key for clip in record.clips)}
        kept = [
            (mark, entry.key)
            for mark, entry in zip(marks, read_messages(messages, scope), strict=True)
            if mark.name and (mark.size > SMALL or mark.parts) and entry.key in covers
        ]
        rows = {mark.name: (key, mark.size, mark.unique) for mark, key in kept}
        gone = {*record.covers}  # a part of what is in view has to fit the messages beside it
        parts = {part: mark.name for mark, key in kept if key in gone for part in mark.parts}
        self._archive.note(scope, "covered", {record.id: {"messages": rows, "parts": parts}})
        self._covered.drop((scope, head))

    def copy(self, source: Scope, target: Scope, head: str) -> None:
        """Copy the chain of a record, and what it covers, into another scope."""
        self._archive.note(target, "covered", {head: self._covered_until(source, head)})
        self._archive.copy(source, target, head)

    def _covered_until(self, scope: Scope, head: str) -> dict[str, dict[str, Any]]:
        """Return what `cover` has noted up to a record."""
        if head and (known := self._covered.get((scope, head))) is not None:
            return known
        made: dict[str, dict[str, Any]] = {"messages": {}, "parts": {}}
        if head:
            names = [record.id for record in self._archive.chain_at(scope, head)]
            for note in self._archive.notes(scope, "covered", names).values():
                for kind, rows in made.items():
                    rows.update(note[kind])
            self._covered.put((scope, head), made)
        return made


def _begin_alike(marks: Sequence[Mark], others: Sequence[Mark]) -> bool:
    """Return whether two histories begin with the same messages."""
    begin, other = ((one.name for one in part if one.said) for part in (marks, others))
    return [*islice(begin, MOST_KEPT + 1)] == [*islice(other, MOST_KEPT + 1)]


def _with_names_of(known: Sequence[Mark], marks: list[Mark], start: int) -> list[Mark]:
    """Return marks from a place on with the names of known ones that stand in the same order.

    The number among equal ones, and the name of a result behind an id that comes again, follow from
    what stood before a message.
    """
    named = [*marks]
    for at, mark in enumerate(known, start):
        if at >= len(marks):
            break
        now = marks[at]
        same = bare(mark.name) == bare(now.name)
        if not same and (mark.said or now.said or mark.unique or now.unique):
            break
        if mark.name != now.name:
            named[at] = replace(now, name=mark.name)
    return named
