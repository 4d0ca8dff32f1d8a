"""The steps of an agent, made by hand with the hooks that a graph would call.

The graph's own work is left out: it is the same whatever the middleware, and larger than it.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware import SummarizationMiddleware as LangChainMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage
from langgraph.runtime import Runtime

from conspectus import SummarizationMiddleware

NEVER = ("tokens", 10**9)
MODEL = FakeListChatModel(responses=["-"])
ANSWER: ModelResponse[Any] = ModelResponse(result=[AIMessage("-")])
SUMMARY = "The agent reads the modules one after another; nothing was changed and no test was run. "


def summarise(_: object) -> str:
    """Return a summary as a model would write it, at once."""
    return SUMMARY * 4


def theirs(**settings: Any) -> LangChainMiddleware[Any, Any]:
    """Make LangChain's middleware."""
    return LangChainMiddleware(MODEL, summarizer=summarise, **settings)


def ours(**settings: Any) -> SummarizationMiddleware:
    """Make ours with the same arguments."""
    return SummarizationMiddleware(MODEL, summarizer=summarise, **settings)


class Steps:
    """One conversation under a middleware.

    Attributes:
        messages: the history in the state.
        compactions: how many times it was replaced.
        spent: milliseconds of processor time in the middleware.
    """

    def __init__(self, middleware: Any, messages: Sequence[BaseMessage] = ()) -> None:
        self.messages = list(messages)
        self.compactions = 0
        self.spent = 0.0
        self._middleware = middleware
        self._rest = dict[str, Any]()
        self._runtime: Any = Runtime()
        own = type(middleware).wrap_model_call
        self._wraps = own is not AgentMiddleware.wrap_model_call

    def step(self, new: Sequence[BaseMessage] = ()) -> float:
        """Take new messages and call the hooks before the model; return milliseconds of CPU."""
        state: Any = {**self._rest, "messages": [*self.messages, *new]}
        began = time.process_time()
        update = self._middleware.before_model(state, self._runtime)
        taken = time.process_time() - began
        state |= self._merged(update or {}, state["messages"])
        if self._wraps:
            request = ModelRequest(
                model=MODEL, messages=[*state["messages"]], state=state, runtime=self._runtime
            )
            began = time.process_time()
            self._middleware.wrap_model_call(request, _answered)
            taken += time.process_time() - began
        self.messages = state.pop("messages")
        self._rest = state
        self.spent += 1000 * taken
        return 1000 * taken

    def _merged(self, update: dict[str, Any], before: list[BaseMessage]) -> dict[str, Any]:
        """Apply an update as a graph's channels would."""
        after = {name: value for name, value in update.items() if name != "messages"}
        if update.get("messages"):
            kept = [m for m in update["messages"] if not isinstance(m, RemoveMessage)]
            for message in kept:
                message.id = message.id or f"s{self.compactions}"
            assert len(kept) < len(before) + 1
            after["messages"] = kept
            self.compactions += 1
        return after


def _answered(_: object) -> ModelResponse[Any]:
    return ANSWER  # making one is the model's work


def fresh(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Copy messages, so that nothing that is remembered with an object helps."""
    return [copy.deepcopy(message) for message in messages]


def loop(middleware: Any, messages: Sequence[BaseMessage]) -> Steps:
    """Run a whole conversation, two new messages a step."""
    steps = Steps(middleware)
    for at in range(0, len(messages), 2):
        steps.step(messages[at : at + 2])
    return steps
