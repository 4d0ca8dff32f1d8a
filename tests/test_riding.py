"""Summaries that ride the cache: the agent's last request and one instruction."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from langchain_anthropic import ChatAnthropic
from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import PrivateAttr

from conspectus import Compactor, ContextGuard, SummarizationMiddleware
from conspectus.archive import Archive, Scope
from conspectus.core.records import Record
from conspectus.engine import cached_request
from conspectus.errors import PolicyError
from graph_support import Bench, check_nothing_lost, look, look_calls, new_summariser
from scripted_models import ScriptedChatModel

PAUSE = "The work pauses here."
FINDINGS = "## Found and decided\n- every module so far is sound"
SCOPE = Scope("local", "t", "main")


def is_ride(messages: Sequence[BaseMessage]) -> bool:
    return str(messages[-1].content).startswith(PAUSE)


def is_summary_call(messages: Sequence[BaseMessage]) -> bool:
    return is_ride(messages) or "<messages>" in str(messages[-1].content)


class AgentAndSummariser:
    """An agent that looks at modules, and writes its own summaries."""

    def __init__(self, steps: int, notes: Any = FINDINGS) -> None:
        self.steps = steps
        self.notes = notes
        self.done = 0

    def __call__(self, messages: list[BaseMessage]) -> Any:
        if is_summary_call(messages):
            return self.notes(messages) if callable(self.notes) else self.notes
        self.done += 1
        return "All looked at." if self.done > self.steps else look_calls(f"m{self.done}")


def model_of(steps: int = 12, notes: Any = FINDINGS, **options: Any) -> ScriptedChatModel:
    options.setdefault("profile", {"max_input_tokens": 50_000})
    return ScriptedChatModel(answers=AgentAndSummariser(steps, notes), **options)


def riding_middleware(model: Any, **settings: Any) -> SummarizationMiddleware:
    settings.setdefault("trigger", ("messages", 12))
    settings.setdefault("keep", ("messages", 4))
    settings.setdefault("summary_request", "cached")
    return SummarizationMiddleware(model, **settings)


def run_agent(
    model: ScriptedChatModel, *middlewares: Any, mode: str = "sync"
) -> tuple[Bench, list[Record]]:
    """A run of a real agent, and the records in force."""
    bench = Bench(model, *middlewares, system_prompt="You look at modules, one at a time.")
    bench.say("Look at all modules.", mode)
    return bench, list(Archive(bench.store).chain(SCOPE))


def ride_numbers_of(model: ScriptedChatModel) -> list[int]:
    """Places of the calls that asked for a summary after a request of the agent."""
    return [number for number, call in enumerate(model.calls) if is_ride(call.messages)]


def check_rides(
    model: ScriptedChatModel, equal: Callable[[Any], Any] = lambda message: message
) -> None:
    """The model was asked for summaries, each in a request that begins as the agent's last one."""
    ride_numbers = ride_numbers_of(model)
    assert ride_numbers
    for number in ride_numbers:
        agents_call = model.calls[number - 1]
        summary_call = model.calls[number]
        assert [equal(m) for m in summary_call.messages[:-1]] == [
            equal(m) for m in agents_call.messages
        ]
        assert summary_call.options == agents_call.options


def request_kinds(records: Sequence[Record]) -> set[str]:
    return {record.request_kind for record in records}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("on_loop", [False, True])
