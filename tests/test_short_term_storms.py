"""Long runs of a node whose model and store fail at random: nothing lost, torn or out of order."""

import asyncio
import random
from typing import Any

import pytest
from langchain_core.messages import RemoveMessage, SystemMessage
from langgraph.graph.message import add_messages
from langgraph.store.memory import InMemoryStore

from conspectus import Archive
from conspectus.archive import Scope
from short_term_support import PlainModel, ai, human, ours, result, summarised, torn


class Flaky(InMemoryStore):
    """A store that fails one time in ten."""

    chance: random.Random | None = None

    def batch(self, ops: Any) -> Any:
        if self.chance is not None and self.chance.random() < 0.1:
            raise ConnectionError("the store is away")
        return super().batch(ops)


def bad_model(chance: random.Random) -> PlainModel:
    def answer(messages: list[Any]) -> str:
        what = chance.random()
        if what < 0.15:
            raise RuntimeError("no")
        bad = {0.2: "", 0.25: "word " * 900, 0.3: "I cannot help with that."}
        return next((text for most, text in bad.items() if what < most), f"Note {what:.4f}.")

    return PlainModel(answer)


def turn(chance: random.Random, step: int) -> list[Any]:
    """A question, some exchanges with their results in any order, perhaps an answer."""
    made: list[Any] = [human(f"h{step}", chance.choice([0, 10, 60, 5, 5, 600]))]
    for k in range(chance.randint(0, 2)):
        calls = [f"c{step}-{k}-{j}" for j in range(chance.randint(1, 3))]
        made.append(ai(f"a{step}-{k}", chance.choice([0, 20]), *calls))
        chance.shuffle(calls)
        made += [result(f"t-{call}", call, chance.choice([0, 20, 3, 300])) for call in calls]
    return made + ([ai(f"z{step}", chance.choice([0, 40]))] if chance.random() < 0.5 else [])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_nothing_is_lost_torn_or_out_of_order(seed, monkeypatch):
    monkeypatch.setattr("conspectus.engine.writing.RETRY_AFTER", ())
    chance = random.Random(seed)
    store = Flaky()
    store.chance = chance if seed % 4 == 1 else None
    archive = Archive(store) if seed % 4 else None
    same = seed % 3 == 0
    node = ours.SummarizationNode(
        model=bad_model(chance),
        max_tokens=chance.choice([120, 300, 800]),
        max_summary_tokens=chance.choice([40, 90]),
        max_tokens_before_summary=chance.choice([None, 60, 200, 900]),
        output_messages_key="messages" if same else "short",
        archive=archive,
        thread_id="t",
        on_failure=chance.choice(["degrade", "keep"]),
    )
    system = [SystemMessage("Be brief.", id="s")] if chance.random() < 0.5 else []
    state: dict[str, Any] = {"messages": system, "context": None}
    said: dict[str, Any] = {}
    for step in range(25):
        new = turn(chance, step)
        said |= {str(m.id): m for m in new}
        state["messages"] = add_messages(state["messages"], new)
        on_a_loop = chance.random() < 0.3
        update = asyncio.run(node.ainvoke(state)) if on_a_loop else node.invoke(state)
        state["context"] = update.get("context", state["context"])
        if same:
            state["messages"] = add_messages(state["messages"], update["messages"])
        out = [m for m in update["messages" if same else "short"] if type(m) is not RemoveMessage]
        running = (state["context"] or {}).get("running_summary")
        covered, shown = summarised(running), {m.id: m for m in out}
        assert not torn(out)
        assert covered | set(shown) >= set(said)
        assert not covered & set(shown)
        assert f"h{step}" in shown
        assert [m.id for m in out if m.id in said] == [name for name in said if name in shown]
        if running is not None:
            assert any(running.summary in str(m.content) for m in out)
        if archive is None:
            assert all(
                shown[name].content == m.content for name, m in said.items() if name in shown
            )
        elif store.chance is None:
            chain = archive.chain(Scope("local", "t"))
            kept = archive.get(Scope("local", "t"), [key for one in chain for key in one.covers])
            assert {one.message.id for one in kept} >= covered
            assert all(
                one.message.content == said[one.message.id].content
                for one in kept
                if one.message.id in said
            )
