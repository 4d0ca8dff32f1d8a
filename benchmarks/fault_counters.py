"""Random histories whose caller counts tokens in odd ways: what is sent fits by that very counter.

A counter is called with the list, and no list need be the sum of its messages. Histories are dicts
in the form of OpenAI or Anthropic, or LangChain messages, with calls, parallel calls, images, names
and pinned messages; they grow through several calls of a `Compactor`, or under an agent.
"""

from __future__ import annotations

import json
import random
from collections import Counter as Count
from collections.abc import Callable, Iterator
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.memory import InMemorySaver
from tables import COUNTERS, Row, ScriptedChatModel

from conspectus import Compactor, ContextGuard, StuckError, SummarizationMiddleware

WINDOWS = (1_000, 2_000, 4_000, 8_000, 16_000, 60_000, 200_000)
LENGTHS = (5, 20, 60, 200, 600)
"""Words of a message, at most."""
AGENTS = 10
"""One history in so many is an agent's."""
WORDS = (
    "the parser reads settings from a file never push to main answer in the language of the user "
    "an error in line twelve the budget is 500 euros all tests pass"
).split()
PICTURE = {
    "type": "image_url",
    "image_url": {"url": "data:image/png;base64," + "iVBORw0KGgo" * 40},
}
Turn = dict[str, Any]


def rows(histories: int) -> Iterator[Row]:
    """Count views over the window, and results that say another size than the counter."""
    outcomes: Count[str] = Count()
    over: list[str] = []
    for seed in range(histories):
        chance = random.Random(seed)
        name = chance.choice([*COUNTERS])
        trial = _agents_history if seed % AGENTS == 0 else _compactors_history
        over += (f"{seed} ({name}): {what}" for what in trial(chance, name, outcomes))
    said = ", ".join(f"{number:,} {outcome}" for outcome, number in sorted(outcomes.items()))
    detail = "; ".join([f"{len(COUNTERS)} counters; {said}", *over[:5]])
    yield Row("histories over the window by the caller's counter", len(over), 0, "", detail)


