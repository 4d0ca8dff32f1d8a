"""The cost of one call of the short-term memory, beside LangMem's.

    make bench-short-term        or: python benchmarks/short_term.py [--quick] [--json]

Four situations at growing lengths: nothing is due and the message objects are those of the call
before, as between the steps of one run; the same with objects that are new, as from a checkpoint;
all but the last messages are summarised already and the whole history comes along; and the call
that summarises, whose model answers at once. Ends with 1 if a target is missed.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import printed
from langchain_core.messages import AIMessage, HumanMessage
from middleware_steps import best, history

from conspectus import short_term as ours

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from langmem import short_term as theirs

LENGTHS = (1_000, 10_000)
TARGETS = {"nothing due": 10.0, "nothing due, first look": 1.0}
"""Times less than LangMem's that a call must cost."""


class Model:
    """A model that answers at once."""

    def invoke(self, messages: list[Any]) -> AIMessage:
        return AIMessage("The modules were looked at, and each does its part.")


def measured(library: Any, length: int, times: int) -> dict[str, float]:
    """Time a call in each situation, in milliseconds."""
    messages = [*history(length, lines=30), HumanMessage("And now?", id="now")]
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

    found: dict[str, float] = {}
    call(None, 10**9, 10**9)
    found["nothing due"] = 1_000 * best(lambda: call(None, 10**9, 10**9), times)
    found["nothing due, first look"] = 1_000 * best(lambda: call(None, 10**9, 10**9), times, renew)
    found["summarised already"] = 1_000 * best(lambda: call(covered, 10**6, 10**6), times)
    # Some hundred messages are new, as at each summary of a long run.
    box["messages"] = messages
    some = library.RunningSummary("All well.", {m.id for m in messages[:-101]}, messages[-102].id)
    found["100 new, summarising"] = 1_000 * best(lambda: call(some, 4_000, 4_000), times, renew)
    return found


def main() -> int:
    """Run the command; give the exit code."""
    parser = printed.options(__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer tries, shorter histories")
    asked = parser.parse_args()
    lengths, times = ((200, 1_000), 2) if asked.quick else (LENGTHS, 7)
    columns = ("situation", "messages", "LangMem", "Conspectus", "times less")
    table = printed.table("One call, milliseconds, best of several", columns)
    rows, good = [], True
    for length in lengths:
        known, own = measured(theirs, length, times), measured(ours, length, times)
        for situation, milliseconds in own.items():
            ratio = known[situation] / milliseconds
            good = good and ratio >= TARGETS.get(situation, 0.0)
            figures = (f"{known[situation]:.2f}", f"{milliseconds:.2f}", f"{ratio:.1f}")
            table.add_row(situation, f"{length:,}", *figures)
            rows.append([length, situation, known[situation], milliseconds, ratio])
    said = "Targets met." if good else "A TARGET IS MISSED."
    return printed.end(
        asked.json, lambda: rows, lambda: printed.screen(100).print(table, said), good
    )


if __name__ == "__main__":
    sys.exit(main())
