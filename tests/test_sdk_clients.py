"""`Fitter` with the clients of OpenAI and Anthropic: sessions of ten windows, nothing too long."""

import importlib
import sys
from typing import Any, ClassVar

import pytest
from anthropic import Anthropic
from openai import OpenAI

from conspectus import PolicyError, StuckError
from conspectus.archive import Scope
from conspectus_sdk import Fitter
from conspectus_serve import load_settings
from fault_server import FaultServer
from sdk_support import (
    ANTHROPIC_TOOL,
    OPENAI_TOOL,
    PROMPT,
    RESPONSES_TOOL,
    WINDOW,
    asking,
    check_kept,
    check_requests,
    looked,
    script,
    until_large,
)

HERE, HI = Scope("local", "s"), [{"role": "user", "content": "hi"}]


MARK = {"cache_control": {"type": "ephemeral"}}


class Chat:
    """A loop around OpenAI's chat completions."""

    model, beside = "gpt-4o", {"tools": [OPENAI_TOOL]}

    def __init__(self, server: FaultServer) -> None:
        self.client = OpenAI(base_url=server.openai_url, api_key="none", max_retries=0)
        self.history: list[Any] = [{"role": "system", "content": PROMPT}]

    def says(self, text: str) -> None:
        self.history.append({"role": "user", "content": text})

    def answers(self, sent: list[Any]) -> list[str]:
        """Ask the provider; return the ids of the calls that it makes."""
        answer = self.client.chat.completions.create(
            model=self.model, messages=sent, tools=[OPENAI_TOOL]
        )
        message = answer.choices[0].message.model_dump(exclude_none=True)
        self.history.append(message)
        return [call["id"] for call in message.get("tool_calls", ())]

    def results(self, calls: list[str], text: str) -> None:
        self.history += [{"role": "tool", "tool_call_id": one, "content": text} for one in calls]


class Responses(Chat):
    """A loop around OpenAI's Responses, whose items are sent whole each time."""

    beside: ClassVar = {"system": PROMPT, "tools": [RESPONSES_TOOL]}

    def __init__(self, server: FaultServer) -> None:
        super().__init__(server)
        self.history = []

    def answers(self, sent: list[Any]) -> list[str]:
        answer = self.client.responses.create(
            model=self.model, instructions=PROMPT, input=sent, tools=[RESPONSES_TOOL], store=False
        )
        self.history.extend(item.model_dump(exclude_none=True) for item in answer.output)
        return [item.call_id for item in answer.output if item.type == "function_call"]

    def results(self, calls: list[str], text: str) -> None:
        kind = "function_call_output"
        self.history += [{"type": kind, "call_id": one, "output": text} for one in calls]


class Messages(Chat):
    """A loop around Anthropic's messages, whose newest one bears the mark for the cache."""

    model = "claude-next"
    system: ClassVar = [{"type": "text", "text": PROMPT, **MARK}]
    beside: ClassVar = {"system": system, "tools": [ANTHROPIC_TOOL], "answer_tokens": 200}

    def __init__(self, server: FaultServer) -> None:
        self.anthropic = Anthropic(base_url=server.anthropic_url, api_key="none", max_retries=0)
        self.history = []

    def says(self, text: str) -> None:
        for message in self.history:
            for block in message["content"]:
                block.pop("cache_control", None)
        self.history.append({"role": "user", "content": [{"type": "text", "text": text, **MARK}]})

    def answers(self, sent: list[Any]) -> list[str]:
        answer = self.anthropic.messages.create(
            model=self.model, max_tokens=200, system=self.system, messages=sent,
            tools=[ANTHROPIC_TOOL],
        )  # fmt: skip
        content = answer.model_dump()["content"]
        self.history.append({"role": "assistant", "content": content})
        return [block["id"] for block in content if block["type"] == "tool_use"]

    def results(self, calls: list[str], text: str) -> None:
        kind = "tool_result"
        blocks = [{"type": kind, "tool_use_id": one, "content": text} for one in calls]
        self.history.append({"role": "user", "content": blocks})


@pytest.mark.slow
@pytest.mark.parametrize("loop", [Chat, Responses, Messages])
def test_a_session_of_ten_windows_stays_inside_and_loses_nothing(loop, fitter):
    with FaultServer(script, window=WINDOW) as server:
        talk, sent = loop(server), list[Any]()

        def ask() -> list[str]:
            result = fitter.fit(talk.history, model=talk.model, thread_id="s", **talk.beside)
            sent[:] = result.messages
            return talk.answers(sent)

        def step(turn: int) -> None:
            talk.says(asking(turn))
            talk.results(ask(), looked(turn))
            assert ask() == []

        until_large(step, talk.history)
        check_requests(server)
        room = talk.beside.get("answer_tokens", 0)
        assert max(one.tokens for one in server.requests) <= WINDOW - room
    check_kept(fitter.archive, HERE, talk.history, [*sent, talk.history[-1]])


