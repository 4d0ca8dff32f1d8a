"""Remember whole messages, and recognise messages that a client has cleared or dropped since.

So messages that the endpoint has seen whole are archived and summarised whole, and a record still
fits a history after its client has cleared a part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter, is_
from typing import Any, NamedTuple

from conspectus._bounded_cache import BoundedCache
from conspectus.archive import Archive, Scope
from conspectus.engine.truncated import LEAST_OVERLAP
from conspectus.messages import read_messages
from conspectus_serve.alignment import (
    AlignedHistory,
    DroppedMessages,
    RememberedHistory,
    align_with_remembered,
)
from conspectus_serve.cleared import is_remainder_of
from conspectus_serve.fingerprints import Fingerprint, FingerprintedHistory
from conspectus_serve.withdrawn import (
    Withdrawal,
    WithdrawnMessage,
    WithdrawnMessages,
    withdrawn_message,
)

REMEMBERED_THREADS = 256
"""The most threads of which the newest request is remembered."""

REMEMBERED_CHARACTERS = 32_000_000
"""Characters of all of them together."""

SMALL_MESSAGE = 200
"""Talk of fewer characters is cut by no client."""

REMEMBERED_CHAINS = 64
"""Chains whose covered messages are remembered."""


@dataclass(frozen=True, slots=True)
class RestoredHistory:
    """A history with the originals of the messages that its client has cleared."""

    messages: list[Any]  # with all known originals
    shortened: Sequence[Any]
    """The history with only those originals that records cover. It takes as much of the window as
    the messages that the client has sent."""

    fingerprints: list[Fingerprint]  # of `messages`
    cleared: Sequence[int] = ()
    """Indexes of originals that no record covers, and that the client has cleared."""


class ArchivedMessage(NamedTuple):
    """A message whose original is in the archive."""

    key: str  # the key of the original
    characters: int
    has_unique_ids: bool


@dataclass(frozen=True, slots=True)
class CoveredMessages:
    """The messages that the records of a chain cover, by the names of their fingerprints."""

    messages: dict[str, ArchivedMessage]
    whole_of_part: Mapping[str, str]  # names of whole messages, by the names of their parts
    keys: frozenset[str] = frozenset()  # the keys of all originals that the records cover


class _Original(NamedTuple):
    message: Any
    fingerprint: Fingerprint


class OriginalMessages:
    """Remembers whole messages, and finds them in the archive once records cover them."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._remembered = BoundedCache[Scope, RememberedHistory](
            REMEMBERED_THREADS, REMEMBERED_CHARACTERS, attrgetter("characters")
        )
        self._covered = BoundedCache[tuple[Scope, str], CoveredMessages](REMEMBERED_CHAINS)
        self._withdrawn = WithdrawnMessages(archive)

    def restore(
        self,
        scope: Scope,
        head_id: str,
        history: FingerprintedHistory,
        fingerprints: list[Fingerprint],
    ) -> RestoredHistory:
        """Put the originals of cleared messages in their place.

        Args:
            scope: the history's thread.
            head: the id of the record in force; empty if there is none.
            history: the history as the client sends it.
            fingerprints: those of the history, with the names that its messages had first; see
                `AlignedHistory`.

        Raises:
            ArchiveError: the archive cannot be read.
        """
        sent = history.messages
        remembered = self._remembered.get(scope) or RememberedHistory([], [])
        covered = self._read_covered(scope, head_id)
        withdrawn = self._withdrawn.of(scope)
        is_unchanged = all(map(is_, remembered.fingerprints, fingerprints))
        new_fingerprints = fingerprints[len(remembered.fingerprints) :]
        has_new_notice = any(fingerprint.has_notice for fingerprint in new_fingerprints)
        is_known = not covered.messages and not withdrawn and not has_new_notice
        if is_unchanged and is_known:
            return RestoredHistory(sent, sent, fingerprints)

        names = _names_of_whole_messages(fingerprints, covered.whole_of_part)
        originals = _remembered_originals(remembered, names)
        archived = _by_name(withdrawn) | covered.messages
        if _has_unknown_notice(fingerprints, names, originals, archived):
            # Another process may have archived the original.
            archived = _by_name(self._withdrawn.of(scope, refresh=True)) | covered.messages
        originals |= self._find_archived_originals(scope, archived, names, fingerprints, originals)

        messages = list(sent)
        shortened = list(sent)
        whole_fingerprints = list(fingerprints)
        cleared = []
        for index, original in originals.items():
            is_covered = names[index] in covered.messages
            if _is_remainder(sent[index], fingerprints[index], original, is_covered):
                messages[index] = original.message
                whole_fingerprints[index] = original.fingerprint
                if is_covered:
                    shortened[index] = original.message
                else:
                    cleared.append(index)
        return RestoredHistory(messages, shortened, whole_fingerprints, cleared)

    def _find_archived_originals(
        self,
        scope: Scope,
        archived: Mapping[str, ArchivedMessage],
        names: Sequence[str],
        fingerprints: Sequence[Fingerprint],
        remembered: Mapping[int, _Original],
    ) -> dict[int, _Original]:
        """Return originals that are only in the archive, by their index in the history."""
        missing: dict[int, ArchivedMessage] = {}
        for index, name in enumerate(names):
            if index in remembered or name not in archived:
                continue
            sent = fingerprints[index]
            is_less = sent.has_notice or sent.characters < archived[name].characters
            if sent.is_talk or is_less:
                missing[index] = archived[name]
        if not missing:
            return {}
        archived_originals = self._archive.find(scope, [entry.key for entry in missing.values()])
        originals: dict[int, _Original] = {}
        for index, entry in missing.items():
            original = archived_originals.get(entry.key)
            if original is None or not original.lossless:
                continue
            sent = fingerprints[index]
            fingerprint = replace(
                sent,
                name=names[index],
                characters=entry.characters,
                has_unique_ids=entry.has_unique_ids and sent.has_unique_ids,
                has_notice=False,
                part_names=(sent.name,) if sent.name != names[index] else sent.part_names,
            )
            originals[index] = _Original(original.message, fingerprint)
        return originals

    def join(
        self,
        scope: Scope,
        fingerprints: list[Fingerprint],
        *,
        least_shared: int = LEAST_OVERLAP,
    ) -> AlignedHistory:
        """Find what a client has dropped since its last request; see `align_with_remembered`.

        This works for requests that this process has seen and still remembers.
        """
        remembered = self._remembered.get(scope)
        if remembered is None:
            return AlignedHistory(fingerprints)
        return align_with_remembered(remembered, fingerprints, least_shared=least_shared)

    def withdrawal(
        self,
        scope: Scope,
        head_id: str,
        restored: RestoredHistory,
        aligned: AlignedHistory,
    ) -> Withdrawal | None:
        """Return the messages that a request shows to be withdrawn; None if all are known.

        Raises:
            ArchiveError: the archive cannot be read.
        """
        dropped = aligned.dropped
        if not (restored.cleared or dropped.messages or self._withdrawn.of(scope)):
            return None
        fingerprints = dropped.put_back(restored.fingerprints, dropped.fingerprints)
        first_after = dropped.start + len(dropped.messages)
        messages = {
            index: withdrawn_message(fingerprints[index], is_dropped=True)
            for index in range(dropped.start, first_after)
        }
        for index in restored.cleared:
            place = index if index < dropped.start else index + len(dropped.messages)
            messages[place] = withdrawn_message(fingerprints[place], is_dropped=False)
        withdrawal = Withdrawal(
            scope=scope,
            history=dropped.put_back(restored.messages, dropped.messages),
            messages=messages,
            covered_keys=self._read_covered(scope, head_id).keys,
            names=frozenset(fingerprint.name for fingerprint in restored.fingerprints),
            left_names=aligned.left_names(),
            begins_anew=aligned.begins_anew,
        )
        return withdrawal if self._withdrawn.is_news(withdrawal) else None

    def keep_withdrawn(
        self, withdrawal: Withdrawal, archive_originals: Callable[[list[int]], Iterable[str]]
    ) -> None:
        """Archive withdrawn messages; see `WithdrawnMessages.keep`."""
        self._withdrawn.keep(withdrawal, archive_originals)

    def remember(
        self,
        scope: Scope,
        fingerprints: list[Fingerprint],
        messages: list[Any],
        dropped: DroppedMessages,
    ) -> None:
        """Remember the restored messages of a request, with those that its client has dropped."""
        remembered = RememberedHistory(
            dropped.put_back(fingerprints, dropped.fingerprints),
            dropped.put_back(messages, dropped.messages),
            dropped.substitutes,
        )
        self._remembered.put(scope, remembered)

    def note_covered(
        self,
        scope: Scope,
        head_id: str,
        fingerprints: Sequence[Fingerprint],
        messages: Sequence[Any],
    ) -> None:
        """Note once which messages of a history the record `head_id` covers or clips.

        Raises:
            ArchiveError: the archive cannot be read or written.
        """
        chain = self._archive.chain_at(scope, head_id)
        if not chain or self._archive.read_remarks(scope, "covered", [head_id]):
            return
        record = chain[-1]
        covered_keys = {*record.covers}
        known_keys = covered_keys | {clip.key for clip in record.clips}
        rows: dict[str, ArchivedMessage] = {}
        whole_of_part: dict[str, str] = {}
        entries = read_messages(messages, scope)
        for fingerprint, entry in zip(fingerprints, entries, strict=True):
            could_be_cleared = _could_be_cleared(fingerprint) or fingerprint.part_names
            if not (could_be_cleared and entry.key in known_keys):
                continue
            rows[fingerprint.name] = ArchivedMessage(
                entry.key, fingerprint.characters, fingerprint.has_unique_ids
            )
            if entry.key in covered_keys:  # a part of a message in view must fit its other parts
                whole_of_part |= dict.fromkeys(fingerprint.part_names, fingerprint.name)
        note = {"messages": rows, "parts": whole_of_part}
        self._archive.write_remarks(scope, "covered", {record.id: note})
        self._covered.drop((scope, head_id))

    def copy(self, source: Scope, target: Scope, head_id: str) -> None:
        """Copy the chain of a record, and the names that it covers, into another scope.

        Raises:
            ArchiveError: the archive cannot be read or written.
        """
        covered = self._read_covered(source, head_id)
        note = {"messages": covered.messages, "parts": covered.whole_of_part}
        self._archive.write_remarks(target, "covered", {head_id: note})
        self._archive.copy(source, target, head_id)

    def _read_covered(self, scope: Scope, head_id: str) -> CoveredMessages:
        """Return what `note_covered` has noted for all records up to one."""
        if not head_id:
            return CoveredMessages({}, {})
        remembered = self._covered.get((scope, head_id))
        if remembered is not None:
            return remembered
        messages: dict[str, ArchivedMessage] = {}
        whole_of_part: dict[str, str] = {}
        chain = self._archive.chain_at(scope, head_id)
        record_ids = [record.id for record in chain]
        for note in self._archive.read_remarks(scope, "covered", record_ids).values():
            whole_of_part |= note["parts"]
            for name, row in note["messages"].items():
                messages[name] = ArchivedMessage(*row)
        keys = frozenset(key for record in chain for key in record.covers)
        covered = CoveredMessages(messages, whole_of_part, keys)
        self._covered.put((scope, head_id), covered)
        return covered


