"""Who writes the summary, what it is given, and what happens when it fails."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langgraph.runtime import Runtime

from langchain_conformance.behaviour import (
    SUMMARY,
    Raised,
    Side,
    add,
    behaviour,
    result_or_error,
    talk,
)
from langchain_conformance.effect import LINE, SETTINGS
from scripted_models import ScriptedChatModel

WHO = "Who summarises"
READS = "What the summariser reads"
FAILS = "When the summariser fails"
READ_ALL = "nothing leaves before a summariser has read it whole"
KEEPS = (
    "the history stays while it fits the window, and the summary is asked for again when it has "
    'grown by a tenth; `on_failure="raise"` raises'
)

MARK = re.compile(r"\n\(notes #\d{6}\)\Z")
"""The last line of ours, which tells one summary from another."""


CITED = re.compile(r" \[\w+\]$")
"""The id of a message, with which the scripted model ends its answers."""


def summary_text(update: Any) -> Any:
    """What the summary says, without its first line, our note and mark, and what it cites."""
    if update is None:
        return None
    text = str(update["messages"][1].content).removeprefix(LINE)
    text = CITED.sub("", MARK.sub("", text))
    return text.partition("\n")[2] if text.startswith("(") else text


def settings_of_text_alone(side: Side) -> dict[str, Any]:
    """`SETTINGS`, for what a summary says: the summariser's text and nothing beside it."""
    return {**SETTINGS, **side.text_alone}


def scripted(*answers: Any) -> ScriptedChatModel:
    return ScriptedChatModel(answers=list(answers))


@behaviour(WHO, "`model` writes, in one call")
def _(side: Side) -> Any:
    model = scripted("- by the model")
    return summary_text(side.step(talk(7), model, **settings_of_text_alone(side))), len(model.calls)


@behaviour(WHO, "`summarizer`, a model: `model` is not called")
def _(side: Side) -> Any:
    model = scripted("- by the model")
    other_model = scripted("- by the other")
    update = side.step(talk(7), model, summarizer=other_model, **settings_of_text_alone(side))
    return summary_text(update), len(model.calls), len(other_model.calls)


def notes(messages: Any) -> str:
    return f"- {len(messages)} messages"


async def anotes(messages: Any) -> str:
    await asyncio.sleep(0)
    return f"- {len(messages)} messages, waited for"


FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "a function": (notes, None),
    "an async function": (anotes, "an async function is waited for in a thread of its own"),
    "a Runnable": (RunnableLambda(notes), None),
    "a Runnable with both": (RunnableLambda(notes, anotes), None),
    "a chain that ends in a model's text": (
        RunnableLambda(notes)
        | ScriptedChatModel(answers=lambda _: "- chained")
        | RunnableLambda(lambda m: m.text),
        None,
    ),
}
for name, (function, why) in FUNCTIONS.items():

    def sync(side: Side, function: Any = function) -> Any:
        outcome = result_or_error(
            lambda: side.step(talk(7), summarizer=function, **settings_of_text_alone(side))
        )
        return outcome.kinds if isinstance(outcome, Raised) else summary_text(outcome)

    def on_loop(side: Side, function: Any = function) -> Any:
        middleware = side.make(summarizer=function, **settings_of_text_alone(side))
        return summary_text(asyncio.run(middleware.abefore_model({"messages": talk(7)}, Runtime())))

    add(WHO, f"`summarizer`, {name}: a step without an event loop", sync, why or "")
    add(WHO, f"`summarizer`, {name}: a step on an event loop", on_loop)


@behaviour(READS, "a function gets the very messages that leave")
def _(side: Side) -> Any:
    messages_read: list[Any] = []

    def read(messages: Any) -> str:
        messages_read.extend(messages)
        return "- read"

    history = talk(7)
    side.make(summarizer=read, **SETTINGS).before_model({"messages": history}, Runtime())
    return [m.id for m in messages_read], all(
        a is b for a, b in zip(messages_read, history, strict=False)
    )


@behaviour(READS, "a function gets the summary so far first, with its marker")
def _(side: Side) -> Any:
    messages_read: list[Any] = []

    def read(messages: Any) -> str:
        messages_read[:] = messages
        return f"- {len(messages)} read"

    middleware = side.make(summarizer=read, **SETTINGS)
    update = middleware.before_model({"messages": talk(7)}, Runtime())
    later = [HumanMessage(f"And part {n}?", id=f"n{n}") for n in range(4)]
    state = {**update, "messages": [*update["messages"][1:], *later]}
    middleware.before_model(state, Runtime())
    return (
        type(messages_read[0]).__name__,
        messages_read[0].content.startswith(LINE),
        messages_read[0].additional_kwargs["lc_source"],
        [message.id for message in messages_read[1:]],
    )


