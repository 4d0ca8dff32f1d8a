"""Send requests to the upstream, and read its answers as they come."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from conspectus.errors import ConfigError
from conspectus_serve.answers.events import END, data_of
from conspectus_serve.headers import Raw
from conspectus_serve.protocols import Protocol, target_of

LARGEST_ERROR = 1_000_000
"""Maximum bytes of a refusal that is read; a larger one is not a provider's error."""

IDLE = 4.0
"""Seconds that an unused connection is kept: less than servers keep it, so that none closes while
a request is on its way.
"""

REFUSALS = frozenset((400, 413, 422, *range(500, 600)))
"""Statuses with which upstreams refuse a request that is too long."""

LARGEST_HELD, LONGEST_HELD = 64_000, 2.0
"""Maximum bytes of an answer with status 200 that is held to look for an error, and seconds."""


class UpstreamFailed(Exception):
    """The upstream cannot be reached, or has broken off; the text names no key."""

    def __init__(self, message: str, status: int = 502) -> None:
        super().__init__(message)
        self.status = status


class RefusedByUpstream(Exception):
    """A refusal of the upstream, in the form that the engine reads."""

    def __init__(self, text: str, status: int | None) -> None:
        super().__init__(text)
        self.status_code = status


class UpstreamAnswer:
    """An open answer of the upstream, whose body comes in pieces."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._rest: AsyncIterator[bytes] | None = response.aiter_raw()
        self._begun = b""
        self._next: asyncio.Future[bytes] | None = None  # a piece that is being read
        self.status = response.status_code
        self.headers: Sequence[tuple[bytes, bytes]] = response.headers.raw

    async def refusal(self, protocol: Protocol, streamed: bool) -> RefusedByUpstream | None:
        """Return the refusal, if this is one; its body can still be sent on.

        Some upstreams begin a stream, or answer with 200, before they know that they refuse.
        """
        size = self._response.headers.get("content-length", "0")
        length = int(size) if size.isdigit() else LARGEST_ERROR + 1
        if self.status in REFUSALS and length <= LARGEST_ERROR:
            return await self._read_refusal()
        if self.status != 200 or self._response.headers.get("content-encoding"):
            return None
        if streamed:
            return await self._refused_in_stream(protocol)
        if 0 < length <= LARGEST_HELD:
            self._begun = b"".join([piece async for piece in self.pieces()])
            return _told(self._begun) if b'"error"' in self._begun else None
        return None

    async def _read_refusal(self) -> RefusedByUpstream:
        whole = b""
        async for piece in self.pieces():
            whole += piece
            if len(whole) > LARGEST_ERROR:
                raise UpstreamFailed("the upstream's refusal is larger than any error")
        self._begun, self._rest = whole, None
        kept = [(k, v) for k, v in self.headers if k.lower() in (b"content-encoding",)]
        try:
            text = httpx.Response(self.status, headers=kept, content=whole).text
        except httpx.DecodingError:
            text = ""
        return RefusedByUpstream(text, self.status)

    async def _refused_in_stream(self, protocol: Protocol) -> RefusedByUpstream | None:
        """Hold the events at the beginning that say nothing yet, and read the next one.

        They are held for a short time: an upstream that thinks has begun.
        """
        held, at = b"", 0
        until = time.monotonic() + LONGEST_HELD
        while self._rest is not None and len(held) < LARGEST_HELD:
            self._next = self._next or asyncio.ensure_future(anext(self._rest, b""))
            left = until - time.monotonic()
            if left <= 0 or not (await asyncio.wait((self._next,), timeout=left))[0]:
                break
            try:
                piece, self._next = self._next.result(), None
            except httpx.HTTPError:
                break  # it is raised again where the rest is read
            held += piece
            self._begun = held
            while (end := END.search(held, at)) is not None:
                event, at = held[at : end.end()], end.end()
                if protocol.begins.search(event) is None:
                    return _told(event)
            if not piece:
                break
        return None

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the bytes of the body as they come; those that were held, first."""
        if self._begun:
            yield self._begun
        try:
            if self._next is not None and (piece := await self._next):
                yield piece
            if self._rest is not None:
                async for piece in self._rest:
                    yield piece
        except httpx.HTTPError as error:
            raise _failed(error) from None

    def with_body(self, content: bytes, kind: bytes = b"") -> UpstreamAnswer:
        """Return the answer with a body in place of the one that was read, of another length."""
        self._begun, self._rest = content, None
        gone = (b"content-length", *([b"content-type"] if kind else []))
        self.headers = [one for one in self.headers if one[0].lower() not in gone]
        self.headers += [(b"content-type", kind)] if kind else []
        return self

    async def close(self) -> None:
        """Close the connection."""
        if self._next is not None:
            self._next.cancel()
        await self._response.aclose()


