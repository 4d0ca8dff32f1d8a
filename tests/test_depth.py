"""How many flows wait for each other while a summary is written: so much a reader has to hold."""

import sys
from types import FrameType, GeneratorType
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore

from conspectus import Compactor, SummarizationMiddleware, _drive
from conspectus_lab.testing.scripted_models import ScriptedChatModel
from engine import Scripted

MESSAGES = [HumanMessage(f"Look at module {n}. " + "Why? " * 40, id=f"m{n}") for n in range(60)]

COMPACT, STEP = 8, 10
"""Flows from the entry to the call that writes a summary, at most; a step of an agent adds two."""

READING = 2
"""Flows that reading with a chat model adds: it may take several calls."""


def waiting() -> list[str]:
    """The flows that wait for the call that is made just now, the outermost first."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code is not _drive.run.__code__:
        frame = frame.f_back
    assert frame is not None, "the call was made by no driver, or in a thread of its own"
    flow, found = frame.f_locals["flow"], []
    while isinstance(flow, GeneratorType):
        found.append(flow.__qualname__)
        flow = flow.gi_yieldfrom
    return found


Seen = list[list[str]]


def function(seen: Seen) -> Any:
    def summarise(messages: list[Any]) -> str:
        seen.append(waiting())
        return f"- {len(messages)} modules were looked at" + " and described" * 30

    return summarise


def own(seen: Seen) -> Any:
    write = function(seen)
    return Scripted(lambda request: write(list(request.entries)))


def model(seen: Seen) -> Any:
    write = function(seen)
    return ScriptedChatModel(answers=lambda messages: f"## Found\n{write(list(messages))}")


KINDS = pytest.mark.parametrize(
    ("summarizer", "more"),
    [(function, 0), (own, 0), (model, READING)],
    ids=["function", "own", "model"],
)


@pytest.mark.sampled(1)
@KINDS
def test_a_compactor_writes_a_summary_a_few_flows_below_its_entry(summarizer, more):
    seen: Seen = []
    compactor = Compactor(summarizer(seen), archive=InMemoryStore(), summarizer_timeout=None)
    assert compactor.compact(MESSAGES, thread_id="t", force=True).outcome == "compacted"
    assert len(seen) == 1
    assert len(seen[0]) <= COMPACT + more, seen[0]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("recall", ["off", "auto"])
@KINDS
def test_a_step_of_an_agent_writes_one_a_few_flows_below_its_entry(summarizer, more, recall):
    seen: Seen = []
    middleware = SummarizationMiddleware(
        None,
        trigger=("messages", 30),
        keep=("messages", 10),
        summarizer=summarizer(seen),
        archive=InMemoryStore(),
        summarizer_timeout=None,
        recall=recall,
    )
    update = middleware.before_model({"messages": list(MESSAGES)}, Runtime())
    assert len(update["messages"]) == 12
    assert len(seen) == 1
    assert len(seen[0]) <= STEP + more, seen[0]
