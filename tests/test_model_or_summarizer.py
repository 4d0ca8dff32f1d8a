"""`model=` writes and gives tokenizer and window; `summarizer=` writes; `token_counter=` counts."""

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.runtime import Runtime

from conspectus import Compactor, PolicyError, SummarizationMiddleware
from conspectus.archive import Archive
from conspectus.errors import SummarizerOverflow, SummarizerTimeout, SummaryError, SummaryRejected
from conspectus.notes.skills import Skills
from conspectus.notes.tools import Tool
from conspectus.short_term import summarize_messages
from graph_support import tool_turns
from scripted_models import ScriptedChatModel

MESSAGES: list[Any] = [HumanMessage(f"Look at module {n}, please.", id=f"m{n}") for n in range(12)]


def chat(**options: Any) -> ScriptedChatModel:
    return ScriptedChatModel(answers=lambda _: "- all modules are sound [m0]", **options)


def summary_of(compactor_or_middleware: Any) -> str:
    """Who wrote the notes of a compaction that is asked for."""
    if isinstance(compactor_or_middleware, Compactor):
        return str(compactor_or_middleware.compact(MESSAGES, thread_id="t", force=True).summary)
    update: Any = compactor_or_middleware.compact({"messages": list(MESSAGES)}, Runtime())
    return str(update["messages"][1].content)


@pytest.mark.parametrize("surface", [Compactor, SummarizationMiddleware])
def test_the_model_writes_unless_another_one_does(surface):
    keep = ("messages", 2)
    assert "all modules are sound" in summary_of(surface(chat(), keep=keep))
    assert "all modules are sound" in summary_of(surface(model=chat(), keep=keep))
    model = chat()
    assert "all modules" not in summary_of(surface(model, summarizer="embedded", keep=keep))
    assert "by a function" in summary_of(
        surface(model, summarizer=lambda _: "- by a function", keep=keep)
    )
    assert "all modules" in summary_of(surface(None, summarizer=model, keep=keep))
    assert len(model.calls) == 1


def test_a_model_inside_tools_and_retries_gives_its_window():
    wrapped = chat(profile={"max_input_tokens": 8_000}).bind(stop=["x"]).with_retry()
    compactor = Compactor(wrapped, trigger=("fraction", 0.5), keep=("messages", 2))
    assert compactor.compact(MESSAGES, thread_id="t").budget == 8_000


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda model: model.with_fallbacks([model]),
        lambda model: model.bind(stop=["END"]).with_retry().with_fallbacks([model]),
    ],
)
@pytest.mark.parametrize("surface", [Compactor, SummarizationMiddleware])
def test_a_chat_model_with_options_or_retries_writes_like_the_model(surface, wrapped):
    model = chat()
    keep = ("messages", 2)
    writer = surface(None, summarizer=wrapped(model), keep=keep)
    assert "all modules are sound" in summary_of(writer)
    fallback = surface(None, summarizer=raises, fallbacks=[wrapped(model)], keep=keep)
    assert "all modules are sound" in summary_of(fallback)
    assert "message" in model.calls[0].text  # with our prompt


def raises(messages: list[Any]) -> str:
    raise ValueError("no")


def test_a_function_must_return_text_and_no_message():
    settings: Any = {"keep": ("messages", 2), "on_failure": "raise"}
    compactor = Compactor(summarizer=lambda _: AIMessage("- so"), **settings)
    with pytest.raises(SummaryError, match=r"returned AIMessage, and not a text; .*answer\.text"):
        compactor.compact(MESSAGES, thread_id="t", force=True)


def test_a_draft_is_found_again_unless_a_setting_changes_summaries():
    archive = Archive.open("memory:")
    model = chat()
    head = {"v": 1, "thread": "t", "session": "main"}

    def calls(**changes: Any) -> int:
        settings = {
            "keep": ("messages", 2),
            "archive": archive,
            "preview": lambda _: None,
            **changes,
        }
        state = {"messages": list(MESSAGES), "_conspectus": head}
        SummarizationMiddleware(model, **settings).compact(state, Runtime())
        return len(model.calls)

    assert [calls(), calls(), calls(on_failure="keep", summarizer_timeout=60)] == [1, 1, 1]
    assert [calls(notes=False), calls(skills=Skills(("read",)))] == [2, 3]
    assert [calls(tool_table=[Tool("book", key="room")]), calls(redact=str.title)] == [4, 5]


