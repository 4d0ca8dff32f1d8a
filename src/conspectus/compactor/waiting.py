"""Several workers of one process at one summary: who comes second waits for the first.

Between processes nothing can be locked, as stores cannot compare and set. There a commit holds the
archive's pointer against the one that its plan was made on, before it writes and after
(`ArchiveFlows.commit_flow`); where it was moved, the history is looked at again.
"""

from __future__ import annotations

import asyncio
import threading
import time

from conspectus._drive import Flow, Io
from conspectus.archive import Scope
from conspectus.compactor.memory import Memory

LOOK_AGAIN, LONGEST_LOOK = 0.02, 600.0
"""Seconds between two looks at a summary that another worker of this process is writing, and until
nobody waits for it any longer: its task may never go on, as that of a loop that was stopped."""


def taken_flow(memory: Memory, scope: Scope, plan: str) -> Flow[bool]:
    """Take the summary of a plan upon this worker, which then must `end` it in the memory.

    Where another worker is at it, it is not taken, and this comes back once that is over: its draft
    is there then, and paid for once. If nothing came of it, this worker goes on by itself.
    """
    if memory.begin(scope, plan):
        return True
    until = time.monotonic() + LONGEST_LOOK
    while (owner := memory.under_way(scope, plan)) is not None:
        if time.monotonic() > until or not (yield _short_pause(owner)):
            break
    return False


def _short_pause(owner: int) -> Io:
    """Return a step that lets the owner go on.

    The step answers with False where the owner waits for this very thread, or its own has ended,
    as those of the process that this one was forked from have.
    """

    def call() -> bool:
        if owner == threading.get_ident() or not lives():
            return False
        time.sleep(LOOK_AGAIN)
        return True

    def lives() -> bool:
        return any(thread.ident == owner for thread in threading.enumerate())

    return Io(call, lambda: asyncio.sleep(LOOK_AGAIN, lives()))
