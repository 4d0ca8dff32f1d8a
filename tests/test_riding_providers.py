"""What providers get when a summary rides the cache: real clients' payloads from real agents."""

import json
import re
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from pydantic import PrivateAttr

from conspectus import ContextGuard, SummarizationMiddleware
from conspectus.archive import Archive, Scope
from graph_support import calls, look, said, thread
from test_riding import FINDINGS, PAUSE, is_summary_call

SCOPE = Scope("local", "t", "main")


@tool
def write(name: str, text: str) -> str:
    """Write a module."""
    return "written"


class Recorded(BaseChatModel):
    """Keeps the payload that a client would send, and answers by itself."""

    _payloads: list[dict[str, Any]] = PrivateAttr(default_factory=list)
    _done: int = PrivateAttr(default=0)

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        payload = self._get_request_payload(messages, stop=stop, **kwargs)  # type: ignore[attr-defined]
        self._payloads.append(json.loads(json.dumps(payload, default=str)))
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages))])

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        if is_summary_call(messages):
            shown = re.search(r'<message(?: id="|s>\n)([^"\s<]+)', str(messages[-1].text))
            assert shown
            return AIMessage(f"{FINDINGS} [{shown[1]}]")
        self._done += 1
        return AIMessage("All looked at.") if self._done > 12 else calls(f"m{self._done}")


class Claude(Recorded, ChatAnthropic):
    """Anthropic's client, without its server."""


class Gpt(Recorded, ChatOpenAI):
    """OpenAI's client, without its server."""


def claude() -> Claude:
    return Claude(model="claude-sonnet-4-5", api_key="none", profile={"max_input_tokens": 50_000})  # type: ignore[call-arg]


def gpt() -> Gpt:
    return Gpt(model="gpt-5.4", api_key="none", profile={"max_input_tokens": 50_000})  # type: ignore[arg-type]


def payloads(model: Any, *between: Any) -> tuple[list[dict[str, Any]], list[int], set[str]]:
    """What was sent, which of it asked for a summary after a request, and what records say."""
    ours = SummarizationMiddleware(
        model, trigger=("messages", 12), keep=("messages", 4), summary_request="cached"
    )
    store = InMemoryStore()
    agent: Any = create_agent(
        model,
        tools=[write, look],
        system_prompt="You look at modules, one at a time.",
        middleware=[ours, *between, ContextGuard(ours)],
        checkpointer=InMemorySaver(),
        store=store,
    )
    agent.invoke(said("Look at all modules."), thread())
    sent = model._payloads
    said_last = [(one.get("messages") or one["input"])[-1] for one in sent]
    asked = [n for n, one in enumerate(said_last) if PAUSE in json.dumps(one)]
    return sent, asked, {record.request for record in Archive(store).chain(SCOPE)}


def blocks(message: dict[str, Any]) -> list[Any]:
    content = message["content"]
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


@pytest.mark.parametrize("ttl", ["5m", "1h"])
def test_anthropic_gets_the_same_beginning_and_no_more_than_four_marks(ttl):
    model = claude()
    sent, asked, kinds = payloads(model, AnthropicPromptCachingMiddleware(ttl=ttl))
    assert asked
    assert kinds == {"cached"}
    for place in asked:
        before, after = sent[place - 1], sent[place]
        rest = {key for key in before if key != "messages"}
        assert {key: after[key] for key in rest} == {key: before[key] for key in rest}
        assert [one["name"] for one in after["tools"]] == ["write", "look"]
        # What a user says after results of tools goes into the same message of this provider.
        own, theirs = after["messages"], before["messages"]
        assert own[: len(theirs) - 1] == theirs[:-1]
        assert len(own) == len(theirs)
        assert blocks(own[-1])[:-1] == blocks(theirs[-1])
        assert PAUSE in blocks(own[-1])[-1]["text"]
        assert json.dumps(before).count("cache_control") <= 4
        assert json.dumps(after).count("cache_control") == json.dumps(before).count("cache_control")


def test_anthropic_without_marks_remembers_nothing_so_the_smallest_request_is_sent():
    _, asked, kinds = payloads(claude())
    assert asked == []
    assert kinds == {"smallest"}


def test_openai_gets_the_same_beginning():
    sent, asked, kinds = payloads(gpt())
    assert asked
    assert kinds == {"cached"}
    for place in asked:
        before, after = sent[place - 1], sent[place]
        rest = {key for key in before if key != "messages"}
        assert {key: after[key] for key in rest} == {key: before[key] for key in rest}
        assert [one["function"]["name"] for one in after["tools"]] == ["write", "look"]
        assert after["messages"][:-1] == before["messages"]
        assert json.dumps(after["messages"][:-1]) == json.dumps(before["messages"]), "byte by byte"


CLEARS = {"edits": [{"type": "clear_tool_uses_20250919"}]}


def clears(**more: Any) -> Claude:
    return Claude(
        model="claude-sonnet-4-5",  # type: ignore[call-arg]
        api_key="none",  # type: ignore[arg-type]
        profile={"max_input_tokens": 50_000},  # type: ignore[arg-type]
        **more,
    )


def truncates() -> Gpt:
    return Gpt(
        model="gpt-5.4",
        api_key="none",  # type: ignore[arg-type]
        profile={"max_input_tokens": 50_000},  # type: ignore[arg-type]
        model_kwargs={"truncation": "auto"},
    )


@pytest.mark.parametrize(
    "model",
    [
        lambda: clears(context_management=CLEARS),
        lambda: clears(model_kwargs={"context_management": CLEARS}),
        truncates,
    ],
)
def test_what_a_provider_clears_by_itself_was_not_read_whole(model):
    marks = [AnthropicPromptCachingMiddleware(unsupported_model_behavior="ignore")]
    _, asked, kinds = payloads(model(), *marks)
    assert asked == []
    assert kinds == {"smallest"}
