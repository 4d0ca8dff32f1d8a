"""Call a store: stop with its caller, limit the time, and explain failures."""

from __future__ import annotations

import errno
import math
import re
import threading
from collections.abc import Callable, Collection, Sequence
from contextvars import ContextVar
from functools import partial
from time import monotonic
from typing import TypeVar

from conspectus.archive.store import ArchiveStore, SearchIndex
from conspectus.archive.values import ItemsByKind, Scope, SearchRow, ValueKind
from conspectus.bridge import StepTimeout, call_within
from conspectus.errors import ArchiveError, ArchiveTimeout
from conspectus.observe import observing
from conspectus.observe.observation import listening, safe_text

T = TypeVar("T")


class GateShut(BaseException):
    """A call of background work came to a gate that is shut. `except Exception` lets it pass."""


class Gate:
    """Lets calls of a store through until it is shut. Calls that run then may end.

    If an owner closes a SQLite connection that a thread is using, the interpreter crashes.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self.is_shut = False

    @property
    def is_idle(self) -> bool:
        """Whether no call is running."""
        return not self._running

    def shut(self) -> None:
        """Let no further call through."""
        with self._lock:
            self.is_shut = True

    def through(self, call: Callable[[], T]) -> T:
        """Make a call and return what it returns.

        Raises:
            GateShut: the gate is shut.
        """
        with self._lock:
            if self.is_shut:
                raise GateShut("what was prepared in the background was stopped")
            self._running += 1
        try:
            return call()
        finally:
            with self._lock:
                self._running -= 1


GATE: ContextVar[Gate | None] = ContextVar("conspectus gate", default=None)
"""The gate of the current work; None if nothing stops it."""


class CallGuard:
    """Makes the calls of one store. Each is reported, and ends with its caller.

    What a call raises becomes an `ArchiveError` that says what to do. After a time-out the store is
    not called for the same time, so that others need not wait, too.

    Args:
        seconds: the longest time of one call, after which it raises `ArchiveTimeout`; None for no
            limit.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self._seconds = seconds
        self._left_alone_until = -math.inf

    def make(self, call: Callable[[], T]) -> T:
        """Make a call and return what it returns."""
        if monotonic() < self._left_alone_until:
            raise self._timeout_error()
        gate = GATE.get()
        try:
            return call_within(call if gate is None else partial(gate.through, call), self._seconds)
        except StepTimeout:
            self._left_alone_until = monotonic() + (self._seconds or 0)
            raise self._timeout_error() from None
        except ArchiveError:
            raise
        except Exception as error:
            raise explained(error) from error

    def report(self, operation: str, call: Callable[[], T], scope: Scope | None = None) -> T:
        """Make a call that is an operation of the store, and report it."""
        if not listening():
            return self.make(call)
        with observing("archive", scope, name=operation):
            return self.make(call)

    def _timeout_error(self) -> ArchiveTimeout:
        return ArchiveTimeout(
            f"The archive failed: the store did not answer within {self._seconds:g} seconds, and "
            "is left alone for so long; check it and try again, or give it more timeout=."
        )


class GuardedStore(ArchiveStore):
    """A store, each call of which a `CallGuard` makes.

    Args:
        store: the store itself.
        seconds: the longest time of one call; None for no limit.
    """

    def __init__(self, store: ArchiveStore, seconds: float | None = None) -> None:
        self.store = store
        self.ttl = store.ttl
        self.may_hang = store.may_hang
        self._guard = CallGuard(seconds)

    def read(self, scope: Scope, kind: ValueKind, names: Sequence[str] | None) -> dict[str, bytes]:
        """Return values by name; see `ArchiveStore.read`."""
        return self._guard.report("read", partial(self.store.read, scope, kind, names), scope)

    def head_id(self, scope: Scope) -> str | None:
        """Return the head of a scope; see `ArchiveStore.head_id`."""
        return self._guard.report("head_id", partial(self.store.head_id, scope), scope)

    def write(
        self,
        scope: Scope,
        items: ItemsByKind,
        *,
        head_id: str | None = None,
        expected_head_id: str | None = None,
        durable: bool = True,
        renewed: Sequence[str] = (),
    ) -> str:
        """Store values and a new head; see `ArchiveStore.write`."""
        call = partial(
            self.store.write,
            scope,
            items,
            head_id=head_id,
            expected_head_id=expected_head_id,
            durable=durable,
            renewed=renewed,
        )
        return self._guard.report("write", call, scope)

    def search_index(self, scope: Scope, keys: Collection[str]) -> SearchIndex:
        """Return an index of these originals; one that is in the store itself is guarded, too."""
        index = self._guard.make(partial(self.store.search_index, scope, keys))
        store: object = self.store
        return GuardedIndex(index, self._guard) if index is store else index

    def scopes(self, tenant: str) -> list[Scope]:
        """Return the scopes of a tenant; see `ArchiveStore.scopes`."""
        return self._guard.report("scopes", partial(self.store.scopes, tenant))

    def forget(self, scopes: Sequence[Scope]) -> int:
        """Delete scopes; see `ArchiveStore.forget`."""
        return self._guard.report("forget", partial(self.store.forget, scopes))

    def discard(self, scopes: Sequence[Scope]) -> int:
        """Delete scopes, less thoroughly; see `ArchiveStore.discard`."""
        return self._guard.report("discard", partial(self.store.discard, scopes))

    def sweep(self) -> None:
        """Delete expired values; see `ArchiveStore.sweep`."""
        self._guard.report("sweep", self.store.sweep)

    def check(self) -> str:
        """Return what is wrong with the store; see `ArchiveStore.check`."""
        return self._guard.report("check", self.store.check)

    def close(self) -> None:
        """Close what the store has opened for this archive."""
        self._guard.make(self.store.close)