class Upstream:
    """Send requests on.

    Args:
        address: of the provider.
        timeout: seconds that it may be silent.
        proxy: address of a proxy.
        ca_file: certificates that the upstream's is checked against.

    Raises:
        ConfigError: the certificates cannot be read.
    """

    def __init__(
        self, address: str, timeout: float, proxy: str | None = None, ca_file: Path | None = None
    ) -> None:
        self._address, parts = address, urlsplit(address)
        self._host = f"{parts.scheme}://{parts.netloc}"
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(timeout, connect=15.0, pool=None),
            limits=httpx.Limits(
                max_connections=None, max_keepalive_connections=256, keepalive_expiry=IDLE
            ),
            follow_redirects=False,
            trust_env=False,  # a .netrc would add the operator's key
            proxy=proxy,
            verify=_certificates(ca_file),
        )

    async def send(
        self,
        method: str,
        target: str,
        headers: Raw,
        content: bytes | AsyncIterator[bytes] = b"",
        timeout: float | None = None,
    ) -> UpstreamAnswer:
        """Send a request.

        Args:
            target: the client's path, with its query.
            timeout: seconds, in place of the usual ones.

        Raises:
            UpstreamFailed: it cannot be reached in time.
        """
        limits = self._client.timeout if timeout is None else httpx.Timeout(timeout)
        extra: dict[str, Any] = {"timeout": limits.as_dict()}
        path, mark, query = target.partition("?")
        try:
            url = httpx.URL(self._host + target_of(self._address, path) + mark + query)
            request = httpx.Request(method, url, headers=headers, content=content, extensions=extra)
            return UpstreamAnswer(await self._client.send(request, stream=True))
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise _failed(error) from None

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()


def _certificates(file: Path | None) -> ssl.SSLContext | bool:
    named = str(file.expanduser()) if file is not None else os.environ.get("SSL_CERT_FILE")
    folder = None if file is not None else os.environ.get("SSL_CERT_DIR")
    if not named and not folder:
        return True
    try:
        return ssl.create_default_context(cafile=named or None, capath=folder or None)
    except (OSError, ssl.SSLError) as error:
        name = "serve.ca_file" if file is not None else "SSL_CERT_FILE"
        why = getattr(error, "strerror", None) or "it holds no certificates"
        raise ConfigError((f"{name}: {named} cannot be used ({why}); name a PEM file",)) from None


def _told(event: bytes) -> RefusedByUpstream | None:
    """Return the error in an event or in a body, if it holds one and nothing else."""
    said = data_of(event)
    if said is None:
        try:
            said = json.loads(event)
        except (ValueError, RecursionError):
            return None
    if not isinstance(said, dict) or said.get("choices"):
        return None
    response = said.get("response")
    error = said.get("error") or (response.get("error") if isinstance(response, dict) else None)
    if not error and said.get("type") not in ("error", "response.failed"):
        return None
    return RefusedByUpstream(json.dumps(error or said), None)


def _failed(error: Exception) -> UpstreamFailed:
    kind = type(error).__name__
    if isinstance(error, httpx.TimeoutException):
        return UpstreamFailed(f"the upstream did not answer in time ({kind}); try again", 504)
    if isinstance(error, (httpx.InvalidURL, ValueError)):
        return UpstreamFailed("this path cannot be sent on; check it", 400)
    why = kind
    if isinstance(error, httpx.ConnectError):  # the words of the system, which name no key
        why = " ".join(f"{kind}: {_first_cause(error)}".split())[:300]
    cure = "check serve.upstream"
    if "CERTIFICATE_VERIFY" in why:
        cure = "name the certificates of your network with serve.ca_file or SSL_CERT_FILE"
    return UpstreamFailed(f"the upstream cannot be reached ({why}); {cure}")


def _first_cause(error: BaseException) -> str:
    """Return what the system said when a connection failed."""
    while True:
        inner = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else None
        cause = inner or error.__cause__ or error.__context__
        if cause is not None:
            error = cause
        elif isinstance(error, ConnectionError) and error.errno is not None:
            return os.strerror(error.errno)
        else:
            return str(error)
