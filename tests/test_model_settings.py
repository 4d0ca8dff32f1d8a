"""Which model, which window, which identity, and what makes no sense."""

import sys
from typing import Any

import pytest

from conspectus.errors import PolicyError
from conspectus.model.chat_model import DEFAULT_WINDOW, ChatModelSummarizer
from conspectus.model.windows import profile_of
from conspectus.tokens import estimate
from test_model_support import ScriptedChatModel, noted, profile, request, turns


def test_the_window_comes_from_the_argument_else_the_profile_else_a_careful_default():
    def pieces(**options: Any) -> int:
        known = options.pop("profile", None)
        model = ScriptedChatModel(answers=noted, profile=known)
        ChatModelSummarizer(model, **options).summarize(request(turns(40)))
        return len(model.calls)

    size = sum(estimate(str(m.text)) for m in turns(40))
    assert 5_000 < size < DEFAULT_WINDOW
    assert pieces() == 1
    assert pieces(profile=profile(4_000)) > 1
    assert pieces(window=4_000) > 1
    assert pieces(window=60_000, profile=profile(4_000)) == 1


def test_identity_changes_with_whatever_changes_the_summary():
    def identity(name: str = "a", **options: Any) -> str:
        return ChatModelSummarizer(
            ScriptedChatModel(answers=[], model_name=name), **options
        ).identity

    assert identity() == identity()
    assert identity() == identity(max_concurrency=1, timeout=3)
    changed = [
        identity(),
        identity("b"),
        identity(prompt="Sum up: {messages}"),
        identity(trim_tokens_to_summarize=500),
        identity(window=9_000),
        identity(min_tokens=0),
    ]
    assert len(set(changed)) == len(changed)


@pytest.mark.parametrize("model", ["nobody:no-model", "no-such-model", "mistralai:small", 7])
def test_a_model_that_cannot_be_had_is_refused_with_what_to_do(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "langchain_mistralai", None)
    with pytest.raises(PolicyError, match=r"pip install|LangChain chat model"):
        ChatModelSummarizer(model)


@pytest.mark.slow
def test_the_window_of_a_model_is_that_of_its_profile_read_without_its_library():
    anthropic = pytest.importorskip("langchain_anthropic")
    model = anthropic.ChatAnthropic(model="claude-sonnet-4-5", api_key="none")
    limit = model.profile["max_input_tokens"]
    for name in ("claude-sonnet-4-5", "anthropic:claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"):
        assert profile_of(name) == limit
    assert profile_of("claude-unheard-of") is None
