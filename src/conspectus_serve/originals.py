"""Give back to a history what its client has cleared from it.

Clients clear old results of tools, or leave thoughts out, in the history that they send. What the
endpoint has seen whole is archived and summarised whole, and a record goes on fitting its history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conspectus._newest import Newest
from conspectus.archive import Archive, Scope
from conspectus.core.records import Record
from conspectus.messages import read_messages
from conspectus_serve.threads import Mark, Prefixes, prefixes_of

THREADS, CHARACTERS = 512, 64_000_000
"""Threads whose newest request is remembered, and characters of all of them together."""

SMALL = 200
"""Characters of a message that no client would clear."""

CHAINS = 64
"""Threads for which the covered messages are remembered."""

COVERED = "covered"
"""Notes of the messages that a record covers: by the name of its mark, key, digest and size."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """The large messages of a thread's newest request, with their marks, by the marks' names."""

    messages: Mapping[str, tuple[Mark, Any]]
    size: int


class Originals:
    """Remember messages whole, and find them again in the archive once they are covered."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._seen = Newest[Scope, _Seen](THREADS, CHARACTERS, lambda one: one.size)
        self._covered = Newest[tuple[Scope, str], dict[str, list[Any]]](CHAINS)

    async def restored_flow(
        self, scope: Scope, head: str, prefixes: Prefixes, plain: Sequence[Any]
    ) -> tuple[list[Any], list[Mark]]:
        """Return a history with its originals, and their marks.

        Args:
            scope: whose history it goes on from.
            head: the record in force there; empty for none.
            prefixes: of the history as it came.
            plain: its messages.
        """
        made, marks = list(plain), list(prefixes.marks)
        seen = self._seen.get(scope)
        covered = (await self._covered_flow(scope, head)) if head else {}
        wanted: dict[int, str] = {}
        for place, mark in enumerate(marks):
            held = seen.messages.get(mark.name) if seen is not None else None
            if held is not None and _was_cleared(mark, held[0].digest, held[0].size):
                marks[place], made[place] = held
            elif (known := covered.get(mark.name)) is not None:
                key, digest, size = known
                if _was_cleared(mark, bytes.fromhex(digest), size):
                    wanted[place] = key
        if wanted:
            found = await self._archive.flow(self._archive.find, scope, list(wanted.values()))
            for place, key in wanted.items():
                if (original := found.get(key)) is not None and original.lossless:
                    made[place] = original.message
                    [whole] = prefixes_of([original.message], "").marks
                    marks[place] = replace(whole, name=marks[place].name)
        return made, marks

    def remember(self, scope: Scope, marks: Sequence[Mark], messages: Sequence[Any]) -> None:
        """Remember a request's messages, as `restored_flow` returns them."""
        large = {
            mark.name: (mark, message)
            for mark, message in zip(marks, messages, strict=True)
            if mark.name and mark.size > SMALL
        }
        self._seen.put(scope, _Seen(large, sum(mark.size for mark, _ in large.values())))

    async def covered_by_flow(
        self, scope: Scope, record: Record, marks: Sequence[Mark], messages: Sequence[Any]
    ) -> None:
        """Note which messages a new record covers."""
        covers = set(record.covers)
        rows = {
            mark.name: [entry.key, mark.digest.hex(), mark.size]
            for mark, entry in zip(marks, read_messages(messages), strict=True)
            if mark.name and mark.size > SMALL and entry.key in covers
        }
        note = {record.id: {"messages": rows}}
        await self._archive.flow(self._archive.note, scope, COVERED, note)

    async def _covered_flow(self, scope: Scope, head: str) -> dict[str, list[Any]]:
        known = self._covered.get((scope, head))
        if known is not None:
            return known
        archive = self._archive
        chain = await archive.flow(archive.chain_at, scope, head)
        names = [record.id for record in chain]
        notes = await archive.flow(archive.notes, scope, COVERED, names)
        made = {k: v for name in names for k, v in notes.get(name, {}).get("messages", {}).items()}
        if chain:
            self._covered.put((scope, head), made)
        return made


def _was_cleared(mark: Mark, digest: bytes, size: int) -> bool:
    """Return whether a message is what a client has left of a known one.

    One whose name another conversation may have too must have become much shorter.
    """
    return mark.digest != digest and mark.size < (size if mark.random else size // 2)
