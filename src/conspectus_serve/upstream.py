"""Send requests to the upstream, and read its answers as they come."""

from __future__ import annotations

import asyncio
import os
import re
import ssl
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import certifi
from multidict import CIMultiDict
from yarl import URL

from conspectus.errors import ConfigError
from conspectus_serve.answers import EVENT_END, RefusedByUpstream, error_in
from conspectus_serve.protocols import Protocol, Refusal, target_of
from conspectus_serve.settings import ServeSettings

Raw = list[tuple[bytes, bytes]]

OURS = b"x-conspectus-"  # before own headers: none goes to the upstream or comes from it
LARGEST_ERROR = 1_000_000  # bytes of a refusal; a larger one is not a provider's error
IDLE = 4.0  # seconds that an unused connection is kept: less than by servers, which close it
LONGEST_LINE = 65_536  # bytes of a header of an answer
OWN_HEADERS = ("accept", "accept-encoding", "content-type", "user-agent")  # not the client's: none
LARGEST_HELD, LONGEST_HELD = 64_000, 2.0  # of an answer of 200 in which an error is looked for

DECODED = ("gzip", "deflate", "br", "zstd")  # codings of answers that aiohttp reads

HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer"
    b" transfer-encoding upgrade".split()
)
"""Headers of one connection alone (RFC 9110, 7.6.1), and the old `proxy-connection`."""

_NO_HEADER = re.compile(r"[^ -~]")  # letters that may stand in no header

REFUSALS = frozenset((400, 413, 422, *range(500, 600)))
"""Statuses with which upstreams refuse a request that is too long."""


def to_upstream(headers: Iterable[tuple[bytes, bytes]]) -> Raw:
    """Return the headers of a request that go on to the upstream."""
    return _without(list(headers), HOP_BY_HOP | {b"host", b"content-length", b"expect"})


def to_client(headers: Iterable[tuple[bytes, bytes]]) -> Raw:
    """Return the headers of an answer that go on to the client."""
    return _without([(name.lower(), value) for name, value in headers], HOP_BY_HOP)


def _without(headers: Raw, names: frozenset[bytes]) -> Raw:
    listed = b",".join(value for name, value in headers if name.lower() == b"connection")
    gone = names | {one.strip().lower() for one in listed.split(b",")}
    return [
        (name, value)
        for name, value in headers
        if name.lower() not in gone and not name.lower().startswith(OURS)
    ]


def own_headers(**values: object) -> Raw:
    """Write the endpoint's own headers, without those that have no value."""
    made = []
    for name, value in values.items():
        if value not in ("", None):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            line = _NO_HEADER.sub("?", text[:500]).encode()
            made.append((OURS + name.replace("_", "-").encode(), line))
    return made


class UpstreamFailed(Refusal):
    """The upstream cannot be reached, or has broken off; the text names no key."""


