"""Let one worker of a process make a summary while the others wait for it.

Between processes nothing can be locked, as stores cannot compare and set. There a commit compares
the archive's pointer with its plan's, before it writes and after (`ArchiveFlows.commit_flow`); if
it was moved, the history is read again.
"""

from __future__ import annotations

import asyncio
import threading
import time

from conspectus._drive import Flow, Io
from conspectus.archive import Scope
from conspectus.compactor.memory import Memory

LOOK_AGAIN, LONGEST_LOOK = 0.02, 600.0
"""Seconds between two checks of a summary that another worker is writing, and until its task is
taken to be lost.
"""


def taken_flow(memory: Memory, scope: Scope, plan: str) -> Flow[bool]:
    """Claim the summary of a plan for this worker, which must then `end` it in the memory.

    If another worker has it, wait and return False: its draft is there then, or it has failed.
    """
    if memory.begin(scope, plan):
        return True
    until = time.monotonic() + LONGEST_LOOK
    while (owner := memory.under_way(scope, plan)) is not None:
        if time.monotonic() > until or not (yield _short_pause(owner)):
            break
    return False


def _short_pause(owner: int) -> Io:
    """Return a step that lets the owner of a claim go on.

    It answers False if the owner waits for this thread, or its own thread has ended.
    """

    def call() -> bool:
        if owner == threading.get_ident() or not lives():
            return False
        time.sleep(LOOK_AGAIN)
        return True

    def lives() -> bool:
        return any(thread.ident == owner for thread in threading.enumerate())

    return Io(call, lambda: asyncio.sleep(LOOK_AGAIN, lives()))
