"""Calls of a summariser beside LangChain's middleware, and what is free after a compaction.

    .venv/bin/python -W ignore benchmarks/calls.py

The same conversation goes to both, with the same trigger and `keep`, in windows of 8,000 to 32,000.
A window is that of the summariser, too. Dense text takes more tokens than LangChain counts: there
its middleware overruns the window, and ours does not.
"""

from __future__ import annotations

import logging
import statistics
import sys
from collections.abc import Iterator
from typing import Any

from langchain.agents.middleware import SummarizationMiddleware as LangChainMiddleware
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime
from tables import Row, ScriptedChatModel, end
from views import SESSIONS
from views_measures import steps

from conspectus import Compactor, SummarizationMiddleware

TEXTS = {
    "prose": "the ferry leaves at noon and nobody on the pier has asked why ",
    "digits": "48213-7 99102-4 10377-1 ",
    "code": "    return [value for value in rows if value.size > limit]\n",
    "Chinese": "渡轮中午出发，码头上没有人问为什么。",
}
SUMMARY = " ".join(f"Part {n} was looked at, and it is sound with all tests." for n in range(20))
SMALL = 16_000  # tokens of a window from which on half as many calls again are allowed


def calls(kind: Any, text: str, window: int) -> int:
    """Return how often a conversation of some eight windows asks its summariser."""
    model = ScriptedChatModel(answers=lambda _: SUMMARY, profile={"max_input_tokens": window})
    middleware = kind(model, trigger=("fraction", 0.85), keep=("messages", 20))
    said = (text * window)[: window // 25]
    state: Any = []
    for n in range(400):
        state = add_messages(state, [HumanMessage(f"{n}. {said}", id=f"u{n}")])
        update = middleware.before_model({"messages": state}, Runtime())
        state = add_messages(state, update["messages"]) if update else state
        state = add_messages(state, [AIMessage(f"{n}: {said}", id=f"a{n}")])
    return len(model.calls)


def rows() -> Iterator[Row]:
    """Measure both."""
    for window in (8_000, 12_000, 16_000, 32_000):
        for name, text in TEXTS.items():
            ours = calls(SummarizationMiddleware, text, window)
            theirs = calls(LangChainMiddleware, text, window)
            asked = (1.5 if window >= SMALL else 2) if name == "prose" else None
            detail = f"{ours}, LangChain's {theirs}"
            label = f"calls of a summariser, {name}, window of {window:,}"
            yield Row(label, ours / max(1, theirs), asked, "x", detail)
    for name, session in SESSIONS.items():
        free = list(free_after(session.messages(), session.window))
        detail = f"least {min(free):.2f} of {len(free)} compactions"
        label = f"free after a compaction, {name}: median share of the window"
        yield Row(label, statistics.median(free), 0.4, "", detail, at_least=True)


def free_after(messages: list[dict[str, Any]], window: int) -> Iterator[float]:
    """Yield the share of the window that each compaction of a session leaves free."""
    compactor = Compactor(window=window, archive="memory:")
    view: list[Any] = []
    for step in steps(messages):
        result = compactor.compact([*view, *step], thread_id="calls")
        view = list(result.messages)
        if result.outcome == "compacted":
            yield 1 - result.tokens_after / window


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    sys.exit(end("Calls of a summariser, and free room", [*rows()], "--json" in sys.argv))
