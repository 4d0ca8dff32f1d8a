"""A secret that was recognised, as it is looked for wherever else it stands."""

from __future__ import annotations

from collections.abc import Iterator

from conspectus.redaction.escapes import unescaped
from conspectus.redaction.values import MOST, telling
from conspectus_secrets.scripts import heads


def spreading(value: str, kind: str) -> Iterator[tuple[str, str]]:
    """A value that was recognised, as it is looked for elsewhere, if it is; each with its kind.

    Example:
        >>> list(spreading("tr0ub4dor&3.", "password"))
        [('tr0ub4dor&3.', 'password'), ('tr0ub4dor&3', 'password')]
        >>> list(spreading("postgres", "password"))
        []
    """
    if len(value) > 6 * MOST:  # each character may be an escape
        return
    value = unescaped(value)[0].strip()
    for one in dict.fromkeys((value, value.rstrip(".,:;!?"), value.lstrip("*"), *heads(value))):
        if telling(one) and one[0] != "\\":  # which could be half of an escape elsewhere
            yield one, kind
