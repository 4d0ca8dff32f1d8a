"""Find the thread of a history that its client does not name.

A history that continues no known thread begins a new one. If it has left a known thread, the
compactions that still fit are copied into the new one, so that nothing is summarised twice. If a
client names its session, and sends another history there, for example one that it has compacted
itself, the new thread is a session inside the known one.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from conspectus._bounded_cache import BoundedCache
from conspectus.archive import Archive, Scope
from conspectus.errors import ArchiveError
from conspectus_serve.continuation import ThreadProgress, continues_thread, holds_end_of_thread
from conspectus_serve.fingerprints import (
    FingerprintedHistory,
    is_random,
)
from conspectus_serve.health import ArchiveHealth

logger = logging.getLogger("conspectus.serve")

_SESSION_IN_THREAD = re.compile(r"(t-[0-9a-f]{16})/(t-[0-9a-f]{16})")

NEAREST_KEYS = 3
"""Answers that are looked up first, and nearly always suffice."""

REMEMBERED_ANSWERS = 4_096
"""Answers whose threads are known without the archive."""

MOST_UNWRITTEN = 16_384
"""Newest rows that wait for an archive that cannot be written."""

MOST_THREADS_OF_ANSWER = 4
"""Newest threads that are stored for an answer."""


WEAK_HINT = "~"
"""Begins a hint that several conversations may share, such as a cache key that is no random id."""

SESSION_HEADERS = (
    "x-claude-code-session-id",
    "session-id",
    "session_id",
    "x-parent-session-id",
    "x-session-id",
)
"""Headers in which clients name their session: Claude Code, Codex, opencode (the session that
started a subagent comes before the subagent's own), others."""


@dataclass(frozen=True, slots=True)
class ThreadMatch:
    """The thread of a history."""

    thread: str
    head_id: str = ""  # id of the record in force; empty if none is known
    tail: Sequence[str] = ()  # names of its newest talk at its last request
    left_thread: str = ""  # the compacted thread that the history has left
    continues: bool = False  # the history has the end of the thread


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Threads that a history may continue, the likeliest first."""

    groups: list[tuple[str, ...]] = field(default_factory=list)  # by the answer that they share
    progress: dict[str, ThreadProgress] = field(default_factory=dict)  # by thread
    hinted_thread: str = ""  # the last thread of the client's session


class ThreadIndex:
    """Knows the progress of each thread, and finds threads by it.

    Progress is stored in memory first, so that no answer waits for another writer of the archive.
    `write` writes it.
    """

    def __init__(self, archive: Archive, health: ArchiveHealth) -> None:
        self._archive = archive
        self._health = health
        self._one_writer = threading.Lock()
        self._lock = threading.Lock()
        self._unwritten: dict[tuple[str, str], dict[str, Any]] = {}
        self._threads_of_key = BoundedCache[tuple[str, str], tuple[str, ...]](REMEMBERED_ANSWERS)

    def find(self, tenant: str, history: FingerprintedHistory, hint: str = "") -> ThreadMatch:
        """Find the thread that a history continues, or begin a new one.

        A thread is looked up by answers of its model. Of two histories that continue one thread at
        the same moment, one leaves it with its next request.

        Args:
            tenant: the tenant of the threads.
            history: the history whose thread is to be found.
            hint: the client's name of its session, from `hint_of`; empty if there is none.

        Raises:
            ArchiveError: the archive cannot be read.
        """
        keys = _lookup_keys(history, hint)
        nearest_keys = keys[:NEAREST_KEYS]
        remembered = [self._threads_of_key.get((tenant, key)) or () for key in nearest_keys]
        candidates = _Candidates()
        for lookup in dict.fromkeys(((), nearest_keys, keys)):
            candidates = self._candidates(tenant, lookup, remembered)
            for group in candidates.groups:
                threads = _threads_of(history, hint, group, candidates.progress)
                if len(threads) > 1:
                    # The conversations differ in a part that the history does not have. The notes
                    # of one do not belong to the other.
                    return _new_thread(tenant, history, hint, candidates, leaves_nothing=True)
                for thread in threads:
                    progress = candidates.progress[thread]
                    return ThreadMatch(thread, progress.head_id, progress.tail, continues=True)
        return _new_thread(tenant, history, hint, candidates)

    def find_named(self, tenant: str, thread: str, history: FingerprintedHistory) -> ThreadMatch:
        """Return the thread that a client names, and whether the history continues it.

        Raises:
            ArchiveError: the archive cannot be read.
        """
        head_id = self._archive.head_id(scope_of(tenant, thread)) or ""
        if not head_id:  # nothing was compacted, so no dropped message is missing
            return ThreadMatch(thread)
        row = self._rows(tenant, {_thread_key(thread)}).get(_thread_key(thread))
        if row is None:
            return ThreadMatch(thread, head_id)
        progress = ThreadProgress.of_row(row)
        continues = continues_thread(history, progress, "") or holds_end_of_thread(
            history, progress, "", least_shared=1
        )
        return ThreadMatch(thread, head_id, progress.tail, continues=continues)

    def note_named(
        self, tenant: str, thread: str, history: FingerprintedHistory, head_id: str
    ) -> None:
        """Store the progress of a thread that its client names, and that is found by name alone."""
        progress = ThreadProgress.of(history, head_id, hint="")
        self._note_rows(tenant, {_thread_key(thread): progress.row()})

    def note(
        self, tenant: str, thread: str, history: FingerprintedHistory, head_id: str, hint: str = ""
    ) -> None:
        """Store the progress of a thread, and the answers by which it is found."""
        newest_key, *older_keys = _answer_keys(history)[:NEAREST_KEYS]
        # Some clients put other words after the last answer at each request.
        new_keys = [key for key in older_keys if self._threads_of_key.get((tenant, key)) is None]
        rows: dict[str, dict[str, Any]] = {}
        for key in (newest_key, *new_keys):
            known_threads = self._threads_of_key.get((tenant, key)) or ()
            threads = tuple(dict.fromkeys((thread, *known_threads)))[:MOST_THREADS_OF_ANSWER]
            self._threads_of_key.put((tenant, key), threads)
            rows[key] = {"thread": thread, "others": list(threads[1:])}
        # A request without an answer may be outside of the conversation, for example for its title.
        if hint and any(fingerprint.by_model for fingerprint in history.fingerprints):
            rows[_hint_key(hint)] = {"thread": thread}
        rows[_thread_key(thread)] = ThreadProgress.of(history, head_id, hint).row()
        self._note_rows(tenant, rows)

    def _note_rows(self, tenant: str, rows: Mapping[str, dict[str, Any]]) -> None:
        """Keep rows until they are written, the newest last."""
        with self._lock:
            for key, row in rows.items():
                self._unwritten.pop((tenant, key), None)
                self._unwritten[tenant, key] = row

    def write(self) -> None:
        """Write the stored rows; a failure is logged, and the next call tries again."""
        with self._one_writer:
            rows_by_tenant: dict[str, dict[str, Any]] = {}
            with self._lock:
                for (tenant, key), row in self._unwritten.items():
                    rows_by_tenant.setdefault(tenant, {})[key] = row
            for tenant, rows in rows_by_tenant.items():
                try:
                    self._archive.write_remarks(tenant, "thread", rows)
                except ArchiveError as error:
                    self._health.note_failure()
                    logger.warning("how far threads have come could not be kept: %s", error)
                else:
                    self._forget_unwritten(tenant, rows)
            with self._lock:
                oldest = list(self._unwritten)[: max(0, len(self._unwritten) - MOST_UNWRITTEN)]
                for tenant_and_key in oldest:
                    del self._unwritten[tenant_and_key]

    def _forget_unwritten(self, tenant: str, rows: Mapping[str, Any]) -> None:
        """Forget rows that were written, except those that have changed since."""
        with self._lock:
            for key, row in rows.items():
                if self._unwritten.get((tenant, key)) is row:
                    del self._unwritten[tenant, key]

    def _candidates(
        self, tenant: str, keys: tuple[str, ...], remembered: list[tuple[str, ...]]
    ) -> _Candidates:
        """Look up keys; if they have no threads, use the remembered ones."""
        remembered_keys = [_thread_key(thread) for group in remembered for thread in group]
        rows = self._rows(tenant, {*keys, *remembered_keys})
        groups_by_key = {key: _threads_in(rows[key]) for key in keys if key in rows}
        groups = list(groups_by_key.values()) or remembered
        threads = dict.fromkeys(thread for group in groups for thread in group)
        rows |= self._rows(tenant, set(map(_thread_key, threads)) - rows.keys())
        progress = {}
        for thread in threads:
            row = rows.get(_thread_key(thread))
            if row is not None:  # else the thread was forgotten
                progress[thread] = ThreadProgress.of_row(row)
        last_key = keys[-1] if keys else ""  # the key of the hint, if there is one
        hinted = groups_by_key.get(last_key, ()) if last_key.startswith(_HINT) else ()
        return _Candidates(groups, progress, hinted[0] if hinted else "")

    def _rows(self, tenant: str, keys: set[str]) -> dict[str, dict[str, Any]]:
        """Return the rows of keys, written or not; keys without a row are left out."""
        unwritten = {}
        with self._lock:
            for key in keys:
                row = self._unwritten.get((tenant, key))
                if row is not None:
                    unwritten[key] = row
        other_keys = sorted(keys - unwritten.keys())
        rows = self._archive.read_remarks(tenant, "thread", other_keys) if other_keys else {}
        return rows | unwritten


def _thread_key(thread: str) -> str:
    return f"thread {thread}"


_HINT = "hint "


def _hint_key(hint: str) -> str:
    return f"{_HINT}{hint}"


def _threads_in(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the threads in the row of an answer or a hint, the newest first."""
    return (str(row.get("thread")), *row.get("others", ()))


def _answer_keys(history: FingerprintedHistory) -> tuple[str, ...]:
    return tuple(f"answer {name}" for name in history.answer_names)


def _lookup_keys(history: FingerprintedHistory, hint: str) -> tuple[str, ...]:
    """Return the keys of a history's answers, the newest first, and of its hint at the end."""
    return (*_answer_keys(history), *([_hint_key(hint)] if hint else ()))


def _threads_of(
    history: FingerprintedHistory,
    hint: str,
    group: Sequence[str],
    progress: Mapping[str, ThreadProgress],
) -> list[str]:
    """Return the thread of a history among those of one answer.

    Several are returned if the history has the end of all of them, and their beginnings differ.
    """
    remembered = [thread for thread in group if thread in progress]  # the others were forgotten
    for thread in remembered:
        if continues_thread(history, progress[thread], hint):
            return [thread]
    by_first: dict[str, str] = {}
    for thread in remembered:
        if holds_end_of_thread(history, progress[thread], hint):
            by_first.setdefault(progress[thread].first, thread)
    return list(by_first.values())


def _new_thread(
    tenant: str,
    history: FingerprintedHistory,
    hint: str,
    candidates: _Candidates,
    *,
    leaves_nothing: bool = False,
) -> ThreadMatch:
    """Name a new thread. If the client's session has a thread, name a session inside that one.

    The name is made from the messages, so that a repeated request gets the same name.
    """
    left_thread = ""
    left_tail: list[str] = []
    for thread, progress in candidates.progress.items():
        left_tail = left_tail or progress.tail
        if progress.head_id and not leaves_nothing:
            left_thread = left_thread or thread
    origin = json.dumps([tenant, history.answered_names, left_tail])
    name = f"t-{hashlib.sha256(origin.encode()).hexdigest()[:16]}"
    hinted = candidates.progress.get(candidates.hinted_thread)
    if hinted is not None and hinted.hint == hint and not hint.startswith(WEAK_HINT):
        name = f"{scope_of(tenant, candidates.hinted_thread).thread}/{name}"
    return ThreadMatch(name, left_thread=left_thread)


@lru_cache(1_024)
def scope_of(tenant: str, thread: str) -> Scope:
    """Return the scope of a thread by its name, or of a session by `THREAD/SESSION`."""
    session = _SESSION_IN_THREAD.fullmatch(thread)
    return Scope(tenant, *session.groups()) if session else Scope(tenant, thread)


def hint_of(headers: Mapping[str, str], body: Mapping[str, Any]) -> str:
    """Return a hash of the client's name of its session; empty if there is none.

    Several conversations may share a `prompt_cache_key` that is no random id. Its hint begins with
    `WEAK_HINT`.
    """
    cache_key: Any = body.get("prompt_cache_key")
    names: list[Any] = [*map(headers.get, SESSION_HEADERS), cache_key]
    metadata = body.get("metadata")
    user_id = metadata.get("user_id") if isinstance(metadata, Mapping) else None
    if isinstance(user_id, str) and "session" in user_id:  # Claude Code's
        names.append(user_id)
    for name in names:
        if isinstance(name, str) and name.strip():
            digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:24]
            is_weak = name is cache_key and not is_random(name)
            return f"{WEAK_HINT}{digest}" if is_weak else digest
    return ""
