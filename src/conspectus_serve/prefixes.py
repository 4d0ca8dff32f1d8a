"""Digest the prefixes of a history, by which its thread is found."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from conspectus.messages.blocks import author_of, is_item

_WRITE = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def by_model(message: Any) -> bool:
    """Return whether the model has written a message."""
    if not isinstance(message, dict):
        return False
    if "role" in message:
        return message["role"] in ("assistant", "model")
    return is_item(message) and author_of(message) == "model"


@dataclass(frozen=True, slots=True)
class Prefixes:
    """The prefixes of a history that may be all of an earlier one.

    Attributes:
        names: digests by number of messages, leading system messages included.
        answered: messages up to the last answer of the model; all if there is none.
    """

    names: dict[int, str]
    answered: int

    @property
    def name(self) -> str:
        """Return the digest of the answered prefix."""
        return self.names[self.answered]

    def longest_first(self) -> list[tuple[int, str]]:
        return sorted(self.names.items(), reverse=True)


def prefixes_of(history: Sequence[Any], protocol: str) -> Prefixes:
    """Digest the prefixes of a history.

    A stored history ends with an answer of the model, or has none: only such prefixes are named.
    Leading system messages do not count, as they may hold a clock.

    Args:
        history: messages without cache marks.
        protocol: two protocols have no history in common.

    Raises:
        ValueError, TypeError, RecursionError: a message is not JSON.
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
    if not names:  # nothing but system messages: then they count
        running.update(_WRITE(list(history)).encode())
        names[len(history)] = running.hexdigest()[:32]
    return Prefixes(names, answered or max(names))
