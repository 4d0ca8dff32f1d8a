"""Write, sign and expand the endpoint's own compaction items."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from typing import Any

from conspectus.errors import InputError

MARK = "conspectus.v1."
"""Prefix of the content of our items; a provider's own begins otherwise."""

CONTENT = "encrypted_content"
"""The field that clients send back untouched, in both protocols."""


class BadItem(InputError):
    """A compaction item has our prefix and no valid signature."""


class Items:
    """Write and read compaction items.

    An item holds its thread, and a view: the messages in place of the compacted ones.

    Args:
        keys: the first one signs; all of them verify.

    Example:
        >>> items = Items(["key-one"])
        >>> text = items.written("tenant", "t-1", [{"role": "user", "content": "Notes."}])
        >>> items.read("tenant", text)
        ('t-1', [{'role': 'user', 'content': 'Notes.'}])
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = [key.encode() for key in keys]

    def written(self, tenant: str, thread: str, view: Sequence[Any]) -> str:
        """Return the content of an item, which only its tenant can bring back."""
        data = {"thread": thread, "view": list(view)}
        text = json.dumps(data, separators=(",", ":"), ensure_ascii=True)
        return f"{MARK}{_signed(self._keys[0], tenant, text)}.{text}"

    def read(self, tenant: str, content: str) -> tuple[str, list[Any]]:
        """Verify an item, and return its thread and its view.

        Raises:
            BadItem: no key of the operator has signed it for this tenant.
        """
        signature, _, text = content.removeprefix(MARK).partition(".")
        good = [
            hmac.compare_digest(_signed(key, tenant, text).encode(), _bytes(signature))
            for key in self._keys
        ]
        if not any(good):
            raise BadItem(
                "a compaction item is not one that this endpoint has signed for this key: it was "
                "changed, belongs to another key, or its signing key is gone; leave it out, or "
                "send the history that it stands for"
            )
        data = json.loads(text)
        return data["thread"], data["view"]

    def expanded(self, tenant: str, history: Sequence[Any]) -> tuple[list[Any], str | None]:
        """Expand our items in a history, and return it with their thread.

        Raises:
            BadItem: see `read`.
        """
        made: list[Any] = []
        thread = None
        for message in history:
            if (content := ours(message)) is not None:
                thread, view = self.read(tenant, content)
                # The view holds some messages before it once more.
                made = [*(one for one in made if one not in view), *view]
                continue
            place = _block_of_ours(message)
            if place is None:
                made.append(message)
                continue
            block = message["content"][place]
            thread, made = self.read(tenant, block[CONTENT])  # all before it is behind it
            if rest := message["content"][place + 1 :]:
                made.append({**message, "content": rest})
        return made, thread


def ours(block: Any) -> str | None:
    """Return the content of one of our items; None for anything else."""
    if not isinstance(block, Mapping) or block.get("type") != "compaction":
        return None
    content = block.get(CONTENT)
    return content if isinstance(content, str) and content.startswith(MARK) else None


def _block_of_ours(message: Any) -> int | None:
    content = message.get("content") if isinstance(message, Mapping) else None
    if not isinstance(content, list):
        return None
    found = [place for place, block in enumerate(content) if ours(block) is not None]
    return found[-1] if found else None


def _signed(key: bytes, tenant: str, text: str) -> str:
    said = tenant.encode() + b"\0" + _bytes(text)
    return hmac.new(key, said, hashlib.sha256).hexdigest()


def _bytes(text: str) -> bytes:
    """Encode any text that JSON can hold, lone surrogates included."""
    return text.encode("utf-8", "surrogatepass")
