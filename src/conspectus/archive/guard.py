"""Call a store: stop with its caller, wait no longer than asked, explain failures."""

from __future__ import annotations

import errno
import math
import re
import threading
from collections.abc import Callable
from contextlib import nullcontext
from contextvars import ContextVar
from functools import partial
from time import monotonic
from typing import Any

from conspectus.archive.values import Scope
from conspectus.bridge import StepTimeout, within
from conspectus.errors import ArchiveError, ArchiveTimeout
from conspectus.observe import observing
from conspectus.observe.events import as_text, listening

QUIET = ("batch", "close", "searchable")  # what an operation consists of, and no operation


class Stopped(BaseException):
    """Background work came to a closed gate. A `BaseException`: no handler may catch it."""


class Gate:
    """Lets calls of a store through until it is shut; running calls end.

    A thread that uses a connection of SQLite which its owner closes crashes the interpreter.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside, self.is_shut = 0, False

    @property
    def is_idle(self) -> bool:
        """Whether no call is running."""
        return not self._inside

    def shut(self) -> None:
        """Let no further call through."""
        with self._lock:
            self.is_shut = True

    def through(self, call: Callable[[], Any]) -> Any:
        """Let a call through; raise `Stopped` once the gate is shut."""
        with self._lock:
            if self.is_shut:
                raise Stopped("what was prepared in the background was stopped")
            self._inside += 1
        try:
            return call()
        finally:
            with self._lock:
                self._inside -= 1


GATE: ContextVar[Gate | None] = ContextVar("conspectus gate", default=None)
"""The gate of the current work; None if the work is never stopped."""


class Guarded:
    """A store each of whose methods is reported, and goes through the gate of the current work.

    It has `seconds` to answer, else `ArchiveTimeout`; None: no limit. For so long after a time-out
    it is not asked again, so that others need not wait, too. Other failures are `ArchiveError`s.
    """

    def __init__(self, store: Any, seconds: float | None = None) -> None:
        self.store, self._seconds, self._until = store, seconds, -math.inf

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.store, name)
        return partial(self._call, name, value) if callable(value) else value

    def _call(self, name: str, method: Callable[..., Any], *args: Any, **more: Any) -> Any:
        call, gate, seconds = partial(method, *args, **more), GATE.get(), self._seconds
        scope = args[0] if args and isinstance(args[0], Scope) else None
        quiet = name in QUIET or not listening()
        with nullcontext() if quiet else observing("archive", scope, name=name):
            try:
                if self._until <= monotonic():
                    answer = within(call if gate is None else partial(gate.through, call), seconds)
                    return self if answer is self.store else answer
            except StepTimeout:
                self._until = monotonic() + (seconds or 0)
            except ArchiveError:
                raise
            except Exception as error:
                raise explained(error) from error
            raise ArchiveTimeout(
                f"The archive failed: the store did not answer within {seconds:g} seconds, and "
                "is left alone for so long; check it and try again, or give it more timeout=."
            )


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
"""Advice by a pattern in what is known of an error: its package, the SQLSTATE in brackets, the
names of its class and of those above it, and its text."""


def explained(error: BaseException, what: str = "The archive failed") -> ArchiveError:
    """Return the error to raise for a store's failure: what happened, and what to do.

    A store may fail again while it cleans up, so the whole chain of errors is searched for advice.
    """
    chain: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and one not in chain:
        chain.append(one)
        one = one.__cause__ or one.__context__
    for one in chain:
        kind = type(one)
        classes = ":".join(above.__name__ for above in kind.__mro__)
        about = f"{kind.__module__} [{getattr(one, 'sqlstate', '')}] :{classes}: {as_text(one)}"
        for pattern, advice in _ADVICE:
            if re.search(pattern, about, re.IGNORECASE | re.DOTALL):
                return ArchiveError(f"{what}: {advice.format(_first_line(one))}.")
    last = f"{type(chain[-1]).__name__}: {_first_line(chain[-1])}"
    return ArchiveError(f"{what}: the store failed ({last}); check it and try again.")


def _first_line(error: BaseException) -> str:
    return (as_text(error).strip().splitlines() or ["no further word"])[0][:200]
