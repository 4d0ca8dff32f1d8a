"""`Event`: one type for all kinds of work."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conspectus.core.records import Cost, to_plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened, such as a compaction or a call of a model.

    It has no text of messages, but `error_message` may quote some. `docs/operations.md` lists all
    kinds, with their names, outcomes and `extra`.

    Attributes:
        kind: what it was, such as `compaction` or `model_call`.
        name: the name of the summariser, the model or the operation; its meaning depends on `kind`.
        outcome: how it ended; `ok` unless the kind has outcomes of its own.
        scope: the tenant, thread and session; None if it belongs to no history.
        seconds: how long it took; 0 if it took no time.
        tokens_before: tokens of the view before; None if this has no meaning for the kind.
        tokens_after: tokens of the view after; None if this has no meaning for the kind.
        messages: number of evicted messages; None if this has no meaning for the kind.
        cost: what calls of models cost in it.
        money: the same in US dollars; None if a price is unknown.
        error: the class of an error; empty if there was none.
        error_message: the text of the error.
        extra: more facts, by name.
    """

    kind: str
    name: str = ""
    outcome: str = "ok"
    scope: Any = None
    seconds: float = 0.0
    tokens_before: int | None = None
    tokens_after: int | None = None
    messages: int | None = None
    cost: Cost = field(default_factory=Cost)
    money: float | None = None
    error: str = ""
    error_message: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        names = (name for name in to_plain(self) if name not in ("cost", "extra"))
        return f"Event({', '.join(f'{name}={getattr(self, name)!r:.80}' for name in names)})"


FIELDS = frozenset(field.name for field in dataclasses.fields(Event))
