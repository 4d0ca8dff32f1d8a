"""The ledger: what users and systems have stated, superseded by later words, bounded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conspectus.errors import InputError
from conspectus.ledger.fact import Fact
from conspectus.ledger.reading import statements
from conspectus.ledger.skills import Skills
from conspectus.ledger.subjects import About, Subjects, about, frame
from conspectus.messages import Entry

LIMIT = 300
"""Facts that a ledger holds at most."""

GONE = 200
"""Statements that were replaced and are remembered, the latest."""

NEAR_EQUAL = 20
"""Statements that differ in figures only and count in full; further ones go before any other."""

_WEIGHT = {"rule": 5, "skill": 5, "preference": 4, "decision": 3, "fact": 2, "task": 1}
_Key = tuple[str, str]


def facts_of(entry: Entry, order: int = 0) -> Iterator[Fact]:
    """Return the facts that one message states; only users and systems state any.

    Args:
        entry: the message.
        order: its place in the thread, in messages.
    """
    for fact, _ in _read(entry, order):
        if fact.kind:
            yield fact


@dataclass(frozen=True, slots=True)
class Ledger:
    """Statements in force.

    Attributes:
        facts: the statements, in the order in which their messages came.
        gone: statements that a later one has replaced, the latest last.
        seen: messages read so far.

    Example:
        >>> Ledger().facts
        ()
    """

    facts: tuple[Fact, ...] = ()
    gone: tuple[str, ...] = ()
    seen: int = 0

    def updated(self, entries: Sequence[Entry], skills: Skills | None = None) -> Ledger:
        """Return the ledger after more messages.

        Later statements win; the rest is merged and bounded.

        Read in parts, one after the other, a thread gives the same ledger as read at once, as long
        as nothing has to be evicted.

        Args:
            entries: the messages.
            skills: which calls read skill files, whose rules count and to which a reference is
                carried; None where none does.
        """
        start = max(self.seen, 1 + max((fact.order for fact in self.facts), default=-1))
        book = _Book(self.facts, self.gone)
        read: dict[int, list[Fact]] = {}
        for index, fact in skills.facts(entries, start) if skills is not None else ():
            read.setdefault(index, []).append(fact)
        for place, entry in enumerate(entries):
            for fact, what in _read(entry, start + place):
                book.take(fact, what)
            for fact in read.get(place, ()):
                book.take(fact, about(fact.value))
        return book.closed(start + len(entries))

    def merged(self, newer: Iterable[Fact] | Ledger) -> Ledger:
        """Return the ledger with later facts, or a later ledger, on top of it.

        Args:
            newer: facts in the order of their messages, or a ledger of the messages that follow.
        """
        seen = self.seen
        book = _Book(self.facts, self.gone)
        if isinstance(newer, Ledger):
            seen += newer.seen
            book.retire(newer.gone)
            newer = tuple(replace(f, order=f.order + self.seen) for f in newer.facts)
        for fact in newer:
            book.take(fact, about(fact.value, _before(fact)))
        return book.closed(seen)

    def without_superseded(self, later: Sequence[Entry]) -> Ledger:
        """Return the ledger without facts that messages in view have replaced."""
        gone = self.updated(later).gone
        out = frozenset(gone)
        return Ledger(tuple(f for f in self.facts if f.value not in out), gone, self.seen)

    def standing(self) -> tuple[Fact, ...]:
        """Return the facts that must not be lost, most important first.

        Rules and preferences come first, then decisions.
        """
        rules = [f for f in self.facts if f.kind in ("rule", "preference")]
        stated = [f for f in self.facts if f.kind == "decision" and f.role == "user"]
        return tuple(sorted(rules, key=_priority, reverse=True)) + tuple(stated)

    def skills(self) -> tuple[Fact, ...]:
        """Return references to the skill files that the agent has read, newest first."""
        return tuple(f for f in reversed(self.facts) if f.kind == "skill")

    def to_json(self) -> dict[str, Any]:
        """Return the ledger as plain data."""
        facts = [fact.to_json() for fact in self.facts]
        return {"facts": facts, "gone": list(self.gone), "seen": self.seen}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Ledger:
        """Return the ledger that `to_json` wrote, now or in an earlier version.

        Raises:
            InputError: it is none.

        Example:
            >>> Ledger.from_json(Ledger(seen=3).to_json()).seen
            3
        """
        book, wrong = cls.recovered(data)
        if wrong:
            raise InputError(wrong[0])
        return book

    @classmethod
    def recovered(cls, data: object) -> tuple[Ledger, tuple[str, ...]]:
        """Return the readable part of a ledger that may be damaged, and its faults.

        Example:
            >>> Ledger.recovered({"facts": [7], "seen": 3})[0]
            Ledger(facts=(), gone=(), seen=3)
        """
        if not isinstance(data, Mapping):
            why = f"a ledger must be an object, as to_json writes it, not {data!r:.80}"
            return cls(), (why,)
        wrong: list[str] = []
        parts: dict[str, Sequence[Any]] = {}
        for name in ("facts", "gone"):
            parts[name] = data.get(name, ())
            if not isinstance(parts[name], (list, tuple)):
                wrong.append(f"{name!r} of a ledger must be a list, not {parts[name]!r:.80}")
                parts[name] = ()
        facts: list[Fact] = []
        for place, one in enumerate(parts["facts"]):
            try:
                facts.append(Fact.from_json(one))
            except InputError as error:
                wrong.append(f"fact {place} of the ledger: {error}")
        gone = tuple(text for text in parts["gone"] if isinstance(text, str))
        if len(gone) < len(parts["gone"]):
            wrong.append("'gone' of a ledger must be a list of texts")
        last = 1 + max((fact.order for fact in facts), default=-1)
        seen = data.get("seen", last)
        if not isinstance(seen, int) or isinstance(seen, bool):
            wrong.append(f"'seen' of a ledger must be a whole number, not {seen!r:.80}")
            seen = last
        return cls(tuple(facts), gone, seen), tuple(wrong)


class _Book:
    """A ledger in the making."""

    def __init__(self, facts: Iterable[Fact], gone: Iterable[str]) -> None:
        self._facts: dict[_Key, Fact] = {}
        self._gone = dict.fromkeys(gone)
        self._subjects = Subjects[_Key]()
        for fact in facts:
            self._put(fact, about(fact.value, _before(fact)))

    def take(self, fact: Fact, what: About) -> None:
        """Note what a sentence states, and what it replaces."""
        key = (fact.kind, fact.value)
        if key in self._facts:
            self._facts[key] = replace(self._facts.pop(key), order=fact.order)
            return
        if fact.kind != "skill":
            old, _ = self._subjects.replaced(what, fact.role)
            if old is not None:
                fact = replace(fact, kind=max(fact.kind, old[0], key=lambda k: _WEIGHT.get(k, 0)))
                self.retire([old[1]])
        if fact.kind:
            self._gone.pop(fact.value, None)
            self._put(fact, what)

    def retire(self, values: Iterable[str]) -> None:
        """Forget statements that hold no longer."""
        for value in values:
            self._gone.pop(value, None)
            self._gone[value] = None
            for key in [key for key in self._facts if key[1] == value]:
                self._facts.pop(key)
                self._subjects.drop(key)

    def _put(self, fact: Fact, what: About) -> None:
        self._facts[fact.kind, fact.value] = fact
        if fact.kind in _WEIGHT:
            self._subjects.add((fact.kind, fact.value), what, fact.role)

    def closed(self, seen: int) -> Ledger:
        """Return the ledger, with no more facts than it may hold."""
        facts = list(self._facts.values())
        if len(facts) > LIMIT:
            alike: Counter[str] = Counter()
            ranks = []
            for fact in sorted(facts, key=_priority, reverse=True):
                alike[same := frame(fact.value)] += 1
                ranks.append((alike[same] <= NEAR_EQUAL, *_priority(fact), fact))
            facts = [one[-1] for one in sorted(ranks, key=lambda r: r[:-1], reverse=True)[:LIMIT]]
        facts.sort(key=lambda fact: fact.order)
        return Ledger(tuple(facts), tuple(self._gone)[-GONE:], seen)


def _priority(fact: Fact) -> tuple[int, int]:
    """Return the weight of a fact: the greater, the longer it stays."""
    said = {"user": 3, "system": 3, "assistant": 1}.get(fact.role, 0)
    return said + _WEIGHT.get(fact.kind, 0), fact.order


def _read(entry: Entry, order: int) -> Iterator[tuple[Fact, About]]:
    """Return the sentences of a message, also those that only change something."""
    before = ""
    for one in statements(entry.own, entry.role):
        if one.own:
            if one.kind or "change" in one.marks:
                quote = one.text
                if before and one.alone and (at := entry.own.rfind(before, 0, one.start)) >= 0:
                    quote = entry.own[at : one.end]
                fact = Fact(one.kind, one.text, quote, entry.cite, entry.role, order=order)
                yield fact, about(one.text, before)
            before = one.text


def _before(fact: Fact) -> str:
    """Return the sentence before a fact, as far as it is kept."""
    return fact.quote[: -len(fact.value)].strip() if fact.quote.endswith(fact.value) else ""
