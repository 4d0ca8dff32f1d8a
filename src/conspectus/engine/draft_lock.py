"""One worker of a process writes a draft; others that need the same one wait for it."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic
from typing import NamedTuple

from conspectus.archive import Scope
from conspectus.bridge import home_thread, is_blocked, pause
from conspectus.engine.history import HistoryContext
from conspectus.engine.preparations import LOST_AFTER_SECONDS, POLL_SECONDS


class _DraftName(NamedTuple):
    """What one worker at a time writes."""

    store: int
    scope: Scope
    name: str


class _Writer(NamedTuple):
    """A worker, with the thread without which it cannot go on."""

    thread: int
    token: object


_WRITERS: dict[_DraftName, _Writer] = {}
"""The drafts that workers of this process are writing."""

_LOCK = threading.Lock()
"""Guards the look at a writer and its replacement."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_WRITERS.clear)


@asynccontextmanager
async def draft_lock(history: HistoryContext, name: str) -> AsyncIterator[None]:
    """Wait until no other worker of this process writes a draft of this name.

    Work goes on without the lock if the writer's thread is the one that would wait, and after
    `LOST_AFTER_SECONDS`. The draft of a writer whose thread has ended is taken over.
    """
    draft = _DraftName(history.store.identity, history.scope, name)
    own = _Writer(home_thread(), object())
    until = monotonic() + LOST_AFTER_SECONDS
    while (writer := _taken_over(draft, own)) is not own and monotonic() < until:
        if is_blocked(writer.thread):
            break
        await pause(POLL_SECONDS)
    try:
        yield
    finally:
        if _WRITERS.get(draft) is own:
            del _WRITERS[draft]


def _taken_over(draft: _DraftName, own: _Writer) -> _Writer:
    """Return who writes a draft: this worker, if nobody did, or one whose thread has ended."""
    with _LOCK:
        writer = _WRITERS.setdefault(draft, own)
        if all(thread.ident != writer.thread for thread in threading.enumerate()):
            _WRITERS[draft] = own
        return _WRITERS[draft]