def test_the_tokenizer_counts_and_does_nothing_else():
    def tokens(**settings: Any) -> int:
        result = Compactor(**settings).compact([HumanMessage("wörter zählen " * 40)], thread_id="t")
        return result.tokens_before

    tokens_by_tokenizer = {name: tokens(tokenizer=name) for name in ("gpt-4o", "claude-sonnet-4-5")}
    assert tokens_by_tokenizer["gpt-4o"] != tokens_by_tokenizer["claude-sonnet-4-5"]
    model = chat()
    assert tokens(model=model, tokenizer="gpt-4o") == tokens_by_tokenizer["gpt-4o"]
    assert model.calls == []


@pytest.mark.parametrize(
    ("name", "package", "command"),
    [
        ("gpt-4o", "langchain_openai", "openai"),
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
    ("settings", "problem"),
    [
        ({"model": lambda _: "text", "summarizer": "embedded"}, "model must be"),
        ({"tokenizer": "gpt-4o", "token_counter": len}, "not both"),
    ],
)
def test_a_wrong_setting_says_what_to_write(settings, problem):
    with pytest.raises(PolicyError, match=problem):
        Compactor(**settings)


TALK = [*tool_turns(8, 12), HumanMessage("And now?", id="last")]
RAISES: Any = {"keep": ("messages", 2), "on_failure": "raise"}
LIMITS: Any = {"max_tokens": 200, "max_summary_tokens": 60, "on_failure": "raise"}


def middleware_of(model: Any) -> SummarizationMiddleware:
    return SummarizationMiddleware(model, trigger=("messages", 4), **RAISES)


RUN_ON_SURFACE: dict[str, Callable[[Any], Any]] = {
    "middleware": lambda model: middleware_of(model).before_model({"messages": TALK}, Runtime()),
    "on a loop": lambda model: asyncio.run(
        middleware_of(model).abefore_model({"messages": TALK}, Runtime())
    ),
    "compactor": lambda model: Compactor(model, **RAISES).compact(TALK, thread_id="t", force=True),
    "short term": lambda model: summarize_messages(
        TALK, running_summary=None, model=model, **LIMITS
    ),
}


@pytest.mark.parametrize("surface", RUN_ON_SURFACE)
@pytest.mark.parametrize(
    ("error", "error_class"),
    [
        (RuntimeError("429 Too Many Requests"), SummaryError),
        (ContextOverflowError("too long"), SummarizerOverflow),
        (TimeoutError("read timed out"), SummarizerTimeout),
        ("I'm sorry, I cannot help with that.", SummaryRejected),
    ],
)
def test_our_error_says_why_and_has_the_models_as_its_cause(surface, error, error_class):
    with pytest.raises(error_class) as caught:
        RUN_ON_SURFACE[surface](ScriptedChatModel(answers=lambda _: error, cites=False))
    assert str(error)[:20] in str(caught.value)
    if isinstance(error, Exception):
        causes = []
        cause = caught.value.__cause__
        while cause is not None:
            causes.append(type(cause))
            cause = cause.__cause__
        assert type(error) in causes


def test_one_that_is_late_is_not_asked_again():
    late = ScriptedChatModel(answers=lambda _: TimeoutError("read timed out"))
    compactor = Compactor(late, keep=("messages", 2), fallbacks=[chat()])
    result = compactor.compact(MESSAGES, thread_id="t", force=True)
    assert "all modules are sound" in result.summary
    assert len(late.calls) == 1


SAID = [{"role": "user", "content": f"Look at module {n}."} for n in range(20)]
BOUNDED: dict[str, Any] = {"trigger": ("messages", 10), "keep": ("messages", 4)}


def test_the_embedded_summariser_bounds_an_unknown_window():
    model = ScriptedChatModel(answers=lambda _: RuntimeError("401"))
    for count, outcome in ((18, "kept"), (20, "compacted")):
        result = Compactor(model, **BOUNDED).compact(SAID[:count], thread_id="t")
        assert result.outcome == outcome
