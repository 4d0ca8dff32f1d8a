"""Which thread a history belongs to, where the client does not say.

A thread is joined only if all that was answered in it begins the history that came; else a new one
begins. Where the history has left a known thread behind, the compactions that still fit it are
copied into the new one, so that nothing is summarised twice.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from conspectus._drive import Flow
from conspectus.archive import Archive
from conspectus_serve.prefixes import Prefixes

PAGE = 32
"""Beginnings that are looked up at once; a client goes on from one of the last few."""


@dataclass(frozen=True, slots=True)
class Found:
    """The thread of a history.

    Attributes:
        thread: its name.
        head: id of the record in force, as far as is known; empty for none.
        at: the beginning by which it was found; empty for a new one.
        left: the thread that the history has left behind; empty for none.
    """

    thread: str
    head: str = ""
    at: str = ""
    left: str = ""


def find_flow(archive: Archive, tenant: str, prefixes: Prefixes) -> Flow[Found]:
    """Find the thread whose answered history begins this one, or begin a new one.

    A beginning names a thread, and the thread names the last of its beginnings: of two histories
    that have gone on from one at the same moment, one leaves the thread with its next request.
    """
    left = ""
    for page in _pages([name for _, name in prefixes.longest_first()]):
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
    """Keep how far a thread has come, where that has changed.

    Args:
        head: id of the record in force now; empty for none.
    """
    name = prefixes.name
    if name == found.at and head == found.head:
        return
    slips = {name: {"thread": found.thread}, _stand(found.thread): {"at": name, "head": head}}
    yield from archive.put_slips_flow(slips, tenant)


def _stand(thread: str) -> str:
    """The name of the slip that says how far a thread has come."""
    return f"thread {thread}"


def _pages(names: list[str]) -> Iterator[list[str]]:
    for begin in range(0, len(names), PAGE):
        yield names[begin : begin + PAGE]
