"""The ledger: facts merged over rounds, superseded by later ones, bounded by stated priority."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conspectus.ledger.facts import Fact, facts_of
from conspectus.messages import Entry

LIMIT = 200
"""Facts that a ledger holds at most."""

ALIKE = 0.6
"""Two rules are about the same thing when they share this much of their words, numbers aside."""

_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_WORD = re.compile(r"[^\W\d_]{2,}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_FILLER = frozenset(
    """the and for that this with from now not but are was were will would should could can may must
    never always please keep make sure instead""".split()
)


@dataclass(frozen=True, slots=True)
class Ledger:
    """Exact facts in force.

    Attributes:
        facts: the facts, in the order in which their messages came.

    Example:
        >>> Ledger().facts
        ()
    """

    facts: tuple[Fact, ...] = ()

    def updated(self, entries: Sequence[Entry]) -> Ledger:
        """The ledger after more messages: later statements win, the rest is merged and bounded."""
        start = 1 + max((fact.order for fact in self.facts), default=-1)
        return self.merged(
            fact for place, entry in enumerate(entries) for fact in facts_of(entry, start + place)
        )

    def merged(self, newer: Iterable[Fact]) -> Ledger:
        """This ledger with later facts put on top of it."""
        book: dict[tuple[str, str], Fact] = {(f.kind, f.value): f for f in self.facts}
        rules = [f for f in self.facts if f.kind == "rule"]
        for fact in newer:
            key = (fact.kind, fact.value)
            if (known := book.pop(key, None)) is not None:
                used = known.used + fact.used
                # The first place tells most, except that a user's words outweigh a tool's.
                better = fact if known.role == "tool" and fact.role != "tool" else known
                fact = replace(better, used=used, order=fact.order)
            elif fact.kind == "rule":
                for old in [old for old in rules if _supersedes(fact, old)]:
                    rules.remove(old)
                    book.pop((old.kind, old.value), None)
                rules.append(fact)
            book[key] = fact
        if len(book) <= LIMIT:
            return Ledger(tuple(book.values()))
        best = sorted(book.values(), key=priority, reverse=True)[:LIMIT]
        return Ledger(tuple(sorted(best, key=lambda fact: fact.order)))

    def without_superseded(self, later: Sequence[Entry]) -> Ledger:
        """This ledger less the rules that messages after it, still in view, have replaced."""
        after = {(f.kind, f.value) for f in self.updated(later).facts if f.kind == "rule"}
        return Ledger(
            tuple(f for f in self.facts if f.kind != "rule" or (f.kind, f.value) in after)
        )

    def standing(self) -> tuple[Fact, ...]:
        """What must be in every summary, most important first: rules, then decisions of users."""
        rules = [f for f in self.facts if f.kind == "rule"]
        stated = [f for f in self.facts if f.kind == "decision" and f.role == "user"]
        return tuple(sorted(rules, key=priority, reverse=True)) + tuple(stated)

    def to_json(self) -> dict[str, Any]:
        """The ledger as plain data."""
        return {"facts": [fact.to_json() for fact in self.facts]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Ledger:
        """The ledger that `to_json` wrote."""
        return cls(tuple(Fact.from_json(fact) for fact in data.get("facts", ())))


def priority(fact: Fact) -> tuple[int, int, int]:
    """What stays when there is no room: what the user said, what the agent used, what is recent."""
    said = {"user": 3, "system": 3, "assistant": 1}.get(fact.role, 0)
    return (said + (2 if fact.kind == "rule" else 0), min(fact.used, 5), fact.order)


def _supersedes(newer: Fact, older: Fact) -> bool:
    """Whether two rules say different things about the same one thing, as a raised cap does."""
    if newer.role != older.role:
        return False
    figures = set(_NUMBER.findall(newer.value)), set(_NUMBER.findall(older.value))
    if not figures[0] or not figures[1] or figures[0] == figures[1]:
        return False
    words = [{w.lower() for w in _WORD.findall(f.value)} - _FILLER for f in (newer, older)]
    shared = len(words[0] & words[1])
    return shared >= 1 and shared >= ALIKE * min(len(words[0]), len(words[1]))
