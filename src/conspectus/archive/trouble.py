"""Explain a store's failure, and what to do about it, in one sentence."""

from __future__ import annotations

import errno
from collections.abc import Iterator

from conspectus.errors import ArchiveError, ArchiveTimeout

_SQLITE = (
    ("locked", "another process is writing to the archive; try again when it has finished"),
    ("busy", "another process is writing to the archive; try again when it has finished"),
    ("readonly", "the archive is read-only; make the file and its folder writable, or use another"),
    ("full", "the disk is full; free some space and try again"),
    ("not a database", "the file is not a SQLite database; choose another path for the archive"),
    ("malformed", "the archive's file is damaged; restore it from a backup or choose another path"),
    ("unable to open", "the file cannot be opened; check that its folder exists and is writable"),
    ("closed", "the archive has been closed; open it again"),
    ("no such table", "the store has no tables yet; call its setup() once before using it"),
    ("no such module", "this Python's SQLite has no FTS5; use another build of Python"),
)

_LOCKED = "another process holds what is to be written; try again when it has finished"
_LATE = "the store did not answer in time; check it and try again"
_FULL = "the disk is full; free some space and try again"

_POSTGRES = (
    ("53100", _FULL),
    ("53300", "the PostgreSQL server has no connection left; close some, or let it have more"),
    ("57014", _LATE),
    ("25P03", _LATE),
    ("25006", "the PostgreSQL server is read-only; use the address of one that can be written to"),
    ("55P03", _LOCKED),
    ("40", _LOCKED),
    ("42P01", "the store has no tables yet; call its setup() once before using it"),
)
"""Advice by the beginning of SQLSTATE."""

ON_ITS_LOOP = (
    "this store cannot be used on its own event loop without await; call the archive in a thread "
    "there, as with await asyncio.to_thread(archive.get, ...)"
)


def explained(error: BaseException, what: str = "The archive failed") -> ArchiveError:
    """Return the error to raise for a store's failure."""
    return ArchiveError(f"{what}: {explain(error)}.")


def late(seconds: float | None, left: int = 0) -> ArchiveTimeout:
    """Return the error for a store that gave no answer, or did not a moment ago."""
    again = (
        f", and is asked again in {left} s; check it and try again then"
        if left
        else ("; check it and try again, or give Archive(..., timeout=...) more")
    )
    return ArchiveTimeout(
        f"The archive failed: the store did not answer within {seconds:g} seconds{again}."
    )


def explain(error: BaseException) -> str:
    """Say what happened and what to do.

    A store may fail again while it cleans up, so the whole chain of errors is searched for advice.
    """
    chain = list(_chain(error))
    for one in chain:
        name = type(one).__name__
        text = f"{name}: {one}".lower()
        if "synchronous calls" in text:
            return ON_ITS_LOOP
        if isinstance(one, OSError) and one.errno in (errno.ENOSPC, errno.EDQUOT):
            return _FULL
        if isinstance(one, TimeoutError) or name == "PoolTimeout":
            return _LATE
        if _package(one) in ("sqlite3", "aiosqlite"):
            for word, advice in _SQLITE:
                if word in text:
                    return advice
        if _package(one) in ("psycopg", "psycopg_pool") and (told := _of_postgres(one, text)):
            return told
    first = chain[-1]
    return (
        f"the store failed ({type(first).__name__}: {_first_line(first)}); check it and try again"
    )


def _of_postgres(error: BaseException, text: str) -> str | None:
    """Explain an error of psycopg; None if the error itself says more."""
    state = getattr(error, "sqlstate", None) or ""
    for beginning, advice in _POSTGRES:
        if state.startswith(beginning):
            return advice
    if "connection is closed" in text:
        return (
            "the connection to the PostgreSQL server is closed, and a store on one connection does "
            "not open it again; open the store anew, or give it a pool (pool_config=...)"
        )
    if "closed" in text and "pool" in text:
        return "the archive has been closed; open it again"
    # psycopg has a class for each state, such as AdminShutdown, below these two.
    kinds = {one.__name__ for one in type(error).__mro__}
    if kinds & {"OperationalError", "InterfaceError"}:
        return (
            f"the PostgreSQL server cannot be reached ({_first_line(error)}); check that it is up "
            "and that the address is right"
        )
    return None


def _package(error: BaseException) -> str:
    return type(error).__module__.partition(".")[0]


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or one.__context__


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else "no further word"
