"""`Fitter` with the clients of OpenAI and Anthropic: sessions of ten windows, nothing too long."""

import asyncio
import importlib
import math
import sys
from typing import Any

import pytest
from anthropic import Anthropic
from openai import AsyncOpenAI, OpenAI

from conspectus import ArchiveError, PolicyError, StuckError
from conspectus.archive import Scope
from conspectus.errors import InputError
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

HERE = Scope("local", "s")


@pytest.mark.slow
def test_chat_messages_of_openai(fitter):
    history: list[Any] = [{"role": "system", "content": PROMPT}]
    sent: list[Any] = []
    with FaultServer(script, window=WINDOW) as server:
        client = OpenAI(base_url=server.openai_url, api_key="none", max_retries=0)

        def ask() -> Any:
            result = fitter.fit(history, model="gpt-4o", thread_id="s", tools=[OPENAI_TOOL])
            sent[:] = result.messages
            answer = client.chat.completions.create(
                model="gpt-4o", messages=sent, tools=[OPENAI_TOOL]
            )
            message = answer.choices[0].message
            history.append(message.model_dump(exclude_none=True))
            return message

        def step(turn: int) -> None:
            history.append({"role": "user", "content": asking(turn)})
            for call in ask().tool_calls:
                history.append({"role": "tool", "tool_call_id": call.id, "content": looked(turn)})
            assert ask().content

        until_large(step, history)
        check_requests(server)
    assert sent[0] is history[0]
    check_kept(fitter.archive, HERE, history, [*sent, history[-1]])


@pytest.mark.slow
@pytest.mark.parametrize("marked", [False, True])
def test_messages_of_anthropic_with_system_and_tools(fitter, marked):
    history: list[Any] = []
    sent: list[Any] = []
    system = [{"type": "text", "text": PROMPT, "cache_control": {"type": "ephemeral"}}]

    def as_sent(text: str) -> Any:
        """The newest message bears the mark for the cache, as clients move it on."""
        if not marked:
            return text
        return [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]

    with FaultServer(script, window=WINDOW) as server:
        client = Anthropic(base_url=server.anthropic_url, api_key="none", max_retries=0)

        def ask() -> Any:
            result = fitter.fit(
                history, model="claude-next", thread_id="s", system=system,
                tools=[ANTHROPIC_TOOL], answer_tokens=200,
            )  # fmt: skip
            sent[:] = result.messages
            answer = client.messages.create(
                model="claude-next", max_tokens=200, system=system,
                messages=sent, tools=[ANTHROPIC_TOOL],
            )  # fmt: skip
            history.append({"role": "assistant", "content": answer.model_dump()["content"]})
            return answer

        def step(turn: int) -> None:
            for message in history:
                if isinstance(message["content"], list):
                    for block in message["content"]:
                        block.pop("cache_control", None)
            history.append({"role": "user", "content": as_sent(asking(turn))})
            calls = [block for block in ask().content if block.type == "tool_use"]
            results = [
                {"type": "tool_result", "tool_use_id": one.id, "content": looked(turn)}
                for one in calls
            ]
            history.append({"role": "user", "content": results})
            ask()

        until_large(step, history)
        check_requests(server)
        assert max(one.tokens for one in server.requests) <= WINDOW - 200
    check_kept(fitter.archive, HERE, history, [*sent, history[-1]])


@pytest.mark.slow
def test_items_of_responses(fitter):
    history: list[Any] = []
    sent: list[Any] = []
    with FaultServer(script, window=WINDOW) as server:
        client = OpenAI(base_url=server.openai_url, api_key="none", max_retries=0)

        def ask() -> Any:
            result = fitter.fit(
                history, model="gpt-4o", thread_id="s", system=PROMPT, tools=[RESPONSES_TOOL]
            )
            sent[:] = result.messages
            answer = client.responses.create(
                model="gpt-4o", instructions=PROMPT, input=sent, tools=[RESPONSES_TOOL], store=False
            )
            history.extend(item.model_dump(exclude_none=True) for item in answer.output)
            return answer.output

        def step(turn: int) -> None:
            history.append({"role": "user", "content": asking(turn)})
            for call in [one for one in ask() if one.type == "function_call"]:
                output = {"type": "function_call_output", "call_id": call.call_id}
                history.append({**output, "output": looked(turn)})
            assert ask()[0].content[0].text

        until_large(step, history)
        check_requests(server)
    check_kept(fitter.archive, HERE, history, [*sent, history[-1]])


