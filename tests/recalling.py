"""An agent that recalls: what the tests of recall in graphs share."""

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from conspectus import ContextGuard, SummarizationMiddleware
from conspectus.messages.requests import RECALLED
from scripted_models import ScriptedChatModel

PORT = "The database port of the billing service is 5433."
ASKED = "Which database port has the billing service?"
FILLER = "and then look at what it imports, and at what imports it. " * 3
PORTS = [f"Port {n} of the billing service is {5000 + n}, {FILLER}" for n in range(50)]


@tool
def look(path: str) -> str:
    """Look at a file."""
    return f"{path}: nothing special"


class RecallingAgent:
    """An agent that makes the calls it is told to, and answers when they are answered.

    Args:
        calls: for a user's message that holds the key, the calls to make, a list for each step.
    """

    def __init__(self, calls: dict[str, list[list[dict[str, Any]]]] | None = None, **more: Any):
        settings = {"trigger": ("messages", 20), "keep": ("messages", 6), "recall": "auto"}
        guard = more.pop("guard", {})
        self.store = more.pop("store", None) or InMemoryStore()
        self.saver = more.pop("saver", None) or InMemorySaver()
        self.calls, self.steps = calls or {}, 0
        self.model = ScriptedChatModel(answers=self._answer)
        self.middle = SummarizationMiddleware(None, **{**settings, **more})
        chain = [self.middle] + ([] if guard is None else [ContextGuard(self.middle, **guard)])
        self.graph = create_agent(
            self.model, [look], middleware=chain, checkpointer=self.saver, store=self.store
        )

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        last = max(i for i, m in enumerate(messages) if isinstance(m, HumanMessage))
        steps = next((v for k, v in self.calls.items() if k in str(messages[last].content)), [])
        done = self.steps  # its own messages may have left the view
        self.steps += 1
        if done >= len(steps):
            return AIMessage("Fine.")
        named = [{"id": f"c{len(messages)}-{n}", **call} for n, call in enumerate(steps[done])]
        return AIMessage("", tool_calls=named)

    config: ClassVar[Any] = {"configurable": {"thread_id": "t"}}

    @property
    def values(self) -> dict[str, Any]:
        return self.graph.get_state(self.config).values

    def say(self, *texts: str, asynchronous: bool = False) -> None:
        for text in texts:
            self.steps = 0
            state: Any = {"messages": [HumanMessage(text)]}
            if asynchronous:
                asyncio.run(self.graph.ainvoke(state, self.config))
            else:
                self.graph.invoke(state, self.config)

    def fill(self, turns: int = 14, of: str = "module") -> None:
        self.say(*(f"Question {n} about {of} {n}: {FILLER}" for n in range(turns)))

    @property
    def requests(self) -> list[tuple[BaseMessage, ...]]:
        return [call.messages for call in self.model.calls]


def shown(request: Sequence[BaseMessage]) -> list[str]:
    """What was recalled for a request."""
    return [str(m.content) for m in request if m.additional_kwargs.get("lc_source") == RECALLED]


def results(request: Sequence[BaseMessage], name: str = "recall") -> list[ToolMessage]:
    """Answers of a tool in a request."""
    return [m for m in request if isinstance(m, ToolMessage) and m.name == name]


def recall(**args: Any) -> dict[str, Any]:
    """A call of the tool."""
    return {"name": "recall", "args": args}
