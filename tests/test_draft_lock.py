"""One worker at a time writes a draft, and a writer that has died holds nobody up."""

import threading
import time
from types import SimpleNamespace
from typing import Any

from conspectus.archive import Scope
from conspectus.bridge import run
from conspectus.engine import draft_lock

HISTORY: Any = SimpleNamespace(store=SimpleNamespace(lock_key=1), scope=Scope("local", "t"))


def test_a_dead_writer_is_replaced_by_the_next_one():
    died = threading.Thread(target=die_while_writing)
    died.start()
    died.join()
    assert draft_lock._WRITERS

    inside: list[int] = []
    most: list[int] = []

    async def write() -> None:
        async with draft_lock.draft_lock(HISTORY, "draft"):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.05)
            inside.pop()

    workers = [threading.Thread(target=lambda: run(write())) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert most == [1, 1, 1]
    assert not draft_lock._WRITERS


def die_while_writing() -> None:
    """Begin to write, and end without an end of the coroutine, as a closed loop may leave it."""
    lock = draft_lock.draft_lock(HISTORY, "draft")
    entering = lock.__aenter__()
    try:
        entering.send(None)
    except StopIteration:
        LEFT_OPEN.append(lock)


LEFT_OPEN: list[Any] = []
"""What nobody closes."""
