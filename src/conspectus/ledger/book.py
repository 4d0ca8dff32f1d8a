"""The ledger: facts merged over rounds, superseded by later ones, bounded by stated priority."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conspectus.errors import InputError
from conspectus.ledger.fact import Fact
from conspectus.ledger.facts import notes_of
from conspectus.ledger.merging import Merging
from conspectus.ledger.priority import LIMIT, best, priority
from conspectus.ledger.skills import Skills
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

    def updated(self, entries: Sequence[Entry], skills: Skills | None = None) -> Ledger:
        """The ledger after more messages: later statements win, the rest is merged and bounded.

        Read in parts, one after the other, a thread gives the same ledger as read at once, as long
        as nothing has to be evicted.

        Args:
            entries: the messages.
            skills: which calls read skill files, whose rules count and to which a reference is
                carried; None where none does.
        """
        start = max(self.seen, 1 + max((fact.order for fact in self.facts), default=-1))
        book = Merging(self.facts, self.gone)
        read: dict[int, list[Fact]] = {}
        for index, fact in skills.facts(entries, start) if skills is not None else ():
            read.setdefault(index, []).append(fact)
        for place, entry in enumerate(entries, start):
            for note in (*notes_of(entry, place), *read.get(place - start, ())):
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

    def delegations(self) -> tuple[Fact, ...]:
        """Work handed to other agents, the latest first, with what came back in `result`."""
        return tuple(f for f in reversed(self.facts) if f.kind == "delegation")

    def skills(self) -> tuple[Fact, ...]:
        """References to the skill files that the agent has read, the latest first."""
        return tuple(f for f in reversed(self.facts) if f.kind == "skill")

    def to_json(self) -> dict[str, Any]:
        """The ledger as plain data."""
        return {
            "facts": [fact.to_json() for fact in self.facts],
            "gone": list(self.gone),
            "seen": self.seen,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Ledger:
        """The ledger that `to_json` wrote, now or in an earlier version.

        Raises:
            InputError: it is none.

        Example:
            >>> Ledger.from_json(Ledger(seen=3).to_json()).seen
            3
        """
        return cls._read(data, [])

    @classmethod
    def recovered(cls, data: Mapping[str, Any]) -> tuple[Ledger, tuple[str, ...]]:
        """What can be read of a ledger that may be damaged, and what is wrong with it.

        Example:
            >>> Ledger.recovered({"facts": [7], "seen": 3})[0]
            Ledger(facts=(), gone=(), seen=3)
        """
        wrong: list[str] = []
        return cls._read(data, wrong, tolerant=True), tuple(wrong)

    @classmethod
    def _read(cls, data: object, wrong: list[str], tolerant: bool = False) -> Ledger:
        """The ledger; what is wrong with it is raised, or else listed and left out."""

        def refuse(why: str, error: InputError | None = None) -> None:
            if not tolerant:
                raise InputError(why) from error
            wrong.append(why)

        if not isinstance(data, Mapping):
            refuse(f"a ledger must be an object, as to_json writes it, not {data!r:.80}")
            return cls()
        parts: dict[str, list[Any]] = {}
        for name in ("facts", "gone"):
            value = data.get(name, ())
            if not isinstance(value, (list, tuple)):
                refuse(f"{name!r} of a ledger must be a list, not {value!r:.80}")
                value = ()
            parts[name] = list(value)
        facts: list[Fact] = []
        for place, one in enumerate(parts["facts"]):
            try:
                facts.append(Fact.from_json(one))
            except InputError as error:
                refuse(f"fact {place} of the ledger: {error}", error)
        gone = [text for text in parts["gone"] if isinstance(text, str)]
        if len(gone) < len(parts["gone"]):
            refuse("'gone' of a ledger must be a list of texts")
        last = 1 + max((fact.order for fact in facts), default=-1)
        seen = data.get("seen", last)
        if not isinstance(seen, int) or isinstance(seen, bool):
            refuse(f"'seen' of a ledger must be a whole number, not {seen!r:.80}")
            seen = last
        return cls(tuple(facts), tuple(gone), seen)
