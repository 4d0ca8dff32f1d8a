"""Counters of tokens that are no sums of their messages, and what a user may write all the same.

The tests and the benchmark of faults take them from here.
"""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Messages = Sequence[Any]
Counter = Callable[[Messages], Any]


def part(message: Any, name: str) -> Any:
    return message.get(name) if isinstance(message, dict) else getattr(message, name, None)


def all_text(message: Any) -> str:
    """Everything in a message, with its id and its name."""
    whole = message if isinstance(message, dict) else message.model_dump(exclude_none=True)
    return json.dumps(whole, default=str)


def characters(messages: Messages) -> int:
    return sum(len(str(part(m, "content") or "")) + len(all_text(m)) // 9 for m in messages)


def by_usage(messages: Messages) -> int:
    """As the last answer reported it, and an estimate of what came later."""
    answers = [n for n, m in enumerate(messages) if getattr(m, "usage_metadata", None)]
    if not answers:
        return characters(messages) // 4
    reported = messages[answers[-1]].usage_metadata["total_tokens"]
    return int(reported) + characters(messages[answers[-1] + 1 :]) // 4


def by_turns(messages: Messages) -> int:
    """Messages of one side in a row share their frame."""
    sides = [part(m, "role") or part(m, "type") for m in messages]
    turns = sum(side != side_before for side, side_before in zip(sides, ["", *sides], strict=False))
    return characters(messages) // 4 + 12 * turns


COUNTERS: dict[str, Counter] = {
    "ids and names": lambda ms: sum(
        len(str(part(m, "content"))) // 4
        + len(part(m, "id") or "")
        + 3 * len(part(m, "name") or "")
        + 4
        for m in ms
    ),
    "letters of ids": lambda ms: (
        characters(ms) // 4 + sum(str(part(m, "id")).count(letter) for m in ms for letter in "abc")
    ),
    "summed, then divided": lambda ms: (characters(ms) + 23 * len(ms)) // 4,
    "a base for tools": lambda ms: 700 + characters(ms) // 4,
    "usage": by_usage,
    "hundreds": lambda ms: math.ceil(characters(ms) / 400) * 100,
    "each in hundreds": lambda ms: sum(round(characters([m]) / 400) * 100 for m in ms),
    "pairs": lambda ms: characters(ms) // 4 + len(ms) * (len(ms) - 1) // 2,
    "superadditive": lambda ms: int((characters(ms) / 4) ** 1.1),
    "subadditive": lambda ms: int((characters(ms) / 4) ** 0.9 * 2),
    "JSON": lambda ms: len(json.dumps([all_text(m) for m in ms])) // 4,
    "numpy": lambda ms: np.int64(characters(ms) // 4),
    "turns": by_turns,
    "thousands": lambda ms: characters(ms) // 4_000 * 1_000,
}
