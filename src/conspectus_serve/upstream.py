"""Send requests to the upstream, and read its answers as they come."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import brotli  # type: ignore[import-untyped]
import certifi
import zstandard
from multidict import CIMultiDict
from yarl import URL

from conspectus.errors import ConfigError
from conspectus_serve.answers import EVENT_END
from conspectus_serve.protocols import Protocol, Refusal, target_of
from conspectus_serve.settings import ServeSettings

Raw = list[tuple[bytes, bytes]]

OURS = b"x-conspectus-"  # before own headers: none goes to the upstream or comes from it
LARGEST_ERROR = 1_000_000  # bytes of a refusal; a larger one is not a provider's error
IDLE = 4.0  # seconds that an unused connection is kept: less than by servers, which close it
LONGEST_LINE = 65_536  # bytes of a header of an answer
OWN_HEADERS = ("accept", "accept-encoding", "content-type", "user-agent")  # not the client's: none
LARGEST_HELD, LONGEST_HELD = 64_000, 2.0  # of an answer of 200 in which an error is looked for

HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer"
    b" transfer-encoding upgrade".split()
)
"""Headers of one connection alone (RFC 9110, 7.6.1), and the old `proxy-connection`."""

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
            line = "".join(c if c.isascii() and c.isprintable() else "?" for c in text)[:500]
            made.append((OURS + name.replace("_", "-").encode(), line.encode()))
    return made


class UpstreamFailed(Refusal):
    """The upstream cannot be reached, or has broken off; the text names no key."""

    def __init__(self, message: str, status: int = 502) -> None:
        super().__init__(status, message)


class RefusedByUpstream(Exception):
    """A refusal of the upstream, in the form that the engine reads."""

    def __init__(self, text: str, status: int | None) -> None:
        super().__init__(text)
        self.status_code = status


class UpstreamAnswer:
    """An open answer of the upstream, whose body comes in pieces."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response, self._rest = response, response.content.iter_any()
        self._decode: Callable[[bytes], bytes] = bytes
        self._begun = b""  # what has been read to look for a refusal
        self._next: asyncio.Future[bytes] | None = None  # a piece that is being read
        self.status = response.status
        self.headers: Sequence[tuple[bytes, bytes]] = response.raw_headers

    def decompressed(self) -> UpstreamAnswer:
        """Read the body plainly: some upstreams compress it although it was not asked for."""
        coding = self._response.headers.get("content-encoding", "").strip().lower()
        if coding in DECODERS:
            gone = (b"content-encoding", b"content-length")
            self.headers = [one for one in self.headers if one[0].lower() not in gone]
            self._decode = DECODERS[coding]()
        return self

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the bytes of the body as they come. Raises UpstreamFailed."""
        if self._begun:
            yield self._begun
        while piece := await self._next_piece():
            self._next = None
            yield piece

    def _next_piece(self) -> asyncio.Future[bytes]:
        if self._next is None:
            self._next = asyncio.ensure_future(self._read())
        return self._next

    async def _read(self) -> bytes:
        """Read a piece; none at the end."""
        try:
            while piece := await anext(self._rest, b""):
                if text := self._decode(piece):
                    return text
            return b""
        except (aiohttp.ClientError, TimeoutError) as error:
            content = self._response.content  # which raises before it gives what has come
            content.set_exception(None)  # type: ignore[arg-type]
            left = content.read_nowait()
            content.set_exception(error)
            if text := self._decode(left):
                return text
            raise _failed(error) from None
        except (zlib.error, brotli.error, zstandard.ZstdError):
            why = "the upstream's answer is not in the coding that it names; try again"
            raise UpstreamFailed(why) from None

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
            left = max(0.0, until - time.monotonic()) if streamed else None
            if not (await asyncio.wait((self._next_piece(),), timeout=left))[0]:
                break
            piece, self._next = await self._next_piece(), None
            self._begun += piece
            while streamed and (end := EVENT_END.search(self._begun, at)) is not None:
                event, at = self._begun[at : end.end()], end.end()
                if b"data:" in event and protocol.begins.search(event) is None:
                    return _error_in(event)
            if not piece:
                text = self._begun.decode("utf-8", "replace")
                said = RefusedByUpstream(text, self.status)
                return said if refused else _error_in(self._begun[at:])
        return None

    async def close(self) -> None:
        """Close the connection."""
        if self._next is not None:
            self._next.cancel()
        self._response.close()


def _error_in(text: bytes) -> RefusedByUpstream | None:
    """Return the error in an event or in a body, if it holds one and nothing else."""
    if b'"error"' not in text and b"response.failed" not in text:
        return None
    lines = [one[5:] for one in text.splitlines() if one.startswith(b"data:")]
    try:
        body = json.loads(b"\n".join(lines) or text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, dict) or body.get("choices"):
        return None
    response = body.get("response")
    error = body.get("error") or (response.get("error") if isinstance(response, dict) else None)
    if not error and body.get("type") not in ("error", "response.failed"):
        return None
    return RefusedByUpstream(json.dumps(error or body), None)


DECODERS: Mapping[str, Callable[[], Callable[[bytes], bytes]]] = {
    **dict.fromkeys(
        ("gzip", "x-gzip", "deflate"),
        lambda: zlib.decompressobj(zlib.MAX_WBITS | 32).decompress,
    ),
    "br": lambda: brotli.Decompressor().process,
    "zstd": lambda: zstandard.ZstdDecompressor().decompressobj().decompress,
}
"""What decompresses a body piece by piece, by its coding."""


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
        self._session: aiohttp.ClientSession | None = None  # it belongs to the running loop

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0, keepalive_timeout=IDLE, ssl=self._certificates
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=OWN_HEADERS,
                auto_decompress=False,
                max_line_size=LONGEST_LINE,
                max_field_size=LONGEST_LINE,
            )
        return self._session

    async def send(
        self,
        method: str,
        target: str,
        headers: Raw,
        content: bytes | AsyncIterator[bytes] = b"",
        timeout: float | None = None,
    ) -> UpstreamAnswer:
        """Send a request to the upstream's place of a client's path, which has its query.

        Raises UpstreamFailed if it cannot be reached in time.
        """
        path, mark, query = target.partition("?")
        try:
            return UpstreamAnswer(
                await self._opened().request(
                    method,
                    URL(self._host + target_of(self._address, path) + mark + query, encoded=True),
                    headers=CIMultiDict((_text(name), _text(value)) for name, value in headers),
                    data=content or None,
                    allow_redirects=False,
                    proxy=self._proxy,
                    timeout=aiohttp.ClientTimeout(total=timeout) if timeout else self._timeout,
                )
            )
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise _failed(error) from None

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _certificates(file: Path | None) -> ssl.SSLContext:
    path = str(file.expanduser()) if file is not None else os.environ.get("SSL_CERT_FILE")
    folder = None if file is not None else os.environ.get("SSL_CERT_DIR")
    if not path and not folder:
        return ssl.create_default_context(cafile=certifi.where())
    try:
        return ssl.create_default_context(cafile=path or None, capath=folder or None)
    except OSError as error:
        name = "serve.ca_file" if file is not None else "SSL_CERT_FILE"
        why = error.strerror or "it holds no certificates"
        raise ConfigError((f"{name}: {path} cannot be used ({why}); name a PEM file",)) from None


FAULTS: Sequence[tuple[tuple[type[Exception], ...], str, str]] = (
    (
        (aiohttp.ClientHttpProxyError, aiohttp.ClientProxyConnectionError),
        "the proxy to the upstream cannot be used",
        "check serve.proxy",
    ),
    ((aiohttp.ClientConnectorError,), "the upstream cannot be reached", "check serve.upstream"),
    ((aiohttp.ClientResponseError,), "the upstream's answer is no HTTP", "check serve.upstream"),
    ((aiohttp.ClientError,), "the upstream has broken off", "try again"),
)
"""What errors mean, and what to do about them; the first one counts."""


def _failed(error: Exception) -> UpstreamFailed:
    why = type(error).__name__
    if isinstance(error, TimeoutError):
        return UpstreamFailed(f"the upstream did not answer in time ({why}); try again", 504)
    if isinstance(error, ValueError) and not isinstance(error, OSError):
        return UpstreamFailed("this path cannot be sent on; check it", 400)
    what, cure = next((said, do) for kinds, said, do in FAULTS if isinstance(error, kinds))
    if isinstance(error, aiohttp.ClientConnectorError):
        inner = error.os_error  # the words of the system, which name no key
        number = inner.errno if isinstance(inner, ConnectionError) else None
        why = f"{why}: {os.strerror(number) if number else str(inner) or type(inner).__name__}"[
            :300
        ]
    if "CERTIFICATE_VERIFY" in why:
        cure = "name the certificates of your network with serve.ca_file or SSL_CERT_FILE"
    return UpstreamFailed(f"{what} ({why}); {cure}")
