"""Two drivers for one flow: same order, same answers, failures inside, cancellation closes."""

import asyncio
import threading
import time
from typing import Any

import pytest
from langgraph.errors import GraphInterrupt

from conspectus import Compactor, Summary, SummaryRequest, bridge
from conspectus.bridge import StepTimeout, arun, gather, io, run
from engine import SCOPE, Scripted, engine, short
from histories import talk


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


def test_a_thread_that_hangs_keeps_neither_the_loop_nor_the_process_from_ending():
    release = threading.Event()

    async def flow() -> str:
        try:
            await io(lambda: release.wait(2), timeout=0.01)
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


# A call that is stopped anywhere has done nothing, or all of it; and leaves no task behind


class Awaiting(Scripted):
    """A summariser that lets others go on before it answers."""

    async def asummarize(self, request: SummaryRequest) -> Summary:
        for _ in range(3):
            await asyncio.sleep(0)
        return self.summarize(request)


def test_cancelled_at_any_turn_of_the_loop(tmp_path):
    """Whenever it is cancelled: nothing is lost, no task is left, and the next call succeeds."""

    async def cancelled_after(turns: int, compactor: Compactor) -> bool:
        said = [{**message, "id": f"m{n}"} for n, message in enumerate(talk(40))]
        call = asyncio.ensure_future(compactor.acompact(said, thread_id=f"t{turns}"))
        for _ in range(turns):
            await asyncio.sleep(0)
        call.cancel()
        [ended] = await asyncio.gather(call, return_exceptions=True)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        result = await compactor.acompact(said, thread_id=f"t{turns}")
        view = {message.get("id") for message in result.messages}
        left = [message for message in said if message["id"] not in view]
        assert left
        for message in left:
            recalled = await compactor.arecall(
                id=message["id"], thread_id=f"t{turns}", tokens=5_000
            )
            assert message["content"].strip() in recalled.text
        return not isinstance(ended, asyncio.CancelledError)

    async def main() -> None:
        with Compactor(
            Awaiting(short), archive=tmp_path / "a.db", trigger=("messages", 30)
        ) as compactor:
            done = [await cancelled_after(turns, compactor) for turns in range(0, 40, 3)]
        assert not done[0]

    asyncio.run(main())


@pytest.mark.parametrize("way_out", [GraphInterrupt, KeyboardInterrupt])
def test_a_summariser_may_interrupt_the_graph(way_out):
    class Asking(Scripted):
        def summarize(self, request: SummaryRequest) -> Summary:
            if not self.requests:
                self.requests.append(request)
                raise way_out
            return super().summarize(request)

    compactor, sent = engine(Asking(short), trigger=("messages", 30)), talk(40)
    with pytest.raises(way_out):
        compactor.compact(sent, thread_id="t")
    assert compactor.archive.chain(SCOPE) == ()
    assert compactor.compact(sent, thread_id="t").outcome == "compacted"
