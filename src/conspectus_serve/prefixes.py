"""A history as what it says, and the digests of its beginnings, by which a thread is found."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from conspectus.messages.blocks import author_of, is_item

_WRITE = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def by_model(message: Any) -> bool:
    """Whether the model has written a message."""
    if not isinstance(message, dict):
        return False
    if "role" in message:
        return message["role"] in ("assistant", "model")
    return is_item(message) and author_of(message) == "model"


@dataclass(frozen=True, slots=True)
class Prefixes:
    """The beginnings of a history that may be all of an earlier one.

    Attributes:
        names: digests of beginnings, by how many messages they hold, leading system messages
            included.
        answered: how many messages stand up to the last answer of the model; all of them where
            there is none.
    """

    names: dict[int, str]
    answered: int

    @property
    def name(self) -> str:
        """The digest of what has been answered."""
        return self.names[self.answered]

    def longest_first(self) -> list[tuple[int, str]]:
        """The beginnings, the longest first."""
        return sorted(self.names.items(), reverse=True)


def prefixes_of(history: Sequence[Any], protocol: str) -> Prefixes:
    """The beginnings of a history.

    What was stored of a history ends with an answer of the model, or it has none: only such
    beginnings are named. Leading system messages do not count, as they may hold a clock.

    Args:
        history: as `plain` gives each message.
        protocol: two protocols have no history in common.

    Raises:
        ValueError, TypeError, RecursionError: a message is no JSON.
    """
    running = hashlib.sha256(protocol.encode())
    names: dict[int, str] = {}
    leading, answered = True, 0
    for count, message in enumerate(history, 1):
        if leading and isinstance(message, dict) and message.get("role") in ("system", "developer"):
            continue
        leading = False
        text = _WRITE(message).encode()
        running.update(b"%d:" % len(text))
        running.update(text)
        model = by_model(message)
        if model:
            answered = count
        if model or not answered:
            names[count] = running.copy().hexdigest()[:32]
    if not names:  # nothing but system messages: then they are what it says
        running.update(_WRITE(list(history)).encode())
        names[len(history)] = running.hexdigest()[:32]
    return Prefixes(names, answered or max(names))
