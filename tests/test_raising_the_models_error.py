"""With `on_failure="raise"` a caller gets our error, with the model's as its cause."""

import asyncio
from typing import Any

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.runtime import Runtime

from conspectus import Compactor
from conspectus.errors import SummarizerOverflow, SummarizerTimeout, SummaryError, SummaryRejected
from conspectus.langchain import SummarizationMiddleware
from conspectus.short_term import summarize_messages
from scripted_models import ScriptedChatModel


def talk() -> list[BaseMessage]:
    said: list[BaseMessage] = []
    for n in range(8):
        said += [HumanMessage(f"question {n} " * 20, id=f"h{n}"), AIMessage("so " * 20, id=f"a{n}")]
    return [*said, HumanMessage("And now?", id="last")]


def by_middleware(model: Any) -> None:
    settings: Any = {"trigger": ("messages", 4), "keep": ("messages", 2), "on_failure": "raise"}
    SummarizationMiddleware(model, **settings).before_model({"messages": talk()}, Runtime())


def by_middleware_on_a_loop(model: Any) -> None:
    settings: Any = {"trigger": ("messages", 4), "keep": ("messages", 2), "on_failure": "raise"}
    own = SummarizationMiddleware(model, **settings)
    asyncio.run(own.abefore_model({"messages": talk()}, Runtime()))


def by_compactor(model: Any) -> None:
    compactor = Compactor(model, keep=("messages", 2), on_failure="raise")
    compactor.compact(talk(), thread_id="t", force=True)


def by_short_term(model: Any) -> None:
    limits: Any = {"max_tokens": 200, "max_summary_tokens": 60, "on_failure": "raise"}
    summarize_messages(talk(), running_summary=None, model=model, **limits)


@pytest.mark.parametrize("way", [by_middleware, by_middleware_on_a_loop, by_compactor])
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RuntimeError("429 Too Many Requests"), SummaryError),
        (ContextOverflowError("too long"), SummarizerOverflow),
        (TimeoutError("read timed out"), SummarizerTimeout),
        ("I'm sorry, I cannot help with that.", SummaryRejected),
    ],
)
def test_our_error_says_why_and_has_the_models_as_its_cause(way, error, kind):
    with pytest.raises(kind) as caught:
        way(ScriptedChatModel(answers=lambda _: error, cites=False))
    assert str(error)[:20] in str(caught.value)
    if isinstance(error, Exception):
        causes, cause = [], caught.value.__cause__
        while cause is not None:
            causes.append(type(cause))
            cause = cause.__cause__
        assert type(error) in causes


def test_short_term_memory_raises_the_models_own_as_langmem_does():
    error = RuntimeError("429 Too Many Requests")
    with pytest.raises(RuntimeError) as caught:
        by_short_term(ScriptedChatModel(answers=lambda _: error))
    assert caught.value is error
    with pytest.raises(SummaryRejected):
        by_short_term(ScriptedChatModel(answers=lambda _: "", cites=False))
