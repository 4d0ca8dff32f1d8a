"""Read the address of an archive, open what it names, and hide its password."""

from __future__ import annotations

import math
import re
from pathlib import Path

from conspectus.archive.guard import explained
from conspectus.archive.sqlite import SqliteTables
from conspectus.archive.tables import Tables
from conspectus.errors import ArchiveError, InputError, PolicyError

_PART = r"(?:[^\s@/?#:&=%]|%(?!00)[\dA-Fa-f]{2})*"  # Escaped where need be
_WORD = r"(?:[^\s@/?%]|%(?!00)[\dA-Fa-f]{2})*"
_HOST = r"(?:(?:[\w.-]|%2[Ff])*|\[[\da-fA-F:.]+\])(?::\d+)?"
_NAMES = (
    "(?:host|hostaddr|port|user|password|passfile|dbname|service|options|application_name|"
    "connect_timeout|client_encoding|target_session_attrs|require_auth|channel_binding|"
    "ssl[a-z_]+|gss[a-z]+|krbsrvname|keepalives[a-z_]*|tcp_user_timeout)"
)
_OPTION = rf"{_NAMES}=(?:[^\s@?#&=%]|%(?!00)[\dA-Fa-f]{{2}})*"
_ADDRESS = re.compile(
    rf"postgres(?:ql)?://(?:{_PART}(?::{_WORD})?@)?{_HOST}(?:,{_HOST})*(?:/{_PART})?"
    rf"(?:\?{_OPTION}(?:&{_OPTION})*)?"
)
"""An address of PostgreSQL in which no part of a password can pass for a host or a port."""

_MEANT = re.compile(r"(?i)\s*postgres[\w+]*\s*:|[^\s/\\:]{2,}:[^\\/]*@")
_PAIRS = re.compile(r"(?i)(?:^|\s)(?:host|hostaddr|user|password|dbname|service)\s*=")
_TOKEN = re.compile(r"(?i)\b(postgres[\w+]{0,20}+:/*+)[^\s'\"]*[^\s'\".,;:)]")
_USER = re.compile(r"(?<=://)([^/@:]*):.*@")
_SECRET = re.compile(r"(?i)((?:password|passwd|pwd|secret|token)\w{0,40}+=)[^&\s;]*")


def opened(where: str | Path, ttl: float | None) -> Tables:
    """Open the store that an address names; see `Archive.open`."""
    if not isinstance(where, (str, Path)):
        raise InputError(f"an archive is opened at a path or an address, not at {where!r}")
    if isinstance(where, str):
        check_address(where)
    scheme, mark, rest = str(where).partition("://")
    try:
        if where in ("memory:", ":memory:"):
            return SqliteTables(None, ttl)
        if isinstance(where, Path) or (not mark and where.strip()):
            return SqliteTables(Path(where), ttl)
        if scheme in ("postgresql", "postgres"):
            from conspectus.archive.postgres import PostgresTables

            return PostgresTables(where, ttl)
        if scheme == "sqlite" and len(rest) > 1 and rest.startswith("/"):
            return SqliteTables(Path(rest[1:]), ttl)
    except ArchiveError:
        raise
    except Exception as error:
        what = "The archive" if scheme.startswith("postgres") else f"The archive {where}"
        raise explained(error, f"{what} cannot be opened") from error
    # The rest may hold a password.
    named = f"{scheme}://..." if mark and re.fullmatch(r"[\w+.-]{1,30}", scheme) else "this"
    raise InputError(
        f"{named} names no archive; give a file's path, sqlite:///path, postgresql://... or memory:"
    )


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
    if where in ("memory", ":memory"):
        raise InputError(f"{where!r} lacks a colon; write memory:, or ./{where} for a file")
    other = mark and re.fullmatch(r"(?!postgres)[\w+]+", scheme)
    if other or not (_MEANT.match(where) or _PAIRS.search(where)) or _ADDRESS.fullmatch(where):
        return
    raise InputError(
        # The example is well formed, so that hiding passwords leaves it as it is.
        "the PostgreSQL address is malformed, or in another form; write %40 for @, %3A for :, "
        "%2F for /, %3F for ?, %25 for % and %20 for a space in the user and the password of "
        "postgresql://user:password@host:5432/database (a file whose name looks so is given "
        "with ./ in front)"
    )


def without_password(where: str) -> str:
    """Hide the password in an address, or in a text that may hold one.

    Example:
        >>> without_password("postgresql://ann:secret@db/x")
        'postgresql://ann:***@db/x'
    """
    text = _SECRET.sub(r"\1***", _USER.sub(r"\1:***@", where))
    return _TOKEN.sub(lambda one: one[0] if _ADDRESS.fullmatch(one[0]) else f"{one[1]}***", text)
