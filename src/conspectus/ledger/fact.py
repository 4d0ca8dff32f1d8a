"""One exact fact, and how it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from conspectus.ledger.identifiers import Kind

State = Literal["", "open", "done"]
"""Whether work is still to be done; empty for all that is no work."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One exact fact.

    Attributes:
        kind: what it is.
        value: the fact itself: a value as it stands, or for statements the whole sentence.
        quote: the words around it, as they stand in the message.
        source: how its message is cited.
        role: who said it.
        used: in how many messages the agent itself has used it, in its words or in tool arguments.
        order: when it was last seen, counted in messages of the thread.
        state: of a task or a delegation, `open` or `done`.
        told: in how many messages others than the agent have said it.
        call: of work handed over, the id of the call until its result is there; of a task, `list`
            if it is on a to-do list of the agent's.
        result: of work that came back, the first words of the result.

    Example:
        >>> Fact("path", "app.py", "see app.py", "m1", "user").to_json()
        {'kind': 'path', 'value': 'app.py', 'quote': 'see app.py', 'source': 'm1', 'role': 'user'}
    """

    kind: Kind
    value: str
    quote: str
    source: str
    role: str
    used: int = 0
    order: int = 0
    state: State = ""
    told: int = 0
    call: str = ""
    result: str = ""

    def to_json(self) -> dict[str, Any]:
        """The fact as plain data, without what is as usual."""
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
        """The fact that `to_json` wrote, now or in an earlier version."""
        known = {name: data[name] for name in cls.__slots__ if name in data}
        known.setdefault("quote", known["value"])
        return cls(**known)
