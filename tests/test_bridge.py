"""Two drivers for one flow, and many workers at once: nothing is lost, nor paid for twice."""

import asyncio
import os
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from langgraph.errors import GraphInterrupt
from langgraph.store.memory import InMemoryStore

from compactor_support import SCOPE, Scripted, new_compactor, short_summary
from conspectus import ArchiveOvertaken, Compactor, Summary, SummaryRequest
from conspectus.archive import Archive
from conspectus.bridge import StepTimeout, arun, call_either_way, gather, run
from histories import agent_history, talk
from scripted_models import ScriptedChatModel


def driven_both_ways(flow_of: Any) -> list[Any]:
    return [run(flow_of()), asyncio.run(arun(flow_of()))]


def test_gather_keeps_the_order_and_the_limit():
    running = 0
    most_at_once = 0
    lock = threading.Lock()

    def work(n: int) -> int:
        nonlocal running, most_at_once
        with lock:
            running += 1
            most_at_once = max(most_at_once, running)
        time.sleep(0.01)
        with lock:
            running -= 1
        return n

    async def run_one(n: int) -> int:
        return await call_either_way(lambda: work(n))  # type: ignore[no-any-return]

    async def flow() -> list[int]:
        return await gather(run_one, range(9), limit=3)

    assert driven_both_ways(flow) == [list(range(9))] * 2
    assert 1 < most_at_once <= 3


def test_a_failure_stops_what_has_not_started():
    numbers_run: list[int] = []

    def work(n: int) -> None:
        if n == 0:
            raise ValueError("no")
        time.sleep(0.01)
        numbers_run.append(n)

    async def run_one(n: int) -> None:
        await call_either_way(lambda: work(n))

    async def flow() -> None:
        await gather(run_one, range(40), limit=2)

    for drive in (run, lambda flow: asyncio.run(arun(flow))):
        numbers_run.clear()
        with pytest.raises(ValueError, match="no"):
            drive(flow())
        assert len(numbers_run) < 20


def test_a_hanging_thread_lets_loop_and_process_end():
    release = threading.Event()

    async def flow() -> str:
        try:
            await call_either_way(lambda: release.wait(2), timeout=0.01)
        except StepTimeout:
            return "gave up"
        return "waited"

    assert driven_both_ways(flow) == [
        "gave up",
        "gave up",
    ]  # `asyncio.run` waits for the threads of its pool
    hanging = [thread for thread in threading.enumerate() if thread.name == "conspectus"]
    assert len(hanging) >= 2
    assert all(thread.daemon for thread in hanging)
    release.set()


class Awaiting(Scripted):
    """A summariser that lets others go on before it answers."""

    async def asummarize(self, request: SummaryRequest) -> Summary:
        for _ in range(3):
            await asyncio.sleep(0)
        return self.summarize(request)


def test_cancelled_at_any_turn_of_the_loop(tmp_path):
    """Whenever it is cancelled: nothing is lost, no task is left, and the next call succeeds."""

    async def cancelled_after(turns: int, compactor: Compactor) -> bool:
        messages = talk_of_worker(turns, 80)
        call = asyncio.ensure_future(compactor.acompact(messages, thread_id=f"t{turns}"))
        for _ in range(turns):
            await asyncio.sleep(0)
        call.cancel()
        [ended] = await asyncio.gather(call, return_exceptions=True)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        result = await compactor.acompact(messages, thread_id=f"t{turns}")
        assert all_there(compactor, result, messages, f"t{turns}")
        return not isinstance(ended, asyncio.CancelledError)

    async def main() -> None:
        with Compactor(
            Awaiting(short_summary), archive=tmp_path / "a.db", trigger=("messages", 30)
        ) as compactor:
            finished_first = [await cancelled_after(turns, compactor) for turns in range(0, 40, 3)]
        assert not finished_first[0]

    asyncio.run(main())


