"""Archive what a client has cleared or dropped before a compaction is due.

A client *withdraws* a message if it sends it no more, or less of it. What was seen of it is held in
memory, which ends with the process, and a compaction may come late or never. So a message is
archived as soon as a request shows that it is withdrawn: `recall` finds it from then on, and every
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

REMEMBERED_THREADS = 256  # whose withdrawn messages are known without the archive


class WithdrawnMessage(NamedTuple):
    """What is noted of a message that was withdrawn, to know it again."""

    name: str  # of its fingerprint
    characters: int
    has_unique_ids: bool
    is_dropped: bool  # else it was cleared: the client still sends something in its place
    in_reach: bool = True  # else it is of a branch that the history has left


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """What a request shows to be withdrawn, beside what is known of its thread."""

    scope: Scope
    history: Sequence[Any]  # whole, with what was dropped
    messages: Mapping[int, WithdrawnMessage]  # those that are withdrawn now, by their index in it
    covered_keys: frozenset[str]  # of originals that records cover
    names: frozenset[str]  # of all messages that the client sends
    left_names: frozenset[str]  # of messages that the history has left, as by going back
    begins_anew: bool  # the history has nothing in common with the thread's last one

    def updated(self, known: Mapping[str, WithdrawnMessage]) -> dict[str, WithdrawnMessage]:
        """Return what is known of the thread, by keys, as this request shows it.

        Of a branch that was left is a cleared message whose place is gone, and a dropped one that
        stood behind where the history has gone back to, or before a history that begins anew.
        """
        withdrawn = {message.name: message for message in self.messages.values()}
        updated = {}
        for key, message in known.items():
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

    def new_indexes(self, known: Mapping[str, WithdrawnMessage]) -> list[int]:
        """Return the indexes of withdrawn messages that are not known as such.

        A message without a name cannot be known again. It counts as new if one with a name is new.
        """
        known_names = {message.name for message in known.values()}
        new = [at for at, message in self.messages.items() if message.name not in known_names]
        return new if any(self.messages[at].name for at in new) else []


class WithdrawnMessages:
    """What is known of the withdrawn messages of each thread, in memory and in the archive."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._known = BoundedCache[Scope, dict[str, WithdrawnMessage]](REMEMBERED_THREADS)
        self._locks = ScopeLocks(threading.Lock)

    def of(self, scope: Scope, *, refresh: bool = False) -> Mapping[str, WithdrawnMessage]:
        """Return the withdrawn messages of a thread that no record covered, by their keys.

        With `refresh` they are read from the archive again, as another process may have noted more.

        Raises:
            ArchiveError: the archive cannot be read.
        """
        known = None if refresh else self._known.get(scope)
        if known is None:
            known = {
                key: WithdrawnMessage._make([*original.about, original.in_reach])
                for key, original in self._archive.uncovered(scope).items()
            }
            self._known.put(scope, known)
        return known

    def is_news(self, withdrawal: Withdrawal) -> bool:
        """Return whether a request shows something that is not noted yet."""
        known = self.of(withdrawal.scope)
        if withdrawal.new_indexes(known):
            return True
        return any(known.get(key) != message for key, message in withdrawal.updated(known).items())

    def keep(
        self, withdrawal: Withdrawal, archive_originals: Callable[[list[int]], Iterable[str]]
    ) -> None:
        """Archive what is withdrawn now, and note it.

        Args:
            withdrawal: what a request shows.
            archive_originals: archives the messages of these indexes, and returns their keys.

        Raises:
            ConspectusError: it cannot be archived.
        """
        with self._locks.lock_of(withdrawal.scope):
            known = self.of(withdrawal.scope, refresh=True)
            updated = withdrawal.updated(known)
            new = withdrawal.new_indexes(known)
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
    """Return what is noted of a message with this fingerprint."""
    return WithdrawnMessage(
        fingerprint.name, fingerprint.characters, fingerprint.has_unique_ids, is_dropped
    )
