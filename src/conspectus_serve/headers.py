"""Choose the headers that go on to the other side, and write the endpoint's own."""

from __future__ import annotations

from collections.abc import Iterable

Raw = list[tuple[bytes, bytes]]

OURS = b"x-conspectus-"
"""Prefix of the endpoint's own headers: none goes to the upstream or comes from it."""

HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer"
    b" transfer-encoding upgrade".split()
)
"""Headers of one connection alone (RFC 9110, 7.6.1), and the old `proxy-connection`."""

NOT_ON = frozenset((b"host", b"content-length", b"expect"))
"""Headers of a request that are written anew for the upstream."""


def to_upstream(headers: Iterable[tuple[bytes, bytes]]) -> Raw:
    """Return the headers of a request that go on to the upstream.

    Example:
        >>> to_upstream([(b"authorization", b"Bearer k"), (b"x-conspectus-thread", b"t")])
        [(b'authorization', b'Bearer k')]
    """
    return _without(list(headers), HOP_BY_HOP | NOT_ON)


def to_client(headers: Iterable[tuple[bytes, bytes]]) -> Raw:
    """Return the headers of an answer that go on to the client.

    A length beside a chunked coding means nothing (RFC 9112, 6.3), and the coding ends here.

    Example:
        >>> to_client([(b"Content-Length", b"3"), (b"Transfer-Encoding", b"chunked")])
        []
    """
    found = [(name.lower(), value) for name, value in headers]
    coded = any(name == b"transfer-encoding" for name, _ in found)
    return _without(found, HOP_BY_HOP | {b"content-length"} if coded else HOP_BY_HOP)


def _without(headers: Raw, names: frozenset[bytes]) -> Raw:
    listed = b",".join(value for name, value in headers if name.lower() == b"connection")
    gone = names | {one.strip().lower() for one in listed.split(b",")}
    return [
        (name, value)
        for name, value in headers
        if name.lower() not in gone and not name.lower().startswith(OURS)
    ]


def said(**more: object) -> Raw:
    """Write the endpoint's own headers, without those that have no value.

    Example:
        >>> said(thread="t-1", record="")
        [(b'x-conspectus-thread', b't-1')]
    """
    made = []
    for name, value in more.items():
        if value not in ("", None):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            line = "".join(c if c.isascii() and c.isprintable() else "?" for c in text)[:500]
            made.append((OURS + name.replace("_", "-").encode(), line.encode()))
    return made
