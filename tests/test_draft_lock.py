"""One worker at a time writes a draft, and a writer that has died holds nobody up."""

import threading
from types import SimpleNamespace
from typing import Any

from conspectus.archive import Scope
from conspectus.bridge import pause, run
from conspectus.engine import draft_lock

HISTORY: Any = SimpleNamespace(store=SimpleNamespace(lock_key=1), scope=Scope("local", "t"))


def test_a_dead_writer_is_replaced_by_the_next_one(monkeypatch):
    died = threading.Thread(target=die_while_writing)
    died.start()
    died.join()

    waiting: set[int] = set()
    both_others_wait = threading.Event()
    inside: list[int] = []
    most: list[int] = []

    async def pause_and_tell(seconds: float) -> None:
        waiting.add(threading.get_ident())
        if len(waiting) == 2:
            both_others_wait.set()
        await pause(seconds)

    async def write() -> None:
        async with draft_lock.draft_lock(HISTORY, "draft"):
            inside.append(1)
            both_others_wait.wait(timeout=5)
            most.append(len(inside))
            inside.pop()

    monkeypatch.setattr(draft_lock, "pause", pause_and_tell)
    workers = [threading.Thread(target=lambda: run(write())) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert both_others_wait.is_set()
    assert most == [1, 1, 1]


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
