"""Headers for the upstream, headers for the client, and the endpoint's own headers."""

from __future__ import annotations

import re
from collections.abc import Iterable

RawHeaders = list[tuple[bytes, bytes]]

OWN_PREFIX = b"x-conspectus-"
"""Our own headers, which never pass to or from the upstream."""

LONGEST_OWN_HEADER = 500
"""The most characters of such a header."""

HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer"
    b" transfer-encoding upgrade".split()
)
"""Headers of one connection alone (RFC 9110, 7.6.1), and the old `proxy-connection`."""

REPLACED = frozenset((b"host", b"content-length", b"expect", b"accept-encoding"))
"""Headers of a client that are replaced. Answers must not be compressed, because they are read."""

_NOT_IN_HEADERS = re.compile(r"[^ -~]")


def to_upstream(
    headers: Iterable[tuple[bytes, bytes]], without: Iterable[bytes] = ()
) -> RawHeaders:
    """Return the headers of a request for the upstream, `without` some of them."""
    kept = _without(list(headers), HOP_BY_HOP | REPLACED | set(without))
    return [*kept, (b"accept-encoding", b"identity")]


def to_client(headers: Iterable[tuple[bytes, bytes]]) -> RawHeaders:
    """Return the headers of an answer for the client."""
    return _without([(name.lower(), value) for name, value in headers], HOP_BY_HOP)


def _without(headers: RawHeaders, names: frozenset[bytes]) -> RawHeaders:
    """Return headers without the given names, those of this connection, and our own."""
    listed = b",".join(value for name, value in headers if name.lower() == b"connection")
    left_out = names | {name.strip().lower() for name in listed.split(b",")}
    return [
        (name, value)
        for name, value in headers
        if name.lower() not in left_out and not name.lower().startswith(OWN_PREFIX)
    ]


def own_headers(**values: object) -> RawHeaders:
    """Write the endpoint's own headers, without those that have no value."""
    headers: RawHeaders = []
    for name, value in values.items():
        if value in ("", None):
            continue
        text = str(value).lower() if isinstance(value, bool) else str(value)
        printable = _NOT_IN_HEADERS.sub("?", text[:LONGEST_OWN_HEADER])
        headers.append((OWN_PREFIX + name.replace("_", "-").encode(), printable.encode()))
    return headers
