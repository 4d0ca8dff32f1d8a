"""Two drivers for one flow: same order, same answers, failures inside, cancellation closes."""

import asyncio
import threading
import time
from typing import Any

import pytest

from conspectus import bridge
from conspectus.bridge import StepTimeout, arun, gather, io, run


def both(flow_of: Any) -> list[Any]:
    return [run(flow_of()), asyncio.run(arun(flow_of()))]


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
