"""Check the address of an archive, and hide its password."""

from __future__ import annotations

import re

from conspectus.errors import InputError

_POSTGRES = re.compile(
    r"""postgres(?:ql)?://
    (?:[^\s:@/]*(?::(?P<password>[^\s@/]*))?@)?
    (?:(?:\[[0-9A-Fa-f:.]*\]|[^\s:,@/?\[\]]*)(?::[0-9]*)?(?:,(?!/)|(?=[/?]|\Z)))*
    (?:/[^\s:@/?]*)?
    (?:\?[a-z_]+=[^\s=&@]*(?:&[a-z_]+=[^\s=&@]*)*)?""",
    re.VERBOSE,
)
"""The addresses that the driver and we cut into the same parts. Where a password holds an `@` or a
`/` as it is, the driver takes a part of it for a host, which its errors would show."""

_ENCODED_WRONG = re.compile(r"%(?![0-9A-Fa-f]{2})|%00")
_MEANT = re.compile(r"(?i)\s*postgres[\w+]*\s*:")
_WITHOUT_SCHEME = re.compile(r"[^\s/\\:]{2,}:[^\\]*@")
_PAIRS = re.compile(r"(?i)(?:^|\s)(?:host|hostaddr|user|password|dbname|service)\s*=")

_TOKEN = re.compile(r"(?i)\b(postgres[\w+]*:/*)[^\s'\"]*[^\s'\".,;:)]")
_USER = re.compile(r"(?<=://)([^/@:]*):.*@")
_OPTION = re.compile(r"(?i)\b(\w*(?:password|passwd|pwd|secret|token)\w*=)[^&\s;]*")


def check_address(where: str) -> None:
    """Refuse a malformed PostgreSQL address, and show no part of it."""
    if _well_formed(where):
        return
    scheme, mark, _ = where.partition("://")
    other = mark and scheme not in ("postgresql", "postgres") and re.fullmatch(r"[\w+]+", scheme)
    if _MEANT.match(where) and not other:
        wrong = "the PostgreSQL address is malformed"
    elif not mark and (_WITHOUT_SCHEME.match(where) or _PAIRS.search(where)):
        wrong = "this looks like the address of a PostgreSQL server in another form"
    else:
        return
    raise InputError(
        # The example is well formed, so that hiding passwords leaves it as it is.
        f"{wrong}; write %40 for @, %3A for :, %2F for /, %3F for ?, %25 for % and %20 for a space "
        "in the user and the password of postgresql://user:password@host:5432/database (a file "
        "whose name looks so is given with ./ in front)"
    )


def _well_formed(where: str) -> bool:
    return bool(_POSTGRES.fullmatch(where)) and not _ENCODED_WRONG.search(where)


def without_password(where: str) -> str:
    """Hide the password in an address, or in a text that may hold one.

    Example:
        >>> without_password("postgresql://ann:secret@db/x")
        'postgresql://ann:***@db/x'
        >>> without_password("postgresql://db/x?user=ann&password=secret")
        'postgresql://db/x?user=ann&password=***'
    """
    text = _OPTION.sub(r"\1***", _USER.sub(r"\1:***@", where))
    return _TOKEN.sub(lambda found: found[0] if _well_formed(found[0]) else f"{found[1]}***", text)
