"""What one call of the short-term memory costs, beside LangMem's, in the same run.

    make bench-short-term        or: python benchmarks/short_term.py [--quick] [--json]

Four situations at growing lengths: nothing is due and the message objects are those of the call
before, as between the steps of one run; the same with objects that are new, as from a checkpoint;
all but the last messages are summarised already and the whole history comes along; and the call
that summarises, whose model answers at once. Ends with 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from rich.console import Console
from rich.table import Table

from conspectus import short_term as ours

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from langmem import short_term as theirs

LENGTHS = (1_000, 10_000)
TARGETS = {"nothing due": 10.0, "nothing due, first look": 1.0}
"""Times less than LangMem's that a call must cost."""

screen = Console(width=100)


class Model:
    """Answers at once."""

    def invoke(self, messages: list[Any]) -> AIMessage:
        return AIMessage("The modules were looked at, and each does its part.")


def history(length: int) -> list[AnyMessage]:
    """Questions, tool calls, results and answers, of about 100 tokens a message."""
    made: list[AnyMessage] = []
    for n in range(length // 4):
        call = {"name": "read_file", "args": {"path": f"/src/module_{n}.py"}, "id": f"call-{n}"}
        made += [
            HumanMessage(f"Question {n}: what does module {n} do? " + "Look closely. " * 20),
            AIMessage("", tool_calls=[call]),
            ToolMessage("a line of the module\n" * 30, tool_call_id=f"call-{n}"),
            AIMessage(f"Module {n} does its part. " * 12),
        ]
    made.append(HumanMessage("And now?"))
    for n, message in enumerate(made):
        message.id = f"m{n}"
    return made


def best(step: Callable[[], object], times: int, before: Callable[[], object]) -> float:
    """The least milliseconds of several calls; `before` is not counted."""
    least = float("inf")
    for _ in range(times):
        before()
        started = time.perf_counter()
        step()
        least = min(least, time.perf_counter() - started)
    return 1_000 * least


def measured(library: Any, length: int, times: int) -> dict[str, float]:
    """The milliseconds of a call in each situation."""
    messages = history(length)
    covered = library.RunningSummary("All well.", {m.id for m in messages[:-9]}, messages[-10].id)
    box = {"messages": messages}

    def call(running: Any, most: int, reach: int) -> Any:
        return library.summarize_messages(
            box["messages"],
            running_summary=running,
            model=Model(),
            max_tokens=most,
            max_tokens_before_summary=reach,
        )

    def renew() -> None:
        box["messages"] = [message.model_copy() for message in messages]

    def stay() -> None:
        """The objects are those of the call before."""

    found: dict[str, float] = {}
    call(None, 10**9, 10**9)
    found["nothing due"] = best(lambda: call(None, 10**9, 10**9), times, stay)
    found["nothing due, first look"] = best(lambda: call(None, 10**9, 10**9), times, renew)
    found["summarised already"] = best(lambda: call(covered, 10**6, 10**6), times, stay)
    # Some hundred messages are new, as at each summary of a long run.
    box["messages"] = messages
    some = library.RunningSummary("All well.", {m.id for m in messages[:-101]}, messages[-102].id)
    found["100 new, summarising"] = best(lambda: call(some, 4_000, 4_000), times, renew)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer tries, shorter histories")
    parser.add_argument("--json", action="store_true", help="print the numbers as data")
    asked = parser.parse_args()
    lengths, times = ((200, 1_000), 2) if asked.quick else (LENGTHS, 7)
    table = Table(title="One call, milliseconds, best of several")
    for column in ("messages", "situation", "LangMem", "Conspectus", "times less"):
        table.add_column(column, justify="left" if column == "situation" else "right")
    rows, good = [], True
    for length in lengths:
        known, own = measured(theirs, length, times), measured(ours, length, times)
        for situation, milliseconds in own.items():
            ratio = known[situation] / milliseconds
            good = good and ratio >= TARGETS.get(situation, 0.0)
            figures = (f"{known[situation]:.2f}", f"{milliseconds:.2f}", f"{ratio:.1f}")
            table.add_row(f"{length:,}", situation, *figures)
            rows.append([length, situation, known[situation], milliseconds, ratio])
    if asked.json:
        print(json.dumps(rows))
    else:
        screen.print(table)
        screen.print("Targets met." if good else "A TARGET IS MISSED.")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