@pytest.mark.parametrize("name", ["pin", "on_event", "telemetry"])
def test_a_callback_that_hangs_stops_no_other_work_beside_the_loop(name):
    release = threading.Event()
    settings = {"trigger": ("messages", 10), "keep": ("messages", 4)}
    hanging = Compactor(**settings, **{name: lambda *arguments: release.wait(9)})

    async def flow() -> set[Any]:
        job = asyncio.create_task(hanging.acompact(talk(6), thread_id="t"))
        await asyncio.sleep(0.1)
        job.cancel()
        other_call = asyncio.create_task(Compactor(**settings).acompact(talk(6), thread_id="t"))
        ended, _ = await asyncio.wait({other_call}, timeout=5)
        release.set()
        return ended

    assert asyncio.run(flow()), "it never came to its turn"


@pytest.mark.parametrize("way_out", [GraphInterrupt, KeyboardInterrupt])
def test_a_summariser_may_interrupt_the_graph(way_out):
    class Asking(Scripted):
        def summarize(self, request: SummaryRequest) -> Summary:
            if not self.requests:
                self.requests.append(request)
                raise way_out
            return super().summarize(request)

    compactor = new_compactor(Asking(short_summary), trigger=("messages", 30))
    sent = talk(40)
    with pytest.raises(way_out):
        compactor.compact(sent, thread_id="t")
    assert compactor.archive.chain(SCOPE) == ()
    assert compactor.compact(sent, thread_id="t").outcome == "compacted"


MANY = 200 if os.environ.get("CONSPECTUS_PROFILE") == "long" else 10


def talk_of_worker(worker: int, count: int = 14) -> list[dict[str, str]]:
    """A conversation in which each message names its worker."""
    roles = ("user", "assistant")
    return [
        {"role": roles[n % 2], "content": f"worker-{worker}: part {n}. " * 9, "id": f"{worker}-{n}"}
        for n in range(count)
    ]


def all_there(
    compactor: Compactor, result: Any, messages: list[dict[str, str]], thread: str
) -> bool:
    """Whether each message is in the view or recalled by its id."""
    view = {m.get("id") for m in result.messages}
    left_messages = [m for m in messages if m["id"] not in view]
    recalled = [
        compactor.recall(id=m["id"], thread_id=thread, tokens=2_000).text for m in left_messages
    ]
    return bool(left_messages) and all(
        m["content"].strip() in text for m, text in zip(left_messages, recalled, strict=True)
    )


@pytest.mark.parametrize("tasks", [False, True], ids=["threads", "tasks"])
def test_one_compactor_serves_many_conversations_at_once(database, tasks):
    with Compactor(archive=database, trigger=("messages", 10), keep=("messages", 4)) as compactor:

        async def together() -> list[Any]:
            calls = (compactor.acompact(talk_of_worker(n), thread_id=f"t{n}") for n in range(MANY))
            return await asyncio.gather(*calls)

        if tasks:
            results = asyncio.run(together())
        else:
            with ThreadPoolExecutor(8) as pool:
                work = pool.map(
                    lambda n: compactor.compact(talk_of_worker(n), thread_id=f"t{n}"), range(MANY)
                )
                results = list(work)
        for n, result in enumerate(results):
            assert set(re.findall(r"worker-(\d+)", str(result.messages))) == {str(n)}
            assert all_there(compactor, result, talk_of_worker(n), f"t{n}")


def overtake(
    compactor: Compactor, other_worker: Compactor, sent: list[Any], times: int
) -> list[int]:
    """Has another worker compact more of the conversation each time that this one is about to."""
    calls: list[int] = []
    summarize = compactor._engine.summarizers["scripted"].summarize

    def meanwhile(request: SummaryRequest) -> Summary:
        calls.append(len(request.entries))
        if len(calls) <= times:
            result = other_worker.compact([*sent, *talk(2 * len(calls))], thread_id="t", force=True)
            assert result.outcome == "compacted"
        return summarize(request)

    compactor._engine.summarizers["scripted"].summarize = meanwhile  # type: ignore[method-assign]
    return calls


