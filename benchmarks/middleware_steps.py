"""The cost of the middleware at each step of an agent, beside LangChain's own.

    make bench-steps        or: python benchmarks/middleware_steps.py [--quick]

Three tables. A step on which nothing is due, at growing lengths: LangChain's middleware counts the
history anew each time, ours looks whether it is still the same. A whole run of an agent of 2,000
steps, in seconds. What is held in memory for each thread. Ends with 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import printed
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware as LangChainMiddleware
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.runtime import Runtime

from conspectus import ContextGuard, SummarizationMiddleware
from conspectus.tokens.tally import FINGERPRINTS, MESSAGES, THREADS, Tallies
from conspectus_lab.testing.scripted_models import ScriptedChatModel

NEVER = ("tokens", 10**9)
TARGETS = {1_000: 20, 10_000: 20, 100_000: 10}
"""Times less than LangChain's that an untriggered step must cost, by messages."""

screen = printed.screen(100)
Middleware = Any


def history(length: int, lines: int = 60) -> list[BaseMessage]:
    """Make a thread of questions, tool calls, results and answers."""
    made: list[BaseMessage] = []
    for n in range(length // 4):
        call = {"name": "read_file", "args": {"path": f"/src/module_{n}.py"}, "id": f"call-{n}"}
        made += [
            HumanMessage(f"Question {n}: what does module {n} do? " + "Look closely. " * 20),
            AIMessage("", tool_calls=[call]),
            ToolMessage("a line of the module\n" * lines, tool_call_id=f"call-{n}"),
            AIMessage(f"Module {n} does its part. " * 12),
        ]
    for n, message in enumerate(made):
        message.id = f"m{n}"
    return made


def best(
    step: Callable[[], object], times: int, before: Callable[[], object] = lambda: None
) -> float:
    """Give the least seconds of several calls; `before` is not counted."""
    least = float("inf")
    for _ in range(times):
        before()
        started = time.perf_counter()
        step()
        least = min(least, time.perf_counter() - started)
    return least


def untriggered(lengths: list[int]) -> bool:
    """Time a step on which nothing is due, called by hand as the graph would."""
    columns = ("messages", "LangChain, ms", "ours, ms", "ratio", "ours, first look, ms", "noticed")
    table = printed.table("One step on which nothing is due, best of many", columns, 0)
    good = True
    for length in lengths:
        state: Any = {"messages": history(length)}
        model = FakeListChatModel(responses=["-"], profile={"max_input_tokens": 10**9})
        theirs = LangChainMiddleware(model, trigger=("fraction", 0.9))
        ours = SummarizationMiddleware(model, trigger=("fraction", 0.9))
        times = max(5, 200_000 // length)
        first = best(lambda ours=ours, state=state: ours.before_model(state, Runtime()), 1)
        slow = best(lambda theirs=theirs, state=state: theirs.before_model(state, Runtime()), times)
        fast = best(lambda ours=ours, state=state: ours.before_model(state, Runtime()), times)
        ratio = slow / fast
        seen = _notices(state)
        good = good and seen and ratio >= TARGETS.get(length, 1)
        table.add_row(
            f"{length:,}",
            f"{slow * 1e3:.3f}",
            f"{fast * 1e3:.3f}",
            f"{ratio:.0f}",
            f"{first * 1e3:,.0f}",
            "yes" if seen else "NO",
        )
    screen.print(table)
    return good


def _notices(state: dict[str, Any]) -> bool:
    """Say whether another message in the middle is counted anew."""
    tallies = Tallies(lambda message: len(str(message.content)))
    before = tallies.follow("thread", state["messages"]).totals[0]
    changed = list(state["messages"])
    place = len(changed) // 2 // 4 * 4
    changed[place] = HumanMessage("giant " * 10**6, id=changed[place].id)
    return bool(tallies.follow("thread", changed).totals[0] - before > 10**6)


@tool
def read_file(path: str) -> str:
    """Read a file."""
    return f"{path}\n" + "a line of the module\n" * 60


class Timed:
    """Seconds of a middleware's `before_model`, step by step."""

    def __init__(self, middleware: Middleware) -> None:
        self.steps: list[float] = []
        inner = middleware.before_model

        def timed(state: Any, runtime: Any) -> Any:
            started = time.perf_counter()
            try:
                return inner(state, runtime)
            finally:
                self.steps.append(time.perf_counter() - started)

        middleware.before_model = timed


def agent_run(steps: int, triggers: dict[str, Any]) -> None:
    """Run a real agent that calls a tool at every step."""
    columns = ("trigger", "middleware", "run, s", "of it before_model, s", "ms a step, last 100")
    title = f"An agent of {steps:,} steps, one tool call each, no checkpointer"
    table = printed.table(title, columns, 2)
    for title, trigger in triggers.items():
        for name, make in _contenders(trigger).items():
            middleware = make()
            timed = Timed(middleware[0]) if middleware else None
            model = ScriptedChatModel(answers=_calls(steps))
            graph = create_agent(model, [read_file], middleware=middleware)
            started = time.perf_counter()
            graph.invoke(
                {"messages": [HumanMessage("Read every module of the project.")]},
                {"recursion_limit": 10 * steps},
            )
            whole = time.perf_counter() - started
            spent = sum(timed.steps) if timed else 0.0
            last = sum(timed.steps[-100:]) * 10 if timed else 0.0
            table.add_row(title, name, f"{whole:.1f}", f"{spent:.2f}", f"{last:.2f}")
    screen.print(table)


def _contenders(trigger: Any) -> dict[str, Callable[[], list[Middleware]]]:
    model = FakeListChatModel(responses=["-"])

    given: Any = {"trigger": trigger, "keep": ("messages", 20)}
    given["summarizer"] = lambda messages: "Read."

    def guarded() -> list[Middleware]:
        first = SummarizationMiddleware(model, **given)
        return [first, ContextGuard(first, window=10**8)]

    return {
        "LangChain's": lambda: [LangChainMiddleware(model, **given)],
        "ours": lambda: [SummarizationMiddleware(model, **given)],
        "ours and the guard": guarded,
        "none": list,
    }


def _calls(steps: int) -> Callable[[list[BaseMessage]], Any]:
    count = 0

    def answer(messages: list[BaseMessage]) -> Any:
        nonlocal count
        count += 1
        if count > steps:
            return "All read."
        call = {"name": "read_file", "args": {"path": f"/src/m{count}.py"}, "id": f"call-{count}"}
        return AIMessage("", tool_calls=[call])

    return answer


def memory(threads: int, length: int) -> bool:
    """Measure the memory that stays when many threads have been served."""
    model = FakeListChatModel(responses=["-"])
    ours = SummarizationMiddleware(model, trigger=NEVER)
    tracemalloc.start()
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    sizes = []
    for n in range(threads):
        messages = history(length)
        for message in messages:
            message.id = f"{n}-{message.id}"
        ours.before_model({"messages": messages}, Runtime())
        del messages, message
        if n + 1 in (1, 10, threads // 2, threads):
            gc.collect()
            sizes.append((n + 1, tracemalloc.get_traced_memory()[0] - before))
    tracemalloc.stop()
    title = f"Held by one middleware after threads of {length:,} messages each"
    table = printed.table(title, ("threads served", "kB", "bytes a message"), 0)
    for served, size in sizes:
        table.add_row(f"{served:,}", f"{size / 1e3:,.0f}", f"{size / served / length:.0f}")
    screen.print(table)
    screen.print(
        f"Bounds: {THREADS} threads and {MESSAGES:,} messages followed, {FINGERPRINTS:,} sizes "
        "known by what a message holds; no message is kept alive."
    )
    most = (MESSAGES * 130 + FINGERPRINTS * 250) * 1.2
    return sizes[-1][1] < most


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="shorter threads, for a first look")
    quick = parser.parse_args().quick
    lengths = [100, 1_000, 10_000] if quick else [100, 1_000, 10_000, 100_000]
    good = untriggered(lengths)
    steps = 200 if quick else 2_000
    agent_run(steps, {"never": NEVER, "20,000 tokens": ("tokens", 20_000)})
    good = memory(50 if quick else 400, 1_000) and good
    screen.print("Targets met." if good else "A TARGET IS MISSED.")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
