"""Find the thread of a history that the client does not name.

A history joins a thread only if it begins with all that was answered in it; otherwise it begins
a new one. If it has left a known thread, the compactions that still fit are copied into the new
one, so that nothing is summarised twice.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from conspectus.archive import Archive
from conspectus.messages.blocks import author_of, is_item

_WRITE = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def by_model(message: Any) -> bool:
    """Return whether the model has written a message."""
    if not isinstance(message, dict):
        return False
    if "role" in message:
        return message["role"] in ("assistant", "model")
    return is_item(message) and author_of(message) == "model"


@dataclass(frozen=True, slots=True)
class Prefixes:
    """The prefixes of a history that may be all of an earlier one.

    Attributes:
        names: digests by number of messages, leading system messages included.
        answered: messages up to the last answer of the model; all if there is none.
    """

    names: dict[int, str]
    answered: int

    @property
    def name(self) -> str:
        """Return the digest of the answered prefix."""
        return self.names[self.answered]

    def longest_first(self) -> list[tuple[int, str]]:
        return sorted(self.names.items(), reverse=True)


def prefixes_of(history: Sequence[Any], protocol: str) -> Prefixes:
    """Digest the prefixes of a history.

    A stored history ends with an answer of the model, or has none: only such prefixes are named.
    Leading system messages do not count, as they may hold a clock.

    Args:
        history: messages without cache marks.
        protocol: two protocols have no history in common.

    Raises:
        ValueError, TypeError, RecursionError: a message is not JSON.
    """
    running = hashlib.sha256(protocol.encode())
    names: dict[int, str] = {}
    leading, answered = True, 0
    for count, message in enumerate(history, 1):
        if leading and isinstance(message, dict) and message.get("role") in ("system", "developer"):
            continue
        leading = False
        text = _WRITE(message).encode()
        running.update(b"%d:" % len(text))
        running.update(text)
        model = by_model(message)
        if model:
            answered = count
        if model or not answered:
            names[count] = running.copy().hexdigest()[:32]
    if not names:  # nothing but system messages: then they count
        running.update(_WRITE(list(history)).encode())
        names[len(history)] = running.hexdigest()[:32]
    return Prefixes(names, answered or max(names))


PAGE = 32
"""Prefixes that are looked up at once; a client continues from one of the last few."""


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


async def find_flow(archive: Archive, tenant: str, prefixes: Prefixes) -> ThreadMatch:
    """Find the thread whose answered history begins this one, or begin a new one.

    A prefix names a thread, and the thread names its last prefix: of two histories that continue
    one at the same moment, one leaves the thread with its next request.
    """
    left = ""
    names = [name for _, name in prefixes.longest_first()]
    for page in (names[begin : begin + PAGE] for begin in range(0, len(names), PAGE)):
        slips = await archive.flow(archive.notes, tenant, "thread", page)
        named = [(name, str(slips[name].get("thread"))) for name in page if name in slips]
        stands: dict[str, dict[str, Any]] = {}
        if named:
            wanted = list(dict.fromkeys(_stand(thread) for _, thread in named))
            stands = await archive.flow(archive.notes, tenant, "thread", wanted)
        for name, thread in named:
            stand = stands.get(_stand(thread), {})
            head = str(stand.get("head") or "")
            if stand.get("at") == name:
                return ThreadMatch(thread, head, name)
            left = left or (thread if head else "")
    return ThreadMatch(f"t-{secrets.token_hex(8)}", left=left)


async def settle_flow(
    archive: Archive, tenant: str, found: ThreadMatch, prefixes: Prefixes, head: str
) -> None:
    """Keep a thread's progress, if it has changed."""
    name = prefixes.name
    if name == found.at and head == found.head:
        return
    slips = {name: {"thread": found.thread}, _stand(found.thread): {"at": name, "head": head}}
    await archive.flow(archive.note, tenant, "thread", slips)


def _stand(thread: str) -> str:
    """Return the name of the slip with a thread's progress."""
    return f"thread {thread}"
