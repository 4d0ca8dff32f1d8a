"""Read the address of an archive, open what it names, and hide its password."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import cast

from conspectus.archive.guard import explained
from conspectus.archive.postgres import PostgresTables, check_driver
from conspectus.archive.sqlite import SqliteTables
from conspectus.archive.tables import Tables
from conspectus.errors import ArchiveError, InputError, PolicyError

_LOOKS_LIKE_POSTGRES = re.compile(r"(?i)\s*postgres[\w+]*\s*:|[^\s/\\:]{2,}:[^\\/]*@")
_LOOKS_LIKE_CONNINFO = re.compile(r"(?i)(?:^|\s)(?:host|hostaddr|user|password|dbname|service)\s*=")
_OTHER_SCHEME = re.compile(r"(?!postgres)[\w+]+")
_POSTGRES_SCHEME = re.compile("postgres(?:ql)?://")
_HOST = re.compile(r"[\w./-]*|[\da-fA-F:.]+")
_PORT = re.compile(r"\d*")

_TOKEN = re.compile(r"(?i)\b(postgres[\w+]{0,20}+:/*+)[^\s'\"]*[^\s'\".,;:)]")
_USER = re.compile(r"(?<=://)([^/@:]*):.*@")
_SECRET = re.compile(r"(?i)((?:password|passwd|pwd|secret|token)\w{0,40}+=)[^&\s;]*")


def open_store(where: str | Path, ttl: float | None) -> Tables:
    """Open the store that an address names; see `Archive.open`."""
    if not isinstance(where, (str, Path)):
        raise InputError(f"an archive is opened at a path or an address, not at {where!r}")
    if isinstance(where, str):
        check_address(where)
    scheme, separator, rest = str(where).partition("://")
    try:
        if where in ("memory:", ":memory:"):
            return SqliteTables(None, ttl)
        if isinstance(where, Path) or (not separator and where.strip()):
            return SqliteTables(Path(where), ttl)
        if scheme in ("postgresql", "postgres"):
            return PostgresTables(where, ttl)
        if scheme == "sqlite" and len(rest) > 1 and rest.startswith("/"):
            return SqliteTables(Path(rest[1:]), ttl)
    except ArchiveError:
        raise
    except Exception as error:
        name = "The archive" if scheme.startswith("postgres") else f"The archive {where}"
        raise explained(error, f"{name} cannot be opened") from error
    # What follows the scheme may hold a password.
    is_scheme = separator and re.fullmatch(r"[\w+.-]{1,30}", scheme)
    name = f"{scheme}://..." if is_scheme else "this"
    raise InputError(
        f"{name} names no archive; give a file's path, sqlite:///path, postgresql://... or memory:"
    )


def check_seconds(ttl: object, timeout: object) -> None:
    """Refuse a time to live or a time-out that is not a positive number and not None.

    Raises:
        PolicyError: one is; it says what None means.
    """
    for name, value, without in (("ttl", ttl, "end"), ("timeout", timeout, "limit")):
        if value is None:
            continue
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not 0 < cast("float", value) < math.inf:
            raise PolicyError(
                f"{name} is a number of seconds above 0, or None for no {without}; got {value!r}."
            )


def check_address(where: str) -> None:
    """Refuse a malformed PostgreSQL address, and show no part of it.

    Raises:
        InputError: it is malformed, or `memory:` lacks its colon.
        ArchiveError: it is one of PostgreSQL, and the extra `postgres` is not installed.
    """
    if where in ("memory", ":memory"):
        raise InputError(f"{where!r} lacks a colon; write memory:, or ./{where} for a file")
    scheme, separator, _ = where.partition("://")
    if separator and _OTHER_SCHEME.fullmatch(scheme):
        return
    if not _LOOKS_LIKE_POSTGRES.match(where) and not _LOOKS_LIKE_CONNINFO.search(where):
        return
    check_driver()
    if not _is_postgres_address(where):
        raise InputError(
            # The example is well formed, so that hiding passwords leaves it as it is.
            "the PostgreSQL address is malformed, or in another form; write %40 for @, %3A for :, "
            "%2F for /, %3F for ?, %25 for % and %20 for a space in the user and the password of "
            "postgresql://user:password@host:5432/database (a file whose name looks so is given "
            "with ./ in front)"
        )


def _is_postgres_address(address: str) -> bool:
    """Tell whether the driver reads an address so that no part of a password is misplaced.

    Its own errors show hosts and ports. So a sign that should have been escaped may not have
    divided a password, with one half in the host's place.
    """
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        return False
    scheme = _POSTGRES_SCHEME.match(address)
    if scheme is None or " " in address or not address.isprintable():
        return False
    authority = re.split("[/?]", address[scheme.end() :], maxsplit=1)[0]
    if address.count("@") != authority.count("@") or authority.count("@") > 1:
        return False
    try:
        parameters = conninfo_to_dict(address)
    except (psycopg.Error, ValueError):
        return False
    hosts = str(parameters.get("host", "")).split(",")
    ports = str(parameters.get("port", "")).split(",")
    return all(map(_HOST.fullmatch, hosts)) and all(map(_PORT.fullmatch, ports))


def without_password(where: str) -> str:
    """Hide the password in an address, or in a text that may hold one.

    Example:
        >>> without_password("postgresql://ann:secret@db/x")
        'postgresql://ann:***@db/x'
    """
    without_user = _USER.sub(r"\1:***@", where)
    text = _SECRET.sub(r"\1***", without_user)
    return _TOKEN.sub(_unless_well_formed, text)


def _unless_well_formed(token: re.Match[str]) -> str:
    """Return an address of PostgreSQL; of a malformed one the beginning alone."""
    return token[0] if _is_postgres_address(token[0]) else f"{token[1]}***"
