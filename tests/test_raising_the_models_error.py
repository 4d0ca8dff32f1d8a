"""With `on_failure="raise"` the model's own error is what a caller catches."""

import asyncio
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.runtime import Runtime
from pydantic import BaseModel, ValidationError

from conspectus import Compactor
from conspectus.errors import SummarizerOverflow, SummarizerTimeout, SummaryError, SummaryRejected
from conspectus.langchain import SummarizationMiddleware
from conspectus.short_term import summarize_messages
from scripted_models import ScriptedChatModel


class Refused(Exception):
    """As providers make theirs: it cannot be built of a text alone."""

    def __init__(self, message: str, *, response: Any, body: Any) -> None:
        super().__init__(message)
        self.response, self.body, self.status_code = response, body, 401


def talk() -> list[BaseMessage]:
    said: list[BaseMessage] = []
    for n in range(8):
        said += [HumanMessage(f"question {n} " * 20, id=f"h{n}"), AIMessage("so " * 20, id=f"a{n}")]
    return [*said, HumanMessage("And now?", id="last")]


def by_middleware(model: Any, loop: bool = False) -> None:
    own = SummarizationMiddleware(
        model, trigger=("messages", 4), keep=("messages", 2), on_failure="raise"
    )
    state: Any = {"messages": talk()}
    if loop:
        asyncio.run(own.abefore_model(state, Runtime()))
    else:
        own.before_model(state, Runtime())


def by_middleware_on_a_loop(model: Any) -> None:
    by_middleware(model, loop=True)


def by_compactor(model: Any) -> None:
    compactor = Compactor(model, keep=("messages", 2), on_failure="raise")
    compactor.compact(talk(), thread_id="t", force=True)


def by_short_term(model: Any) -> None:
    summarize_messages(
        talk(),
        running_summary=None,
        model=model,
        max_tokens=200,
        max_summary_tokens=60,
        on_failure="raise",
    )


WAYS = [by_middleware, by_middleware_on_a_loop, by_compactor, by_short_term]
ways = pytest.mark.parametrize("way", WAYS)


def caught(way: Callable[[Any], None], error: BaseException, kind: Any) -> Any:
    with pytest.raises(kind) as found:
        way(ScriptedChatModel(answers=lambda _: error))
    return found.value


@ways
def test_the_models_error_is_caught_and_so_is_ours(way):
    error = caught(way, RuntimeError("429 Too Many Requests"), RuntimeError)
    assert isinstance(error, SummaryError)
    assert "429 Too Many Requests" in str(error)
    assert type(error.__cause__) is RuntimeError


@ways
def test_an_overflow_is_caught_as_langchains(way):
    error = caught(way, ContextOverflowError("too long"), ContextOverflowError)
    assert isinstance(error, SummarizerOverflow)


@ways
def test_what_the_models_error_knows_is_there(way):
    error = caught(way, Refused("no", response="r", body={"type": "denied"}), Refused)
    assert (error.status_code, error.response, error.body) == (401, "r", {"type": "denied"})
    assert isinstance(error, SummaryError)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is SummaryError
    assert str(again) == str(error)


@ways
def test_an_error_that_nothing_can_inherit_from_is_raised_with_a_note(way):
    class Form(BaseModel):
        size: int

    with pytest.raises(ValidationError) as found:
        Form.model_validate({"size": "many"})
    error = caught(way, found.value, ValidationError)
    assert error is found.value
    assert any(note.startswith("SummaryError: ") for note in error.__notes__)


def test_a_late_answer_is_caught_as_a_timeout():
    error = caught(by_compactor, TimeoutError("read timed out"), TimeoutError)
    assert isinstance(error, SummarizerTimeout)


def test_what_no_model_raised_is_ours_alone():
    with pytest.raises(SummaryRejected) as found:
        by_compactor(
            ScriptedChatModel(answers=lambda _: "I'm sorry, but I can't do that.", cites=False)
        )
    assert type(found.value) is SummaryRejected
