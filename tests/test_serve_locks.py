"""One writer at a time for each history of the endpoint, however many histories there are."""

import asyncio
import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from conspectus.archive import Archive, Scope
from conspectus_serve.locks import ScopeLocks
from conspectus_serve.withdrawn import Withdrawal, WithdrawnMessage, WithdrawnMessages

MANY = 1_000
SCOPE = Scope("tenant", "thread")


@pytest.mark.parametrize("make_lock", [threading.Lock, asyncio.Lock])
def test_a_lock_in_use_is_never_made_again(make_lock):
    locks = ScopeLocks[Any](make_lock)
    in_use = locks.lock_of(SCOPE)
    for number in range(MANY):
        locks.lock_of(Scope("tenant", f"other-{number}"))
    assert locks.lock_of(SCOPE) is in_use
    gc.collect()
    assert len(locks._locks) == 1, "those that nobody uses are gone"


@pytest.mark.slow
def test_what_is_withdrawn_is_archived_once_whoever_else_writes(tmp_path):
    message = WithdrawnMessage("name", 9, has_unique_ids=True, is_dropped=False)
    written: list[list[int]] = []
    is_writing = threading.Event()
    may_end = threading.Event()

    def archive_slowly(indexes: list[int]) -> list[str]:
        written.append(indexes)
        is_writing.set()
        assert may_end.wait(30)
        return ["key"]

    def withdrawal_of(scope: Scope, *messages: WithdrawnMessage) -> Withdrawal:
        return Withdrawal(
            scope=scope,
            history=[],
            messages=dict(enumerate(messages)),
            covered_keys=frozenset(),
            names=frozenset(),
            left_names=frozenset(),
            begins_anew=False,
        )

    with Archive.open(tmp_path / "a.db") as archive, ThreadPoolExecutor(2) as workers:
        withdrawn = WithdrawnMessages(archive)
        first = workers.submit(withdrawn.keep, withdrawal_of(SCOPE, message), archive_slowly)
        assert is_writing.wait(30)
        for number in range(300):
            scope = Scope("tenant", f"other-{number}")
            withdrawn.keep(withdrawal_of(scope), archive_slowly)
        second = workers.submit(withdrawn.keep, withdrawal_of(SCOPE, message), archive_slowly)
        with pytest.raises(TimeoutError):
            second.result(timeout=0.3)
        may_end.set()
        first.result(30)
        second.result(30)
    assert written == [[0]]
