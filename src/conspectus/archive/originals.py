"""Keep original messages; long texts are kept once a session.

A message points to a long text by its digest. The texts are in the session's own namespace, so none
is shared across sessions, threads or tenants, and `forget` deletes them too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from conspectus._drive import Flow
from conspectus.archive.operations import Op
from conspectus.archive.scope import Label, Namespaced
from conspectus.archive.wire import Wire
from conspectus.messages.codec import TAG

TEXTS: Label = "texts"  # Last label of the namespace of a session's long texts
LEAST = 512  # Characters of the shortest text kept apart, which costs some 90 bytes more, once

_TEXT = "text"


class Originals:
    """The messages of an archive, as plain data."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def ops(
        self, scope: Namespaced, data: Mapping[str, dict[str, Any]], meanings: Mapping[str, str]
    ) -> list[Op]:
        """Return the operations that write messages by key, after the texts they point to.

        An existing text is written again, so that it lives as long as the latest message that
        points to it.
        """
        texts: dict[str, dict[str, Any]] = {}
        messages: list[Op] = []
        for key, one in data.items():
            own: dict[str, str] = {}
            body = {**one, "message": _parted(one["message"], own)}
            messages.append(
                self._wire.put_op(scope.namespace("messages"), key, body, meanings.get(key))
            )
            for name, text in own.items():
                texts[name] = _longer(texts.get(name), text, one.get("expires"))
        place = scope.namespace(TEXTS)
        return [*(self._wire.put_op(place, name, one) for name, one in texts.items()), *messages]

    def read_flow(
        self, scope: Namespaced, keys: Sequence[str]
    ) -> Flow[dict[str, dict[str, Any] | None]]:
        """Return messages by key, without those missing or expired.

        A damaged message, or one of which a text is gone, is None.
        """
        found = yield from self._wire.read(scope.namespace("messages"), keys)
        wanted: dict[str, str] = {}
        for data in found.values():
            _joined(data and data.get("message"), lambda name: wanted.setdefault(name, ""))
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
    """Return a text that lives as long as the last message that points to it."""
    if ends is None or (before is not None and "expires" not in before):
        return {"text": text}
    return {"text": text, "expires": max(ends, before["expires"] if before else ends)}


def _whole(data: dict[str, Any] | None, texts: Mapping[str, str]) -> dict[str, Any] | None:
    if data is None:
        return None
    try:
        return {**data, "message": _joined(data.get("message"), texts.__getitem__)}
    except (KeyError, TypeError):
        return None


def _parted(value: Any, texts: dict[str, str]) -> Any:
    """Replace the long texts in plain JSON data by pointers, and add them to `texts`."""
    if isinstance(value, str):
        if len(value) < LEAST:
            return value
        name = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        texts[name] = value
        return {TAG: _TEXT, "value": name}
    if isinstance(value, Mapping):
        return {key: _parted(part, texts) for key, part in value.items()}
    return [_parted(part, texts) for part in value] if isinstance(value, list) else value


def _joined(value: Any, text_of: Callable[[str], str]) -> Any:
    """Undo `_parted`, with the text of each digest that some data points to."""
    if isinstance(value, Mapping):
        if value.get(TAG) == _TEXT:
            return text_of(value["value"])
        return {key: _joined(part, text_of) for key, part in value.items()}
    return [_joined(part, text_of) for part in value] if isinstance(value, list) else value