class UpstreamAnswer:
    """An open answer of the upstream, whose body comes in pieces."""

    def __init__(self, response: aiohttp.ClientResponse, plain: bool) -> None:
        self._response, self._begun = response, b""  # what was read to look for a refusal
        self.status = response.status
        decoded = plain and response.headers.get("content-encoding", "").lower() in DECODED
        gone = (b"content-encoding", b"content-length") if decoded else ()
        self.headers = [one for one in response.raw_headers if one[0].lower() not in gone]

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the bytes of the body as they come. Raises UpstreamFailed."""
        if self._begun:
            yield self._begun
        while piece := await self._read():
            yield piece

    async def _read(self) -> bytes:
        """Read a piece; none at the end."""
        content = self._response.content
        try:
            return await content.readany()
        except (aiohttp.ClientError, TimeoutError) as error:
            content.set_exception(None)  # type: ignore[arg-type]
            left = content.read_nowait()  # it raises before it gives what has come
            content.set_exception(error)
            if left:
                return left
            raise _failed(error) from None

    async def whole(self) -> bytes:
        """Return the body; its pieces can still be sent on."""
        self._begun = b"".join([piece async for piece in self.pieces()])
        return self._begun

    async def refusal(self, protocol: Protocol, streamed: bool) -> RefusedByUpstream | None:
        """Return the refusal, if this is one; its body can still be sent on.

        Some upstreams begin a stream, or answer with 200, before they know that they refuse. The
        events at the beginning of a stream that say nothing yet are held, for a short time: an
        upstream that thinks has begun. Raises UpstreamFailed.
        """
        refused = self.status in REFUSALS
        if not refused and self.status != 200:
            return None
        streamed, most = streamed and not refused, LARGEST_ERROR if refused else LARGEST_HELD
        at, until = 0, time.monotonic() + LONGEST_HELD
        while len(self._begun) < most:
            try:
                async with asyncio.timeout(until - time.monotonic() if streamed else None):
                    piece = await self._read()
            except TimeoutError:
                break
            self._begun += piece
            while streamed and (end := EVENT_END.search(self._begun, at)) is not None:
                event, at = self._begun[at : end.end()], end.end()
                if b"data:" in event and protocol.begins.search(event) is None:
                    return error_in(event)
            if not piece:
                text = self._begun.decode("utf-8", "replace")
                said = RefusedByUpstream(text, self.status)
                return said if refused else error_in(self._begun[at:])
        return None

    def close(self) -> None:
        """Close the connection."""
        self._response.close()


class Upstream:
    """Send requests on to the upstream that the settings name.

    Raises:
        ConfigError: the certificates cannot be read.
    """

    def __init__(self, settings: ServeSettings) -> None:
        self._address, self._proxy = settings.upstream, settings.proxy
        parts = urlsplit(settings.upstream)
        self._host = f"{parts.scheme}://{parts.netloc}"
        self._timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=15.0, sock_read=settings.timeout
        )
        self._certificates = _certificates(settings.ca_file)

    @cached_property
    def _session(self) -> aiohttp.ClientSession:  # it belongs to the running loop
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE, ssl=self._certificates),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=OWN_HEADERS,
            max_line_size=LONGEST_LINE,
            max_field_size=LONGEST_LINE,
        )

    async def send(
        self,
        method: str,
        path: str,
        query: str,
        headers: Raw,
        content: bytes | AsyncIterator[bytes] = b"",
        timeout: float | None = None,
        plain: bool = True,
    ) -> UpstreamAnswer:
        """Send a request to the upstream's place of a client's path.

        A `plain` answer is decompressed: some upstreams compress although none asked for it.

        Raises UpstreamFailed if it cannot be reached in time.
        """
        target = target_of(self._address, path) + (f"?{query}" if query else "")
        try:
            response = await self._session.request(
                method,
                URL(self._host + target, encoded=True),
                headers=CIMultiDict((_text(name), _text(value)) for name, value in headers),
                data=content or None,
                allow_redirects=False,
                auto_decompress=plain,
                proxy=self._proxy,
                timeout=aiohttp.ClientTimeout(total=timeout) if timeout else self._timeout,
            )
            return UpstreamAnswer(response, plain)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise _failed(error) from None

    async def close(self) -> None:
        """Close all connections."""
        if "_session" in vars(self):
            await self._session.close()


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _certificates(file: Path | None) -> ssl.SSLContext:
    path = file.expanduser() if file is not None else os.environ.get("SSL_CERT_FILE")
    folder = None if file is not None else os.environ.get("SSL_CERT_DIR")
    if not path and not folder:
        path = certifi.where()
    try:
        return ssl.create_default_context(cafile=path or None, capath=folder or None)
    except OSError as error:
        name = "serve.ca_file" if file is not None else "SSL_CERT_FILE"
        why = error.strerror or "it holds no certificates"
        raise ConfigError((f"{name}: {path} cannot be used ({why}); name a PEM file",)) from None


FAULTS: Sequence[tuple[type[Exception], str, str]] = (
    (TimeoutError, "the upstream did not answer in time", "try again"),
    (aiohttp.ClientHttpProxyError, "the proxy to the upstream refuses", "check serve.proxy"),
    (aiohttp.ClientProxyConnectionError, "the proxy cannot be reached", "check serve.proxy"),
    (aiohttp.ClientConnectorError, "the upstream cannot be reached", "check serve.upstream"),
    (aiohttp.ClientResponseError, "the upstream's answer is no HTTP", "check serve.upstream"),
    (aiohttp.ClientError, "the upstream has broken off", "try again"),
    (Exception, "this path cannot be sent on", "check it"),
)
"""What errors mean, and what to do about them; the first one counts."""


def _failed(error: Exception) -> UpstreamFailed:
    why = type(error.__cause__ or error).__name__
    what, cure = next((said, do) for kind, said, do in FAULTS if isinstance(error, kind))
    if isinstance(error, aiohttp.ClientConnectorError):
        inner = error.os_error  # the words of the system, which name no key
        number = inner.errno if isinstance(inner, ConnectionError) else None
        said = os.strerror(number) if number else str(inner) or type(inner).__name__
        why = f"{why}: {said}"[:300]
    if "CERTIFICATE_VERIFY" in why:
        cure = "name the certificates of your network with serve.ca_file or SSL_CERT_FILE"
    known = isinstance(error, (TimeoutError, aiohttp.ClientError))
    status = 504 if isinstance(error, TimeoutError) else 502 if known else 400
    return UpstreamFailed(status, f"{what} ({why}); {cure}")