def _compactors_history(chance: random.Random, name: str, outcomes: Count[str]) -> Iterator[str]:
    counter = COUNTERS[name]
    window = chance.choice(WINDOWS)
    reserved = chance.choice([0, 0, 0, window // 5])
    settings = _settings(chance, window)
    compactor = Compactor(
        window=window, reserved_tokens=reserved, token_counter=counter, **settings
    )
    messages = chance.choice(FORMS)(chance, _turns(chance, window))
    step = chance.choice([5, 11, len(messages)])
    whole = chance.random() < 0.5
    came: list[Any] = []
    view: list[Any] = []
    with compactor:
        for begin in range(0, len(messages), step):
            new = messages[begin : begin + step]
            came += new
            sent = came if whole else [*view, *new]
            result = compactor.compact(sent, thread_id="t", force=chance.random() < 0.03)
            view = list(result.messages)
            outcomes[result.outcome] += 1
            size = int(counter(view))
            if result.tokens_after != size:
                yield f"{result.tokens_after:,} tokens are said and {size:,} are sent"
            if (size > window - reserved) != (result.outcome == "stuck"):
                yield f"{result.outcome} at {size:,} of {window - reserved:,} tokens"


def _settings(chance: random.Random, window: int) -> dict[str, Any]:
    """Choose settings of a compactor."""
    settings: dict[str, Any] = {"pin": "pinned"}
    lines = chance.choice([0, 10, 60, 600])
    if lines:
        text = "\n".join(f"- {_words(chance, 9)}" for _ in range(lines))
        settings["summarizer"] = lambda _: text
    if chance.random() < 0.6:
        settings["archive"] = "memory:"
    if chance.random() < 0.3:
        tokens = ("tokens", window // 4)
        settings["keep"] = chance.choice([("messages", 1), tokens, ("fraction", 0.3)])
    if chance.random() < 0.3:
        settings["trigger"] = chance.choice([("messages", 20), ("fraction", 0.5)])
    for setting, value in (
        ("notes", False),
        ("max_summary_tokens", 200),
        ("background", True),
        ("alternate_roles", "on"),
    ):
        if chance.random() < 0.2:
            settings[setting] = value
    return settings


def _agents_history(chance: random.Random, name: str, outcomes: Count[str]) -> Iterator[str]:
    counter = COUNTERS[name]
    window = chance.choice(WINDOWS[1:5])
    model = ScriptedChatModel(answers=lambda _: _words(chance, chance.choice(LENGTHS)))
    own = SummarizationMiddleware(
        None,
        trigger=chance.choice([("fraction", 0.8), ("tokens", window // 2), ("messages", 12)]),
        keep=chance.choice([("messages", 4), ("tokens", window // 4)]),
        token_counter=counter,
        window=window,
    )
    guard = ContextGuard(own, window=window, reserved_tokens=0)
    agent = create_agent(
        model,
        system_prompt=_words(chance, 30),
        middleware=[own, guard],
        checkpointer=InMemorySaver(),
    )
    for turn in range(12):
        asked = HumanMessage(_words(chance, chance.choice(LENGTHS)), id=f"u{turn}")
        try:
            agent.invoke({"messages": [asked]}, {"configurable": {"thread_id": "t"}})
        except StuckError:
            outcomes["stuck in an agent"] += 1
            return
        outcomes["sent by an agent"] += 1
        size = int(counter(model.calls[-1].messages))
        if size > window:
            yield f"an agent sent {size:,} of {window:,} tokens"


# Histories


def _words(chance: random.Random, most: int) -> str:
    return " ".join(chance.choices(WORDS, k=max(1, int(most * 1.5 * chance.random()))))


def _turns(chance: random.Random, window: int) -> list[Turn]:
    """Make a conversation, in no provider's form."""
    lengths = (*LENGTHS, window // 30 if window < 30_000 else 1_000)
    turns: list[Turn] = []
    calls = 0
    if chance.random() < 0.5:
        turns.append({"role": "system", "text": _words(chance, 60)})
    for _ in range(chance.choice([2, 6, 20])):
        turns.append({"role": "user", "text": _words(chance, chance.choice(lengths))})
        for _ in range(chance.choice([0, 0, 1, 3])):
            ids = [f"call{calls + n}" for n in range(chance.choice([1, 1, 3]))]
            calls += len(ids)
            turns.append({"role": "call", "ids": ids, "text": _words(chance, 20)})
            turns += (
                {"role": "tool", "id": one, "text": _words(chance, chance.choice(lengths))}
                for one in ids
            )
        turns.append({"role": "assistant", "text": _words(chance, chance.choice(lengths))})
    return turns


def _langchain(chance: random.Random, turns: list[Turn]) -> list[Any]:
    messages: list[AnyMessage] = []
    size = 0
    for number, turn in enumerate(turns):
        name = f"m{number}" if chance.random() < 0.8 else None
        text = turn["text"]
        size += len(text) // 4 + 4
        usage: Any = {"input_tokens": size, "output_tokens": 5, "total_tokens": size + 5}
        usage = usage if chance.random() < 0.5 else None
        if turn["role"] == "system":
            messages.append(SystemMessage(text, id=name))
        elif turn["role"] == "user":
            marks = {"pinned": True} if chance.random() < 0.04 else {}
            content: Any = [{"type": "text", "text": text}, PICTURE]
            content = content if chance.random() < 0.05 else text
            messages.append(HumanMessage(content, id=name, additional_kwargs=marks))
        elif turn["role"] == "assistant":
            messages.append(AIMessage(text, id=name, usage_metadata=usage))
        elif turn["role"] == "call":
            asked: Any = [{"name": "read", "args": {"path": text}, "id": i} for i in turn["ids"]]
            messages.append(AIMessage("", id=name, tool_calls=asked, usage_metadata=usage))
        else:
            messages.append(ToolMessage(text, tool_call_id=turn["id"], id=name))
    return messages


def _openai(chance: random.Random, turns: list[Turn]) -> list[Any]:
    messages: list[Any] = []
    for turn in turns:
        text = turn["text"]
        if turn["role"] == "call":
            asked = {"name": "read", "arguments": json.dumps({"path": text})}
            calls = [{"id": i, "type": "function", "function": asked} for i in turn["ids"]]
            messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        elif turn["role"] == "tool":
            messages.append({"role": "tool", "tool_call_id": turn["id"], "content": text})
        else:
            name = {"name": "Ann"} if turn["role"] == "user" and chance.random() < 0.1 else {}
            messages.append({"role": turn["role"], "content": text, **name})
    return messages


def _anthropic(chance: random.Random, turns: list[Turn]) -> list[Any]:
    messages: list[Any] = []
    for turn in turns:
        text = turn["text"]
        if turn["role"] == "call":
            used = {"type": "tool_use", "name": "read", "input": {"path": text}}
            blocks = [{**used, "id": one} for one in turn["ids"]]
            messages.append({"role": "assistant", "content": blocks})
        elif turn["role"] == "tool":
            block = {"type": "tool_result", "tool_use_id": turn["id"], "content": text}
            if isinstance(messages[-1]["content"], list) and messages[-1]["role"] == "user":
                messages[-1]["content"].append(block)
            else:
                messages.append({"role": "user", "content": [block]})
        elif turn["role"] == "assistant":
            messages.append({"role": "assistant", "content": [{"type": "text", "text": text}]})
        elif turn["role"] == "user":
            messages.append({"role": "user", "content": text})
    return messages


FORMS: tuple[Callable[[random.Random, list[Turn]], list[Any]], ...]
FORMS = (_langchain, _langchain, _openai, _anthropic)
