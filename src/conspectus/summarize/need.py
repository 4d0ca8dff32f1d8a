"""How likely it is that the agent will need an identifier again: what its uses so far say.

The weights are a logistic regression over 39,000 identifiers of 29 recorded agent sessions (coding,
research, customer service), asked of each: does the agent write it again before anything has shown
it? They say what one would expect: what the agent itself has used, lately and in several messages,
it uses again; what only a tool printed, it mostly does not. `benchmarks/` measures what comes of it
on sessions that the weights have not seen.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from conspectus.ledger import Ledger, identifiers
from conspectus.messages import Entry

BIAS = -2.3
KIND = {"path": 0.63, "url": -2.01, "error": -0.35, "id": -0.32, "symbol": 0.9, "number": 0.1}
SAID, CALLED, PRINTED, ASKED = 0.17, 0.42, -0.42, -0.4
"""For each doubling or so of its uses: in the agent's words, its calls, by tools, by the user."""

MESSAGES, AGE, SINCE_FIRST, SIZE = 0.95, -0.65, -0.78, 0.54
OWN, OWN_AGE = 0.14, 0.38
TOUCHED = 0.52
"""It stands inside something that is still in view, as a function's name does in its module's."""


@dataclass(slots=True)
class Uses:
    """How one identifier was used: counts by speaker, and when, in messages of the thread."""

    kind: str
    first: int
    last: int
    said: int = 0
    called: int = 0
    printed: int = 0
    asked: int = 0
    messages: int = 0
    own: int = -1


def normal(value: str) -> str:
    """One name for one thing: a path with and without its leading dot."""
    return value[2:] if value.startswith("./") else value


def held(text: str) -> list[tuple[str, str]]:
    """Identifiers of a text with their kinds, each once."""
    return list(dict.fromkeys((kind, normal(value)) for kind, value, _ in identifiers(text)))


def uses_of(entries: Sequence[Entry], ledger: Ledger) -> dict[str, Uses]:
    """The uses of every identifier: in these messages, and in earlier ones as the ledger has it."""
    found: dict[str, Uses] = {}
    for place, entry in enumerate(entries):
        here: set[str] = set()
        own = entry.role == "assistant"
        parts = [(entry.text, False), *((call.reading, True) for call in entry.calls)]
        for text, call in parts:
            for kind, raw, _ in identifiers(text):
                value = normal(raw)
                use = found.get(value)
                if use is None:
                    use = found[value] = Uses(kind, place, place)
                if call:
                    use.called += 1
                elif own:
                    use.said += 1
                elif entry.role == "tool":
                    use.printed += 1
                else:
                    use.asked += 1
                use.last = place
                use.own = place if own else use.own
                if value not in here:
                    here.add(value)
                    use.messages += 1
    return found


def need(uses: dict[str, Uses], size: int, kept: Iterable[Entry]) -> dict[str, float]:
    """For each identifier, how likely it is needed again; 0 for what is still in view.

    Args:
        uses: what is known of each.
        size: messages of the thread so far, those in view included.
        kept: the messages that stay in view.
    """
    view = "\n".join(entry.reading for entry in kept)
    shown = {normal(value) for _, value, _ in identifiers(view)}
    words = set(re.findall(r"\w+", view))
    log = math.log1p
    worth = {}
    for value, use in uses.items():
        if value in shown:
            continue
        score = (
            BIAS
            + KIND.get(use.kind, 0.0)
            + SAID * log(use.said)
            + CALLED * log(use.called)
            + PRINTED * log(use.printed)
            + ASKED * log(use.asked)
            + MESSAGES * log(use.messages)
            + AGE * log(size - use.last)
            + SINCE_FIRST * log(size - use.first)
            + SIZE * math.log(max(2, size))
            + (OWN + OWN_AGE * log(size - use.own) if use.own >= 0 else 0.0)
            + (TOUCHED if value in words else 0.0)
        )
        worth[value] = 1 / (1 + math.exp(-score))
    return worth
