"""An agent that recalls: what the tests of recall in graphs share."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from conspectus import ContextGuard, SummarizationMiddleware
from conspectus.messages.recalled import RECALLED
from graph_support import Bench, thread_config

PORT = "The database port of the billing service is 5433."
QUESTION = "Which database port has the billing service?"
FILLER = "and then look at what it imports, and at what imports it. " * 3
PORTS = [f"Port {n} of the billing service is {5000 + n}, {FILLER}" for n in range(50)]


@tool
def look(path: str) -> str:
    """Look at a file."""
    return f"{path}: nothing special"


class RecallingAgent(Bench):
    """An agent that makes the calls of the key in a user's message, a list for each step."""

    def __init__(self, calls: dict[str, list[list[dict[str, Any]]]] | None = None, **changes: Any):
        settings = {"trigger": ("messages", 20), "keep": ("messages", 6), "recall": "auto"}
        settings["alternate_roles"] = "off"
        guard = changes.pop("guard", {})
        self.calls = calls or {}
        self.steps = 0
        self.config = thread_config()
        summarization = SummarizationMiddleware(None, **{**settings, **changes})
        guards = [] if guard is None else [ContextGuard(summarization, **guard)]
        super().__init__(self._next, summarization, *guards, tools=[look])

    def _next(self, messages: list[BaseMessage]) -> AIMessage:
        last = max(i for i, m in enumerate(messages) if isinstance(m, HumanMessage))
        steps = next((v for k, v in self.calls.items() if k in str(messages[last].content)), [])
        done = self.steps  # its own messages may have left the view
        self.steps += 1
        if done >= len(steps):
            return AIMessage("Fine.")
        named = [{"id": f"c{len(messages)}-{n}", **call} for n, call in enumerate(steps[done])]
        return AIMessage("", tool_calls=named)

    def say_all(self, *texts: str, asynchronous: bool = False) -> None:
        for text in texts:
            self.steps = 0
            self.say(text, "async" if asynchronous else "sync")

    def fill(self, turns: int = 14) -> None:
        self.say_all(*(f"Question {n} about module {n}: {FILLER}" for n in range(turns)))


def recalled_texts(request: Sequence[BaseMessage]) -> list[str]:
    """What was recalled for a request."""
    return [str(m.content) for m in request if m.additional_kwargs.get("lc_source") == RECALLED]


def tool_answers(request: Sequence[BaseMessage], name: str = "recall") -> list[ToolMessage]:
    """Answers of a tool in a request."""
    return [m for m in request if isinstance(m, ToolMessage) and m.name == name]


def recall_call(**args: Any) -> dict[str, Any]:
    """A call of the tool."""
    return {"name": "recall", "args": args}
