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
from conspectus.engine.preparations import POLL_INTERVAL, WRITER_TIMEOUT


class _DraftName(NamedTuple):
    """What one worker at a time writes."""

    store: int
    scope: Scope
    name: str


class _Writer(NamedTuple):
    """A worker, with the thread that it needs."""

    thread: int
    token: object


_WRITERS: dict[_DraftName, _Writer] = {}
"""The drafts that workers of this process are writing."""

_LOCK = threading.Lock()
"""Held while a writer is looked up and replaced or taken out."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_WRITERS.clear)


@asynccontextmanager
async def draft_lock(history: HistoryContext, name: str) -> AsyncIterator[None]:
    """Wait until no other worker of this process writes a draft of this name.

    The work continues without the lock if the writer needs the thread that would wait, and after
    `WRITER_TIMEOUT`. If the thread of a writer has ended, this worker becomes the writer.
    """
    draft = _DraftName(history.store.lock_key, history.scope, name)
    own = _Writer(home_thread(), object())
    until = monotonic() + WRITER_TIMEOUT
    while (writer := _claim_draft(draft, own)) is not own and monotonic() < until:
        if is_blocked(writer.thread):
            break
        await pause(POLL_INTERVAL)
    try:
        yield
    finally:
        with _LOCK:
            if _WRITERS.get(draft) is own:
                del _WRITERS[draft]


def _claim_draft(draft: _DraftName, own: _Writer) -> _Writer:
    """Return the writer of a draft: this worker, if there was none or its thread has ended."""
    with _LOCK:
        writer = _WRITERS.setdefault(draft, own)
        if all(thread.ident != writer.thread for thread in threading.enumerate()):
            _WRITERS[draft] = own
        return _WRITERS[draft]
