"""One statement of a user or a system, word for word, and how it is stored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conspectus.errors import InputError
from conspectus.messages import Entry

KINDS = ("rule", "preference", "decision", "fact", "task", "skill")
"""Kinds that are read today. Records of earlier versions hold others; they are carried on."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement, word for word.

    Attributes:
        kind: what it states, one of `KINDS`, or what an earlier version called it.
        value: the sentence as it stands.
        quote: the same, with the sentence before it where it is not understood without.
        source: how its message is cited.
        role: who said it.
        used, state, told, call, result: what earlier versions noted; carried on as read.
        order: when it was last said, counted in messages of the thread.

    Example:
        >>> Fact("rule", "Never push.", "Never push.", "m1", "user").to_json()
        {'kind': 'rule', 'value': 'Never push.', 'source': 'm1', 'role': 'user'}
    """

    kind: str
    value: str
    quote: str
    source: str
    role: str
    used: int = 0
    order: int = 0
    state: str = ""
    told: int = 0
    call: str = ""
    result: str = ""

    @property
    def shown(self) -> str:
        """The fact as one line."""
        return " ".join(self.value.split())

    def to_json(self) -> dict[str, Any]:
        """Return the fact as plain data, without what is as usual."""
        data: dict[str, Any] = {"kind": self.kind, "value": self.value}
        if self.quote != self.value:
            data["quote"] = self.quote
        data |= {"source": self.source, "role": self.role}
        for name in ("used", "order", "state", "told", "call", "result"):
            if value := getattr(self, name):
                data[name] = value
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Fact:
        """Return the fact that `to_json` wrote, now or in an earlier version.

        Raises:
            InputError: it is none.
        """
        if not isinstance(data, Mapping):
            raise InputError(f"a fact must be an object, as to_json writes it, not {data!r:.80}")
        known = {name: data[name] for name in cls.__slots__ if name in data}
        if "value" in known:
            known.setdefault("quote", known["value"])
        for name in ("kind", "value", "source", "role"):
            if name not in known:
                raise InputError(f"a fact has no {name!r}; give what to_json wrote")
        for name, value in known.items():
            form = int if name in ("used", "order", "told") else str
            if not isinstance(value, form) or isinstance(value, bool):
                what = "a whole number" if form is int else "text"
                raise InputError(f"{name!r} of a fact must be {what}, not {value!r:.80}")
        return cls(**known)


def quoted(entry: Entry, text: str, kind: str = "rule", order: int = 0) -> Fact | None:
    """Return the fact that a model names as a statement.

    None where it is no quotation of its message.

    Args:
        entry: the message.
        text: the quotation; blanks and the form of quotation marks do not matter.
        kind: what it states.
        order: the message's place in the thread.
    """
    words = [re.escape(word) for word in _plain(text).split()]
    if not words or entry.role not in ("user", "system") or kind not in KINDS:
        return None
    found = re.search(r"\s+".join(words), _plain(entry.own))
    if found is None:
        return None
    value = entry.own[found.start() : found.end()]
    return Fact(kind, value, value, entry.cite, entry.role, order=order)


def _plain(text: str) -> str:
    return text.translate(_MARKS)


_MARKS = str.maketrans("“”„«»‘’", '"""""\'\'')
