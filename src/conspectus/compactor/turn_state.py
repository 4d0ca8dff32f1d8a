"""What a graph's state holds of the turn under way: what was recalled for it, what was asked."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage

from conspectus.compactor.agent_state import ASKED, RECALLED, VERSION
from conspectus.messages import POINTER, read_messages
from conspectus.messages.recalled import newest_user, recalled_message

FOCUS = 2_000
"""Characters of a focus that are kept."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """What was chosen for one turn, so that it stays the same, byte for byte, until the next.

    Attributes:
        turn: names the user's message that the turn began with; what `turn_of` gave.
        text: what the model is shown; empty for nothing.
        keys: of the originals in it, which must be within reach as long as it is shown.
    """

    turn: str
    text: str = ""
    keys: tuple[str, ...] = ()

    @property
    def message(self) -> BaseMessage | None:
        """The message that shows it; None for nothing."""
        return recalled_message(self.text, self.turn) if self.text else None

    def to_json(self) -> dict[str, Any]:
        """As plain JSON data."""
        return {"v": VERSION, "turn": self.turn, "text": self.text, "keys": list(self.keys)}


def read_recalled(state: Mapping[str, Any]) -> Recalled | None:
    """What was chosen latest; None where nothing was, or where it cannot be read."""
    data = state.get(RECALLED)
    if not isinstance(data, Mapping) or data.get("v") != VERSION:
        return None
    turn, text, keys = data.get("turn"), data.get("text"), data.get("keys")
    if not (isinstance(turn, str) and isinstance(text, str) and isinstance(keys, list)):
        return None
    return Recalled(turn, text, tuple(map(str, keys)))


def turn_of(messages: Sequence[BaseMessage], known: Recalled | None = None) -> str:
    """Names the turn under way by the message that it began with; empty where there is none.

    Args:
        messages: the history.
        known: what was chosen latest. A message that is now shown short is the same one still,
            and one that was edited is another.
    """
    place = newest_user(messages)
    if place is None:
        return ""
    [entry] = read_messages([messages[place]])
    name = hashlib.sha256(entry.id.encode("utf-8", "backslashreplace")).hexdigest()[:16]
    if known is not None and known.turn.startswith(name) and POINTER in entry.text:
        return known.turn
    return f"{name}{entry.key}"


def read_asked(state: Mapping[str, Any]) -> str | None:
    """The focus of a compaction that was asked for, which may be empty; None for not asked."""
    data = state.get(ASKED)
    if not isinstance(data, Mapping) or data.get("v") != VERSION:
        return None
    focus = data.get("focus")
    return focus[:FOCUS] if isinstance(focus, str) else ""


def asking(focus: str | None) -> dict[str, Any]:
    """The update of a state that asks for a compaction before the next call of the model."""
    return {ASKED: {"v": VERSION, "focus": (focus or "").strip()[:FOCUS]}}
