"""Originals in a store: messages with their long texts kept once a session, and read back whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conspectus._drive import Flow
from conspectus.archive.operations import Op
from conspectus.archive.scope import Kind, Place
from conspectus.archive.sharing import joined, parted, pointers
from conspectus.archive.wire import Wire

TEXTS: Kind = "texts"
"""Last label of the namespace in which the long texts of a session lie."""


class Originals:
    """The messages of an archive, as plain data.

    Args:
        wire: the store.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def ops(
        self, scope: Place, data: Mapping[str, dict[str, Any]], meanings: Mapping[str, str]
    ) -> list[Op]:
        """What writes messages by key, their texts first: nothing points to what is not there.

        A text that is there is written again, so that it lives as long as the latest that points
        to it.
        """
        texts: dict[str, dict[str, Any]] = {}
        messages: list[Op] = []
        for key, one in data.items():
            own: dict[str, str] = {}
            body = {**one, "message": parted(one["message"], own)}
            messages.append(
                self._wire.put_op(scope.namespace("messages"), key, body, meanings.get(key))
            )
            for name, text in own.items():
                texts[name] = _longer(texts.get(name), text, one.get("expires"))
        place = scope.namespace(TEXTS)
        return [*(self._wire.put_op(place, name, one) for name, one in texts.items()), *messages]

    def read_flow(
        self, scope: Place, keys: Sequence[str]
    ) -> Flow[dict[str, dict[str, Any] | None]]:
        """Messages by key. One that is not there or has expired is left out; a damaged one, or one
        of which a text is gone, is None.

        Raises:
            ArchiveError: the store fails, or a value was written by a newer version.
        """
        found = yield from self._wire.read(scope.namespace("messages"), keys)
        wanted: dict[str, None] = {}
        for data in found.values():
            pointers(data and data.get("message"), wanted)
        if not wanted:
            return found
        values = yield from self._wire.read(scope.namespace(TEXTS), list(wanted))
        texts = {
            name: data["text"]
            for name, data in values.items()
            if data is not None and isinstance(data.get("text"), str)
        }
        return {key: _whole(data, texts) for key, data in found.items()}


def _longer(before: dict[str, Any] | None, text: str, ends: float | None) -> dict[str, Any]:
    """A text that lives as long as the last message that points to it."""
    if ends is None or (before is not None and "expires" not in before):
        return {"text": text}
    return {"text": text, "expires": max(ends, before["expires"] if before else ends)}


def _whole(data: dict[str, Any] | None, texts: Mapping[str, str]) -> dict[str, Any] | None:
    if data is None:
        return None
    try:
        return {**data, "message": joined(data.get("message"), texts)}
    except (KeyError, TypeError):
        return None
