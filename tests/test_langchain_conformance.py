"""Each public behaviour of LangChain's middleware, run on it and on ours: the same, or different
in a way that is stated."""

import copy
import random
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from langchain_conformance.behaviour import (
    BEHAVIOURS,
    OURS,
    THEIRS,
    kept_ids,
    ten_tokens_each,
    writer,
)
from langchain_conformance.page import PAGE, outcome, page
from stateful.oracle import unanswered

WINDOW = 100_000


def call_result_pairs(history: Sequence[AnyMessage]) -> list[tuple[str, str]]:
    """Ids of each call's message and of its result: a result is of the nearest call before it."""
    ids = []
    for index, message in enumerate(history):
        if isinstance(message, ToolMessage):
            for earlier in reversed(history[:index]):
                calls = earlier.tool_calls if isinstance(earlier, AIMessage) else []
                if any(call["id"] == message.tool_call_id for call in calls):
                    ids.append((str(earlier.id), str(message.id)))
                    break
    return ids


def newest_user_id(history: Sequence[AnyMessage]) -> str:
    """Id of the newest user message."""
    return str(next(m.id for m in reversed(history) if isinstance(m, HumanMessage)))


def is_legal(history: Sequence[AnyMessage], kept: Sequence[str]) -> bool:
    """Whether what is kept is whole: no result parted from its call, the newest user message
    there, no open call gone."""
    kept_set = set(kept)
    whole = all(
        (call in kept_set) == (result in kept_set) for call, result in call_result_pairs(history)
    )
    return (
        whole
        and newest_user_id(history) in kept_set
        and {str(m.id) for m in unanswered(history)} <= kept_set
    )


def random_history(chance: random.Random) -> tuple[list[AnyMessage], Callable[[], dict[str, Any]]]:
    """A history with parallel calls, results out of order, ids used again, open calls; and how
    much of it to keep."""
    history: list[AnyMessage] = []

    def put(message: AnyMessage) -> None:
        message.id = f"m{len(history)}"
        history.append(message)

    for _ in range(chance.randint(1, 5)):
        put(HumanMessage("Look " * chance.randint(1, 30)))
        for _ in range(chance.randint(0, 3)):
            ids = chance.sample(["a", "b", "c", "d"], chance.randint(0, 3))
            calls = [{"name": "look", "args": {"at": call_id}, "id": call_id} for call_id in ids]
            put(AIMessage("so " * chance.randint(0, 9), tool_calls=calls))
            chance.shuffle(ids)
            if chance.random() < 0.05:
                ids = ids[1:]
            for call_id in ids:
                put(ToolMessage("line " * chance.randint(1, 60), tool_call_id=call_id))
                if chance.random() < 0.04:
                    put(HumanMessage("Wait."))
        put(AIMessage("Done."))
    if chance.random() < 0.7:
        put(HumanMessage("And now?"))
    keep = chance.choice(
        [
            ("messages", chance.randint(1, 12)),
            ("tokens", chance.randint(1, 300)),
            ("fraction", chance.randint(1, 300) / WINDOW),
        ]
    )
    counter = {"token_counter": ten_tokens_each} if chance.random() < 0.5 else {}

    def settings() -> dict[str, Any]:
        model = writer(WINDOW)
        return {"model": model, "trigger": ("messages", 2), "keep": keep, **counter}

    return history, settings


EMPTY = "`keep` as large as the trigger: warnings when built"
"""The behaviour of which an empty outcome is LangChain's real one."""


@pytest.mark.sampled(130)
@pytest.mark.parametrize(
    "any_behaviour",
    [
        pytest.param(any_behaviour, id=f"{any_behaviour.section}: {any_behaviour.name}")
        for any_behaviour in BEHAVIOURS
    ],
)
def test_it_comes_out_the_same_or_differs_as_stated(any_behaviour):
    came_out = outcome(any_behaviour)
    shows_something = came_out.theirs not in ([], (), {}, "")
    assert shows_something or any_behaviour.name == EMPTY, "was anything run?"
    if any_behaviour.must_differ:
        assert not came_out.same, f"the stated difference is gone: {came_out.theirs!r}"
    else:
        assert came_out.same, f"LangChain: {came_out.theirs!r}; ours: {came_out.ours!r}"


@pytest.mark.slow
@pytest.mark.skipif(version("langchain") != "1.4.7", reason="the page is written with the lock")
def test_the_page_is_what_the_behaviours_write():
    assert PAGE.read_text(encoding="utf-8") == page(), "write it anew with `make conformance`"


@given(st.integers(0, 2**63))
def test_wherever_langchains_cut_is_legal_ours_is_the_same(seed):
    history, settings = random_history(random.Random(seed))
    langchains = kept_ids(THEIRS.step(copy.deepcopy(history), **settings()))
    ours = kept_ids(OURS.step(copy.deepcopy(history), **settings()))
    if langchains is not None and is_legal(history, langchains):
        assert ours == langchains
    elif ours is not None:
        assert is_legal(history, ours)
