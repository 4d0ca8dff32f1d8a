"""One message that is too large is truncated with a pointer to its original; no other changes."""

import base64
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from conspectus import ContextGuard, StuckError, SummarizationMiddleware
from conspectus.archive import Archive, Scope
from conspectus.langchain.state import HeadState
from conspectus.tokens import TokenMeter
from graph_support import agent
from scripted_models import ScriptedChatModel

WINDOW = 3_000
METER = TokenMeter()
THREAD: Any = {"configurable": {"thread_id": "t"}}
PICTURE = base64.b64encode(random.Random(3).randbytes(60_000)).decode()
PAGES = base64.b64encode(b"%PDF-1.7 " + random.Random(4).randbytes(400_000)).decode()
TEXT = " ".join(f"word-{n}" for n in range(6_000))

IMAGES: list[Any] = [
    {
        "type": "image_url",
        "image_url": {"url": f"data:image/png;base64,{PICTURE}", "detail": "high"},
    }
    for _ in range(8)
]
PDF: Any = {"type": "file", "mime_type": "application/pdf", "base64": PAGES, "filename": "a.pdf"}
GIANTS: dict[str, Any] = {
    "a long text": TEXT,
    "images": [{"type": "text", "text": "Look at these."}, *IMAGES],
    "a document": [{"type": "text", "text": "Read this."}, PDF],
    "a document as text": [
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": TEXT}}
    ],
    "many small blocks": [{"type": "text", "text": f"part {n}: {TEXT[:40]}"} for n in range(900)],
}


@tool
def read(path: str) -> Any:
    """Read a file."""
    return GIANTS.get(path, f"{path} is small")


class Agent:
    """An agent whose model is asked what it sees."""

    def __init__(self, history: Any, *more: AgentMiddleware[Any, Any, Any], keep: int = 4) -> None:
        self.requests: list[list[BaseMessage]] = []
        self.model = ScriptedChatModel(answers=self._answer)
        middle = SummarizationMiddleware(
            None, trigger=("tokens", 100_000), keep=("messages", keep), history=history
        )
        self.store = InMemoryStore()
        guard = ContextGuard(middle, window=WINDOW)
        self.graph = create_agent(
            self.model,
            [read],
            middleware=[middle, *more, guard],
            checkpointer=InMemorySaver(),
            store=self.store,
        )

    def _answer(self, messages: list[BaseMessage]) -> Any:
        self.requests.append(messages)
        last = messages[-1]
        if isinstance(last, HumanMessage) and (found := re.search(r"read <(.+)>", str(last.text))):
            args = {"path": found.group(1)}
            return AIMessage("", tool_calls=[{"name": "read", "args": args, "id": "c1"}])
        return "Seen."

    def ask(self, content: Any) -> None:
        self.graph.invoke({"messages": [HumanMessage(content)]}, THREAD)

    @property
    def values(self) -> dict[str, Any]:
        return self.graph.get_state(THREAD).values

    def originals(self) -> list[Any]:
        """What the archive has of messages that the records in force show short or summarise."""
        archive = Archive(self.store)
        held = self.values[HeadState.CHANNEL]
        scope = Scope("local", held["thread"], held["session"])
        chain = archive.records(scope)
        keys = [key for one in chain for key in one.covers]
        keys += [mark.key for one in chain for mark in one.clips]
        return [one.message.content for one in archive.get(scope, keys)]  # type: ignore[union-attr]


def size(messages: list[BaseMessage]) -> int:
    return METER.messages(messages) + METER.tools([read])


def pointers(messages: list[BaseMessage]) -> list[BaseMessage]:
    return [message for message in messages if "archived as " in str(message.content)]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("history", ["replace", "preserve"])
@pytest.mark.parametrize("kind", ["images", "a document"])
def test_images_and_files_of_what_the_user_said_last_stay_or_the_answer_is_stuck(kind, history):
    agent = Agent(history)
    agent.ask("Hello, I have something for you.")
    with pytest.raises(StuckError, match=r"at least [0-9,]+ tokens and there are"):
        agent.ask(GIANTS[kind])
    agent.ask("Then without it?")
    assert size(agent.requests[-1]) <= WINDOW
    assert agent.requests[-1][-1].content == "Then without it?"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("history", ["replace", "preserve"])
@pytest.mark.parametrize("kind", ["a long text", "many small blocks", "a document as text"])
def test_a_giant_result_of_a_tool_keeps_its_call_and_its_original(kind, history):
    agent = Agent(history)
    agent.ask(f"Please read <{kind}>")
    agent.ask("And now?")
    assert max(map(size, agent.requests)) <= WINDOW
    shown = agent.requests[1]
    assert isinstance(shown[-1], ToolMessage)
    assert shown[-1].tool_call_id == "c1"
    assert pointers(shown) == [shown[-1]]
    assert any(GIANTS[kind] == one for one in agent.originals())


@pytest.mark.sampled(1)
@pytest.mark.parametrize("history", ["replace", "preserve"])
def test_a_switch_to_a_smaller_model_compacts_before_its_first_call(history):
    small, large = (
        ScriptedChatModel(
            answers=lambda messages: "Seen. " * 60,
            profile={"max_input_tokens": window},
            model_name=name,
        )
        for name, window in (("small", 2_000), ("large", 60_000))
    )
    now = [large]

    class Switch(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            return handler(request.override(model=now[0]))

    middle = SummarizationMiddleware(
        large,
        summarizer="embedded",
        trigger=("fraction", 0.85),
        keep=("messages", 4),
        history=history,
    )
    graph, _ = agent(large, middle, Switch(), ContextGuard(middle), tools=[read])
    for turn in range(20):
        graph.invoke({"messages": [HumanMessage(f"Question {turn}. " * 20)]}, THREAD)
    assert size(list(large.calls[-1].messages)) > 2_000
    now[0] = small
    for turn in range(20, 26):
        graph.invoke({"messages": [HumanMessage(f"Question {turn}. " * 20)]}, THREAD)
    assert max(size(list(call.messages)) for call in small.calls) <= 2_000
    assert any("Question 20" in str(m.text) for m in small.calls[0].messages)
