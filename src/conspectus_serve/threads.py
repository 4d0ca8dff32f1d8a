"""Find the thread of a history that the client does not name.

A history is known by what clients do not change: the user's words, the model's words, the ids of
its calls. Results of tools, thoughts, reminders and marks for a cache count for nothing, as clients
clear them. A history joins a thread only if it goes on from all that was answered in it; otherwise
it begins a new one. If it has left a known thread, the compactions that still fit are copied into
the new one, so that nothing is summarised twice.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conspectus._newest import Newest
from conspectus.archive import Archive
from conspectus.messages.blocks import author_of, is_item

_WRITE = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode

_TAGS = ("system-reminder", "think", "thinking", "thought", "reasoning")
_OPENS = re.compile(f"<({'|'.join(_TAGS)})>", re.IGNORECASE)
_CLOSES = {tag: re.compile(f"</{tag}>", re.IGNORECASE) for tag in _TAGS}
"""Parts of texts that clients add to messages, or take out of them, from request to request."""

_PART = re.compile(r"[A-Za-z0-9]{8,}+")
"""A part of an id; one of letters and digits is of no other conversation."""

PAGE = 32
"""Prefixes that are looked up at once; a client continues from one of the last few."""

TAIL = 48
"""Marks of a thread's newest messages by which it is known if its older ones have changed."""

ALIKE, HINTED = 0.75, 0.5
"""Share of the tail that a history must have to belong to a thread; with a client's hint, less."""

HINTS = ("x-claude-code-session-id", "session-id", "session_id", "x-session-id")
"""Headers in which clients name their session: Claude Code, Codex, others."""


def by_model(message: Any) -> bool:
    """Return whether the model has written a message."""
    if not isinstance(message, dict):
        return False
    if "role" in message:
        return message["role"] in ("assistant", "model")
    return is_item(message) and author_of(message) == "model"


@dataclass(frozen=True, slots=True)
class Mark:
    """A message as it is known again.

    Attributes:
        name: hash of what clients leave alone; empty if there is nothing such.
        digest: of the whole message; another one means that the client has changed it.
        size: characters of its JSON.
        said: it holds more than results of tools.
        random: no other conversation has its name.
    """

    name: str
    digest: bytes
    size: int
    said: bool
    random: bool


@dataclass(frozen=True, slots=True)
class Prefixes:
    """The prefixes of a history that may be all of an earlier one.

    Attributes:
        names: digests by number of messages, leading system messages included.
        exact: the same of the whole messages.
        answered: messages up to the last answer of the model; all if there is none.
        marks: one for each message.
    """

    names: dict[int, str]
    exact: dict[int, str]
    answered: int
    marks: Sequence[Mark]

    @property
    def name(self) -> str:
        """Return the digest of the answered prefix."""
        return self.names[self.answered]

    def longest_first(self) -> list[tuple[int, str]]:
        return sorted(self.names.items(), reverse=True)

    @property
    def first(self) -> str:
        """Return the name of the message that the history begins with."""
        return next((one.name[:12] for one in self.marks if one.name and one.said), "")

    def tail(self) -> list[str]:
        """Return the names of the newest messages of the answered prefix, the last one last."""
        known = [one.name[:12] for one in self.marks[: self.answered] if one.name and one.said]
        return known[-TAIL:]


_KNOWN = Newest[tuple[str, bytes], Mark](65_536)
"""Marks of messages, as a client sends most of them again; about 20 MB."""


def prefixes_of(history: Sequence[Any], protocol: str) -> Prefixes:
    """Digest the prefixes of a history.

    A stored history ends with an answer of the model, or has none: only such prefixes are named.
    System messages do not count, as they may hold a clock.

    Args:
        history: messages without cache marks.
        protocol: two protocols have no history in common.

    Raises:
        ValueError, TypeError, RecursionError: a message is not JSON.
    """
    loose, strict = (hashlib.sha256(protocol.encode()) for _ in range(2))
    names, exact, marks, answered = dict[int, str](), dict[int, str](), list[Mark](), 0
    seen = Counter[str]()
    for count, message in enumerate(history, 1):
        system = isinstance(message, dict) and message.get("role") in ("system", "developer")
        mark = _mark(message, protocol, seen)
        mark = replace(mark, said=False) if system else mark
        marks.append(mark)
        if system and not names:
            continue
        strict.update(mark.digest)
        if mark.said and mark.name:
            loose.update(mark.name.encode())
        model = by_model(message) and bool(mark.name)
        if model:
            answered = count
        if not system and (model or not answered):
            names[count], exact[count] = loose.hexdigest()[:32], strict.copy().hexdigest()[:32]
    if not names:  # nothing but system messages: then they count
        loose.update(_WRITE(list(history)).encode())
        names[len(history)] = exact[len(history)] = loose.hexdigest()[:32]
    return Prefixes(names, exact, answered or max(names), marks)


