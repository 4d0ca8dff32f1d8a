"""The ledger: facts merged over rounds, superseded by later ones, bounded by stated priority."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conspectus.ledger.facts import Fact, facts_of
from conspectus.messages import Entry

LIMIT = 200
"""Facts that a ledger holds at most."""

CROWDED = 40
"""Times `LIMIT` that a ledger may hold while it is being made; then the lesser half goes."""

ALIKE = 0.6
"""Two rules are about the same thing when they share this much of their words, numbers aside."""

_CHANGE = re.compile(
    r"\b(?:from now on|instead|no longer|rather than|changed?|chang(?:es|ing)|rais(?:e|es|ed|ing)"
    r"|lower(?:s|ed|ing)?|increas\w+|decreas\w+|extend\w*|mov(?:e|es|ed|ing)|now|new|updat\w+"
    r"|correct(?:s|ed|ion)|ahora|jetzt|désormais|maintenant)\b"
    r"|改为|改成|提高到|降到|从现在|更正|今後|変更|이제|변경",
    re.IGNORECASE,
)
"""Words that say that a statement replaces an earlier one."""

COMPARED = 200
"""Rules that a new one is compared with: the latest, so that the work stays linear."""

_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_WORD = re.compile(
    r"[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,}"
    r"|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)
_FILLER = frozenset(
    """the and for that this with from now not but are was were will would should could can may must
    never always please keep make sure instead""".split()
)


@dataclass(frozen=True, slots=True)
class Ledger:
    """Exact facts in force.

    Attributes:
        facts: the facts, in the order in which their messages came.
        gone: rules that a later one has replaced, the latest last; at most `COMPARED`.

    Example:
        >>> Ledger().facts
        ()
    """

    facts: tuple[Fact, ...] = ()
    gone: tuple[str, ...] = ()

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
        gone = dict.fromkeys(self.gone)
        for fact in newer:
            key = (fact.kind, fact.value)
            if (known := book.pop(key, None)) is not None:
                used = known.used + fact.used
                # The first place tells most, except that a user's words outweigh a tool's.
                better = fact if known.role == "tool" and fact.role != "tool" else known
                fact = replace(better, used=used, order=fact.order)
            elif fact.kind == "rule":
                for old in [old for old in rules[-COMPARED:] if _supersedes(fact, old)]:
                    rules.remove(old)
                    book.pop((old.kind, old.value), None)
                    gone[old.value] = None
                gone.pop(fact.value, None)
                rules.append(fact)
            book[key] = fact
            if len(book) > CROWDED * LIMIT:
                book = _best(book.values(), CROWDED * LIMIT // 2)
        replaced = tuple(gone)[-COMPARED:]
        return Ledger(tuple(_best(book.values(), LIMIT).values()), replaced)

    def without_superseded(self, later: Sequence[Entry]) -> Ledger:
        """This ledger less the rules that messages after it, still in view, have replaced."""
        gone = self.updated(later).gone
        facts = tuple(f for f in self.facts if f.kind != "rule" or f.value not in gone)
        return Ledger(facts, gone)

    def standing(self) -> tuple[Fact, ...]:
        """What must be in every summary, most important first: rules, then decisions of users."""
        rules = [f for f in self.facts if f.kind == "rule"]
        stated = [f for f in self.facts if f.kind == "decision" and f.role == "user"]
        return tuple(sorted(rules, key=priority, reverse=True)) + tuple(stated)

    def to_json(self) -> dict[str, Any]:
        """The ledger as plain data."""
        return {"facts": [fact.to_json() for fact in self.facts], "gone": list(self.gone)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Ledger:
        """The ledger that `to_json` wrote."""
        facts = tuple(Fact.from_json(fact) for fact in data.get("facts", ()))
        return cls(facts, tuple(data.get("gone", ())))


def priority(fact: Fact) -> tuple[int, int, int]:
    """What stays when there is no room: what the user said, what the agent used, what is recent."""
    said = {"user": 3, "system": 3, "assistant": 1}.get(fact.role, 0)
    return (said + (2 if fact.kind == "rule" else 0), min(fact.used, 5), fact.order)


def _best(facts: Collection[Fact], limit: int) -> dict[tuple[str, str], Fact]:
    """The facts that stay when there are too many, in the order of their messages."""
    kept: Iterable[Fact] = facts
    if len(facts) > limit:
        best = sorted(facts, key=priority, reverse=True)[:limit]
        kept = sorted(best, key=lambda fact: fact.order)
    return {(fact.kind, fact.value): fact for fact in kept}


def _supersedes(newer: Fact, older: Fact) -> bool:
    """Whether a rule gives another figure for the same one thing, as a raised cap does.

    Losing a rule costs more than carrying two, so the words must be the same, or the newer one
    must say that it changes something and share most of them; and only one figure may differ.
    """
    if newer.role != older.role:
        return False
    figures = set(_NUMBER.findall(newer.value)), set(_NUMBER.findall(older.value))
    if len(figures[0] - figures[1]) != 1 or len(figures[1] - figures[0]) != 1:
        return False
    words = [{w.lower() for w in _WORD.findall(f.value)} - _FILLER for f in (newer, older)]
    if words[0] == words[1]:
        return True
    shared = len(words[0] & words[1])
    changes = _CHANGE.search(newer.value) is not None
    return changes and shared >= 1 and shared >= ALIKE * min(len(words[0]), len(words[1]))