@pytest.mark.parametrize("history", ["replace", "preserve"])
def test_the_request_is_the_agents_last_one_and_one_instruction(guarded, on_loop, history):
    model = model_of()
    middleware = riding_middleware(model, history=history)
    guard = [ContextGuard(middleware)] if guarded else []
    bench, records = run_agent(model, middleware, *guard, mode="async" if on_loop else "sync")
    ride_numbers = ride_numbers_of(model)
    assert len(ride_numbers) == len(records) >= 2
    assert request_kinds(records) == {"cached"}
    check_rides(model)
    for number in ride_numbers:
        agents_call = model.calls[number - 1]
        summary_call = model.calls[number]
        assert isinstance(agents_call.messages[0], SystemMessage)
        assert isinstance(summary_call.messages[-1], HumanMessage)
        assert summary_call.options["tools"] == [look]
        assert "nostream" in summary_call.tags
        assert "nostream" not in agents_call.tags
    if history == "replace":
        check_nothing_lost(bench.graph, bench.store)
    assert "every module so far is sound" in records[-1].summary


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "CACHE_LIVES": ("its provider has forgotten it", {}),
    # Enough for what leaves, and not for the whole request beside an answer.
    "too large": (
        "it does not fit the window",
        {"summarizer": None, "window": 1_900, "trigger": ("messages", 16)},
    ),
    "another model": (
        "another model summarises",
        {"summarizer": new_summariser(model_name="another")},
    ),
    "redacted": ("is redacted", {"redact": True}),
    "own prompt": (
        "says where the messages go",
        {"summary_prompt": "Sum up: <messages>{messages}</messages>"},
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_elsewhere_the_smallest_request_is_sent(case, monkeypatch, caplog):
    caplog.set_level("DEBUG", "conspectus")
    reason, settings = REFUSED[case]
    if not settings:
        monkeypatch.setattr(cached_request, case, -1.0)
    model = model_of()
    bench, records = run_agent(model, riding_middleware(model, **settings))
    assert records
    assert ride_numbers_of(model) == []
    assert "cached" not in request_kinds(records)
    assert reason in caplog.text
    check_nothing_lost(bench.graph, bench.store)


def loop_of(model: ScriptedChatModel, **settings: Any) -> tuple[Compactor, Archive]:
    archive = Archive.open("memory:")
    settings = {"trigger": ("tokens", 1_500), "summary_request": "cached", **settings}
    settings.setdefault("check_summaries", False)
    return Compactor(
        model, window=6_000, keep=("messages", 6), archive=archive, **settings
    ), archive


def run_loop(model: ScriptedChatModel, bound: Any, compactor: Compactor) -> None:
    messages: list[Any] = [SystemMessage("You look at modules."), HumanMessage("Look at all.")]
    for step in range(30):
        result = compactor.compact(messages, thread_id="t")
        messages = list(result.messages)
        bound.invoke(messages)
        messages += [
            AIMessage(f"module_{step} is sound, and so is its neighbour. " * 4, id=f"a{step}"),
            HumanMessage(f"Go on after {step}.", id=f"h{step}"),
        ]


@pytest.mark.parametrize("with_tools", [False, True])
def test_a_loop_of_ones_own_rides(with_tools):
    model = model_of(steps=100)
    bound = model.bind_tools([look]) if with_tools else model
    request: Any = bound if with_tools else "cached"
    compactor, archive = loop_of(model, summary_request=request)
    run_loop(model, bound, compactor)
    check_rides(model)
    assert "cached" in request_kinds(archive.chain(SCOPE))


def test_a_request_that_langchain_cannot_read_is_not_sent_again(caplog):
    caplog.set_level("DEBUG", "conspectus")
    model = model_of(steps=100)
    compactor, archive = loop_of(model)
    messages: list[Any] = [{"role": "user", "content": "Look at all."}]
    for step in range(12):  # as OpenAI's Responses has a call and its result
        messages = list(compactor.compact(messages, thread_id="t").messages)
        call = {"type": "function_call", "call_id": f"c{step}", "name": "look", "arguments": "{}"}
        result = {"type": "function_call_output", "call_id": f"c{step}", "output": "sound " * 200}
        messages += [call, result]
    assert "LangChain cannot send a message of it" in caplog.text
    assert ride_numbers_of(model) == []
    assert set(request_kinds(archive.chain(SCOPE))) == {"smallest"}


def test_only_a_loop_takes_a_runnable():
    with pytest.raises(PolicyError, match="answers in the same loop"):
        Compactor(summary_request="cached")
    with pytest.raises(PolicyError):
        SummarizationMiddleware(None, summary_request=model_of())


@tool
def write(name: str, text: str) -> str:
    """Write a module."""
    return "written"


class RecordedClient(BaseChatModel):
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
        return AIMessage("All looked at.") if self._done > 12 else look_calls(f"m{self._done}")


class Claude(RecordedClient, ChatAnthropic):
    """Anthropic's client, without its server."""


class Gpt(RecordedClient, ChatOpenAI):
    """OpenAI's client, without its server."""


CLIENT: Any = {"api_key": "none", "profile": {"max_input_tokens": 50_000}}


def claude(**options: Any) -> Claude:
    return Claude(model="claude-sonnet-4-5", **CLIENT, **options)


def gpt(**options: Any) -> Gpt:
    return Gpt(model="gpt-5.4", **CLIENT, **options)


def sent_payloads(
    model: Any, *middlewares: Any
) -> tuple[list[dict[str, Any]], list[int], set[str]]:
    """What was sent, which of it asked for a summary after a request, and what records say."""
    summarization = SummarizationMiddleware(
        model, trigger=("messages", 12), keep=("messages", 4), summary_request="cached"
    )
    bench = Bench(
        model, summarization, *middlewares, ContextGuard(summarization), tools=[write, look]
    )
    bench.say("Look at all modules.")
    sent = model._payloads
    last_messages = [(payload.get("messages") or payload["input"])[-1] for payload in sent]
    ride_numbers = [
        number
        for number, last_message in enumerate(last_messages)
        if PAUSE in json.dumps(last_message)
    ]
    return sent, ride_numbers, {record.request_kind for record in Archive(bench.store).chain(SCOPE)}


def payload_pairs(model: Any, *middlewares: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each request for a summary behind the agent's last one, which are alike but for messages."""
    sent, ride_numbers, kinds = sent_payloads(model, *middlewares)
    assert ride_numbers
    assert kinds == {"cached"}
    for number in ride_numbers:
        agents_payload = sent[number - 1]
        ride_payload = sent[number]
        assert {**ride_payload, "messages": None} == {**agents_payload, "messages": None}
        yield agents_payload, ride_payload


def blocks(message: dict[str, Any]) -> list[Any]:
    content = message["content"]
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


@pytest.mark.parametrize("ttl", ["5m", "1h"])
def test_anthropic_gets_the_same_beginning_and_no_more_than_four_marks(ttl):
    model = claude()
    for agents_payload, ride_payload in payload_pairs(
        model, AnthropicPromptCachingMiddleware(ttl=ttl)
    ):
        assert [tool["name"] for tool in ride_payload["tools"]] == ["write", "look"]
        # What a user says after results of tools goes into the same message of this provider.
        ride_messages = ride_payload["messages"]
        agents_messages = agents_payload["messages"]
        assert ride_messages[: len(agents_messages) - 1] == agents_messages[:-1]
        assert len(ride_messages) == len(agents_messages)
        assert blocks(ride_messages[-1])[:-1] == blocks(agents_messages[-1])
        assert PAUSE in blocks(ride_messages[-1])[-1]["text"]
        assert json.dumps(agents_payload).count("cache_control") <= 4
        assert json.dumps(ride_payload).count("cache_control") == json.dumps(agents_payload).count(
            "cache_control"
        )


def test_openai_gets_the_same_beginning():
    for agents_payload, ride_payload in payload_pairs(gpt()):
        assert [tool["function"]["name"] for tool in ride_payload["tools"]] == ["write", "look"]
        assert ride_payload["messages"][:-1] == agents_payload["messages"]
        assert json.dumps(ride_payload["messages"][:-1]) == json.dumps(
            agents_payload["messages"]
        ), "byte by byte"


CLEARS = {"edits": [{"type": "clear_tool_uses_20250919"}]}


@pytest.mark.parametrize(
    "model",
    [
        lambda: claude(context_management=CLEARS),
        lambda: claude(model_kwargs={"context_management": CLEARS}),
        lambda: gpt(model_kwargs={"truncation": "auto"}),
    ],
)
def test_what_a_provider_clears_is_asked_for_in_the_smallest_request(model):
    middlewares = [AnthropicPromptCachingMiddleware(unsupported_model_behavior="ignore")]
    _, ride_numbers, kinds = sent_payloads(model(), *middlewares)
    assert ride_numbers == []
    assert kinds == {"smallest"}