def _names_of_whole_messages(
    fingerprints: Sequence[Fingerprint], whole_of_part: Mapping[str, str]
) -> list[str]:
    """Return the name of each message, or of the whole message whose only part it is."""
    wholes = [whole_of_part.get(fingerprint.name, fingerprint.name) for fingerprint in fingerprints]
    counts = Counter(wholes)
    return [  # a client that sends all parts has left nothing out
        whole if counts[whole] == 1 else fingerprint.name
        for whole, fingerprint in zip(wholes, fingerprints, strict=True)
    ]


def _remembered_originals(
    remembered: RememberedHistory, names: Sequence[str]
) -> dict[int, _Original]:
    """Return the remembered originals, by their index in the history."""
    originals_by_name = {}
    for fingerprint, message in zip(remembered.fingerprints, remembered.messages, strict=True):
        if _could_be_cleared(fingerprint) and not fingerprint.has_notice:
            originals_by_name[fingerprint.name] = _Original(message, fingerprint)
    return {
        index: originals_by_name[name]
        for index, name in enumerate(names)
        if name in originals_by_name
    }


def _could_be_cleared(fingerprint: Fingerprint) -> bool:
    """Tell whether a client may clear or cut a message."""
    is_result = not fingerprint.is_talk
    return bool(fingerprint.name) and (is_result or fingerprint.characters > SMALL_MESSAGE)


