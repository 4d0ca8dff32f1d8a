"""What a step does to the state."""

import asyncio
import copy
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.runtime import Runtime

from langchain_conformance.behaviour import (
    SUMMARY,
    Side,
    add,
    behaviour,
    kept_ids,
    talk,
    work,
    writer,
)

STATE = "Effect on the state"
CUT = "Where the history is cut"
LINE = "Here is a summary of the conversation to date:\n\n"
SETTINGS: dict[str, Any] = {"trigger": ("messages", 5), "keep": ("messages", 2)}


def sixth(side: Side) -> Any:
    return side.step(talk(7), **SETTINGS)


add(STATE, "below the trigger", lambda side: side.step(talk(4), **SETTINGS))
add(
    STATE,
    "kinds of messages in the update",
    lambda side: [type(m).__name__ for m in sixth(side)["messages"]],
)
add(STATE, "the summary's first line", lambda side: sixth(side)["messages"][1].content[: len(LINE)])
add(
    STATE,
    "the summary is that text and nothing else",
    lambda side: sixth(side)["messages"][1].content.startswith(LINE + SUMMARY),
    "a line before it says that these are notes and no instructions, the last line tells it from "
    "other summaries; what the user said stands word for word before what the model wrote",
)
add(STATE, "ids of what is kept", lambda side: kept_ids(sixth(side)))
add(
    STATE,
    "channels that are written",
    lambda side: sorted(sixth(side)),
    "the private channel holds the record in force, so that a rewind brings it back",
)


@behaviour(STATE, "what is kept are the same objects, unchanged, and so is the list that was given")
def _(side: Side) -> Any:
    history = talk(7)
    copied = copy.deepcopy(history)
    list_before = list(history)
    update = side.make(**SETTINGS).before_model({"messages": history}, Runtime())
    same = all(kept is sent for kept, sent in zip(update["messages"][2:], history[5:], strict=True))
    return same, history == copied, [id(m) for m in history] == [id(m) for m in list_before]


@behaviour(STATE, "`abefore_model`")
def _(side: Side) -> Any:
    middleware = side.make(**SETTINGS)
    none = asyncio.run(middleware.abefore_model({"messages": talk(3)}, Runtime()))
    return none, kept_ids(asyncio.run(middleware.abefore_model({"messages": talk(7)}, Runtime())))


def rounds(side: Side, count: int, keep: int = 2, trigger: int = 5) -> tuple[list[Any], list[Any]]:
    """A talk that grows by one message a step: the states after, and the updates."""
    middleware = side.make(trigger=("messages", trigger), keep=("messages", keep))
    state: dict[str, Any] = {"messages": []}
    states = []
    updates = []
    for message in talk(count):
        state["messages"] = [*state["messages"], message]
        update = middleware.before_model(state, Runtime())
        updates.append(update)
        if update is not None:
            state = {**state, **update, "messages": update["messages"][1:]}
        states.append(state["messages"])
    return states, updates


add(
    STATE,
    "a talk of 20 messages: which steps made a summary",
    lambda side: [n + 1 for n, update in enumerate(rounds(side, 20)[1]) if update],
)


add(
    STATE,
    "`keep` is one below a trigger of 30 messages: which of 40 steps made a summary",
    lambda side: [n + 1 for n, update in enumerate(rounds(side, 40, 29, 30)[1]) if update],
    "no step repeats without progress: after a summary that could not get below its trigger, "
    "the history must grow by a tenth",
)


@behaviour(
    STATE,
    "`keep` of 38 messages, and 40 of 80 words each: a summary is made",
)
def _(side: Side) -> Any:
    history = talk(40)
    for message in history:
        message.content = "word " * 80
    return side.step(history, trigger=("tokens", 1_000), keep=("messages", 38)) is not None


def in_window(side: Side, limit: int, **settings: Any) -> Any:
    history = talk(12)
    for message in history:
        message.content = "word " * 300
    settings = {"keep": ("messages", 8), "summarizer": writer(), **settings}
    update = side.step(history, writer(limit), **settings)
    left = history if update is None else update["messages"][1:]
    return {"summarised": update is not None, "fits": count_tokens_approximately(left) <= limit}


add(
    STATE,
    "a history larger than the window of its model, and below the trigger",
    lambda side: in_window(side, 3_000, trigger=("messages", 50)),
    "the model would turn the request down",
)
add(
    STATE,
    "what `keep` asks for is larger than the window of its model",
    lambda side: in_window(side, 2_000, trigger=("messages", 12)),
    "the model would turn the request down: the cut moves on until it fits",
)


def cut(history: list[AnyMessage], keep: int) -> Any:
    def observe(side: Side) -> Any:
        return kept_ids(
            side.step(copy.deepcopy(history), trigger=("messages", 2), keep=("messages", keep))
        )

    return observe


add(
    CUT,
    "LangChain evicts the newest user message",
    cut([HumanMessage("?", id="old"), AIMessage("x", id="x"), *work(4)[:-1]], 2),
    "what the user asked last is what the agent is doing: it stays as well",
)
add(
    CUT,
    "a leading system message",
    cut([SystemMessage("Be brief.", id="sys"), *talk(7)], 2),
    "a leading system message is an instruction, and stays",
)
