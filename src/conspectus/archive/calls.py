"""Call a store: report it, stop with its caller, wait no longer than asked, explain failures."""

from __future__ import annotations

import errno
import math
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import ContextVar
from functools import wraps
from time import monotonic
from typing import Any, TypeVar, cast

from conspectus.archive.values import Scope
from conspectus.bridge import StepTimeout, within
from conspectus.errors import ArchiveError, ArchiveTimeout
from conspectus.observe import observing
from conspectus.observe.events import as_text

Method = TypeVar("Method", bound=Callable[..., Any])
COUNTED = ("write", "read_back", "read")  # Operations on a list of originals


def observed(operation: str) -> Callable[[Method], Method]:
    """Report each call of a method as an event, with the number of originals asked for."""

    def around(method: Method) -> Method:
        @wraps(method)
        def reported(self: Any, scope: Any, *args: Any, **kwargs: Any) -> Any:
            items = len(args[0]) if operation in COUNTED else None
            place = scope if isinstance(scope, Scope) else None
            with observing("archive", place, name=operation, messages=items):
                return method(self, scope, *args, **kwargs)

        return cast("Method", reported)

    return around


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

    def __enter__(self) -> None:
        with self._lock:
            if self.is_shut:
                raise Stopped("what was prepared in the background was stopped")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1


GATE: ContextVar[Gate | None] = ContextVar("conspectus gate", default=None)
"""The gate of the current work; None if the work is never stopped."""


def inside() -> AbstractContextManager[None]:
    """Make one call of a store through the gate of the current work, if any."""
    return GATE.get() or nullcontext()


class Patient:
    """A store each of whose methods has `seconds` to answer, else `ArchiveTimeout`; None: no limit.

    For so long after a time-out it is not asked again, so that others need not wait, too.
    """

    def __init__(self, store: Any, seconds: float | None) -> None:
        self.store, self._seconds, self._until = store, seconds, -math.inf

    def __getattr__(self, name: str) -> Any:
        value, seconds = getattr(self.store, name), self._seconds
        if seconds is None or not callable(value):
            return value

        def call(*args: Any, **more: Any) -> Any:
            if self._until <= monotonic():
                with suppress(StepTimeout):
                    return within(lambda: value(*args, **more), seconds)
                self._until = monotonic() + seconds
            raise ArchiveTimeout(
                f"The archive failed: the store did not answer within {seconds:g} seconds, and is "
                "left alone for so long; check it and try again, or give it more timeout=."
            )

        return call


_LATE = "the store did not answer in time; check it and try again"
_FULL = "the disk is full; free some space and try again"
_BUSY = "another process is writing to the archive; try again when it has finished"
_CLOSED = (
    "the archive or its connection has been closed, by close() or at the end of a with block; "
    "build what uses it anew, and keep it open as long"
)
_TABLES = "the store has no tables yet; call its setup() once before using it"
_DOWN = "the PostgreSQL server cannot be reached ({}); check that it is up and the address right"

_ADVICE = (
    ("", f"errno {errno.ENOSPC}]|errno {errno.EDQUOT}]", _FULL),
    ("", ":timeouterror|:pooltimeout", _LATE),
    ("sqlite", "locked|busy", _BUSY),
    ("sqlite", "readonly", "it is read-only; make the file and its folder writable"),
    ("sqlite", "full", _FULL),
    ("sqlite", "not a database", "the file is not a SQLite database; choose another path"),
    ("sqlite", "malformed|vtable", "the file is damaged; restore a backup, or choose another path"),
    ("sqlite", "already exists", "the file is another program's database; choose another path"),
    ("sqlite", "unable to open", "check that the file's folder exists and is writable"),
    ("sqlite", "no such table", _TABLES),
    ("sqlite", "no such module", "this Python's SQLite has no FTS5; use another build of Python"),
    ("psycopg", "[53100", _FULL),
    ("psycopg", "[57014|[25p03", _LATE),
    ("psycopg", "[55p03|[40", _BUSY),
    ("psycopg", "[42p01", _TABLES),
    ("", "connection is closed|closed database|archive is closed|:poolclosed", _CLOSED),
    ("psycopg", ":operationalerror|:interfaceerror", _DOWN),
)
"""Advice by the package of an error and by what its description holds: the SQLSTATE in brackets,
the names of its class and of those above it, and its text."""


def explained(error: BaseException, what: str = "The archive failed") -> ArchiveError:
    """Return the error to raise for a store's failure."""
    return ArchiveError(f"{what}: {explain(error)}.")


def explain(error: BaseException) -> str:
    """Say what happened and what to do.

    A store may fail again while it cleans up, so the whole chain of errors is searched for advice.
    """
    chain: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and one not in chain:
        chain.append(one)
        one = one.__cause__ or one.__context__
    for one in chain:
        classes = ":".join(kind.__name__ for kind in type(one).__mro__)
        about = f"[{getattr(one, 'sqlstate', '')}] :{classes}: {as_text(one)}".lower()
        for package, parts, advice in _ADVICE:
            if package in type(one).__module__ and any(p in about for p in parts.split("|")):
                return advice.format(_first_line(one))
    what = f"{type(chain[-1]).__name__}: {_first_line(chain[-1])}"
    return f"the store failed ({what}); check it and try again"


def _first_line(error: BaseException) -> str:
    return (as_text(error).strip().splitlines() or ["no further word"])[0][:200]