def told_in_order(messages: list[AnyMessage]) -> str:
    """A summary with a line for every fiftieth name in the prompt."""
    prompt = "\n".join(str(message.content) for message in messages)
    names = re.findall(r"\bw\d+x\d+\b", prompt)[::50]
    lines = [f"- the user listed {name} in its place" for name in names]
    return "\n".join(lines) or SUMMARY


def prompt_of(side: Side, history: list[AnyMessage], **settings: Any) -> list[str]:
    """The prompts of all calls that one step makes."""
    model = ScriptedChatModel(answers=told_in_order)
    side.step(history, model, **{**SETTINGS, **settings})
    return [call.text for call in model.calls]


def words(history: list[AnyMessage], prompts: list[str]) -> int:
    """How many of the messages stand in the prompts with every word, in one piece or in parts."""
    read = {word for prompt in prompts for word in re.findall(r"\w+", prompt)}
    return sum(set(re.findall(r"\w+", str(m.content))) <= read for m in history)


LONG: list[AnyMessage] = [
    HumanMessage(f"Part {n}: " + " ".join(f"w{n}x{k}" for k in range(300)), id=f"l{n}")
    for n in range(22)
]
for name, settings, why in (
    ("short ones, default", {}, ""),
    ("22 of 600 tokens each, default", {"history": LONG}, READ_ALL),
    (
        "22 of 600 tokens each, `trim_tokens_to_summarize=1500`",
        {"history": LONG, "trim_tokens_to_summarize": 1500},
        READ_ALL,
    ),
    ("short ones, `trim_tokens_to_summarize=1`", {"trim_tokens_to_summarize": 1}, READ_ALL),
    (
        "22 of 600 tokens each, `trim_tokens_to_summarize=None`",
        {"history": LONG, "trim_tokens_to_summarize": None},
        "",
    ),
):

    def read(side: Side, settings: Any = settings) -> Any:
        changes = dict(settings)
        history = changes.pop("history", talk(9))
        return f"{words(history[:-2], prompt_of(side, history, **changes))} of {len(history) - 2}"

    add(READS, f"messages that leave, {name}: read to the last word", read, why)


@behaviour(READS, "`summary_prompt` is the prompt of the model")
def _(side: Side) -> Any:
    (prompt,) = prompt_of(side, talk(7), summary_prompt="As a haiku, of: {messages} -- end")
    return "As a haiku, of: " in prompt, " -- end" in prompt, words(talk(7)[:5], [prompt])


add(
    READS,
    "`summary_prompt` without a place for `{messages}`: messages that the model reads",
    lambda side: words(talk(7)[:5], prompt_of(side, talk(7), summary_prompt="As a haiku.")),
    "the messages follow the prompt; LangChain sends the prompt alone",
)


def failing(answer: Any, **settings: Any) -> Callable[[Side], Any]:
    """What happens where the summariser answers the same each time, and in how many calls."""

    def observe(side: Side) -> Any:
        model = ScriptedChatModel(answers=lambda _: answer, cites=False)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("time.sleep", lambda seconds: None)  # between tries
            outcome = result_or_error(lambda: side.step(talk(7), model, **SETTINGS, **settings))
        came = "an error" if isinstance(outcome, Raised) else outcome and "a summary"
        return came or "the history stays", len(model.calls)

    return observe


for name, answer, settings, why in (
    ("an error, each time", ConnectionError("reset"), {}, KEEPS),
    ("the request is too long", ContextOverflowError("too long"), {}, KEEPS),
    ("an empty answer", "", {}, f"it would take the place of what leaves; {KEEPS}"),
    (
        "a refusal of five words",
        "I cannot do that, sorry.",
        {},
        "it tells nothing of the messages; `check_summaries=False` accepts any text",
    ),
    ("an answer larger than what it replaces", "word " * 300, {}, "it would free nothing"),
    ("`summarizer` returns a number", "", {"summarizer": lambda messages: 7}, KEEPS),
):
    add(FAILS, f"{name}: what comes of it, and calls of `model`", failing(answer, **settings), why)