def test_an_overtaken_worker_shows_the_record_in_force():
    store = InMemoryStore()
    first_worker, second_worker = (
        new_compactor(
            Scripted(lambda _, n=n: f"- the summary of worker {n} [x]"), archive=Archive(store)
        )
        for n in (1, 2)
    )
    sent = talk(40)
    heard: list[str] = []
    first_worker._engine = replace(
        first_worker._engine, on_event=lambda event, _: heard.append(event)
    )
    calls = overtake(first_worker, second_worker, sent, 1)
    result = first_worker.compact(sent, thread_id="t", force=True)
    assert len(calls) == 1
    assert "failed" not in heard, "a lost race that ends well is no failure"
    assert (result.outcome, result.failed) == ("kept", None)
    assert "worker 2" in result.summary
    assert [record.summary for record in first_worker.archive.chain(SCOPE)] == [result.summary]
    assert len(first_worker.archive.records(SCOPE)) == 1


@pytest.mark.parametrize(
    ("on_failure", "window", "outcome"),
    [("degrade", None, "kept"), ("degrade", 900, "stuck"), ("raise", None, "")],
)
def test_a_worker_that_is_overtaken_each_time_changes_nothing(on_failure, window, outcome):
    sent = agent_history(60)
    settings = {"trigger": ("messages", 10), "keep": ("messages", 4)}
    compactor = new_compactor(
        Scripted(short_summary), on_failure=on_failure, window=window, **settings
    )
    archive = compactor.archive
    commit = archive.commit
    commits = []

    def overtaken_commit(*args: Any, **options: Any) -> Any:
        commits.append(args)
        raise ArchiveOvertaken("another worker was faster")

    archive.commit = overtaken_commit  # type: ignore[method-assign]
    if on_failure == "raise":
        with pytest.raises(ArchiveOvertaken, match="faster"):
            compactor.compact(sent, thread_id="t")
    else:
        result = compactor.compact(sent, thread_id="t")
        assert (result.outcome, result.failed) == (outcome, "archive")
        assert result.messages == sent
    assert 1 < len(commits) < 10  # it tries again, and gives up
    assert archive.records(SCOPE) == ()
    archive.commit = commit  # type: ignore[method-assign]
    assert compactor.compact(sent, thread_id="t").outcome == "compacted"


@pytest.mark.parametrize(("instances", "paid"), [(1, 1), (2, 2)])
def test_two_instances_pay_twice_for_one_record(instances, paid):
    store = InMemoryStore()
    both_have_begun = threading.Barrier(2)

    def answer(messages: Any) -> str:
        if instances > 1:  # each is to find no draft of the other
            both_have_begun.wait(300)
        return "## Done\n- it was looked at"

    writers = [ScriptedChatModel(answers=answer, delay=0.05) for _ in range(instances)]
    archive = Archive(store)
    compactors = [
        Compactor(
            writer,
            trigger=("messages", 6),
            keep=("messages", 2),
            archive=Archive(store),
            alternate_roles="off",
            check_summaries=False,
        )
        for writer in writers
    ]
    sent = talk(12)

    async def second() -> Any:  # a plain call below a loop, as in a notebook, a little later
        time.sleep(0.02 * (instances == 1))
        return compactors[-1].compact(sent, thread_id="t")

    with ThreadPoolExecutor(2) as pool:
        later = pool.submit(lambda: asyncio.run(second()))
        results = [compactors[0].compact(sent, thread_id="t"), later.result()]
    assert sum(len(writer.calls) for writer in writers) == paid
    assert [result.outcome for result in results] == ["compacted"] * 2
    [record] = archive.chain(SCOPE)
    assert len(record.covers) + len(results[0].messages) - 1 == len(sent)
