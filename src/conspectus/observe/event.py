"""One type of event, for work of every kind."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conspectus.core.records import Cost, to_plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What happened. It holds no text of a message, but `error_message` may quote one.

    `docs/operations.md` lists the kinds with their names, outcomes and `extra`.
    """

    kind: str
    name: str = ""
    outcome: str = "ok"
    scope: Any = None  # whose history it is; None for an event of no history
    seconds: float = 0.0  # 0 for an event without a length
    # sizes of the view, and messages that left it; None where they have no meaning
    tokens_before: int | None = None
    tokens_after: int | None = None
    messages: int | None = None
    cost: Cost = field(default_factory=Cost)
    money: float | None = None  # US dollars; None where a price is unknown
    error: str = ""  # the class of an error
    error_message: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        names = (name for name in to_plain(self) if name not in ("cost", "extra"))
        return f"Event({', '.join(f'{name}={getattr(self, name)!r:.80}' for name in names)})"


FIELDS = frozenset(field.name for field in dataclasses.fields(Event))
