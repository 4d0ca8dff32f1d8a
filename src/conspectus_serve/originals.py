"""Give back to a history what its client has cleared from it.

Clients clear old results of tools, or leave thoughts out, in the history that they send. What the
endpoint has seen whole is archived and summarised whole, and a record goes on fitting its history.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from conspectus._newest import Newest
from conspectus.archive import Archive, Scope
from conspectus.core.records import Record
from conspectus.messages import read_messages
from conspectus_serve.threads import Mark, mark_of

THREADS, CHARACTERS = 512, 64_000_000  # threads whose newest request is remembered, and its size
SMALL = 200  # characters of a message that no client would clear
CHAINS = 64  # threads for which the covered messages are remembered

Seen = dict[str, tuple[Mark, Any]]
"""The large messages of a thread's newest request, with their marks, by the marks' names."""


class Originals:
    """Remember messages whole, and find them again in the archive once they are covered."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._seen = Newest[Scope, Seen](
            THREADS, CHARACTERS, lambda seen: sum(mark.size for mark, _ in seen.values())
        )
        self._covered = Newest[tuple[Scope, str], dict[str, list[Any]]](CHAINS)

    def restored(
        self, scope: Scope, head: str, marks: Sequence[Mark], messages: Sequence[Any]
    ) -> tuple[list[Any], list[Mark]]:
        """Return a history with its originals, and their marks; `head` is the record in force."""
        made, whole = list(messages), list(marks)
        seen = self._seen.get(scope) or {}
        covered = self._covered_of(scope, head) if head else {}
        wanted: dict[int, str] = {}
        for place, mark in enumerate(marks):
            if (held := seen.get(mark.name)) is not None:
                if _was_cleared(mark, held[0].digest, held[0].size):
                    whole[place], made[place] = held
            elif (row := covered.get(mark.name)) is not None:
                key, digest, size = row
                if _was_cleared(mark, bytes.fromhex(digest), size):
                    wanted[place] = key
        originals = self._archive.find(scope, list(wanted.values())) if wanted else {}
        for place, key in wanted.items():
            if (original := originals.get(key)) is not None and original.lossless:
                made[place] = original.message
                whole[place] = replace(mark_of(original.message), name=marks[place].name)
        return made, whole

    def remember(self, scope: Scope, marks: Sequence[Mark], messages: Sequence[Any]) -> None:
        """Remember a request's messages, as `restored` returns them."""
        pairs = zip(marks, messages, strict=True)
        self._seen.put(scope, {m.name: (m, one) for m, one in pairs if m.name and m.size > SMALL})

    def cover(
        self, scope: Scope, record: Record, marks: Sequence[Mark], messages: Sequence[Any]
    ) -> None:
        """Note which messages a new record covers: by mark the key, digest and size."""
        covers = set(record.covers)
        rows = {
            mark.name: [entry.key, mark.digest.hex(), mark.size]
            for mark, entry in zip(marks, read_messages(messages), strict=True)
            if mark.name and mark.size > SMALL and entry.key in covers
        }
        self._archive.note(scope, "covered", {record.id: {"messages": rows}})

    def _covered_of(self, scope: Scope, head: str) -> dict[str, list[Any]]:
        known = self._covered.get((scope, head))
        if known is not None:
            return known
        names = [record.id for record in self._archive.chain_at(scope, head)]
        notes = self._archive.notes(scope, "covered", names)
        made = {k: v for name in names for k, v in notes.get(name, {}).get("messages", {}).items()}
        if names:
            self._covered.put((scope, head), made)
        return made


def _was_cleared(mark: Mark, digest: bytes, size: int) -> bool:
    """Return whether a message is what a client has left of a known one.

    One whose name another conversation may have too must have become much shorter.
    """
    return mark.digest != digest and mark.size < (size if mark.unique else size // 2)
