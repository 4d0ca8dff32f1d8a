"""The address of an archive as it may be shown."""

from __future__ import annotations

import re

_USER = re.compile(r"(?<=://)([^/@:]*):.*@")
_OPTION = re.compile(r"(?i)\b(\w*(?:password|passwd|pwd|secret|token)\w*=)[^&\s;]*")


def masked(text: str, where: str) -> str:
    """A text, such as the error of a driver, without the password of an address.

    Example:
        >>> masked("invalid port: secret@db", "postgresql://ann:secret@db/x")
        'invalid port: ***@db'
    """
    found = re.search(r"(?<=://)[^/@:]*:(.*)@", where)
    options = [match[0].partition("=")[2] for match in _OPTION.finditer(where)]
    for secret in filter(None, [found[1] if found else "", *options]):
        text = text.replace(secret, "***")
    return text


def without_password(where: str) -> str:
    """An address as it may be shown.

    Example:
        >>> without_password("postgresql://ann:secret@db/x")
        'postgresql://ann:***@db/x'
        >>> without_password("postgresql://db/x?user=ann&password=secret")
        'postgresql://db/x?user=ann&password=***'
    """
    return _OPTION.sub(r"\1***", _USER.sub(r"\1:***@", where))
