"""Whole runs: a generated history grows as an agent's does, and is summarised again and again."""

import copy
import random
from typing import Any

from langchain_core.messages import AnyMessage
from langgraph.runtime import Runtime

from langchain_conformance.behaviour import THEIRS, Side, behaviour, kept, writer
from langchain_conformance.cuts import drawn, is_legal

RUNS, LENGTH = 60, 60


class Steps(list[Any]):
    """Steps with a summary, of all runs."""

    def __str__(self) -> str:
        return f"{sum(map(len, self))} summaries in {len(self)} runs"


def run(side: Side, history: list[AnyMessage], settings: dict[str, Any]) -> list[Any]:
    """Where a summary was made, and what was kept then; a step wherever a model would be called."""
    made, found = side.make(writer(), **settings), []
    state: dict[str, Any] = {"messages": []}
    for at, message in enumerate(history):
        state["messages"] = [*state["messages"], copy.deepcopy(message)]
        more = at + 1 < len(history) and history[at + 1].type == "tool"
        if message.type == "ai" or more:
            continue
        update = made.before_model(state, Runtime())
        if update is not None:
            found.append((at, kept(update)))
            state = {**state, **update, "messages": update["messages"][1:]}
    return found


def long(chance: random.Random) -> list[AnyMessage]:
    history: list[AnyMessage] = []
    while len(history) < LENGTH:
        history += drawn(chance)[0]
    for at, message in enumerate(history):
        message.id = f"m{at}"
    return history


@behaviour(
    "Where the history is cut",
    "generated runs of 60 messages and more, as long as LangChain's cuts are legal: where a "
    "summary is made, and what is kept",
)
def _(side: Side) -> Any:
    chance, found = random.Random(7), Steps()
    for _ in range(RUNS):
        history, trigger = long(chance), chance.randint(8, 25)
        settings = {
            "trigger": ("messages", trigger),
            "keep": ("messages", chance.randint(1, trigger // 2)),
        }
        theirs = run(THEIRS, history, settings)
        fine = [is_legal(history[: at + 1], ids) for at, ids in theirs]
        # From the first cut on that parts a result, the two histories are no longer the same.
        legal = fine.index(False) if False in fine else len(fine)
        mine = theirs if side is THEIRS else run(side, history, settings)
        found.append(mine[:legal])
    return found
