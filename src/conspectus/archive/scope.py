"""Name a history and its namespace: labels become hashes, so that histories stay apart.

Stores join namespaces with dots, refuse empty labels, and differ in how they treat NUL and lone
surrogates. A hash of each label is safe in all of them, and no crafted label reaches another
namespace.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from conspectus.errors import InputError
from conspectus.events import Whose

Label = Literal["messages", "texts", "records", "summaries", "drafts", "head", "index", "turns"]

ROOT = "conspectus"  # First label of every namespace that we use


def label_hash(label: str) -> str:
    """Return 32 hexadecimal characters for any label, lone surrogates included."""
    if not isinstance(label, str):
        raise InputError(
            f"a tenant, thread or session is named by text, not by {type(label).__name__}; pass "
            "str(...) of it"
        )
    raw = label.encode("utf-8", "surrogatepass")
    return hashlib.sha256(b"%d:" % len(raw) + raw).hexdigest()[:32]


def written(thread: str) -> dict[str, str]:
    """Return a thread's name as a store keeps it: JSON would join two surrogates in a row."""
    found = {"thread": thread}
    if json.loads(json.dumps(thread)) != thread:
        found["thread_utf8"] = thread.encode("utf-8", "surrogatepass").hex()
    return found


def name_of(data: Mapping[str, object]) -> str | None:
    """Return the name that `written` wrote, or None."""
    exact, name = data.get("thread_utf8"), data.get("thread")
    if isinstance(exact, str):
        with suppress(ValueError):
            return bytes.fromhex(exact).decode("utf-8", "surrogatepass")
    return name if isinstance(name, str) else None


@dataclass(frozen=True, slots=True)
class Found:
    """A history of which only the hashed namespace is known."""

    start: tuple[str, ...]

    def namespace(self, kind: Label) -> tuple[str, ...]:
        return (*self.start, kind)


@dataclass(frozen=True, slots=True)
class Scope:
    """One agent's own history.

    Attributes:
        tenant: its owner.
        thread: the conversation.
        session: one agent's history inside the thread; `main` unless there are subagents.

    Raises:
        InputError: one of them is not text.

    Example:
        >>> Scope("ann", "support-7").namespace("messages")[0]
        'conspectus'
    """

    tenant: str
    thread: str
    session: str = "main"

    def __post_init__(self) -> None:
        for label in (self.tenant, self.thread, self.session):
            label_hash(label)

    @property
    def hashes(self) -> tuple[str, str, str]:
        """The hashes of tenant, thread and session."""
        return label_hash(self.tenant), label_hash(self.thread), label_hash(self.session)

    @property
    def whose(self) -> Whose:
        """The history as events name it."""
        return Whose(self.tenant, self.thread, self.session)

    def namespace(self, kind: Label) -> tuple[str, ...]:
        """Return the namespace of values of one kind."""
        return (ROOT, *self.hashes, kind)


Namespaced = Scope | Found  # It names where the values of one agent's history are


def tenant_namespace(tenant: str, *below: str) -> tuple[str, ...]:
    """Return the namespace of a tenant, or one below it."""
    return (ROOT, label_hash(tenant), *below)


def thread_namespace(tenant: str, thread: str) -> tuple[str, ...]:
    """Return the namespace of a thread, with all its sessions."""
    return tenant_namespace(tenant, label_hash(thread))


THREADS, SLIPS = "threads", "slips"
"""Namespaces below a tenant's: names of threads, and notes of a program around the archive."""
