"""Notes prepared in the background belong to the run that has begun them, and outlive its loop."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.callbacks import (
    AsyncCallbackHandler,
    BaseCallbackHandler,
    UsageMetadataCallbackHandler,
)
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from langchain_core.tracers.base import BaseTracer
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore

from background_support import LIMIT, HeardEvents, talk_of, wait_until
from conspectus import Compactor, SummarizationMiddleware

PAID = 1_050
LONG = "word " * 60


class Writer(BaseChatModel):
    """Writes notes, and counts what it is paid."""

    paid: list[str] = []  # noqa: RUF012
    run_managers: list[Any] = []  # noqa: RUF012

    @property
    def _llm_type(self) -> str:
        return "writer"

    def _written(self) -> ChatResult:
        self.paid.append(threading.current_thread().name)
        usage: Any = {"input_tokens": 1_000, "output_tokens": 50, "total_tokens": PAID}
        message = AIMessage(
            "Every part was read and is sound. " * 12,
            usage_metadata=usage,
            response_metadata={"model_name": "writer"},
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        self.run_managers.append(run_manager)
        return self._written()


class AsyncWriter(Writer):
    """One that is async only."""

    delay: float = 0.0

    def _generate(self, *arguments: Any, **options: Any) -> ChatResult:
        raise NotImplementedError("this model is async only")

    async def _agenerate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        self.run_managers.append(run_manager)
        await asyncio.sleep(self.delay)
        return self._written()


class LoopBoundWriter(AsyncWriter):
    """One whose client belongs to the event loop that has made it."""

    loops: list[Any] = []  # noqa: RUF012

    async def _agenerate(self, *arguments: Any, **options: Any) -> ChatResult:
        loop = asyncio.get_running_loop()
        self.loops.append(loop)
        if loop is not self.loops[0]:
            raise RuntimeError("its client is bound to a different event loop")
        return await super()._agenerate(*arguments, **options)


def writer(writer_class: type[Writer], **fields: Any) -> Any:
    model = writer_class(paid=[], run_managers=[], **fields)
    if isinstance(model, LoopBoundWriter):
        model.loops = []
    return model


def new_middleware(model: Any) -> Any:
    return SummarizationMiddleware(
        FakeListChatModel(responses=["-"]),
        summarizer=model,
        trigger=("tokens", 2_000),
        keep=("messages", 6),
        window=50_000,
        background=True,
    )


def new_graph(summary: Any, **changes: Any) -> Any:
    answering = FakeListChatModel(responses=["It is fine. " * 10])
    options: Any = {"checkpointer": InMemorySaver(), "store": InMemoryStore(), **changes}
    return create_agent(answering, [], middleware=[summary], **options)


def ask(turn: int) -> dict[str, Any]:
    return {"messages": [HumanMessage(f"Part {turn} {LONG}")]}


def run_config(*handlers: Any, **fields: Any) -> Any:
    return {"configurable": {"thread_id": "t"}, "callbacks": [*handlers], **fields}


def nobody_prepares() -> bool:
    return all(thread.name != "conspectus-background" for thread in threading.enumerate())


TURNS = 24


def by_turns(agent: Any, settings: Any) -> None:
    for turn in range(TURNS):
        agent.invoke(ask(turn), settings)
        wait_until(nobody_prepares)


async def by_turns_on_a_loop(agent: Any, settings: Any) -> None:
    for turn in range(TURNS):
        await agent.ainvoke(ask(turn), settings)
        while not nobody_prepares():
            await asyncio.sleep(0.005)


def counted(handler: UsageMetadataCallbackHandler) -> int:
    return sum(usage["total_tokens"] for usage in handler.usage_metadata.values())


def test_what_preparing_costs_reaches_the_callbacks_of_the_run():
    model = writer(Writer)
    usage = UsageMetadataCallbackHandler()
    by_turns(new_graph(new_middleware(model)), run_config(usage))
    assert len(model.paid) > 1
    assert counted(usage) == PAID * len(model.paid)


@pytest.mark.parametrize("writer_class", [Writer, AsyncWriter, LoopBoundWriter])
def test_the_model_is_called_on_the_agents_loop(writer_class, heard):
    model = writer(writer_class)
    usage = UsageMetadataCallbackHandler()
    asyncio.run(by_turns_on_a_loop(new_graph(new_middleware(model)), run_config(usage)))
    assert len(model.paid) > 1
    assert counted(usage) == PAID * len(model.paid)
    assert {event.outcome for event in heard.steps("finished")} == {"ok"}
    if writer_class is not Writer:
        assert set(model.paid) == {"MainThread"}, "on the loop of the run"


class StartNoting(BaseCallbackHandler):
    def __init__(self) -> None:
        self.started: list[Any] = []

    def on_chat_model_start(self, serialized: Any, messages: Any, **details: Any) -> None:
        if "summarization" in str((details.get("metadata") or {}).get("lc_source")):
            self.started.append(details)


class AsyncEndNoting(AsyncCallbackHandler):
    def __init__(self) -> None:
        self.ended = 0

    async def on_llm_end(self, response: Any, **details: Any) -> None:
        await asyncio.sleep(0)
        self.ended += "Every part" in str(response)


def test_tags_and_metadata_of_the_run_reach_what_prepares():
    model = writer(AsyncWriter)
    handler = StartNoting()
    own_config = run_config(handler, tags=["customer"], metadata={"release": "7"})
    asyncio.run(by_turns_on_a_loop(new_graph(new_middleware(model)), own_config))
    assert len(handler.started) == len(model.paid)
    assert all("customer" in start["tags"] for start in handler.started)
    assert {start["metadata"]["release"] for start in handler.started} == {"7"}


@pytest.mark.parametrize("on_loop", [False, True])
def test_async_handlers_hear_what_prepares(on_loop):
    model = writer(AsyncWriter if on_loop else Writer)
    handler = AsyncEndNoting()
    agent = new_graph(new_middleware(model))
    own_config = run_config(handler)
    if on_loop:
        asyncio.run(by_turns_on_a_loop(agent, own_config))
    else:
        by_turns(agent, own_config)
    assert handler.ended == len(model.paid) > 1


class Tracing(BaseTracer):
    """Keeps the roots of traces, as tracers do that send them away."""

    def __init__(self) -> None:
        super().__init__()
        self.roots: list[Any] = []

    def _persist_run(self, run: Any) -> None:
        self.roots.append(run)


def _runs(run: Any) -> list[Any]:
    return [run, *(inner_run for child in run.child_runs for inner_run in _runs(child))]


def test_a_tracer_has_each_call_that_prepares_once():
    model = writer(AsyncWriter, delay=0.05)
    tracing = Tracing()
    asyncio.run(by_turns_on_a_loop(new_graph(new_middleware(model)), run_config(tracing)))
    runs = [run for root in tracing.roots for run in _runs(root)]
    summaries = [run for run in runs if "lc_source" in str(run.extra) and run.run_type == "llm"]
    assert len({run.id for run in summaries}) == len(summaries) == len(model.paid)
    assert all(run.end_time is not None for run in summaries)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["astream", "astream_events", "abatch"])
def test_other_ways_to_run_an_agent_count_what_prepares(method):
    model = writer(AsyncWriter)
    usage = UsageMetadataCallbackHandler()
    shown = list[str]()
    agent = new_graph(new_middleware(model))
    own_config = run_config(usage)

    async def turn(n: int) -> None:
        if method == "astream":
            async for chunk, _ in agent.astream(ask(n), own_config, stream_mode="messages"):
                shown.append(str(chunk.content))
        elif method == "astream_events":
            async for event in agent.astream_events(ask(n), own_config, version="v2"):
                if "chat_model" in event["event"]:
                    shown.append(str({**event["data"], "input": ""}))
        else:
            await agent.abatch([ask(n)], own_config)

    async def main() -> None:
        for n in range(TURNS):
            await turn(n)
            while not nobody_prepares():
                await asyncio.sleep(0.005)

    asyncio.run(main())
    assert len(model.paid) > 1
    assert counted(usage) == PAID * len(model.paid)
    assert "Every part" not in "".join(shown)


def test_in_a_subgraph_what_prepares_is_counted_too():
    model = writer(AsyncWriter)
    usage = UsageMetadataCallbackHandler()
    inner = new_graph(new_middleware(model), checkpointer=True)
    outer = StateGraph(MessagesState).add_node("inner", inner).add_edge(START, "inner")
    compiled = outer.compile(checkpointer=InMemorySaver(), store=InMemoryStore())
    asyncio.run(by_turns_on_a_loop(compiled, run_config(usage)))
    assert len(model.paid) > 1
    assert counted(usage) == PAID * len(model.paid)


def test_a_compactor_in_a_runnable_counts_what_prepares():
    model = writer(AsyncWriter)
    usage = UsageMetadataCallbackHandler()
    settings: Any = {"trigger": ("tokens", 3_000), "keep": ("messages", 6), "background": True}
    with Compactor(model, window=4_000, archive="memory:", **settings) as compactor:

        async def node(messages: Any) -> Any:
            return await compactor.acompact(messages, thread_id="t")

        async def main() -> None:
            runnable = RunnableLambda(node)
            for count in range(20, 44, 2):
                await runnable.ainvoke(talk_of(count), {"callbacks": [usage]})
                while not nobody_prepares():
                    await asyncio.sleep(0.005)

        asyncio.run(main())
    assert model.paid
    assert counted(usage) == PAID * len(model.paid)


def test_a_loop_that_ends_first_loses_no_preparation(heard: HeardEvents, caplog):
    """A loop of its own each turn, as in a script: it is closed while the notes are written."""
    model = writer(AsyncWriter, delay=0.2)
    usage = UsageMetadataCallbackHandler()
    agent = new_graph(new_middleware(model))
    for turn in range(TURNS):
        asyncio.run(agent.ainvoke(ask(turn), run_config(usage)))
        wait_until(nobody_prepares)
    assert {event.outcome for event in heard.steps("finished")} == {"ok"}
    assert heard.steps("swapped_in")
    assert counted(usage) == PAID * len(model.paid)
    assert not [record for record in caplog.records if record.name in ("asyncio", "conspectus")]


def test_a_loop_that_stands_still_holds_no_preparation_up(heard: HeardEvents):
    model = writer(AsyncWriter, delay=0.05)
    settings: Any = {"trigger": ("tokens", 3_000), "keep": ("messages", 6), "background": True}

    async def main() -> None:
        with Compactor(model, window=4_000, archive="memory:", **settings) as compactor:
            await compactor.acompact(talk_of(30), thread_id="t")
        assert heard.steps("finished"), "close waits for it, on the loop's own thread"

    start = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - start < LIMIT
    assert heard.steps("finished")[0].outcome == "ok"


def test_a_stopped_loop_that_goes_on_later_does_no_harm(heard: HeardEvents):
    model = writer(AsyncWriter, delay=0.1)
    agent = new_graph(new_middleware(model))
    loop = asyncio.new_event_loop()
    for turn in range(TURNS):
        loop.run_until_complete(agent.ainvoke(ask(turn), run_config()))
    wait_until(nobody_prepares)
    loop.close()
    assert {event.outcome for event in heard.steps("finished")} == {"ok"}
