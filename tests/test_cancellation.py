"""A call that is stopped anywhere has done nothing, or all of it; and leaves no task behind."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.errors import GraphInterrupt

from conspectus import Compactor, Summary, SummaryRequest
from engine import SCOPE, Scripted, engine, short
from histories import talk


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


class Hanging(Scripted):
    """A summariser that does not come back, the first time."""

    def __init__(self) -> None:
        super().__init__(short)
        self.started = asyncio.Event()
        self.closed = 0

    async def asummarize(self, request: SummaryRequest) -> Summary:
        if self.started.is_set():
            return self.summarize(request)
        self.started.set()
        try:
            await asyncio.sleep(600)
        finally:
            self.closed += 1
        raise AssertionError


async def by_a_timeout(call: Callable[[], Any], hanging: Hanging) -> None:
    async def limited() -> None:
        async with asyncio.timeout(None) as limit:
            waiting = asyncio.ensure_future(hanging.started.wait())
            waiting.add_done_callback(lambda _: limit.reschedule(0))
            await call()

    with pytest.raises(TimeoutError):
        await limited()


async def by_wait_for(call: Callable[[], Any], hanging: Hanging) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(call(), 0.2)


async def by_a_sibling(call: Callable[[], Any], hanging: Hanging) -> None:
    async def fails() -> None:
        await hanging.started.wait()
        raise LookupError("the sibling fails")

    async def together() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(call())
            group.create_task(fails())

    with pytest.raises(ExceptionGroup, match="unhandled errors"):
        await together()


@pytest.mark.parametrize("way", [by_a_timeout, by_wait_for, by_a_sibling])
def test_cancelled_from_outside_while_a_summariser_hangs(way):
    async def main() -> None:
        hanging = Hanging()
        compactor, sent = engine(hanging, trigger=("messages", 30)), talk(40)
        await way(lambda: compactor.acompact(sent, thread_id="t"), hanging)
        assert hanging.closed == 1
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert compactor.archive.chain(SCOPE) == ()
        # Nobody else waits for a summary that was given up.
        assert (await compactor.acompact(sent, thread_id="t")).outcome == "compacted"

    asyncio.run(main())