class GuardedIndex:
    """An index of words, each call of which a `CallGuard` makes."""

    def __init__(self, index: SearchIndex, guard: CallGuard) -> None:
        self._index = index
        self._guard = guard

    def passages_holding(
        self, scope: Scope, words: Sequence[str]
    ) -> tuple[int, dict[str, set[int]]]:
        """Return the passages that have each word; see `SearchIndex.passages_holding`."""
        call = partial(self._index.passages_holding, scope, words)
        return self._guard.report("passages_holding", call, scope)

    def rows_of(self, scope: Scope, keys: Sequence[str]) -> list[SearchRow]:
        """Return the rows of originals; see `SearchIndex.rows_of`."""
        return self._guard.report("rows_of", partial(self._index.rows_of, scope, keys), scope)

    def rows_holding(self, scope: Scope, numbers: Sequence[int]) -> list[SearchRow]:
        """Return the rows of the originals with these passages; see `SearchIndex.rows_holding`."""
        call = partial(self._index.rows_holding, scope, numbers)
        return self._guard.report("rows_holding", call, scope)

    def keys_named(self, scope: Scope, name: str) -> list[str]:
        """Return the keys of originals with an id; see `SearchIndex.keys_named`."""
        return self._guard.report("keys_named", partial(self._index.keys_named, scope, name), scope)


_ADVICE = (
    (rf"errno ({errno.ENOSPC}|{errno.EDQUOT})\]|\[53100|^sqlite.*full",
     "the disk is full; free some space and try again"),
    (r":timeouterror|:pooltimeout|\[57014|\[25p03",
     "the store did not answer in time; check it and try again"),
    (r"^sqlite.*(locked|busy)|\[55p03|\[40[0p]\d\d",
     "another process is writing to the archive; try again when it has finished"),
    ("^sqlite.*readonly", "it is read-only; make the file and its folder writable"),
    (r"\[25006", "the database is read-only; give the address of one that can be written"),
    ("^sqlite.*disk i/o error",
     "the disk does not take or give data; check for its room, its quota and its health"),
    ("^sqlite.*not a database", "the file is not a SQLite database; choose another path"),
    ("^sqlite.*(malformed|vtable)",
     "the file is damaged; restore a backup, or choose another path"),
    (r"\[42p07",
     "the tables there are of another version or another program; choose another schema"),
    ("^sqlite.*unable to open", "check that the file's folder exists and is writable"),
    (r"^sqlite.*no such table|\[42p01",
     "the store has no tables yet; call its setup() once before using it"),
    ("^sqlite.*no such module",
     "this Python's SQLite has no FTS5; use another build of Python"),
    ("connection is closed|closed database|archive is closed|:poolclosed",
     "the archive or its connection has been closed, by close() or at the end of a with block; "
     "build what uses it anew, and keep it open as long"),
    ("^psycopg.*:(operationalerror|interfaceerror)",
     "the PostgreSQL server cannot be reached ({}); check that it is up and the address right"),
    ("no attribute 'hashes'", "a scope is no text; give Scope(tenant, thread)"),
)  # fmt: skip
"""Advice by a pattern in what is known of an error: its module, the SQLSTATE in brackets, the names
of its class and of the bases of that, and its text. `{}` becomes the first line of the text."""


def explained(error: BaseException, what: str = "The archive failed") -> ArchiveError:
    """Return the error to raise for a store's failure: what happened, and what to do.

    A store may fail again while it cleans up, so the whole chain of errors is searched for advice.
    """
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in chain:
        chain.append(link)
        link = link.__cause__ or link.__context__
    for link in chain:
        facts = _facts(link)
        for pattern, advice in _ADVICE:
            if re.search(pattern, facts, re.IGNORECASE | re.DOTALL):
                return ArchiveError(f"{what}: {advice.format(_first_line(link))}.")
    first_error = chain[-1]
    reason = f"{type(first_error).__name__}: {_first_line(first_error)}"
    return ArchiveError(f"{what}: the store failed ({reason}); check it and try again.")


def _facts(error: BaseException) -> str:
    """Return what is known of an error, in the form that `_ADVICE` describes."""
    classes = ":".join(base.__name__ for base in type(error).__mro__)
    sqlstate = getattr(error, "sqlstate", "")
    return f"{type(error).__module__} [{sqlstate}] :{classes}: {safe_text(error)}"


def _first_line(error: BaseException) -> str:
    lines = safe_text(error).strip().splitlines() or ["no further word"]
    return lines[0][:200]
