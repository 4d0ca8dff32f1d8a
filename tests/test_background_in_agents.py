"""Agents whose next notes are prepared beside them: real graphs, the summariser stopped at will."""

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.store.memory import InMemoryStore

from background_support import Stopped, nobody_works, wait_until
from conspectus.archive import Archive, Scope
from conspectus.deep_agents import create_deep_agent, summarization_middleware
from conspectus.engine import background, preparations
from conspectus.errors import ArchiveError
from graph_support import (
    check_nothing_lost,
    check_sent,
    look,
    look_calls,
    new_agent,
    new_middleware,
    summaries,
    thread_config,
    user_input,
)
from scripted_models import ScriptedChatModel

SCOPE = Scope("local", "t", "main")


class Answers:
    """Looks at modules for so many steps; at one of them, something is done first."""

    def __init__(self, count: int, at: int, first: Any) -> None:
        self.count = count
        self.step_of_first = at
        self.first = first
        self.done = 0

    def __call__(self, messages: list[BaseMessage]) -> Any:
        self.done += 1
        if self.done == self.step_of_first:
            self.first()
        if self.done > self.count:
            return "All looked at."
        return look_calls(f"m{self.done}")


class OffTheLoop(ScriptedChatModel):
    """The scripted model, whose event loop serves others until it answers."""

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Any:
        return await asyncio.to_thread(self._generate, messages, stop, None, **kwargs)


def preparing_middleware(model: Stopped, **changes: Any) -> Any:
    settings: dict[str, Any] = {"trigger": ("messages", 20), "window": 50_000, "background": True}
    return new_middleware(summarizer=model, **{**settings, **changes})


@pytest.mark.sampled(4)
@pytest.mark.parametrize("loop", [False, True], ids=["thread", "loop"])
@pytest.mark.parametrize("history", ["replace", "preserve"])
def test_an_agent_never_waits(heard, history, loop):
    model = Stopped()
    store = InMemoryStore()

    def let_model_finish() -> None:
        # At 18 messages: preparing has begun at 14, and the trigger is 20. The agent's own model
        # stands here for as long as it takes, on a thread of its own.
        model.finish(heard)
        model.may_go_on.clear()

    answers = OffTheLoop(answers=Answers(11, 9, let_model_finish))
    graph, answering = new_agent(answers, preparing_middleware(model, history=history), store=store)
    if loop:
        out = asyncio.run(graph.ainvoke(user_input("Look at all modules."), thread_config()))
    else:
        out = graph.invoke(user_input("Look at all modules."), thread_config())
    if history == "replace":
        assert check_nothing_lost(graph, store)
    else:
        assert len(out["messages"]) == 24
    records = Archive(store).chain(SCOPE)
    assert set(model.keys[0]) <= {key for record in records for key in record.covers}
    model.may_go_on.set()
    wait_until(nobody_works)
    assert len(summaries(answering.calls[-1].messages)) == 1
    assert len(summaries(out["messages"])) == (history == "replace")
    check_sent(answering)
    steps_seen = [event.name for event in heard.all]
    assert steps_seen[:3] == ["began", "finished", "swapped_in"]
    assert heard.all[2].extra["waited"] < 1


def test_a_failed_preparation_waits_until_the_history_has_grown(heard, monkeypatch, caplog):
    async def away(history: Any, entries: Any) -> Any:
        raise ArchiveError("the disk is away")

    def answer(messages: list[BaseMessage]) -> Any:
        wait_until(nobody_works)
        return look_calls(f"m{len(messages)}") if len(messages) < 58 else "All looked at."

    monkeypatch.setattr(background, "load_view", away)
    graph, _ = new_agent(answer, preparing_middleware(Stopped(), trigger=("messages", 60)))
    graph.invoke(user_input("Look at all modules."), thread_config())
    assert 1 < len(heard.steps("began")) < 6  # in nine steps, each with two messages more
    assert "summariser" not in caplog.text  # the remedy is one for an archive


@pytest.mark.slow
def test_subagents_of_deep_agents_prepare_too_and_close_ends_them_all(heard):
    model = Stopped()

    def let_model_finish() -> None:
        model.finish(heard)
        model.may_go_on.clear()  # whoever asks the model from now on would stand still

    task = {"description": "Look at all modules.", "subagent_type": "reader"}
    ask = AIMessage("", tool_calls=[{"name": "task", "args": task, "id": "t1"}])
    profile: Any = {"max_input_tokens": 100_000}
    main = ScriptedChatModel(answers=[ask, "All read."], profile=profile)
    reader_model = ScriptedChatModel(answers=Answers(20, 9, let_model_finish), profile=profile)
    reader: Any = {"name": "reader", "description": "Reads.", "system_prompt": "You read."}
    reader |= {"model": reader_model, "tools": [look]}
    middleware = summarization_middleware(
        main, summarizer=model, trigger=("messages", 20), keep=("messages", 4), background=True
    )
    graph = create_deep_agent(
        main, middleware=[middleware], subagents=[reader], store=InMemoryStore()
    )
    out = graph.invoke(user_input("Have all modules looked at."), thread_config())
    assert out["messages"][-1].text == "All read."
    [swapped] = heard.steps("swapped_in", "topped_up")
    assert swapped.scope.session != "main"
    assert swapped.extra["waited"] < 1
    assert len(summaries(reader_model.calls[-1].messages)) == 1
    check_sent(reader_model)
    assert len(heard.steps("began")) == 2, "the next notes of the subagent are under way"
    jobs = [job for job in preparations.LIVE if job.under_way]
    assert jobs
    middleware.close(0)
    assert not any(job.under_way for job in jobs)
    model.may_go_on.set()
    wait_until(nobody_works)
