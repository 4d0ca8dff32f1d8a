"""One exact fact, and how it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from conspectus.errors import InputError
from conspectus.ledger.identifiers import Kind

SHOWN = 120
"""Characters of work handed over, and of what came back, that are shown in a summary."""

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
        result: of work that came back, the first words of the result; of work that failed and is
            still open, of the error.

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

    @property
    def shown(self) -> str:
        """The fact as one line; of work that was handed over, with what came back."""
        value = " ".join(self.value.split())
        if self.kind != "delegation" or not self.result:
            return value
        return f"{_cut(value)} → {_cut(self.result)}"

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
        """The fact that `to_json` wrote, now or in an earlier version.

        Raises:
            InputError: it is none.
        """
        if not isinstance(data, Mapping):
            raise InputError(f"a fact must be an object, as to_json writes it, not {data!r:.80}")
        known = {name: data[name] for name in cls.__slots__ if name in data}
        if "value" in known:
            known.setdefault("quote", known["value"])
        for name in _NEEDED:
            if name not in known:
                raise InputError(f"a fact has no {name!r}; give what to_json wrote")
        for name, value in known.items():
            form = int if name in _NUMBERS else str
            if not isinstance(value, form) or isinstance(value, bool):
                what = "a whole number" if form is int else "text"
                raise InputError(f"{name!r} of a fact must be {what}, not {value!r:.80}")
        for name, choice in (("kind", _KINDS), ("state", _STATES)):
            if name in known and known[name] not in choice:
                raise InputError(
                    f"{name!r} of a fact cannot be {known[name]!r:.80}; it is one of "
                    + ", ".join(map(repr, choice))
                )
        return cls(**known)


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1].rstrip() + "…"


_NEEDED = ("kind", "value", "source", "role")
_NUMBERS = ("used", "order", "told")
_KINDS: tuple[str, ...] = get_args(Kind)
_STATES: tuple[str, ...] = get_args(State)
