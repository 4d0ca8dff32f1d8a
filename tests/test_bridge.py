"""Two drivers for one flow: same order, same answers, failures inside, cancellation closes."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from conspectus import bridge
from conspectus.bridge import StepTimeout, arun, gather, io, run


def both(flow_of: Any) -> list[Any]:
    return [run(flow_of()), asyncio.run(arun(flow_of()))]


def test_without_a_loop_all_runs_in_the_thread_of_the_caller():
    async def flow() -> list[int]:
        return [await io(threading.get_ident), *await gather(one, [1])]

    async def one(n: int) -> int:
        return await io(threading.get_ident)  # type: ignore[no-any-return]

    assert run(flow()) == [threading.get_ident()] * 2


def test_a_loop_is_not_held_by_what_computes_beside_it():
    async def computes() -> None:
        for _ in range(3):
            sum(range(1_500_000))
            await io(lambda: None, lambda: asyncio.sleep(0))

    async def main() -> float:
        work = [asyncio.create_task(bridge.aside(computes())) for _ in range(8)]
        longest, before = 0.0, time.monotonic()
        while not all(task.done() for task in work):
            await asyncio.sleep(0.001)
            longest, before = max(longest, time.monotonic() - before), time.monotonic()
        return longest

    # A single one of the computations takes some 20 ms, all of them half a second.
    assert asyncio.run(main()) < 0.2


def test_gather_keeps_the_order_and_the_limit():
    running, most, lock = 0, 0, threading.Lock()

    def work(n: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1
        return n

    async def one(n: int) -> int:
        return await io(lambda: work(n))  # type: ignore[no-any-return]

    async def flow() -> list[int]:
        return await gather(one, range(9), limit=3)

    assert both(flow) == [list(range(9))] * 2
    assert 1 < most <= 3


def test_a_failure_stops_what_has_not_started():
    ran: list[int] = []

    def work(n: int) -> None:
        if n == 0:
            raise ValueError("no")
        time.sleep(0.01)
        ran.append(n)

    async def one(n: int) -> None:
        await io(lambda: work(n))

    async def flow() -> None:
        await gather(one, range(40), limit=2)

    for drive in (run, lambda flow: asyncio.run(arun(flow))):
        ran.clear()
        with pytest.raises(ValueError, match="no"):
            drive(flow())
        assert len(ran) < 20


def test_a_step_that_takes_too_long_raises_inside_the_flow():
    async def hang() -> None:
        await asyncio.sleep(60)

    release = threading.Event()

    async def flow() -> str:
        try:
            await io(lambda: release.wait(2), hang, timeout=0.05)
        except TimeoutError:
            return "gave up"
        return "waited"

    assert both(flow) == ["gave up", "gave up"]
    release.set()


def cancelled(flow: Callable[[], Awaitable[None]], after: float) -> int:
    """Cancel a flow on a loop after so many seconds; how many tasks are left of it."""

    async def main() -> int:
        task = asyncio.create_task(arun(flow()))
        await asyncio.sleep(after)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return len(asyncio.all_tasks()) - 1

    return asyncio.run(main())


def test_cancelling_closes_the_flow_and_leaves_no_task():
    closed = []

    async def hang() -> None:
        await asyncio.sleep(60)

    async def one(n: int) -> None:
        try:
            await io(lambda: None, hang)
        finally:
            closed.append("inner")

    async def flow() -> None:
        try:
            await gather(one, range(2), limit=2)
        finally:
            closed.append("outer")

    assert cancelled(flow, 0.02) == 0
    assert closed == ["inner", "inner", "outer"]


def test_a_call_that_does_not_end_when_cancelled_is_left_behind():
    """As a driver of a database, which waits for the server before it lets go."""
    ended = []

    async def stubborn() -> None:
        for _ in range(2):
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                ended.append("cancelled")

    async def flow() -> str:
        try:
            await io(lambda: None, stubborn, timeout=0.01)
        except StepTimeout:
            return "gave up"
        return "waited"

    async def main() -> str:
        return await arun(flow())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bridge, "CLEAN_UP", 0.01)
        assert asyncio.run(main()) == "gave up"
    assert ended == ["cancelled", "cancelled"]  # the second time by the loop that ends


def test_a_thread_that_hangs_keeps_neither_the_loop_nor_the_process_from_ending():
    release = threading.Event()

    async def flow() -> str:
        try:
            await io(release.wait, timeout=0.01)
        except StepTimeout:
            return "gave up"
        return "waited"

    assert both(flow) == ["gave up", "gave up"]  # `asyncio.run` waits for the threads of its pool
    hanging = [one for one in threading.enumerate() if one.name == "conspectus"]
    assert len(hanging) >= 2
    assert all(one.daemon for one in hanging)
    release.set()


def test_a_loop_that_is_closed_ends_what_waits_for_it_beside_it(monkeypatch):
    monkeypatch.setattr(bridge, "LOOK", 0.05)
    ended = threading.Event()

    async def body() -> None:
        try:
            await io(lambda: None, lambda: asyncio.sleep(60))
        finally:
            ended.set()

    async def begin() -> asyncio.Task[None]:
        task = asyncio.create_task(bridge.aside(body()))
        await asyncio.sleep(0.05)
        return task

    loop = asyncio.new_event_loop()
    left = loop.run_until_complete(begin())
    loop.close()
    assert not left.done()
    assert ended.wait(20)
