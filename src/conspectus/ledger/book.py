"""The ledger: facts merged over rounds, superseded by later ones, bounded by stated priority."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conspectus.ledger.fact import Fact
from conspectus.ledger.facts import notes_of
from conspectus.ledger.merging import Merging
from conspectus.ledger.priority import LIMIT, best, priority
from conspectus.messages import Entry

__all__ = ["LIMIT", "Ledger", "priority"]


@dataclass(frozen=True, slots=True)
class Ledger:
    """Exact facts in force.

    Attributes:
        facts: the facts, in the order in which their messages came.
        gone: statements and values that a later one has replaced, the latest last; at most
            `merging.GONE`.
        seen: messages read so far.

    Example:
        >>> Ledger().facts
        ()
    """

    facts: tuple[Fact, ...] = ()
    gone: tuple[str, ...] = ()
    seen: int = 0

    def updated(self, entries: Sequence[Entry]) -> Ledger:
        """The ledger after more messages: later statements win, the rest is merged and bounded.

        Read in parts, one after the other, a thread gives the same ledger as read at once, as long
        as nothing has to be evicted.
        """
        start = max(self.seen, 1 + max((fact.order for fact in self.facts), default=-1))
        book = Merging(self.facts, self.gone)
        for place, entry in enumerate(entries, start):
            for note in notes_of(entry, place):
                book.take(note)
            book.trim()
        return self._closed(book, start + len(entries))

    def merged(self, newer: Iterable[Fact] | Ledger) -> Ledger:
        """This ledger with later facts, or a later ledger, put on top of it.

        Args:
            newer: facts in the order of their messages, or a ledger of the messages that follow.
        """
        seen = self.seen
        book = Merging(self.facts, self.gone)
        if isinstance(newer, Ledger):
            seen += newer.seen
            book.retire(newer.gone)
            newer = tuple(replace(f, order=f.order + self.seen) for f in newer.facts)
        for fact in newer:
            book.take(fact)
            book.trim()
        return self._closed(book, seen)

    @staticmethod
    def _closed(book: Merging, seen: int) -> Ledger:
        return Ledger(tuple(best(book.facts(), LIMIT)), book.gone(), seen)

    def without_superseded(self, later: Sequence[Entry]) -> Ledger:
        """This ledger less what messages after it, still in view, have replaced."""
        gone = self.updated(later).gone
        out = frozenset(gone)
        return Ledger(tuple(f for f in self.facts if f.value not in out), gone, self.seen)

    def standing(self) -> tuple[Fact, ...]:
        """What must be in every summary, most important first: rules and preferences, then
        decisions of users."""
        rules = [f for f in self.facts if f.kind in ("rule", "preference")]
        stated = [f for f in self.facts if f.kind == "decision" and f.role == "user"]
        return tuple(sorted(rules, key=priority, reverse=True)) + tuple(stated)

    def open_work(self) -> tuple[Fact, ...]:
        """Tasks and delegations that are not done, in the order of their messages."""
        return tuple(f for f in self.facts if f.state == "open")

    def to_json(self) -> dict[str, Any]:
        """The ledger as plain data."""
        return {
            "facts": [fact.to_json() for fact in self.facts],
            "gone": list(self.gone),
            "seen": self.seen,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Ledger:
        """The ledger that `to_json` wrote, now or in an earlier version."""
        facts = tuple(Fact.from_json(fact) for fact in data.get("facts", ()))
        seen = data.get("seen", 1 + max((fact.order for fact in facts), default=-1))
        return cls(facts, tuple(data.get("gone", ())), seen)
