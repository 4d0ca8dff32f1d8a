"""How likely it is that the agent will need an identifier again: what its uses so far say.

The weights are a logistic regression over 39,000 identifiers of 29 recorded agent sessions (coding,
research, customer service), asked of each: does the agent write it again before anything has shown
it? They say what one would expect: what the agent itself has used, lately and in several messages,
it uses again; what only a tool printed, it mostly does not. `benchmarks/` measures what comes of it
on sessions that the weights have not seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from conspectus.ledger import Ledger, identifiers
from conspectus.ledger.facts import identified
from conspectus.messages import Entry

BIAS = 0.52
KIND = {"path": 0.0, "url": -1.2, "error": 0.05, "id": -0.15, "symbol": 1.25, "number": 0.5}
KIND["date"] = KIND["number"]
FILE = 1.7
"""It is the name of a file."""

AGE = -2.9
"""For the share of the thread that has passed since it was last seen."""

AGAIN = 1.1
"""The agent has used it in two messages or more."""

OWN_AGE, PRINTED, SIZE = 0.44, -0.39, -0.86
"""For the logarithm of: messages since the agent used it, messages of tools that show it, messages
of the thread."""


@dataclass(slots=True)
class Uses:
    """How one identifier was used.

    Attributes:
        kind: what it is.
        last: place of the message that used it last.
        own: place of the agent's message that used it last; -1 if it never did.
        own_messages: how many messages of the agent use it.
        tool_messages: how many results of tools show it.
    """

    kind: str
    last: int
    own: int = -1
    own_messages: int = 0
    tool_messages: int = 0


def normal(value: str) -> str:
    """One name for one thing: a path with and without its leading dot."""
    return value[2:] if value.startswith("./") else value


def held(text: str) -> tuple[str, ...]:
    """Identifiers of a text, each once."""
    return tuple(dict.fromkeys(normal(value) for _, value, _ in identifiers(text)))


def uses_of(entries: Sequence[Entry], ledger: Ledger) -> dict[str, Uses]:
    """The uses of every identifier: in these messages, and in earlier ones as the ledger has it."""
    start = before(entries, ledger)
    found = {
        normal(fact.value): Uses(
            fact.kind, fact.order, fact.order if fact.used else -1, fact.used, 0 if fact.used else 1
        )
        for fact in ledger.facts
        if fact.order < start
    }
    for place, entry in enumerate(entries, start):
        here: set[str] = set()
        own = entry.role == "assistant"
        for line in identified(entry):
            for kind, raw, _ in line.holds:
                value = normal(raw)
                if value in here:
                    continue
                here.add(value)
                use = found.setdefault(value, Uses(kind, place))
                use.last = place
                if own:
                    use.own = place
                    use.own_messages += 1
                elif entry.role == "tool":
                    use.tool_messages += 1
    return found


def before(entries: Sequence[Entry], ledger: Ledger) -> int:
    """How many messages of the thread came before these, as the ledger has counted them."""
    return max(0, ledger.seen - len(entries))


def need(uses: dict[str, Uses], size: int, kept: Iterable[Entry]) -> dict[str, float]:
    """For each identifier, how likely it is needed again; 0 for what is still in view.

    Args:
        uses: what is known of each.
        size: messages of the thread so far, those in view included.
        kept: the messages that stay in view.
    """
    kept = list(kept)
    shown = {
        normal(value) for entry in kept for line in identified(entry) for _, value, _ in line.holds
    }
    log = math.log1p
    worth = {}
    for value, use in uses.items():
        if value in shown:
            continue
        score = (
            BIAS
            + KIND.get(use.kind, 0.0)
            + (FILE if use.kind == "path" and "." in value[-6:] else 0.0)
            + AGE * (size - use.last) / size
            + (AGAIN if use.own_messages >= 2 else 0.0)
            + (OWN_AGE * log(size - use.own) if use.own >= 0 else 0.0)
            + PRINTED * log(use.tool_messages)
            + SIZE * math.log(max(2, size))
        )
        worth[value] = 1 / (1 + math.exp(-score))
    return worth
