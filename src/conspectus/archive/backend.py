"""What an archive needs of a place that keeps its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from conspectus.archive.scope import Scope

Kind = Literal["record", "draft", "note"]
KINDS: tuple[Kind, ...] = ("record", "draft", "note")
"""Values by name beside the originals; a note is one of a program around the archive."""


MOST = 12_000
"""Passages of one word that are looked up; a word that more of them hold tells little."""


class Original(NamedTuple):
    """A message to keep: its packed body, what a search must know of it, its passages' words."""

    key: str
    body: bytes
    about: str
    passages: tuple[str, ...]


Listed = tuple[str, int, int, str]
"""A message that may be searched: its key, its first passage's number, words in it, `about`.

A plain tuple, as of a long history there are many, and the garbage collector passes those by.
"""


class Commit(NamedTuple):
    """A record to put in force.

    `names` are notes that name it; `ancestors` the ids of the records that must live as long; with
    `seen`, the head that was seen, another head stays, and nothing is written.
    """

    record: str
    body: bytes
    names: Mapping[str, bytes]
    ancestors: Sequence[str] = ()
    seen: str | None = None


class Backend(Protocol):
    """A store. Each call is one transaction where the store has any; failures are `ArchiveError`s.

    Values that have expired are never returned.
    """

    daemon: bool
    """Whether a call may hang, so that an event loop's end must not wait for its thread."""

    def originals(self, scope: Scope, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the bodies of originals by key."""

    def keep(self, scope: Scope, originals: Sequence[Original]) -> None:
        """Keep originals and index their words, all or none; equal keys are replaced."""

    def listed(self, scope: Scope, keys: Sequence[str]) -> list[Listed]:
        """Return what a search must know of a scope's originals, at least of those with a key."""

    def holding(self, scope: Scope, words: Sequence[str]) -> dict[str, frozenset[int]]:
        """Return by word the passages that hold it, the newest `MOST`; `word*`: or begin so."""

    def values(self, scope: Scope, kind: Kind, names: Sequence[str] | None) -> dict[str, bytes]:
        """Return values by name; all of the kind without `names`."""

    def save(self, scope: Scope, kind: Kind, values: Mapping[str, bytes]) -> None:
        """Keep values by name."""

    def head(self, scope: Scope) -> str | None:
        """Return the id of the head; empty for a history that went back to none, None for none."""

    def point(self, scope: Scope, head: str) -> None:
        """Move the head."""

    def commit(self, scope: Scope, commit: Commit) -> str | None:
        """Write a record and the head; return the head that is in force then."""

    def scopes(self, tenant: str) -> list[Scope]:
        """Return the histories of a tenant."""

    def size(self, scope: Scope) -> int:
        """Return the bytes of a history's originals as they are kept."""

    def forget(self, scopes: Sequence[Scope]) -> int:
        """Delete histories; return the number of originals, records and drafts."""

    def sweep(self) -> None:
        """Delete what has expired."""

    def check(self) -> str:
        """Return what is wrong with the store itself; empty if nothing is known to be."""

    def close(self) -> None:
        """Close what was opened for this archive."""