def _mark(message: Any, protocol: str, seen: Counter[str]) -> Mark:
    text = _WRITE(message).encode()
    digest = hashlib.sha256(text).digest()[:16]
    mark = _KNOWN.get((protocol, digest))
    if mark is None:
        mark = _read(message, protocol, digest, len(text))
        _KNOWN.put((protocol, digest), mark)
    if mark.name and not mark.random:
        seen[mark.name] += 1  # the same words again are another message
        name = f"{mark.name}-{seen[mark.name]}"
        return Mark(name, digest, mark.size, mark.said, mark.random)
    return mark


def _read(message: Any, protocol: str, digest: bytes, size: int) -> Mark:
    said, results, ids = list[str](), list[str](), list[str]()
    for kind, value in _parts(message):
        (results if kind == "result" else ids if kind == "id" else said).append(value)
    random = bool(ids or results) and all(map(_is_random, (*ids, *results)))
    if not random:  # then the arguments tell a call from another one
        said += [value for kind, value in _parts(message) if kind == "arguments"]
    role = message.get("role") or message.get("type") if isinstance(message, dict) else None
    known = [one for one in ("\0".join(filter(None, said)), *ids, *results) if one]
    name = (
        hashlib.sha256(_WRITE([protocol, role, known]).encode()).hexdigest()[:24] if known else ""
    )
    return Mark(name, digest, size, bool(ids or any(said)), random)


def _parts(message: Any) -> Iterator[tuple[str, str]]:
    """Yield the parts of a message that clients leave alone, with their kind."""
    if not isinstance(message, Mapping):
        return
    kind = str(message.get("type") or "")
    call = message.get("call_id")
    if "role" not in message and isinstance(call, str):  # items of Responses
        if kind.endswith("_output"):
            yield "result", call
        else:
            yield "id", call
            yield "arguments", _WRITE([message.get(k) for k in ("name", "arguments", "input")])
        return
    if "role" not in message:
        if kind not in ("reasoning", ""):
            yield "said", str(message.get("id") or _WRITE(message))
        return
    if isinstance(message.get("tool_call_id"), str):
        yield "result", message["tool_call_id"]
        return
    content = message.get("content")
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, str):
            yield "said", _plain(block)
        elif isinstance(block, Mapping):
            yield from _block(block)
    for one in message.get("tool_calls") or ():
        if isinstance(one, Mapping):
            yield "id", str(one.get("id"))
            yield "arguments", _WRITE(one.get("function"))


