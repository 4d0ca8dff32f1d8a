"""What a store's failure means, and what to do about it, in one sentence."""

from __future__ import annotations

import errno
from collections.abc import Iterator

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
    ("undefinedtable", "the store has no tables yet; call its setup() once before using it"),
)


def explain(error: BaseException) -> str:
    """What happened and what to do.

    A store may fail again while it cleans up after a failure, so the whole chain of errors is
    looked through for one that tells something.
    """
    chain = list(_chain(error))
    for one in chain:
        module, name = type(one).__module__, type(one).__name__
        text = f"{name}: {one}".lower()
        if "synchronous calls" in text:
            return (
                "this store cannot be used without await on its own event loop; use the async "
                "methods there (aput, aget and so on)"
            )
        if isinstance(one, OSError) and one.errno in (errno.ENOSPC, errno.EDQUOT):
            return "the disk is full; free some space and try again"
        if isinstance(one, TimeoutError) or name == "PoolTimeout":
            return "the store did not answer in time; check it and try again"
        if module.partition(".")[0] in ("sqlite3", "aiosqlite", "psycopg", "psycopg_pool"):
            for word, advice in _SQLITE:
                if word in text:
                    return advice
            if module.startswith("psycopg") and name in ("OperationalError", "InterfaceError"):
                return (
                    f"the PostgreSQL server cannot be reached ({_first_line(one)}); check that it "
                    "is up and that the address is right"
                )
    first = chain[-1]
    return (
        f"the store failed ({type(first).__name__}: {_first_line(first)}); check it and try again"
    )


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
