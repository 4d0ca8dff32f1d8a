"""A provider that binds thoughts to all before them takes what a compacted agent sends."""

import asyncio
import hashlib
import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from conspectus import ContextGuard
from conspectus.messages.thoughts import without_stale_thoughts
from graph_support import agent, is_summary, middleware, thread
from scripted_models import ScriptedChatModel


class Refused(Exception):
    status_code = 400


def sign(before: list[BaseMessage]) -> str:
    said = [(m.type, m.content, getattr(m, "tool_calls", None)) for m in before]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


class Binding:
    """A model whose thoughts are signed with all that stood before them.

    Attributes:
        calls: of tools in a turn.
        refused: requests with a thought behind another beginning.
    """

    def __init__(self, calls: int) -> None:
        self.calls, self.refused, self.answers = calls, 0, 0

    def __call__(self, messages: list[BaseMessage]) -> Any:
        for place, message in enumerate(messages):
            for block in message.content if isinstance(message.content, list) else ():
                if not isinstance(block, dict) or block["type"] != "thinking":
                    continue
                if block["signature"] != sign(messages[:place]):
                    self.refused += 1
                    return Refused("Invalid `signature` in `thinking` block. Remove the block.")
        results = sum(isinstance(m, ToolMessage) for m in messages)
        thought = {"type": "thinking", "thinking": "Hm.", "signature": sign(messages)}
        told = {"model_provider": "anthropic"}
        content: list[Any] = [thought, {"type": "text", "text": f"I look, {results}."}]
        self.answers += 1
        if self.answers % (self.calls + 1) == 0:
            return AIMessage(content, response_metadata=told)
        call = {"name": "look", "args": {"name": "m"}, "id": f"c{self.answers}"}
        return AIMessage(content, tool_calls=[call], response_metadata=told)


def played(model: Binding, history: str, guarded: bool, loop: bool = False) -> Any:
    events: list[str] = []
    own = middleware(history=history, on_event=lambda event, data: events.append(event))
    stack = [own, ContextGuard(own, window=20_000)] if guarded else [own]
    graph, chat = agent(ScriptedChatModel(answers=model), *stack)
    for n in range(24 // (model.calls + 1)):
        asked = {"messages": [HumanMessage(f"Go on, {n}.")]}
        if loop:
            asyncio.run(graph.ainvoke(asked, thread()))
        else:
            graph.invoke(asked, thread())
    assert any(map(is_summary, chat.calls[-1].messages))
    return graph, events.count("end")


WAYS = [("replace", False, False), ("preserve", True, False), ("preserve", True, True)]
"""History, guard, event loop."""


@pytest.mark.parametrize(("history", "guarded", "loop"), WAYS)
def test_stale_thoughts_are_not_sent_and_stay_in_the_state(history, guarded, loop):
    model = Binding(calls=0)
    graph, compactions = played(model, history, guarded, loop)
    assert compactions
    assert model.refused == 0
    state = graph.get_state(thread()).values["messages"]
    thinking = [m for m in state if isinstance(m, AIMessage)]
    assert all(isinstance(m.content, list) and len(m.content) == 2 for m in thinking)


@pytest.mark.parametrize(("history", "guarded", "loop"), WAYS)
def test_a_refusal_of_the_newest_thoughts_is_answered_without_them(history, guarded, loop, caplog):
    """They stay with their calls at first: most models ask for them there."""
    model = Binding(calls=5)
    _, compactions = played(model, history, guarded, loop)
    assert 0 < model.refused <= compactions
    assert "refused thoughts" in caplog.text


def test_thoughts_of_other_providers_stay():
    content: list[Any] = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Yes."}]
    message = AIMessage(content, response_metadata={"model_provider": "google_genai"})
    view = [message, HumanMessage("And?")]
    assert without_stale_thoughts(view, 2)[0] is message
    other = message.model_copy(update={"response_metadata": {}})
    assert without_stale_thoughts([other, view[1]], 2)[0].content == content[1:]