def _by_name(withdrawn: Mapping[str, WithdrawnMessage]) -> dict[str, ArchivedMessage]:
    """Return withdrawn messages by their names, given by their keys."""
    return {
        message.name: ArchivedMessage(key, message.characters, message.has_unique_ids)
        for key, message in withdrawn.items()
    }


def _has_unknown_notice(
    fingerprints: Sequence[Fingerprint],
    names: Sequence[str],
    remembered: Mapping[int, _Original],
    archived: Mapping[str, ArchivedMessage],
) -> bool:
    """Tell whether a notice replaces something unknown."""
    return any(
        fingerprint.has_notice and index not in remembered and names[index] not in archived
        for index, fingerprint in enumerate(fingerprints)
    )


def _is_remainder(
    sent: Any, fingerprint: Fingerprint, original: _Original, is_covered: bool
) -> bool:
    """Tell whether a message that a client sends is the remainder of an original."""
    whole = original.fingerprint
    is_less = fingerprint.characters < whole.characters
    is_less |= fingerprint.has_notice and not whole.has_notice
    if not is_less and not (is_covered and fingerprint.is_talk):
        return False
    # With a unique id, a smaller message is always the remainder of the original.
    has_same_id = fingerprint.has_unique_ids and whole.has_unique_ids
    return (is_less and has_same_id) or is_remainder_of(sent, original.message)