def _block(block: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    kind = str(block.get("type") or "")
    if isinstance(block.get("tool_use_id"), str):
        yield "result", block["tool_use_id"]
    elif kind.endswith("tool_use"):
        yield "id", str(block.get("id"))
        yield "arguments", _WRITE([block.get("name"), block.get("input")])
    elif isinstance(block.get("text"), str):
        yield "said", _plain(block["text"])


def _is_random(name: str) -> bool:
    return any(not (part.isalpha() or part.isdigit()) for part in _PART.findall(name))


def _plain(text: str) -> str:
    """Return a text without passing parts, its spaces made one."""
    if "<" not in text:
        return " ".join(text.split())
    kept, at, unclosed = list[str](), 0, set[str]()
    for opening in _OPENS.finditer(text):
        tag = opening[1].lower()
        if opening.start() < at or tag in unclosed:
            continue
        if (closing := _CLOSES[tag].search(text, opening.end())) is None:
            unclosed.add(tag)
            continue
        kept.append(text[at : opening.start()])
        at = closing.end()
    return " ".join("".join([*kept, text[at:]]).split())


@dataclass(frozen=True, slots=True)
class ThreadMatch:
    """The thread of a history.

    Attributes:
        thread: its name.
        head: id of the record in force, as far as is known; empty for none.
        at: the prefix by which it was found; empty for a new one.
        left: the thread that the history has left; empty for none.
    """

    thread: str
    head: str = ""
    at: str = ""
    left: str = ""


async def find_flow(
    archive: Archive, tenant: str, prefixes: Prefixes, hint: str = ""
) -> ThreadMatch:
    """Find the thread from which this history goes on, or begin a new one.

    A prefix names a thread, and the thread names its last prefix: of two histories that continue
    one at the same moment, one leaves the thread with its next request. Where no prefix is known
    whole, as the client has changed or dropped old messages, the newest messages decide.

    Args:
        archive: of the notes.
        tenant: whose history it is.
        prefixes: of the history.
        hint: the client's name of its session; empty for none.
    """
    left = ""
    names = [name for _, name in prefixes.longest_first()]
    for page in (names[begin : begin + PAGE] for begin in range(0, len(names), PAGE)):
        slips = await archive.flow(archive.notes, tenant, "thread", page)
        named = [(name, str(slips[name].get("thread"))) for name in page if name in slips]
        stands = await _stands_flow(archive, tenant, [thread for _, thread in named])
        for name, thread in named:
            stand = stands.get(thread, {})
            head = str(stand.get("head") or "")
            if stand.get("at") == name:
                return ThreadMatch(thread, head, name)
            left = left or (thread if head else "")
    alike = await _alike_flow(archive, tenant, prefixes, hint)
    return alike or ThreadMatch(f"t-{secrets.token_hex(8)}", left=left)


async def _alike_flow(
    archive: Archive, tenant: str, prefixes: Prefixes, hint: str
) -> ThreadMatch | None:
    """Find the thread whose newest messages are in a history whose older ones are others.

    Something must be theirs alone: the client's hint, an id, or the message that they begin with.
    """
    marks = [one for one in prefixes.marks if one.name and one.said]
    own = [one.name[:12] for one in marks]
    theirs = {one.name[:12] for one in marks if one.random} | set(own[:1])
    slips = [f"last {name}" for name in own[-PAGE:]] + ([f"hint {hint}"] if hint else [])
    if not slips:
        return None
    found = await archive.flow(archive.notes, tenant, "thread", slips)
    threads = [str(one.get("thread")) for one in reversed(found.values())]
    stands = await _stands_flow(archive, tenant, threads)
    for thread, stand in stands.items():
        tail = [str(one) for one in stand.get("tail") or ()]
        if len(tail) < 2 or tail[-1] not in own:
            continue
        if hint and stand.get("hint") and stand["hint"] != hint:
            continue
        begin = next((i for i, name in enumerate(tail) if name in own), 0)
        there = sum(name in own for name in tail[begin:])
        hinted = bool(hint) and stand.get("hint") == hint
        sure = hinted or not theirs.isdisjoint([*tail, stand.get("first")])
        need = HINTED if hinted else ALIKE
        if sure and there >= 2 and there >= need * len(tail[begin:]):
            return ThreadMatch(thread, str(stand.get("head") or ""))
    return None


async def _stands_flow(archive: Archive, tenant: str, threads: Sequence[str]) -> dict[str, Any]:
    wanted = {_stand(thread): thread for thread in dict.fromkeys(threads)}
    if not wanted:
        return {}
    found = await archive.flow(archive.notes, tenant, "thread", list(wanted))
    return {wanted[name]: note for name, note in found.items()}


async def settle_flow(
    archive: Archive,
    tenant: str,
    found: ThreadMatch,
    prefixes: Prefixes,
    head: str,
    hint: str = "",
) -> None:
    """Keep a thread's progress, if it has changed."""
    name = prefixes.name
    if name == found.at and head == found.head:
        return
    thread, tail = {"thread": found.thread}, prefixes.tail()
    slips: dict[str, dict[str, Any]] = {name: thread}
    if tail:
        slips[f"last {tail[-1]}"] = thread
    if hint:
        slips[f"hint {hint}"] = thread
    stand = {"at": name, "head": head, "tail": tail, "hint": hint}
    slips[_stand(found.thread)] = {**stand, "first": prefixes.first}
    await archive.flow(archive.note, tenant, "thread", slips)


def _stand(thread: str) -> str:
    """Return the name of the slip with a thread's progress."""
    return f"thread {thread}"


def hint_of(headers: Mapping[str, str], body: Mapping[str, Any]) -> str:
    """Return the client's name of its session, hashed; empty for none."""
    metadata = body.get("metadata")
    user = metadata.get("user_id") if isinstance(metadata, Mapping) else None
    given = [*map(headers.get, HINTS), body.get("prompt_cache_key")]
    if isinstance(user, str) and "session" in user:  # Claude Code's
        given.append(user)
    first = next((one for one in given if isinstance(one, str) and one.strip()), "")
    return hashlib.sha256(first.encode("utf-8", "replace")).hexdigest()[:24] if first else ""
