"""One worker at a time writes a draft, and a writer that has died holds nobody up."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from conspectus.archive import Scope
from conspectus.bridge import pause, run
from conspectus.engine import draft_lock

HISTORY: Any = SimpleNamespace(store=SimpleNamespace(lock_key=1), scope=Scope("local", "t"))

NEVER_RELEASED: list[Any] = []
"""Locks of dead writers: held here, or the garbage collector would release them."""


def die_while_writing() -> None:
    """Take the lock and return without releasing it, as a worker whose event loop was closed."""
    lock = draft_lock.draft_lock(HISTORY, "draft")
    entering = lock.__aenter__()
    with pytest.raises(StopIteration):  # it has the lock at once, without a pause
        entering.send(None)
    NEVER_RELEASED.append(lock)


def test_a_dead_writer_is_replaced_by_the_next_one(monkeypatch):
    dead_writer = threading.Thread(target=die_while_writing)
    dead_writer.start()
    dead_writer.join()

    waiting: set[int] = set()
    both_others_wait = threading.Event()
    writing: list[int] = []
    writers_at_once: list[int] = []

    async def pause_and_tell(seconds: float) -> None:
        waiting.add(threading.get_ident())
        if len(waiting) == 2:
            both_others_wait.set()
        await pause(seconds)

    async def write() -> None:
        async with draft_lock.draft_lock(HISTORY, "draft"):
            writing.append(threading.get_ident())
            both_others_wait.wait(timeout=5)
            writers_at_once.append(len(writing))
            writing.pop()

    monkeypatch.setattr(draft_lock, "pause", pause_and_tell)
    workers = [threading.Thread(target=lambda: run(write())) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert both_others_wait.is_set()
    assert writers_at_once == [1, 1, 1]
