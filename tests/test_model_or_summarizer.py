"""`model=` writes and gives tokenizer and window; `summarizer=` writes; `token_counter=` counts."""

import sys
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.runtime import Runtime

from conspectus import Compactor, PolicyError, SummarizationMiddleware
from scripted_models import ScriptedChatModel

MESSAGES: list[Any] = [HumanMessage(f"Look at module {n}, please.", id=f"m{n}") for n in range(12)]


def chat(**more: Any) -> ScriptedChatModel:
    return ScriptedChatModel(answers=lambda _: "- all modules are sound [m0]", **more)


def written_by(made: Any) -> str:
    """Who wrote the notes of a compaction that is asked for."""
    if isinstance(made, Compactor):
        return str(made.compact(MESSAGES, thread_id="t", force=True).summary)
    update: Any = made.compact({"messages": list(MESSAGES)}, Runtime())
    return str(update["messages"][1].content)


@pytest.mark.parametrize("surface", [Compactor, SummarizationMiddleware])
def test_the_model_writes_unless_another_one_does(surface):
    keep = ("messages", 2)
    assert "all modules are sound" in written_by(surface(chat(), keep=keep))
    assert "all modules are sound" in written_by(surface(model=chat(), keep=keep))
    model = chat()
    assert "all modules" not in written_by(surface(model, summarizer="embedded", keep=keep))
    assert "by a function" in written_by(
        surface(model, summarizer=lambda _: "- by a function", keep=keep)
    )
    assert "all modules" in written_by(surface(None, summarizer=model, keep=keep))
    assert len(model.calls) == 1


def test_the_tokenizer_counts_and_does_nothing_else():
    def tokens(**more: Any) -> int:
        made = Compactor(**more).compact([HumanMessage("wörter zählen " * 40)], thread_id="t")
        return made.tokens_before

    named = {name: tokens(tokenizer=name) for name in ("gpt-4o", "claude-sonnet-4-5")}
    assert named["gpt-4o"] != named["claude-sonnet-4-5"]
    model = chat()
    assert tokens(model=model, tokenizer="gpt-4o") == named["gpt-4o"]
    assert model.calls == []


@pytest.mark.parametrize(
    ("name", "package", "command"),
    [
        ("gpt-4o", "langchain_openai", "openai"),
        ("openai:gpt-5-mini", "langchain_openai", "openai"),
        ("anthropic:claude-sonnet-4-5", "langchain_anthropic", "anthropic"),
        ("groq:llama", "langchain_groq", "pip install langchain-groq"),
    ],
)
@pytest.mark.parametrize(
    "surface",
    [
        Compactor,
        SummarizationMiddleware,
        lambda name: Compactor(summarizer=name),
        lambda name: SummarizationMiddleware(None, summarizer=name),
    ],
)
def test_a_missing_package_is_named_with_its_extra(surface, name, package, command, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(PolicyError, match="install") as failed:
        surface(name)
    assert command in str(failed.value)
    assert "pip install" in str(failed.value)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"model": lambda _: "text", "summarizer": "embedded"}, "model must be"),
        ({"model": ScriptedChatModel}, r"a class: give an instance of it, as in ScriptedChatModel"),
        ({"summarizer": ScriptedChatModel}, "a class: give an instance"),
        ({"model": "embeded"}, "did you mean 'embedded'"),
        ({"summarizer": "embeded"}, "did you mean 'embedded'"),
        ({"triger": ("tokens", 4_000)}, "Compactor has no parameter 'triger'; did you mean 'trig"),
        ({"model_kwargs": {}}, r"no parameter 'model_kwargs'; help\(Compactor\) lists them"),
        (
            {"tokenizer": "o200kk"},
            "did you mean 'o200k_base'. Write it as in 'tik",
        ),
        ({"tokenizer": "tiktoken:no-such-encoding"}, "tiktoken"),
        ({"tokenizer": 7}, "tokenizer must be"),
        ({"token_counter": 7}, "token_counter must be"),
        ({"tokenizer": "gpt-4o", "token_counter": len}, "not both"),
    ],
)
def test_a_wrong_setting_says_what_to_write(wrong, says):
    with pytest.raises(PolicyError, match=says):
        Compactor(**wrong)
