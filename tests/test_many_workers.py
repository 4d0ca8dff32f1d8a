"""Many workers at once: each sees its own conversation; nothing is lost, nor paid for twice."""

import asyncio
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from conspectus import ArchiveOvertaken, Compactor, Summary, SummaryRequest
from conspectus.archive import Archive
from engine import SCOPE, Scripted, engine, short
from histories import agent, talk
from scripted_models import ScriptedChatModel

MANY = 200 if os.environ.get("CONSPECTUS_PROFILE") == "long" else 10


def said_by(worker: int, count: int = 14) -> list[dict[str, str]]:
    """A conversation in which each message names its worker."""
    roles = ("user", "assistant")
    return [
        {"role": roles[n % 2], "content": f"worker-{worker}: part {n}. " * 9, "id": f"{worker}-{n}"}
        for n in range(count)
    ]


def whole(compactor: Compactor, result: Any, said: list[dict[str, str]], thread: str) -> bool:
    """Whether each message is in the view or recalled by its id."""
    view = {m.get("id") for m in result.messages}
    left = [m for m in said if m["id"] not in view]
    found = [compactor.recall(id=m["id"], thread_id=thread, tokens=2_000).text for m in left]
    return bool(left) and all(
        m["content"].strip() in text for m, text in zip(left, found, strict=True)
    )


@pytest.mark.parametrize("tasks", [False, True], ids=["threads", "tasks"])
def test_one_compactor_serves_many_conversations_at_once(database, tasks):
    with Compactor(archive=database, trigger=("messages", 10), keep=("messages", 4)) as compactor:

        async def together() -> list[Any]:
            calls = (compactor.acompact(said_by(n), thread_id=f"t{n}") for n in range(MANY))
            return await asyncio.gather(*calls)

        if tasks:
            results = asyncio.run(together())
        else:
            with ThreadPoolExecutor(8) as pool:
                work = pool.map(
                    lambda n: compactor.compact(said_by(n), thread_id=f"t{n}"), range(MANY)
                )
                results = list(work)
        for n, result in enumerate(results):
            assert set(re.findall(r"worker-(\d+)", str(result.messages))) == {str(n)}
            assert whole(compactor, result, said_by(n), f"t{n}")


def overtaken(compactor: Compactor, other: Compactor, sent: list[Any], times: int) -> list[int]:
    """Has another worker compact more of the conversation each time that this one is about to."""
    calls: list[int] = []
    write = compactor._engine.summarizers["scripted"].summarize

    def meanwhile(request: SummaryRequest) -> Summary:
        calls.append(len(request.entries))
        if len(calls) <= times:
            more = other.compact([*sent, *talk(2 * len(calls))], thread_id="t", force=True)
            assert more.outcome == "compacted"
        return write(request)

    compactor._engine.summarizers["scripted"].summarize = meanwhile  # type: ignore[method-assign]
    return calls


def test_a_worker_that_was_overtaken_shows_the_record_in_force_and_writes_none():
    store = InMemoryStore()
    one, other = (
        engine(Scripted(lambda _, n=n: f"- the summary of worker {n} [x]"), archive=Archive(store))
        for n in (1, 2)
    )
    sent = talk(40)
    calls = overtaken(one, other, sent, 1)
    result = one.compact(sent, thread_id="t", force=True)
    assert len(calls) == 1
    assert (result.outcome, result.failed) == ("kept", None)
    assert "worker 2" in result.summary
    assert [record.summary for record in one.archive.chain(SCOPE)] == [result.summary]
    assert len(one.archive.records(SCOPE)) == 1


@pytest.mark.parametrize("on_failure", ["degrade", "raise"])
def test_a_worker_that_is_overtaken_each_time_ends_and_changes_nothing(on_failure):
    sent = agent(60)
    compactor = engine(
        Scripted(short), trigger=("messages", 10), keep=("messages", 4), on_failure=on_failure
    )
    archive = compactor.archive
    commit, tried = archive.commit, []

    def passed(*args: Any, **more: Any) -> Any:
        tried.append(args)
        raise ArchiveOvertaken("another worker was faster")

    archive.commit = passed  # type: ignore[method-assign]
    if on_failure == "raise":
        with pytest.raises(ArchiveOvertaken, match="faster"):
            compactor.compact(sent, thread_id="t")
    else:
        result = compactor.compact(sent, thread_id="t")
        assert (result.outcome, result.failed) == ("kept", "archive")
        assert result.messages == sent
    assert 1 < len(tried) < 10
    assert archive.records(SCOPE) == ()
    archive.commit = commit  # type: ignore[method-assign]
    assert compactor.compact(sent, thread_id="t").outcome == "compacted"


@pytest.mark.parametrize(("instances", "paid"), [(1, 1), (2, 2)])
def test_one_instance_pays_once_and_two_pay_each_but_one_record_is_in_force(instances, paid):
    store = InMemoryStore()
    both = threading.Barrier(2)
    writers = [
        # Two instances write at the same time, as each is to find no draft of the other.
        ScriptedChatModel(answers=lambda messages: _after(both, instances), delay=0.05)
        for _ in range(instances)
    ]
    archive = Archive(store)
    compactors = [
        Compactor(one, trigger=("messages", 6), keep=("messages", 2), archive=Archive(store))
        for one in writers
    ]
    sent = talk(12)

    def work(number: int) -> Any:
        return compactors[number % instances].compact(sent, thread_id="t")

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(work, range(2)))
    assert sum(len(one.calls) for one in writers) == paid
    assert [result.outcome for result in results] == ["compacted"] * 2
    [record] = archive.chain(SCOPE)
    assert len(record.covers) + len(results[0].messages) - 1 == len(sent)


def _after(both: threading.Barrier, instances: int) -> str:
    if instances > 1:
        both.wait(60)
    return "## Done\n- it was looked at"


def test_another_conversation_under_one_thread_is_said(caplog):
    """Nobody is warned by a result, as both go on; recall follows the one compacted last."""
    compactor = Compactor(window=2_000, archive="memory:")
    for town in ("Oslo", "Lima"):
        said = [{"role": "user", "content": f"{town} {n} " * 60} for n in range(30)]
        assert compactor.compact(said, thread_id="s").outcome == "compacted"
    assert "is another conversation" in caplog.text
    assert "give each conversation a thread_id" in caplog.text


@dataclass
class Hanging(Scripted):
    """On a loop it never answers."""

    started: asyncio.Event = field(default_factory=asyncio.Event)

    async def asummarize(self, request: SummaryRequest) -> Summary:
        self.started.set()
        return await asyncio.Event().wait()  # type: ignore[return-value]


def test_nobody_waits_for_a_worker_whose_thread_has_ended():
    """Its loop was stopped while its task wrote a summary."""
    hanging = Hanging(short)
    compactor = engine(
        hanging, trigger=("messages", 10), keep=("messages", 4), summarizer_timeout=None
    )

    def left() -> tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]:
        loop = asyncio.new_event_loop()
        task = loop.create_task(compactor.acompact(talk(40), thread_id="t"))
        loop.run_until_complete(hanging.started.wait())
        return loop, task

    with ThreadPoolExecutor(1) as pool:
        loop, task = pool.submit(left).result()
    assert compactor.compact(talk(40), thread_id="t").outcome == "compacted"
    task.cancel()
    loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
    loop.close()
