"""Archive what a client has cleared or dropped before a compaction is due.

A client *withdraws* a message if it no longer sends it, or sends less of it. The whole message is
in memory, which ends with the process, and a compaction may come late or never. So a message is
archived as soon as a request shows that it is withdrawn. From then on, `recall` finds it, and every
process with the archive puts it in its place again. Once a record covers it, it is an original like
all others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from conspectus._bounded_cache import BoundedCache
from conspectus.archive import Archive, Scope, UncoveredOriginal
from conspectus_serve.fingerprints import Fingerprint
from conspectus_serve.locks import ScopeLocks

REMEMBERED_THREADS = 256
"""Threads whose withdrawn messages are known without the archive."""


class WithdrawnMessage(NamedTuple):
    """What is stored of a withdrawn message, to recognise it again."""

    name: str  # the name of its fingerprint
    characters: int
    has_unique_ids: bool
    is_dropped: bool  # if not, it was cleared: the client sends a remainder
    in_reach: bool = True  # if not, it is on a branch that the history has left


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """The messages that a request shows to be withdrawn, and the state of its thread."""

    scope: Scope
    history: Sequence[Any]  # whole, with dropped messages
    messages: Mapping[int, WithdrawnMessage]  # those withdrawn now, by their index in `history`
    covered_keys: frozenset[str]  # keys of originals that records cover
    names: frozenset[str]  # names of all messages that the client sends
    left_names: frozenset[str]  # names of messages that are gone, as after a rewind
    begins_anew: bool  # the history has nothing in common with the thread's last one

    def updated(
        self, known_messages: Mapping[str, WithdrawnMessage]
    ) -> dict[str, WithdrawnMessage]:
        """Return the known messages of the thread, by keys, updated by this request.

        These are on a branch that was left: a cleared message whose place is gone; a dropped one
        after the point to which the history has gone back; and all before a history that begins
        anew.
        """
        withdrawn = {message.name: message for message in self.messages.values()}
        updated = {}
        for key, message in known_messages.items():
            if key in self.covered_keys:
                continue
            if message.name in withdrawn:
                updated[key] = withdrawn[message.name]
            elif message.is_dropped:
                is_left = self.begins_anew or message.name in self.left_names
                updated[key] = message._replace(in_reach=message.in_reach and not is_left)
            else:
                updated[key] = message._replace(in_reach=message.name in self.names)
        return updated

    def new_indexes(self, known_messages: Mapping[str, WithdrawnMessage]) -> list[int]:
        """Return the indexes of withdrawn messages that are not known yet.

        A message without a name cannot be recognised. It counts as new if one with a name is new.
        """
        known_names = {message.name for message in known_messages.values()}
        new = [at for at, message in self.messages.items() if message.name not in known_names]
        return new if any(self.messages[at].name for at in new) else []


class WithdrawnMessages:
    """The withdrawn messages of each thread, in memory and in the archive."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._known = BoundedCache[Scope, dict[str, WithdrawnMessage]](REMEMBERED_THREADS)
        self._locks = ScopeLocks(threading.Lock)

    def of(self, scope: Scope, *, refresh: bool = False) -> Mapping[str, WithdrawnMessage]:
        """Return the withdrawn messages of a thread that no record covered, by their keys.

        With `refresh`, they are read from the archive again, because another process may have
        stored more.

        Raises:
            ArchiveError: the archive cannot be read.
        """
        known_messages = None if refresh else self._known.get(scope)
        if known_messages is None:
            known_messages = {
                key: WithdrawnMessage._make([*original.about, original.in_reach])
                for key, original in self._archive.uncovered(scope).items()
            }
            self._known.put(scope, known_messages)
        return known_messages

    def is_news(self, withdrawal: Withdrawal) -> bool:
        """Tell whether a request shows a withdrawn message that is not stored yet."""
        known_messages = self.of(withdrawal.scope)
        if withdrawal.new_indexes(known_messages):
            return True
        return any(
            known_messages.get(key) != message
            for key, message in withdrawal.updated(known_messages).items()
        )

    def keep(
        self, withdrawal: Withdrawal, archive_originals: Callable[[list[int]], Iterable[str]]
    ) -> None:
        """Archive and store the messages that are withdrawn now.

        Args:
            withdrawal: the messages that a request shows to be withdrawn.
            archive_originals: archives the messages at these indexes, and returns their keys.

        Raises:
            ConspectusError: a message cannot be archived.
        """
        with self._locks.lock_of(withdrawal.scope):
            known_messages = self.of(withdrawal.scope, refresh=True)
            updated = withdrawal.updated(known_messages)
            new = withdrawal.new_indexes(known_messages)
            if new:
                for index, key in zip(new, archive_originals(new), strict=True):
                    updated[key] = withdrawal.messages[index]
            self._archive.note_uncovered(
                withdrawal.scope,
                {
                    key: UncoveredOriginal(message.in_reach, message[:-1])
                    for key, message in updated.items()
                },
            )
            self._known.put(withdrawal.scope, updated)


def withdrawn_message(fingerprint: Fingerprint, *, is_dropped: bool) -> WithdrawnMessage:
    """Return what is stored of a message with this fingerprint."""
    return WithdrawnMessage(
        fingerprint.name, fingerprint.characters, fingerprint.has_unique_ids, is_dropped
    )
