"""`Fitter` with the clients of OpenAI and Anthropic: sessions of ten windows, nothing too long."""

from typing import Any

import pytest

from conspectus import PolicyError, StuckError
from conspectus.archive import Scope
from conspectus_sdk import Fitter
from conspectus_serve import load_settings
from fault_server import FaultServer
from sdk_support import (
    ANTHROPIC_TOOL,
    MARK,
    WINDOW,
    WINDOWS,
    Chat,
    Messages,
    Responses,
    check_kept,
    check_requests,
    module_text,
    question_of,
    script,
    size,
)

SCOPE = Scope("local", "s")
HI = [{"role": "user", "content": "hi"}]


@pytest.mark.slow
@pytest.mark.parametrize("loop", [Chat, Responses, Messages])
def test_a_session_of_ten_windows_stays_inside_and_loses_nothing(loop, fitter):
    with FaultServer(script, window=WINDOW) as server:
        talk = loop(server)
        sent = list[Any]()

        def ask() -> list[str]:
            result = fitter.fit(talk.history, model=talk.model, thread_id="s", **talk.fit_arguments)
            sent[:] = result.messages
            return talk.answer(sent)

        turn = 0
        while size(talk.history) <= WINDOWS * WINDOW:
            talk.ask(question_of(turn))
            talk.add_results(ask(), module_text(turn))
            assert ask() == []
            turn += 1
        check_requests(server)
        room = talk.fit_arguments.get("answer_tokens", 0)
        assert max(request.tokens for request in server.requests) <= WINDOW - room
    check_kept(fitter.archive, SCOPE, talk.history, [*sent, talk.history[-1]])


def test_a_mark_for_the_cache_that_moves_changes_no_message(fitter):
    history: list[Any] = []
    for turn in range(20):
        text = {"type": "text", "text": f"{question_of(turn)} {module_text(turn)}"}
        history.append({"role": "user", "content": [text | MARK]})
        history.append({"role": "assistant", "content": [text]})
    history.append({"role": "user", "content": "Go on."})
    result = fitter.fit(history, model="claude-next", thread_id="s")
    assert result.outcome == "compacted"
    for message in history[:-1]:
        message["content"] = message["content"][0]["text"]
    second_result = fitter.fit(history, model="claude-next", thread_id="s")
    assert second_result.outcome == "kept"
    assert second_result.dropped == result.evicted


def thinking(number: int) -> list[Any]:
    """A step of Anthropic's model, with a thought that is bound to what stood before it."""
    thought = {"type": "thinking", "thinking": "I think. " * 10, "signature": f"s{number}"}
    call = {"type": "tool_use", "id": f"t{number}", "name": "look", "input": {}}
    step = {"role": "assistant", "content": [thought, {"type": "text", "text": "Well."}, call]}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": module_text(number)}
    return [step, {"role": "user", "content": [result]}]


def signatures(messages: list[Any]) -> list[str]:
    blocks = [
        block for message in messages for block in message["content"] if isinstance(block, dict)
    ]
    return [block["signature"] for block in blocks if block.get("type") == "thinking"]


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


def test_what_nothing_makes_fit_is_told_with_the_numbers(fitter):
    tools = [{**ANTHROPIC_TOOL, "description": module_text(1) * 10}]
    with pytest.raises(StuckError, match="system prompt, tools") as stuck:
        fitter.fit(HI, model="x", thread_id="t", tools=tools)
    assert stuck.value.budget == WINDOW < stuck.value.needed


@pytest.mark.slow
def test_a_window_comes_by_a_models_profile_or_is_asked_for():
    with Fitter(archive="memory:", window={"own": 5_000}) as fitter:
        for model in ("gpt-4o", "openai/gpt-4o"):
            assert fitter.fit(HI, model=model, thread_id="t").budget == 128_000
        with pytest.raises(PolicyError, match="window of the model 'mystery'"):
            fitter.fit(HI, model="mystery", thread_id="t")
    with pytest.raises(PolicyError, match="window"):
        Fitter(archive="memory:", window={"own": 0})


MODELS_BY_WINDOW = {
    3_000: "gpt-4o openai/gpt-4o openai:gpt-4o openrouter/openai/gpt-4o gpt-4o-2024-08-06",
    2_000: "gpt-4o-mini",
    2_500: "gpt-4o-mini-2024-07-18 azure/gpt-4o-mini-2024-07-18",
    1_000: "other",
}


@pytest.mark.parametrize(
    ("model", "limit"),
    [(name, limit) for limit in MODELS_BY_WINDOW for name in MODELS_BY_WINDOW[limit].split()],
)
def test_names_of_windows_match_like_the_endpoints(model, limit):
    windows = {"gpt-4o": 3_000, "gpt-4o-m*": 2_000, "gpt-4o-mini-2024-*": 2_500, "*": 1_000}
    with Fitter(archive="memory:", window=windows) as fitter:
        assert fitter.fit(HI, model=model, thread_id="t").budget == limit
    settings, _ = load_settings(given={"upstream": "http://127.0.0.1:9", "windows": windows})
    assert settings.window_of(model) == limit


def test_the_room_for_an_answer_is_kept():
    messages = [{"role": ("user", "assistant")[n % 2], "content": "Step. " * 60} for n in range(40)]
    request: dict[str, Any] = {"model": "own", "thread_id": "t"}
    messages[1]["to_stay"] = "yes"
    with Fitter(archive="memory:", window=4_000, pin="to_stay") as fitter:
        result = fitter.fit(messages, **request, answer_tokens=3_000)
        assert result.budget == 1_000
        assert messages[1] in result.messages
        assert result.tokens_after <= 1_000
        with pytest.raises(StuckError, match=r"answer_tokens \(4,000\) take 4,0.* lower answer_t"):
            fitter.fit(messages, **request, answer_tokens=4_000)
        with pytest.raises(PolicyError, match="answer_tokens must be"):
            fitter.fit(messages, **request, answer_tokens=-1)
