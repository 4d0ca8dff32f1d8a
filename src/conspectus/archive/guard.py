"""Call a store: stop with its caller, limit the time, and explain failures."""

from __future__ import annotations

import errno
import math
import re
import threading
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from time import monotonic
from typing import Any

from conspectus.archive.values import Scope
from conspectus.bridge import StepTimeout, call_within
from conspectus.errors import ArchiveError, ArchiveTimeout
from conspectus.observe import observing
from conspectus.observe.observation import listening, safe_text

UNREPORTED = ("batch", "close", "search_index")
"""Methods that are no operations of the store, or only parts of one."""


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

    def through(self, call: Callable[[], Any]) -> Any:
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


class Guarded:
    """A store with all its methods. Each call is reported, and ends with its caller.

    What a method raises becomes an `ArchiveError` that says what to do. After a time-out the store
    is not called for the same time, so that others need not wait, too.

    Args:
        store: an `ArchiveStore`, or a store of LangGraph.
        seconds: the longest time of one call, after which it raises `ArchiveTimeout`; None for no
            limit.
    """

    def __init__(self, store: Any, seconds: float | None = None) -> None:
        self.store = store
        self._seconds = seconds
        self._left_alone_until = -math.inf

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.store, name)
        return partial(self._call, name, value) if callable(value) else value

    def _call(self, name: str, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        call = partial(method, *args, **kwargs)
        is_reported = name not in UNREPORTED and listening()
        if is_reported:
            scope = args[0] if args and isinstance(args[0], Scope) else None
            with observing("archive", scope, name=name):
                answer = self._answer(call)
        else:
            answer = self._answer(call)
        # Tables return themselves as their index, which must be guarded, too.
        return self if answer is self.store else answer

    def _answer(self, call: Callable[[], Any]) -> Any:
        """Make a call; see `Guarded`."""
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

    def _timeout_error(self) -> ArchiveTimeout:
        return ArchiveTimeout(
            f"The archive failed: the store did not answer within {self._seconds:g} seconds, and "
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
