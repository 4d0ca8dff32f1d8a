"""Open the store that an address names."""

from __future__ import annotations

import math
import re
from pathlib import Path

from conspectus.archive.address import check_address
from conspectus.archive.backend import Backend
from conspectus.archive.sqlite import SqliteTables
from conspectus.errors import InputError, PolicyError


def opened(where: str | Path, ttl: float | None, timeout: float | None) -> Backend:
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
    for name, given, none in (("ttl", ttl, "end"), ("timeout", timeout, "limit")):
        number = isinstance(given, (int, float)) and not isinstance(given, bool) and given
        if given is not None and not 0 < number < math.inf:
            raise PolicyError(
                f"{name} is a number of seconds above 0, or None for no {none}; got {given!r}."
            )