def test_a_mark_for_the_cache_that_moves_changes_no_message(fitter):
    history: list[Any] = []
    for turn in range(20):
        text = {"type": "text", "text": f"{asking(turn)} {looked(turn)}"}
        history.append({"role": "user", "content": [text | MARK]})
        history.append({"role": "assistant", "content": [text]})
    history.append({"role": "user", "content": "Go on."})
    first = fitter.fit(history, model="claude-next", thread_id="s")
    assert first.outcome == "compacted"
    for message in history[:-1]:
        message["content"] = message["content"][0]["text"]
    again = fitter.fit(history, model="claude-next", thread_id="s")
    assert again.outcome == "kept"
    assert again.dropped == first.evicted


def thinking(number: int) -> list[Any]:
    """A step of Anthropic's model, with a thought that is bound to what stood before it."""
    thought = {"type": "thinking", "thinking": "I think. " * 10, "signature": f"s{number}"}
    call = {"type": "tool_use", "id": f"t{number}", "name": "look", "input": {}}
    step = {"role": "assistant", "content": [thought, {"type": "text", "text": "Well."}, call]}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": looked(number)}
    return [step, {"role": "user", "content": [result]}]


def signatures(messages: list[Any]) -> list[str]:
    blocks = [one for message in messages for one in message["content"] if isinstance(one, dict)]
    return [one["signature"] for one in blocks if one.get("type") == "thinking"]


def test_thoughts_from_before_a_compaction_go_and_later_ones_stay(fitter):
    request = {"model": "claude-next", "thread_id": "s"}
    history: list[Any] = [{"role": "user", "content": "Do the work."}]
    views = []
    for number in range(30):
        history += thinking(number)
        result = fitter.fit(history, **request)
        views.append((result.outcome, signatures(result.messages)))
        if result.outcome == "compacted":
            since = number
            assert signatures(result.messages) == [f"s{number}"]  # with its calls in progress
        elif any(outcome == "compacted" for outcome, _ in views):
            assert signatures(result.messages) == [f"s{n}" for n in range(since, number + 1)]
    assert sum(outcome == "compacted" for outcome, _ in views) > 2
    assert signatures(history) == [f"s{n}" for n in range(30)]  # the caller's own stay whole


@pytest.mark.parametrize(
    ("module", "missing"), [("litellm_proxy", "litellm"), ("openai_agents", "agents")]
)
def test_a_missing_extra_is_named(monkeypatch, module, missing):
    monkeypatch.delitem(sys.modules, f"conspectus_sdk.{module}", raising=False)
    for name in [one for one in sys.modules if one.split(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match="pip install "):
        importlib.import_module(f"conspectus_sdk.{module}")


def test_what_nothing_makes_fit_is_told_with_the_numbers(fitter):
    tools = [{**ANTHROPIC_TOOL, "description": looked(1) * 10}]
    with pytest.raises(StuckError, match="system prompt, tools") as stuck:
        fitter.fit(HI, model="x", thread_id="t", tools=tools)
    assert stuck.value.budget == WINDOW < stuck.value.needed


@pytest.mark.slow
def test_windows_come_by_name_by_profile_or_not_at_all(tmp_path):
    with Fitter(archive="memory:", window={"own": 5_000}) as fitter:
        assert fitter.fit(HI, model="own", thread_id="t").budget == 5_000
        assert fitter.fit(HI, model="gpt-4o", thread_id="t").budget == 128_000
        assert fitter.fit(HI, model="openai/gpt-4o", thread_id="t").budget == 128_000
        with pytest.raises(PolicyError, match="window of the model 'mystery'"):
            fitter.fit(HI, model="mystery", thread_id="t")
    with pytest.raises(PolicyError, match="window"):
        Fitter(archive="memory:", window={"own": 0})


@pytest.mark.parametrize(
    ("model", "limit"),
    [
        ("gpt-4o", 3_000),
        ("openai/gpt-4o", 3_000),
        ("openai:gpt-4o", 3_000),
        ("openrouter/openai/gpt-4o", 3_000),
        ("gpt-4o-2024-08-06", 3_000),
        ("gpt-4o-mini", 2_000),
        ("gpt-4o-mini-2024-07-18", 2_500),
        ("azure/gpt-4o-mini-2024-07-18", 2_500),
        ("claude-next", 4_000),
        ("anthropic/claude-next-20260101", 4_000),
        ("other", 1_000),
    ],
)
def test_a_name_of_a_window_counts_as_it_does_for_the_endpoint(model, limit):
    windows = {"gpt-4o": 3_000, "gpt-4o-m*": 2_000, "gpt-4o-mini-2024-*": 2_500, "*": 1_000}
    windows["claude-*"] = 4_000
    with Fitter(archive="memory:", window=windows) as fitter:
        assert fitter.fit(HI, model=model, thread_id="t").budget == limit
    settings, _ = load_settings(given={"upstream": "http://127.0.0.1:9", "windows": windows})
    assert settings.window_of(model) == limit
