"""Two drivers for one flow: same order, same answers, failures inside, cancellation closes."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Generator
from typing import Any

import pytest

from conspectus._drive import Flow, Gather, Io, arun, interpret, pause, run


def double(n: int) -> Flow[int]:
    answer = yield Io(lambda: n * 2)
    return answer  # type: ignore[no-any-return]


def both(flow_of: Any) -> list[Any]:
    return [run(flow_of()), asyncio.run(arun(flow_of()))]


def test_answers_are_sent_in_and_the_result_comes_out() -> None:
    def flow() -> Flow[list[int]]:
        first = yield Io(lambda: 1)
        second = yield from double(first + 1)
        yield pause(0)
        return [first, second]

    assert both(flow) == [[1, 4], [1, 4]]


def test_a_failing_step_can_be_caught_inside_the_flow() -> None:
    def flow() -> Flow[str]:
        try:
            yield Io(lambda: 1 / 0)
        except ZeroDivisionError:
            answer = yield Io(lambda: "recovered")
            return str(answer)
        return "not reached"

    assert both(flow) == ["recovered", "recovered"]


def test_a_failure_that_is_not_caught_comes_out_and_finally_runs() -> None:
    ran = []

    def flow() -> Flow[None]:
        try:
            yield Io(lambda: 1 / 0)
        finally:
            ran.append(True)

    with pytest.raises(ZeroDivisionError):
        run(flow())
    with pytest.raises(ZeroDivisionError):
        asyncio.run(arun(flow()))
    assert ran == [True, True]


def test_the_async_driver_prefers_the_async_call() -> None:
    async def slow() -> str:
        await asyncio.sleep(0)
        return "async"

    def flow() -> Flow[str]:
        return (yield Io(lambda: "sync", slow))  # type: ignore[no-any-return]

    assert both(flow) == ["sync", "async"]


def test_gather_keeps_the_order_and_the_limit() -> None:
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

    def one(n: int) -> Flow[int]:
        return (yield Io(lambda: work(n)))  # type: ignore[no-any-return]

    def flow() -> Flow[list[int]]:
        return (yield Gather([one(n) for n in range(9)], limit=3))  # type: ignore[no-any-return]

    assert both(flow) == [list(range(9))] * 2
    assert 1 < most <= 3


def test_context_variables_reach_the_threads_of_a_gather() -> None:
    seen: contextvars.ContextVar[str] = contextvars.ContextVar("seen", default="nothing")

    def one() -> Flow[str]:
        return (yield Io(seen.get))  # type: ignore[no-any-return]

    def flow() -> Flow[list[str]]:
        return (yield Gather([one(), one()]))  # type: ignore[no-any-return]

    seen.set("the caller's")
    assert run(flow()) == ["the caller's"] * 2


def test_a_step_that_takes_too_long_raises_inside_the_flow() -> None:
    async def hang() -> None:
        await asyncio.sleep(60)

    release = threading.Event()

    def flow() -> Flow[str]:
        try:
            yield Io(lambda: release.wait(60), hang, timeout=0.05)
        except TimeoutError:
            return "gave up"
        return "waited"

    assert both(flow) == ["gave up", "gave up"]
    release.set()


def test_cancelling_closes_the_flow_and_leaves_no_task() -> None:
    closed = []

    async def hang() -> None:
        await asyncio.sleep(60)

    def one() -> Flow[None]:
        try:
            yield Io(lambda: None, hang)
        finally:
            closed.append("inner")

    def flow() -> Flow[None]:
        try:
            yield Gather([one(), one()], limit=2)
        finally:
            closed.append("outer")

    async def main() -> int:
        task = asyncio.create_task(arun(flow()))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return len(asyncio.all_tasks()) - 1

    assert asyncio.run(main()) == 0
    assert closed == ["inner", "inner", "outer"]


def test_interpret_throws_what_performing_raises_into_the_pure_flow() -> None:
    def effects() -> Generator[str, Any, list[Any]]:
        seen: list[Any] = [(yield "good")]
        try:
            yield "bad"
        except ValueError as error:
            seen.append(str(error))
        return seen

    def perform(effect: str) -> Flow[str]:
        if effect == "bad":
            raise ValueError("no")
        return (yield Io(lambda: effect.upper()))  # type: ignore[no-any-return]

    assert both(lambda: interpret(effects(), perform)) == [["GOOD", "no"]] * 2
