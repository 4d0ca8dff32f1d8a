"""Read the address of an archive, open what it names, and hide its password."""

from __future__ import annotations

import math
import re
from pathlib import Path

from conspectus.archive.sqlite import SqliteTables
from conspectus.archive.tables import Tables
from conspectus.errors import InputError, PolicyError

_MEANT = re.compile(r"(?i)\s*postgres[\w+]*\s*:|[^\s/\\:]{2,}:[^\\/]*@")
_PAIRS = re.compile(r"(?i)(?:^|\s)(?:host|hostaddr|user|password|dbname|service)\s*=")
_TOKEN = re.compile(r"(?i)\b(postgres[\w+]{0,20}+:/*+)[^\s'\"]*[^\s'\".,;:)]")
_USER = re.compile(r"(?<=://)([^/@:]*):.*@")
_OPTION = re.compile(r"(?i)((?:password|passwd|pwd|secret|token)\w{0,40}+=)[^&\s;]*")


def opened(where: str | Path, ttl: float | None, timeout: float | None) -> Tables:
    """Open the store that an address names; see `Archive.open`."""
    if isinstance(where, Path):
        return SqliteTables(where, ttl)
    check_address(where)
    scheme, mark, rest = where.partition("://")
    if where in ("memory:", ":memory:"):
        return SqliteTables(None, ttl)
    if mark and scheme in ("postgresql", "postgres"):
        from conspectus.archive.postgres import PostgresTables

        return PostgresTables(where, ttl, timeout)
    if mark and scheme == "sqlite" and len(rest) > 1 and rest.startswith("/"):
        return SqliteTables(Path(rest[1:]), ttl)
    if mark or not where.strip():
        # The rest may hold a password.
        shown = f"{scheme}://..." if mark and re.fullmatch(r"[\w+.-]{1,30}", scheme) else "this"
        raise InputError(
            f"{shown} names no archive; give a file's path, sqlite:///path, postgresql://... or "
            "memory:"
        )
    return SqliteTables(Path(where), ttl)


def check_seconds(ttl: object, timeout: object) -> None:
    """Refuse a time to live or a time-out that is no positive number; None is right."""
    for name, value, none in (("ttl", ttl, "end"), ("timeout", timeout, "limit")):
        number = isinstance(value, (int, float)) and not isinstance(value, bool) and value
        if value is not None and not 0 < number < math.inf:
            raise PolicyError(
                f"{name} is a number of seconds above 0, or None for no {none}; got {value!r}."
            )


def check_address(where: str) -> None:
    """Refuse a malformed PostgreSQL address, and show no part of it."""
    scheme, mark, _ = where.partition("://")
    other = mark and re.fullmatch(r"(?!postgres)[\w+]+", scheme)
    if other or not (_MEANT.match(where) or _PAIRS.search(where)):
        return
    if not _well_formed(where, without_driver=True):
        raise InputError(
            # The example is well formed, so that hiding passwords leaves it as it is.
            "the PostgreSQL address is malformed, or in another form; write %40 for @, %3A for :, "
            "%2F for /, %3F for ?, %25 for % and %20 for a space in the user and the password of "
            "postgresql://user:password@host:5432/database (a file whose name looks so is given "
            "with ./ in front)"
        )


def _well_formed(where: str, *, without_driver: bool = False) -> bool:
    """Return whether the driver takes no part of a password for a host, a port or a database.

    Its errors would show that part. Nothing can be opened without the driver.
    """
    body, _, options = where.partition("?")
    if not body.startswith(("postgresql://", "postgres://")) or "@" in options:
        return False
    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        return without_driver
    try:
        parts = {name: str(value) for name, value in conninfo_to_dict(where).items()}
    except ProgrammingError:
        return False
    port, database = parts.get("port", ""), parts.get("dbname", "")
    return (
        body.count("@") <= 1
        and re.fullmatch(r"[\d,]*", port) is not None
        and not re.search(r"[\s:/@]", database)
    )


def without_password(where: str) -> str:
    """Hide the password in an address, or in a text that may hold one.

    Example:
        >>> without_password("postgresql://ann:secret@db/x")
        'postgresql://ann:***@db/x'
        >>> without_password("postgresql://db/x?user=ann&password=secret")
        'postgresql://db/x?user=ann&password=***'
    """
    text = _OPTION.sub(r"\1***", _USER.sub(r"\1:***@", where))
    return _TOKEN.sub(lambda token: token[0] if _well_formed(token[0]) else f"{token[1]}***", text)
