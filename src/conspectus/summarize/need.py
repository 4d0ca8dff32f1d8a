"""How likely it is that the agent will need an identifier again: what its uses so far say.

The weights are a logistic regression over 142,000 identifiers of 35 recorded sessions of agents
(coding, research, customer service), asked of each at many moments: does the agent write it again
before anything has shown it? Each moment weighs the same, however much was needed at it. They say
what one would expect: what the agent itself has written, above all in short commands, it writes
again; a file's name rather than a number; and what stood in messages about the same things as those
that the agent is busy with now.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from conspectus.ledger import Ledger, identifiers
from conspectus.ledger.facts import identified
from conspectus.messages import Entry

BIAS = -0.74
SYMBOL, FILE = 0.44, 0.9
"""It is a name in code; it is the name of a file."""

AGE = -0.89
"""For the share of the thread that has passed since it was last seen."""

OWN, AGAIN, COINED = 0.54, 1.02, 0.38
"""The agent has used it; in two messages or more; before anything else had shown it."""

OWN_AGE, OWN_LINES, COMMANDS = 0.1, 0.23, 0.62
"""For the logarithm of: messages since the agent used it, lines of the agent that hold it, lines of
its short tool calls that hold it."""

INSIDE = 0.91
"""It stands in view inside a longer name or path."""

SIBLING = -1.29
"""It is a path in the folder of one in view: the agent has looked there, and took the other."""

COMPANY, BESIDE = 0.17, -0.19
"""For how much a message that held it shares with what the agent uses in view; for the share of its
lines that hold such a thing as well, and so can be found by it."""

SIZE = -0.42
"""For the logarithm of the messages of the thread."""

SHORT_CALL = 8
"""Lines up to which a tool call is a command, and not a text that the agent writes."""

LIKELIEST = 5_000
"""Identifiers looked for inside what is in view: the likeliest, so that the work stays linear."""


@dataclass(slots=True)
class Uses:
    """How one identifier was used.

    Attributes:
        kind: what it is.
        coined: the agent's own words are the first that hold it.
        last: place of the message that used it last.
        own: place of the agent's message that used it last; -1 if it never did.
        own_messages: messages of the agent that hold it.
        own_lines: lines of the agent's messages that hold it.
        commands: lines of its short tool calls that hold it.
        company: how much the message that held it shares with what the agent uses in view.
        lines: lines of any message that hold it.
        beside: those of them that hold something else that the agent uses in view.
    """

    kind: str
    coined: bool
    last: int
    own: int = -1
    own_messages: int = 0
    own_lines: int = 0
    commands: int = 0
    company: float = 0.0
    lines: int = 0
    beside: int = 0


def normal(value: str) -> str:
    """One name for one thing: a path with and without its leading dot."""
    return value[2:] if value.startswith("./") else value


def held(text: str) -> tuple[str, ...]:
    """Identifiers of a text, each once."""
    return tuple(dict.fromkeys(normal(value) for _, value, _ in identifiers(text)))


def before(entries: Sequence[Entry], ledger: Ledger) -> int:
    """How many messages of the thread came before these, as the ledger has counted them."""
    return max(0, ledger.seen - len(entries))


def need(entries: Sequence[Entry], ledger: Ledger, kept: Iterable[Entry]) -> dict[str, float]:
    """For each identifier, how likely it is needed again; what is still in view is left out.

    Args:
        entries: the messages that leave the view, in order.
        ledger: what is known of earlier ones, these included.
        kept: the messages that stay in view.
    """
    kept = list(kept)
    start = before(entries, ledger)
    size = start + len(entries) + len(kept)
    company = _Company(entries, kept)
    uses = _earlier(ledger, start, company)
    for place, entry in enumerate(entries, start):
        _note(uses, entry, place, company)
    scores = {
        value: _score(value, use, size) for value, use in uses.items() if value not in company.shown
    }
    view = "\n".join(entry.reading for entry in kept)
    folders = {folder for value in company.shown if (folder := _folder(value))}
    for value in scores:
        if _folder(value) in folders:
            scores[value] += SIBLING
    for value in heapq.nlargest(LIKELIEST, scores, key=scores.__getitem__):
        if len(value) > 4 and value in view:
            scores[value] += INSIDE
    return {value: 1 / (1 + math.exp(-score)) for value, score in scores.items()}


class _Company:
    """What messages share with what the agent uses in view; rare identifiers say more."""

    def __init__(self, entries: Sequence[Entry], kept: Sequence[Entry]) -> None:
        self.messages = len(entries) + len(kept)
        self.counts: Counter[str] = Counter()
        self.shown: set[str] = set()
        self.busy: set[str] = set()
        for entry in entries:
            self.counts.update(_values(entry))
        for entry in kept:
            values = _values(entry)
            self.counts.update(values)
            self.shown |= values
            if entry.role == "assistant":
                self.busy |= values

    def of(self, values: Iterable[str]) -> float:
        """Weight of the shared ones against the length of all, as in a cosine."""
        shared, whole = 0.0, 1.0
        for value in values:
            rarity = math.log((self.messages + 1) / (self.counts[value] + 0.5))
            whole += rarity
            if value in self.busy:
                shared += rarity
        return shared / math.sqrt(max(1.0, whole))


def _folder(value: str) -> str:
    """The folder of a path; empty for anything else."""
    return value.rpartition("/")[0]


def _values(entry: Entry) -> set[str]:
    return {normal(value) for line in identified(entry) for _, value, _ in line.holds}


def _earlier(ledger: Ledger, start: int, company: _Company) -> dict[str, Uses]:
    """The uses before these messages, as far as the ledger has them."""
    sources: dict[str, list[str]] = {}
    facts = [fact for fact in ledger.facts if fact.order < start]
    for fact in facts:
        sources.setdefault(fact.source, []).append(normal(fact.value))
    shared = {source: company.of(values) for source, values in sources.items()}
    return {
        normal(fact.value): Uses(
            fact.kind,
            fact.role == "assistant",
            fact.order,
            fact.order if fact.used else -1,
            fact.used,
            fact.used,
            fact.used // 2,
            shared[fact.source],
        )
        for fact in facts
    }


def _note(uses: dict[str, Uses], entry: Entry, place: int, company: _Company) -> None:
    """Add what one message does with each of its identifiers."""
    own = entry.role == "assistant"
    command = own and sum(call.reading.count("\n") for call in entry.calls) < SHORT_CALL
    shared = company.of(_values(entry))
    for line in identified(entry):
        values = [normal(raw) for _, raw, _ in line.holds]
        busy = any(value in company.busy for value in values)
        for (kind, _, _), value in zip(line.holds, values, strict=True):
            use = uses.get(value)
            if use is None:
                use = uses[value] = Uses(kind, own, place)
            use.last = place
            use.company = max(use.company, shared)
            use.lines += 1
            use.beside += busy
            if own:
                use.own_messages += use.own != place
                use.own = place
                use.own_lines += 1
                use.commands += command and line.call


def _score(value: str, use: Uses, size: int) -> float:
    """Log odds that the identifier is needed again, what is in view aside."""
    log = math.log1p
    return (
        BIAS
        + SYMBOL * (use.kind == "symbol")
        + FILE * (use.kind == "path" and "." in value[-6:])
        + AGE * (size - use.last) / size
        + COINED * use.coined
        + (OWN + OWN_AGE * log(size - use.own) if use.own >= 0 else 0.0)
        + AGAIN * (use.own_messages >= 2)
        + OWN_LINES * log(use.own_lines)
        + COMMANDS * log(use.commands)
        + COMPANY * use.company
        + BESIDE * use.beside / max(1, use.lines)
        + SIZE * math.log(max(2, size))
    )
