"""What triggers and `keep` count: own counters, LangChain's approximation, reported usage."""

import math
from collections.abc import Callable
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from langchain_conformance.behaviour import (
    SUMMARY,
    Side,
    add,
    behaviour,
    count_kept,
    talk,
    ten_tokens_each,
    work,
)
from scripted_models import ScriptedChatModel

COUNTER = "Token counter"
USAGE = "Reported usage"


class Claude(ScriptedChatModel):
    @property
    def _llm_type(self) -> str:
        return "anthropic-chat"


class Provided(ScriptedChatModel):
    """A model that names its provider as tracing does."""

    provider: str

    def _get_ls_params(self, stop: Any = None, **kwargs: Any) -> Any:
        return {"ls_provider": self.provider}


def claude() -> Claude:
    return Claude(answers=lambda _: SUMMARY)


def provided(name: str) -> Provided:
    return Provided(answers=lambda _: SUMMARY, provider=name)


for limit in (100, 250, 700):

    def steps(side: Side, limit: int = limit, model: Any = None) -> Any:
        settings = {"trigger": ("tokens", limit), "keep": ("messages", 2)}
        middleware = side.make(model() if model else None, **settings)
        history = work(30)
        return next(
            (n for n in range(3, 61) if middleware.before_model({"messages": history[:n]}, None)),
            None,
        )

    def claudes(side: Side, limit: int = limit, steps: Any = steps) -> Any:
        return steps(side, limit, claude)

    def within(side: Side, limit: int = limit) -> Any:
        settings = {"trigger": ("messages", 5), "keep": ("tokens", limit)}
        return count_kept(side.step(work(30), **settings))

    add(COUNTER, f"default, calls of tools: first history over {limit} tokens", steps)
    add(COUNTER, f"default, calls of tools, Anthropic's model: over {limit} tokens", claudes)
    add(COUNTER, f"default, calls of tools: messages within {limit} tokens", within)


def talk_with_usage(
    total: int | None, *providers: str | None, at: int | None = None, count: int = 11
) -> list[AnyMessage]:
    """A talk whose answers name these providers in turn; the one at `at` reports `total`."""
    history = talk(count)
    answers = [message for message in history if isinstance(message, AIMessage)]
    for n, answer in enumerate(answers):
        named = providers[n % len(providers)] if providers else None
        answer.response_metadata = {"model_provider": named} if named else {}
    if total is not None:
        usage = {"input_tokens": total - 1, "output_tokens": 1, "total_tokens": total}
        answers[-1 if at is None else at].usage_metadata = usage  # type: ignore[assignment]
    return history


def scaled(history: list[AnyMessage]) -> Callable[[Side], Any]:
    """The largest trigger, in tokens, that the history still reaches."""

    def observe(side: Side) -> Any:
        low = 1
        high = 4000
        while low < high:
            middle = math.ceil((low + high) / 2)
            settings = {"trigger": ("tokens", middle), "keep": ("messages", 2)}
            reached = side.step(history, **settings) is not None
            low, high = (middle, high) if reached else (low, middle - 1)
        return low

    return observe


for name, history in {
    "no report": talk_with_usage(None, "openai"),
    "a report a tenth above the approximation": talk_with_usage(130, "openai"),
    "a report ten times the approximation: 1.25 at most": talk_with_usage(1000, "openai"),
    "a report below the approximation": talk_with_usage(20, "openai"),
    "a report by an older answer": talk_with_usage(60, "openai", at=1),
    "two providers": talk_with_usage(140, "openai", "anthropic"),
    "no provider named": talk_with_usage(140),
    "the first answer names none": talk_with_usage(140, None, "openai", at=1, count=5),
    "the last answer names none": talk_with_usage(140, "openai", None, at=1, count=5),
}.items():
    add(USAGE, f"{name}: the largest trigger that 11 messages reach", scaled(history))


for name, model, provider in (
    ("the same provider", "openai", "openai"),
    ("another provider", "openai", "anthropic"),
    ("Bedrock by one of its names", "amazon_bedrock", "bedrock"),
    ("Bedrock by the other", "amazon_bedrock", "bedrock_converse"),
    ("a Mantle model of OpenAI's", "openai-mantle", "openai"),
    ("a Mantle model of Anthropic's", "anthropic-mantle", "anthropic"),
    ("an alias the wrong way round", "openai", "openai-mantle"),
):

    def reported(side: Side, model: str = model, provider: str = provider) -> Any:
        settings = {"trigger": ("tokens", 5000), "keep": ("messages", 2)}
        step = side.step(
            talk_with_usage(5000, provider),
            provided(model),
            token_counter=ten_tokens_each,
            **settings,
        )
        return step is not None

    add(USAGE, f"{name}, 5,000 tokens reported: summarised at 5,000", reported)


@behaviour(USAGE, "`keep` in tokens is not scaled: messages within 60 tokens")
def _(side: Side) -> Any:
    settings = {"trigger": ("messages", 5), "keep": ("tokens", 60)}
    return count_kept(side.step(talk_with_usage(1000, "openai"), **settings))


@behaviour(
    USAGE,
    "an answer that is kept had reported more than the trigger: summaries in three more steps",
    "it measured a history that is no more; LangChain summarises again until it is gone",
)
def _(side: Side) -> Any:
    settings = {"trigger": ("tokens", 5000), "keep": ("messages", 4)}
    middleware = side.make(provided("openai"), token_counter=ten_tokens_each, **settings)
    history = talk_with_usage(6000, "openai", count=15)
    state: dict[str, Any] = {"messages": history}
    summaries = 0
    for n in range(4):
        update = middleware.before_model(state, None)
        if update is not None:
            summaries += 1
            state |= update
            state["messages"] = state["messages"][1:]
        state["messages"] = [*state["messages"], HumanMessage(f"and then? {n}", id=f"n{n}")]
    return summaries - 1
