"""A node whose next summary is prepared beside its caller."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately as count

from background_support import LIMIT, Gate, until
from conspectus import Archive
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
