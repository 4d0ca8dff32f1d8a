"""Promise 1 where texts repeat: equal giants, and what is shown said again, by anybody.

Whatever is said is there as often as it was said: in view, or among the originals of the head.
Whoever sends back what it got, or its whole history, to this worker or to a new one, loses nothing.
"""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.store.memory import InMemoryStore

from conspectus import Compactor
from conspectus.archive import Archive
from engine import SCOPE, Scripted, engine
from stateful.budgets import LONG, few
from stateful.oracle import openai_rejects

WINDOW = 1_500
GIANTS = [f"line {n} of a log\n" * 500 for n in range(2)]
FORMS = st.sampled_from(["dict", "langchain", "without ids"])

WORDS = st.one_of(
    st.sampled_from(["ok", "go on"]),
    st.sampled_from(GIANTS),
    st.integers(0, 20),  # repeats what was shown in this place
    st.text("abc ", min_size=1, max_size=300).map(lambda text: f"said: {text}"),
)
TURNS = st.lists(
    st.tuples(
        st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), WORDS), max_size=4),
        st.booleans(),  # a compaction is asked for
        st.booleans(),  # by a new worker
    ),
    min_size=3,
    max_size=12,
)


def text_of(message: Any) -> str:
    return str(message["content"] if isinstance(message, dict) else message.text)


def said(form: str, role: str, text: str, number: int) -> list[Any]:
    """A message, or a call of a tool with its result; ids of calls are used again."""
    name = f"m{number}" if form == "langchain" else None
    call_id = f"call_{number % 2}"
    if form == "dict":
        if role != "tool":
            return [{"role": role, "content": text}]
        call: Any = {"id": call_id, "type": "function"}
        call["function"] = {"name": "run", "arguments": "{}"}
        asked: Any = {"role": "assistant", "content": "", "tool_calls": [call]}
        return [asked, {"role": "tool", "tool_call_id": call_id, "content": text}]
    if role != "tool":
        return [{"user": HumanMessage, "assistant": AIMessage}[role](text, id=name)]
    calls: Any = [{"name": "run", "args": {}, "id": call_id, "type": "tool_call"}]
    result = ToolMessage(text, tool_call_id=call_id, id=f"r{number}" if name else None)
    return [AIMessage("", tool_calls=calls, id=name), result]


def found(compactor: Compactor, shown: list[Any]) -> Counter[str]:
    """How often each text is in view, or can be had back."""
    chain = compactor.archive.chain(SCOPE)
    covered = [key for record in chain for key in record.covers]
    clips = {mark.key for record in chain for mark in record.clips} - set(covered)
    originals = compactor.archive.get(SCOPE, [*covered, *clips])
    return Counter(map(text_of, [*shown, *(one.message for one in originals)]))


@pytest.mark.slow
@settings(max_examples=1_000 if LONG else few(60), deadline=None)
@given(FORMS, TURNS, st.integers(2, 10), st.booleans())
def test_texts_that_repeat_are_there_as_often_as_they_were_said(form, turns, keep, whole):
    archive = Archive(InMemoryStore())
    rounds = iter(range(1_000))
    scripted = Scripted(lambda _: f"- round {next(rounds)} [x]")

    def worker() -> Compactor:
        return engine(scripted, window=WINDOW, keep=("messages", keep), archive=archive)

    compactor, number = worker(), 0
    sent: list[Any] = []
    shown: list[Any] = []
    ever: Counter[str] = Counter()
    for turn, (words, force, restarts) in enumerate(turns):
        new = []
        for role, text in [*words, ("user", f"turn {turn}")]:
            if isinstance(text, int):
                text = text_of(shown[text % len(shown)]) if shown else "nothing was shown"
            number += 1
            new += said(form, role, text, number)
        ever.update(text for text in map(text_of, new) if text)
        sent += new
        compactor = worker() if restarts else compactor
        result = compactor.compact(list(sent), thread_id="t", force=force)
        shown = list(result.messages)
        there = found(compactor, shown)
        assert not {text[:80]: n for text, n in ever.items() if there[text] < n}
        assert not openai_rejects(shown)
        assert result.outcome == "stuck" or result.tokens_after <= WINDOW
        sent = sent if whole else list(shown)
