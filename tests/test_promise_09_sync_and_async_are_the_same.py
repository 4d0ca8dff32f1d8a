"""Promise 9: one code path, two drivers; and a cancelled one changes nothing."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from langgraph.runtime import Runtime

from compactor_support import new_compactor
from conspectus import ContextGuard, SummarizationMiddleware
from graph_support import Bench
from histories import agent_history, histories
from recalling import FILLER, PORT, QUESTION, RecallingAgent, recalled_texts
from stateful.budgets import budgeted
from stateful.twins import TwinAgents, TwinWorld


@given(histories(broken=True), st.integers(300, 3_000), st.booleans())
def test_both_drivers_give_the_same_result(messages, window, force):
    async_compactor = new_compactor(window=window)
    sync_compactor = new_compactor(window=window)
    sync_result = sync_compactor.compact(messages, thread_id="t", force=force)
    async_result = asyncio.run(async_compactor.acompact(messages, thread_id="t", force=force))
    assert sync_result == async_result


def test_recall_is_the_same():
    compactor = new_compactor()
    compactor.compact(agent_history(40), thread_id="t", force=True)
    recalled = compactor.recall("function_3", thread_id="t", tokens=300)
    assert recalled.hits
    assert asyncio.run(compactor.arecall("function_3", thread_id="t", tokens=300)) == recalled


@pytest.mark.slow
def test_agents_show_their_models_the_same():
    def roles_sent(asynchronous: bool) -> list[list[tuple[str, Any]]]:
        agent = RecallingAgent(history="preserve")
        fill = [f"Question {n} about module {n}: {FILLER}" for n in range(14)]
        agent.say_all(PORT, *fill, QUESTION, asynchronous=asynchronous)
        assert any(map(recalled_texts, agent.requests))
        return [[(m.type, m.additional_kwargs.get("lc_source")) for m in r] for r in agent.requests]

    assert roles_sent(True) == roles_sent(False)


@pytest.mark.slow
def test_the_guard_sends_the_same():
    def request_lengths(mode: str) -> list[int]:
        guard = ContextGuard(window=3_000, keep=("messages", 6))
        bench = Bench(lambda messages: f"Fine, {len(bench.request_tokens)}.", guard)
        for turn in range(24):
            bench.say(f"Question {turn}: {'look at what it imports. ' * 20}", mode)
        assert max(bench.request_tokens) <= 3_000
        return [len(request) for request in bench.requests]

    sync_lengths = request_lengths("sync")
    assert max(sync_lengths) > sync_lengths[-1]
    assert request_lengths("async") == sync_lengths


def test_hooks_are_told_the_same():
    heard: list[list[str]] = []

    async def listen(event: Any) -> None:
        await asyncio.sleep(0)
        heard.append([m.text for m in event.messages_to_summarize])

    middleware = SummarizationMiddleware(
        None, trigger=("messages", 6), keep=("messages", 2), before_summarization=listen
    )
    texts = [f"part {n} " + "is sound " * 40 for n in range(6)]
    state = {"messages": [HumanMessage(text, id=f"m{n}") for n, text in enumerate(texts)]}
    middleware.before_model(dict(state), Runtime())
    asyncio.run(middleware.abefore_model(dict(state), Runtime()))
    assert heard == [texts[:4]] * 2


class OtherDriver:
    def second_on_a_loop(self, on_a_loop: bool) -> bool:
        return not on_a_loop


TestBothDriversAreTheSameThroughCompactor = budgeted(OtherDriver, TwinWorld, short=6, long=400)
TestBothDriversAreTheSameThroughAgents = budgeted(OtherDriver, TwinAgents, short=2, long=70)