@pytest.mark.slow
def test_several_sessions_at_once_on_an_event_loop(fitter):
    async def talk(server: FaultServer, number: int) -> None:
        history: list[Any] = [{"role": "system", "content": PROMPT}]
        where = {"model": "gpt-4o", "thread_id": f"s{number}", "tenant": f"tenant {number}"}
        async with AsyncOpenAI(base_url=server.openai_url, api_key="none") as client:
            for turn in range(25):
                history.append({"role": "user", "content": f"{asking(turn)} {looked(number)}"})
                result = await fitter.afit(history, **where)
                answer = await client.chat.completions.create(
                    model="gpt-4o", messages=result.messages
                )
                history.append(answer.choices[0].message.model_dump(exclude_none=True))
                assert f"module_{number + 1}.py: line" not in str(result.messages)

    async def main(server: FaultServer) -> None:
        await asyncio.gather(*(talk(server, 100 + 10 * number) for number in range(4)))

    with FaultServer(lambda request: "Sound.", window=WINDOW) as server:
        asyncio.run(main(server))
        check_requests(server)
    for number in range(4):
        assert fitter.archive.export(Scope(f"tenant {100 + 10 * number}", f"s{100 + 10 * number}"))


def test_what_fits_is_sent_as_it_is_with_its_marks(fitter):
    block = {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}
    messages = [{"role": "user", "content": [block]}]
    result = fitter.fit(messages, model="claude-next", thread_id="t")
    assert result.messages[0] is messages[0]
    assert block["cache_control"]


def test_a_mark_for_the_cache_that_moves_changes_no_message(fitter):
    mark = {"cache_control": {"type": "ephemeral"}}
    history: list[Any] = []
    for turn in range(20):
        text = {"type": "text", "text": f"{asking(turn)} {looked(turn)}"}
        history.append({"role": "user", "content": [text | mark]})
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


def test_without_a_compaction_a_thought_stays(fitter):
    history = [{"role": "user", "content": "Look."}, *thinking(0)]
    assert fitter.fit(history, model="claude-next", thread_id="s").messages == history


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
        fitter.fit([{"role": "user", "content": "hi"}], model="x", thread_id="t", tools=tools)
    assert stuck.value.budget == WINDOW < stuck.value.needed


@pytest.mark.slow
def test_windows_come_by_name_by_profile_or_not_at_all(tmp_path):
    said = [{"role": "user", "content": "hi"}]
    with Fitter(archive="memory:", window={"own": 5_000}) as fitter:
        assert fitter.fit(said, model="own", thread_id="t").budget == 5_000
        assert fitter.fit(said, model="gpt-4o", thread_id="t").budget == 128_000
        assert fitter.fit(said, model="openai/gpt-4o", thread_id="t").budget == 128_000
        with pytest.raises(PolicyError, match="window of the model 'mystery'"):
            fitter.fit(said, model="mystery", thread_id="t")
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
    said = [{"role": "user", "content": "hi"}]
    with Fitter(archive="memory:", window=windows) as fitter:
        assert fitter.fit(said, model=model, thread_id="t").budget == limit
    settings, _ = load_settings(given={"upstream": "http://127.0.0.1:9", "windows": windows})
    assert settings.window_of(model) == limit


def test_an_archive_that_cannot_be_read_is_told(tmp_path):
    with Fitter(archive=str(tmp_path / "a.db"), window=WINDOW) as fitter:
        pass
    with pytest.raises(ArchiveError):
        fitter.fit([{"role": "user", "content": "hi"}], model="x", thread_id="t")


@pytest.mark.parametrize("names", [{"thread_id": ""}, {"thread_id": "t", "tenant": ""}])
def test_conversations_without_a_name_are_not_one(fitter, names):
    with pytest.raises(InputError, match="must be a text that names it"):
        fitter.fit([{"role": "user", "content": "hi"}], model="x", **names)


@pytest.mark.parametrize("tokens", [-1, -WINDOW, math.inf, math.nan])
def test_room_for_an_answer_makes_no_window_larger(fitter, tokens):
    with pytest.raises(PolicyError, match="answer_tokens"):
        fitter.fit(
            [{"role": "user", "content": "hi"}], model="x", thread_id="t", answer_tokens=tokens
        )
