"""A node whose next summary is prepared beside its caller."""

import asyncio
import copy
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately as count

from background_support import LIMIT, Gate, until
from conspectus import Archive, PolicyError
from conspectus.archive import Scope
from short_term_support import TOLD, ours, summarised, talk, torn

SIZES: dict[str, Any] = {
    "max_tokens": 1_000,
    "max_tokens_before_summary": 600,
    "max_summary_tokens": 100,
}


@dataclass
class Held(Gate):
    """A model that answers once it is let go on; `read` is what each call was given."""

    read: list[str] = field(default_factory=list)

    def invoke(self, messages: list[Any]) -> Any:
        self.read.append("\n".join(str(one.content) for one in messages))
        self.asked.set()
        self.going.wait(LIMIT)
        if self.fails:
            raise RuntimeError("the model is out of order")
        return AIMessage(TOLD)

    async def ainvoke(self, messages: list[Any]) -> Any:
        return await asyncio.to_thread(self.invoke, messages)


class Caller:
    """Calls the node again and again, as a graph would."""

    def __init__(self, model: Held, **more: Any) -> None:
        self.running: Any = None
        self.node = ours.SummarizationNode(**{"model": model, "background": True, **SIZES, **more})

    def __call__(self, messages: list[AnyMessage]) -> list[Any]:
        context = {"running_summary": self.running}
        update = self.node.invoke({"messages": messages, "context": context})
        self.running = update.get("context", context)["running_summary"]
        shown: list[Any] = update["summarized_messages"]
        assert not torn(shown)
        return shown


