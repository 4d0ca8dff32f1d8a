"""One conversation, as an observer with lists of his own knows it."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from conspectus.archive import Scope
from stateful.summarizers import Reading

NAMES = [
    ("local", "t", "main"),
    ("local", "t", "sub"),
    ("local", "u", "main"),
    ("acme", "t", "main"),
]


@dataclass
class Moment:
    """A conversation as it was after a look."""

    whole: list[Any]
    view: list[Any]
    reach: Counter[str]


@dataclass
class Conversation:
    """What an observer knows of one conversation.

    Attributes:
        whole: what was said on this branch.
        view: what the last look showed.
        seen: how much of `whole` that look knew.
        same: nothing was edited, and nobody went back, since then.
        whole_only: `view` no longer goes with `whole`.
        back: the moment to which somebody went back.
        pending: calls without a result, with the ids of their messages.
        moments: all looks that went well.
        readings: what summarisers have read of it.
        quiet: nothing happened since the last look that went well.
    """

    name: tuple[str, str, str]
    whole: list[Any] = field(default_factory=list)
    view: list[Any] = field(default_factory=list)
    seen: int = 0
    same: bool = True
    whole_only: bool = False
    back: Moment | None = None
    pending: list[str] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    quiet: bool = False

    @property
    def where(self) -> dict[str, str]:
        return dict(zip(("tenant", "thread_id", "session"), self.name, strict=True))

    @property
    def scope(self) -> Scope:
        return Scope(*self.name)
