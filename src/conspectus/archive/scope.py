"""Name one agent's history; no crafted name reaches another history's values."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from conspectus.errors import InputError


def label_hash(label: str) -> str:
    """Return 32 hexadecimal characters for any label, lone surrogates included."""
    if not isinstance(label, str):
        raise InputError(
            f"a tenant, thread or session is named by text, not by {type(label).__name__}; pass "
            "str(...) of it"
        )
    raw = label.encode("utf-8", "surrogatepass")
    return hashlib.sha256(b"%d:" % len(raw) + raw).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Scope:
    """One agent's own history.

    Attributes:
        tenant: its owner.
        thread: the conversation.
        session: one agent's history inside the thread; `main` unless there are subagents.

    Raises:
        InputError: one of them is not text.
    """

    tenant: str
    thread: str
    session: str = "main"

    def __post_init__(self) -> None:
        for label in (self.tenant, self.thread, self.session):
            label_hash(label)

    @property
    def hashes(self) -> tuple[str, str, str]:
        """The hashes of tenant, thread and session, which stores keep in place of the names."""
        return label_hash(self.tenant), label_hash(self.thread), label_hash(self.session)
