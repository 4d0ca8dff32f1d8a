"""Find the thread of a history that the client does not name.

A history joins a thread only if it begins with all that was answered in it; otherwise it begins
a new one. If it has left a known thread, the compactions that still fit are copied into the new
one, so that nothing is summarised twice.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from conspectus._drive import Flow
from conspectus.archive import Archive
from conspectus_serve.prefixes import Prefixes

PAGE = 32
"""Prefixes that are looked up at once; a client continues from one of the last few."""


@dataclass(frozen=True, slots=True)
class Found:
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


def find_flow(archive: Archive, tenant: str, prefixes: Prefixes) -> Flow[Found]:
    """Find the thread whose answered history begins this one, or begin a new one.

    A prefix names a thread, and the thread names its last prefix: of two histories that continue
    one at the same moment, one leaves the thread with its next request.
    """
    left = ""
    names = [name for _, name in prefixes.longest_first()]
    for page in (names[begin : begin + PAGE] for begin in range(0, len(names), PAGE)):
        slips = yield from archive.slips_flow(page, tenant)
        named = [(name, str(slips[name].get("thread"))) for name in page if name in slips]
        stands: dict[str, dict[str, Any]] = {}
        if named:
            wanted = list(dict.fromkeys(_stand(thread) for _, thread in named))
            stands = yield from archive.slips_flow(wanted, tenant)
        for name, thread in named:
            stand = stands.get(_stand(thread), {})
            head = str(stand.get("head") or "")
            if stand.get("at") == name:
                return Found(thread, head, name)
            left = left or (thread if head else "")
    return Found(f"t-{secrets.token_hex(8)}", left=left)


def settle_flow(
    archive: Archive, tenant: str, found: Found, prefixes: Prefixes, head: str
) -> Flow[None]:
    """Keep a thread's progress, if it has changed."""
    name = prefixes.name
    if name == found.at and head == found.head:
        return
    slips = {name: {"thread": found.thread}, _stand(found.thread): {"at": name, "head": head}}
    yield from archive.put_slips_flow(slips, tenant)


def _stand(thread: str) -> str:
    """Return the name of the slip with a thread's progress."""
    return f"thread {thread}"
