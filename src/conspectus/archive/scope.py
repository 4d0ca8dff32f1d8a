"""Name one agent's history, and what an archive keeps of it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from conspectus.errors import InputError

Kind = Literal["record", "draft", "note", "head"]
"""Values by name beside the originals; a note is one of a program around the archive."""

Values = Mapping[Kind, Mapping[str, bytes]]
"""Bodies by kind and name."""

Listed = tuple[str, int, int, int, str]
"""A message that may be searched: its key, its first passage's number, the number of its passages,
of its words, and `about`. A plain tuple, as the garbage collector passes those by."""


class Original(NamedTuple):
    """A message to keep: its packed body, what a search must know of it, its passages' words."""

    key: str
    body: bytes
    about: str
    passages: tuple[str, ...]


class Commit(NamedTuple):
    """A record to put in force, with all values to write.

    `ancestors` are the ids of the records that must live as long. With `seen`, the head that was
    seen (empty for none), nothing is written if another is in force.
    """

    record: str
    values: Values
    ancestors: Sequence[str]
    seen: str | None


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
    """One agent's own history. No crafted name reaches another history's values.

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
