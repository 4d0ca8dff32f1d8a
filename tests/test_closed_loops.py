"""Event loops that end midway: what the collector closes later disturbs no other work."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from background_support import talk_of
from conspectus import Compactor, Summary, SummaryRequest
from conspectus.archive import Archive
from conspectus.observe import Event, listen, unlisten


class HangingSummarizer:
    """A summariser that never answers on a loop, and collects garbage while it answers in sync."""

    name = "slow"
    identity = "slow"
    check_summaries = False

    def __init__(self) -> None:
        self.begun = threading.Event()

    def summarize(self, request: SummaryRequest) -> Summary:
        gc.collect()
        return Summary("All parts are sound.", tuple(entry.key for entry in request.entries))

    async def asummarize(self, request: SummaryRequest) -> Summary:
        self.begun.set()
        await asyncio.sleep(60)
        raise AssertionError("nobody waits so long")


class SlowStore(InMemoryStore):
    """A store that takes its time, so that a coroutine waits for it on the loop itself."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = threading.Event()
        self.may_go_on = threading.Event()

    def batch(self, *arguments: Any, **options: Any) -> Any:
        if threading.current_thread().name == "conspectus" and not self.may_go_on.is_set():
            self.begun.set()
            self.may_go_on.wait(20)
        gc.collect()
        return super().batch(*arguments, **options)


@pytest.fixture
def unraisable() -> Iterator[list[Any]]:
    """What was raised where nobody catches it, such as in the collector."""
    raised: list[Any] = []
    hook_before = sys.unraisablehook
    sys.unraisablehook = lambda unraisable_error: raised.append(repr(unraisable_error.exc_value))
    yield raised
    gc.collect()
    sys.unraisablehook = hook_before
    assert raised == []


def new_compactor(summarizer: Any, **changes: Any) -> Compactor:
    settings: dict[str, Any] = {"trigger": ("messages", 20), "keep": ("messages", 4)}
    return Compactor(summarizer, **{**settings, **changes})


def begin_and_close_loop(compactor: Compactor, number: int, started: threading.Event) -> None:
    """Begin a compaction on a loop of its own, and close the loop while it waits."""
    loop = asyncio.new_event_loop()
    started.clear()
    task = loop.create_task(compactor.acompact(talk_of(20), thread_id=f"begun-{number}"))
    task._log_destroy_pending = False  # type: ignore[attr-defined]

    async def wait() -> None:
        while not started.is_set():
            await asyncio.sleep(0.001)

    loop.run_until_complete(wait())
    loop.close()


def check_later_call(compactor: Compactor, number: int) -> None:
    try:
        result = compactor.compact(talk_of(20), thread_id=f"later-{number}")
    except RuntimeError as error:
        pytest.fail(f"a later call is disturbed: {error}")
    assert result.outcome == "compacted"
    assert compactor.compact(result.messages, thread_id=f"later-{number}").outcome == "kept"


ROUNDS = 12


def test_a_loop_closed_midway_leaves_a_later_call_alone(unraisable):
    compactor = new_compactor(model := HangingSummarizer(), archive="memory:")
    for number in range(ROUNDS):
        begin_and_close_loop(compactor, number, model.begun)
        check_later_call(compactor, number)


def test_a_loop_closed_while_its_store_is_asked_does_so_too(unraisable):
    store = SlowStore()
    compactor, other_compactor = (
        new_compactor(HangingSummarizer(), archive=Archive(each_store))
        for each_store in (store, InMemoryStore())
    )
    for number in range(ROUNDS):
        store.may_go_on.clear()
        begin_and_close_loop(compactor, number, store.begun)
        check_later_call(other_compactor, number)
        store.may_go_on.set()


def test_the_collector_closes_a_coroutine_in_the_context_of_another_call(unraisable):
    """Driven without a task, as other frameworks do: both calls have one context."""
    store = SlowStore()
    compactor, other_compactor = (
        new_compactor(HangingSummarizer(), archive=Archive(each_store))
        for each_store in (store, InMemoryStore())
    )
    for number in range(ROUNDS):
        store.may_go_on.clear()
        loop = asyncio.new_event_loop()
        asyncio.events._set_running_loop(loop)
        call: Any = compactor.acompact(talk_of(20), thread_id=f"begun-{number}")
        call.send(None)
        asyncio.events._set_running_loop(None)
        loop.close()
        holder = [call]
        holder.append(holder)  # only the collector finds it
        del call, holder
        check_later_call(other_compactor, number)
        store.may_go_on.set()


def test_closed_loops_in_many_threads_disturb_nobody(unraisable):
    def work(number: int) -> None:
        compactor = new_compactor(model := HangingSummarizer(), archive="memory:")
        for step in range(3):
            begin_and_close_loop(compactor, 10 * number + step, model.begun)
            check_later_call(compactor, 10 * number + step)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))


ENDS: dict[str, Any] = {
    "a timeout": TimeoutError,
    "a cancelled task": asyncio.CancelledError,
    "an interrupt": KeyboardInterrupt,
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_run_that_is_ended_leaves_a_later_call_alone(end, unraisable):
    compactor = new_compactor(model := HangingSummarizer(), archive="memory:")

    async def main(number: int) -> None:
        call = asyncio.ensure_future(compactor.acompact(talk_of(20), thread_id=f"begun-{number}"))
        if end is TimeoutError:
            await asyncio.wait_for(call, 0.05)
        while not model.begun.is_set():
            await asyncio.sleep(0.001)
        if end is KeyboardInterrupt:
            raise KeyboardInterrupt
        call.cancel()
        await call

    for number in range(4):
        model.begun.clear()
        with pytest.raises(end):
            asyncio.run(main(number))
        check_later_call(compactor, number)


def test_the_next_loop_writes_a_dead_loops_draft(unraisable):
    compactor = new_compactor(model := HangingSummarizer(), archive="memory:")
    begin_and_close_loop(compactor, 0, model.begun)
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(compactor.compact, talk_of(20), thread_id="begun-0")
        assert job.result(20).outcome == "compacted"


def test_listeners_hear_of_what_a_closed_loop_has_ended():
    events: list[Event] = []
    compactor = new_compactor(model := HangingSummarizer(), archive="memory:")
    listen(events.append)
    begin_and_close_loop(compactor, 0, model.begun)
    gc.collect()
    deadline = threading.Event()
    for _ in range(400):
        if [event for event in events if event.kind == "compaction"]:
            break
        deadline.wait(0.05)
    unlisten(events.append)
    assert {event.outcome for event in events if event.kind == "compaction"} == {"cancelled"}
