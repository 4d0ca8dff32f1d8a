"""Long texts of one session, each kept once: a message points to them by their digest.

They lie in the session's own namespace, so no text is ever shared across a session, a thread or a
tenant, and whoever forgets a thread forgets its texts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from conspectus.messages.codec import TAG

LEAST = 512
"""Characters of a text that is kept apart. Apart it takes some 90 bytes more, once."""

_TEXT = "text"


def parted(value: Any, texts: dict[str, str]) -> Any:
    """Plain JSON data with its long texts replaced by pointers to them.

    Args:
        value: the data.
        texts: to which the long texts are added, by digest.
    """
    if isinstance(value, str):
        if len(value) < LEAST:
            return value
        name = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        texts[name] = value
        return {TAG: _TEXT, "value": name}
    if isinstance(value, Mapping):
        return {key: parted(part, texts) for key, part in value.items()}
    return [parted(part, texts) for part in value] if isinstance(value, list) else value


def pointers(value: Any, found: dict[str, None]) -> None:
    """Add the digests of all texts that some data points to."""
    if isinstance(value, Mapping):
        if value.get(TAG) == _TEXT:
            found[value["value"]] = None
        else:
            for part in value.values():
                pointers(part, found)
    elif isinstance(value, list):
        for part in value:
            pointers(part, found)


def joined(value: Any, texts: Mapping[str, str]) -> Any:
    """The data that `parted` was given.

    Raises:
        KeyError: one of its texts is not there.
    """
    if isinstance(value, Mapping):
        if value.get(TAG) == _TEXT:
            return texts[value["value"]]
        return {key: joined(part, texts) for key, part in value.items()}
    return [joined(part, texts) for part in value] if isinstance(value, list) else value