@pytest.fixture(params=["archive", "no archive"])
def kept(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    if request.param == "no archive":
        yield {}
        return
    with Archive.open("memory:") as archive:
        yield {"archive": archive, "thread_id": "t"}


def size(messages: list[Any]) -> int:
    return int(count(messages))


def until_size(tokens: int) -> list[AnyMessage]:
    """A talk of at least so many tokens."""
    turns = next(n for n in range(1, 200) if size(talk(n)) >= tokens)
    return talk(turns)


def test_a_summary_is_swapped_in_without_waiting(heard, kept):
    model = Held()
    caller = Caller(model, **kept)
    near = until_size(450)
    assert caller(near) == near
    assert model.asked.wait(LIMIT)
    assert caller.running is None
    model.finishes(heard)
    model.going.clear()  # who asks the model now stands still
    whole = until_size(620)
    shown = caller(whole)
    assert [one.name for one in heard.all] == ["began", "finished", "swapped_in"]
    assert len(model.read) == 1
    assert size(shown) <= SIZES["max_tokens"]
    gone = summarised(caller.running)
    assert gone
    assert {one.id for one in whole} - gone <= {one.id for one in shown}
    assert all(str(one.content) in model.read[0] for one in whole if one.id in gone)
    assert TOLD in caller.running.summary
    if kept:
        rows = kept["archive"].export(Scope("local", "t"))
        assert gone <= {row["id"] for row in rows}


def test_the_caller_goes_on_while_it_fits_and_waits_where_it_does_not(heard):
    model = Held()
    caller = Caller(model)
    caller(until_size(450))
    assert model.asked.wait(LIMIT)
    whole = until_size(700)
    assert caller(whole) == whole
    assert heard.steps("went_on")
    threading.Timer(0.2, model.going.set).start()
    shown = caller(until_size(1_050))
    [swapped] = heard.steps("swapped_in", "topped_up")
    assert swapped.extra["waited"] > 0.1
    assert size(shown) <= SIZES["max_tokens"]
    assert len(model.read) == 1


@pytest.mark.sampled(2)
def test_rounds_go_on_one_after_the_other(kept, heard):
    model = Held.at_once()
    caller = Caller(model, **kept)
    said = talk(80)
    for end in range(1, len(said), 2):
        shown = caller(said[:end])
        until(lambda: len(heard.steps("began")) == len(heard.steps("finished")))
        here = {one.id for one in shown} | summarised(caller.running)
        assert {one.id for one in said[:end]} <= here
        assert size(shown) <= SIZES["max_tokens"]
    assert len(heard.steps("swapped_in", "topped_up")) > 3
    assert not heard.steps("waited", "dropped")
    read = "\n".join(model.read)
    assert all(str(one.content) in read for one in said if one.id in summarised(caller.running))


def test_conversations_without_a_thread_do_not_get_each_others(heard):
    """Their messages have the same ids, as counters make them."""
    model = Held.at_once()
    caller, other = Caller(model), Caller(model)
    other.node = caller.node
    mine, theirs = until_size(450), [one.model_copy() for one in until_size(450)]
    theirs[0] = HumanMessage("Quite another talk. " + "Words. " * 40, id=mine[0].id)
    caller(mine)
    other(theirs)
    until(lambda: len(heard.steps("finished")) == 2, 10)
    whole = until_size(620)
    caller(whole)
    other([*theirs, *whole[len(theirs) :]])
    assert len(heard.steps("swapped_in")) == 2
    assert len(model.read) == 2


@pytest.mark.parametrize("on_failure", ["degrade", "keep"])
def test_a_model_that_fails_is_asked_again_when_it_is_due(heard, on_failure):
    model = Held.at_once(fails=True)
    caller = Caller(model, on_failure=on_failure)
    caller(until_size(450))
    heard.until("finished")
    model.fails = False
    caller(until_size(620))
    assert TOLD in caller.running.summary


def test_it_is_found_after_a_restart(tmp_path, heard):
    model = Held.at_once()
    where = tmp_path / "agent.db"
    with ours.SummarizationNode(
        model=model, background=True, archive=where, thread_id="t", **SIZES
    ) as node:
        node.invoke({"messages": until_size(450)})
    assert len(model.read) == 1
    model.going.clear()
    with ours.SummarizationNode(
        model=model, background=True, archive=where, thread_id="t", **SIZES
    ) as node:
        update = node.invoke({"messages": until_size(620)})
        assert summarised(update["context"]["running_summary"])
    assert len(model.read) == 1
    assert heard.steps("swapped_in")


def test_the_same_on_an_event_loop_and_no_task_is_left(heard):
    model = Held()
    node = ours.SummarizationNode(model=model, background=True, **SIZES)

    async def session() -> None:
        near = until_size(450)
        assert await node.ainvoke({"messages": near}) == {"summarized_messages": near}
        assert await asyncio.to_thread(model.asked.wait, LIMIT)
        model.going.set()
        await asyncio.to_thread(until, lambda: bool(heard.steps("finished")))
        model.going.clear()
        update = await node.ainvoke({"messages": until_size(620)})
        assert summarised(update["context"]["running_summary"])
        model.going.set()
        await node.aclose()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert not [one for one in others if one.get_name() == "conspectus-background"]

    asyncio.run(session())
    assert len(model.read) == 1
    assert heard.steps("swapped_in")


def test_close_gives_up_what_takes_too_long(heard):
    model = Held()
    with Archive.open("memory:") as archive:
        caller = Caller(model, archive=archive, thread_id="t")
        caller(until_size(450))
        assert model.asked.wait(LIMIT)
        caller.node.close(0)
        before = archive.export(Scope("local", "t"))
        model.going.set()
        until(lambda: all(t.name != "conspectus-background" for t in threading.enumerate()))
        assert archive.export(Scope("local", "t")) == before
        caller(until_size(620))  # the notes are made when they are due
        assert summarised(caller.running)


def test_a_copy_of_a_node_leaves_the_archive_to_the_first(tmp_path):
    with ours.SummarizationNode(
        model=TOLD_BY, archive=tmp_path / "a.db", thread_id="t", on_failure="raise", **SIZES
    ) as node:
        copy.copy(node).close()
        assert "summarized_messages" in node.invoke({"messages": until_size(1_100)})


class ToldBy:
    def invoke(self, messages: list[Any]) -> Any:
        return AIMessage(TOLD)


TOLD_BY = ToldBy()


@pytest.mark.parametrize("given", ["yes", 1, {"prepare": 0}, {"at": 0.5}])
def test_a_setting_that_means_nothing_is_refused(given):
    with pytest.raises(PolicyError):
        Caller(Held(), background=given)(talk(1))
