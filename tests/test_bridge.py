"""Two drivers for one flow: same order, same answers, failures inside, cancellation closes."""

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from conspectus import bridge
from conspectus.bridge import LEFT_BEHIND, StepTimeout, arun, gather, io, run


def both(flow_of: Any) -> list[Any]:
    return [run(flow_of()), asyncio.run(arun(flow_of()))]


class Large:
    """Something under way when a step fails."""


async def one_step(fail: Any, afail: Any, **more: Any) -> Any:
    return await io(fail, afail, **more)


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize(
    "step",
    [
        lambda fail, afail: io(fail, afail),
        lambda fail, afail: io(fail),
        lambda fail, afail: io(fail, afail, timeout=20),
        lambda fail, afail: io(fail, timeout=20),
        lambda fail, afail: gather([one_step(fail, afail)]),
        lambda fail, afail: gather([one_step(fail, None, timeout=20)]),
    ],
)
def test_what_a_step_failed_with_goes_with_the_last_who_holds_it(step, mode):
    """Not only when the collector comes: its frames hold messages, and whatever was under way."""
    left: list[weakref.ref[Large]] = []

    def fail() -> None:
        large = Large()
        left.append(weakref.ref(large))
        raise ValueError("no")

    async def afail() -> None:
        fail()

    async def inner() -> Any:
        return await step(fail, afail)

    async def outer() -> str:
        try:
            await inner()
        except ValueError:
            return "caught"
        return "nothing"

    async def main() -> str:
        return await arun(outer())

    def driven() -> str:
        return run(outer()) if mode == "sync" else asyncio.run(main())

    assert freed_without_the_collector(driven, left) == "caught"


def freed_without_the_collector(work: Any, left: list[weakref.ref[Large]]) -> Any:
    gc.disable()
    try:
        found = work()
        for thread in threading.enumerate():
            if thread.name == LEFT_BEHIND:
                thread.join(20)
        assert left
        assert [one() for one in left] == [None] * len(left)
    finally:
        gc.enable()
    return found


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
        return await gather([one(n) for n in range(9)], limit=3)  # type: ignore[no-any-return]

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
        await gather([one(n) for n in range(40)], limit=2)

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
            await io(lambda: release.wait(60), hang, timeout=0.05)
        except TimeoutError:
            return "gave up"
        return "waited"

    assert both(flow) == ["gave up", "gave up"]
    release.set()


def test_a_step_without_a_loop_is_left_behind_when_its_time_is_over():
    release = threading.Event()

    async def flow() -> str:
        try:
            await io(lambda: release.wait(2), timeout=0.05)
        except StepTimeout:
            return "gave up"
        return "waited"

    assert run(flow()) == "gave up"
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

    async def one() -> None:
        try:
            await io(lambda: None, hang)
        finally:
            closed.append("inner")

    async def flow() -> None:
        try:
            await gather([one(), one()], limit=2)
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
    hanging = [one for one in threading.enumerate() if one.name == "conspectus-timeout"]
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
