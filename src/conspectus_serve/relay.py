"""Send requests to the upstream, and read its answers as they come."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx

from conspectus_serve.headers import Raw

LARGEST_ERROR = 1_000_000
"""Maximum bytes of a refusal that is read; a larger one is not a provider's error."""

IDLE = 4.0
"""Seconds that an unused connection is kept: less than servers keep it, so that none closes while
a request is on its way.
"""

REFUSALS = frozenset((400, 413, 422))
"""Statuses with which providers refuse a request that is too long."""


class UpstreamFailed(Exception):
    """The upstream cannot be reached, or has broken off; the text names no key."""

    def __init__(self, message: str, status: int = 502) -> None:
        super().__init__(message)
        self.status = status


class RefusedByUpstream(Exception):
    """A refusal of the upstream, in the form that the engine reads."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status_code = status


class UpstreamAnswer:
    """An open answer of the upstream, whose body comes in pieces."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._read: bytes | None = None
        self.status = response.status_code
        self.headers: Sequence[tuple[bytes, bytes]] = response.headers.raw

    async def refusal(self) -> RefusedByUpstream | None:
        """Return the refusal, if this is one; its body can still be sent on."""
        size = self._response.headers.get("content-length", "0")
        if self.status not in REFUSALS or not size.isdigit() or int(size) > LARGEST_ERROR:
            return None
        whole = b""
        async for piece in self.pieces():
            whole += piece
            if len(whole) > LARGEST_ERROR:
                raise UpstreamFailed("the upstream's refusal is larger than any error")
        self._read = whole
        kept = [(k, v) for k, v in self.headers if k.lower() in (b"content-encoding",)]
        try:
            text = httpx.Response(self.status, headers=kept, content=whole).text
        except httpx.DecodingError:
            text = ""
        return RefusedByUpstream(text, self.status)

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the bytes of the body as they come."""
        if self._read is not None:
            yield self._read
            return
        try:
            async for piece in self._response.aiter_raw():
                yield piece
        except httpx.HTTPError as error:
            raise _failed(error) from None

    def with_body(self, content: bytes) -> UpstreamAnswer:
        """Return the answer with a body in place of the one that was read, of another length."""
        self._read = content
        self.headers = [one for one in self.headers if one[0].lower() != b"content-length"]
        return self

    async def close(self) -> None:
        """Close the connection."""
        await self._response.aclose()


class Upstream:
    """Send requests on.

    Args:
        address: of the provider.
        timeout: seconds that it may be silent.
        proxy: address of a proxy.
    """

    def __init__(self, address: str, timeout: float, proxy: str | None = None) -> None:
        self._base = address.removesuffix("/v1")
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(timeout, connect=15.0, pool=None),
            limits=httpx.Limits(
                max_connections=None, max_keepalive_connections=256, keepalive_expiry=IDLE
            ),
            follow_redirects=False,
            trust_env=False,  # a .netrc would add the operator's key
            proxy=proxy,
        )

    async def send(
        self, method: str, target: str, headers: Raw, content: bytes | AsyncIterator[bytes]
    ) -> UpstreamAnswer:
        """Send a request.

        Raises:
            UpstreamFailed: it cannot be reached in time.
        """
        extra: dict[str, Any] = {"timeout": self._client.timeout.as_dict()}
        try:
            url = httpx.URL(self._base + target)
            request = httpx.Request(method, url, headers=headers, content=content, extensions=extra)
            return UpstreamAnswer(await self._client.send(request, stream=True))
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise _failed(error) from None

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()


def _failed(error: Exception) -> UpstreamFailed:
    kind = type(error).__name__
    if isinstance(error, httpx.TimeoutException):
        return UpstreamFailed(f"the upstream did not answer in time ({kind}); try again", 504)
    if isinstance(error, (httpx.InvalidURL, ValueError)):
        return UpstreamFailed("this path cannot be sent on; check it", 400)
    return UpstreamFailed(f"the upstream cannot be reached ({kind}); check serve.upstream")
