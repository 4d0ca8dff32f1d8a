"""Send requests to the upstream."""

from __future__ import annotations

import os
import ssl
from functools import cached_property, lru_cache
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import certifi
from multidict import CIMultiDict
from yarl import URL

from conspectus.errors import ConfigError
from conspectus_serve.headers import RawHeaders
from conspectus_serve.protocols import REMEMBERED_PATHS, Protocol, target_of
from conspectus_serve.settings import ServeSettings
from conspectus_serve.upstream_answer import UpstreamAnswer
from conspectus_serve.upstream_failures import http_error_for

UNUSED_SECONDS = 4.0
"""An unused connection is kept for this time, which is less than servers keep theirs."""

CONNECTING_SECONDS = 15.0
"""The upstream has this time to accept a connection."""

LONGEST_HEADER = 65_536
"""Bytes of a header of an answer."""

HEADERS_OF_AIOHTTP = ("accept", "accept-encoding", "content-type", "user-agent")
"""Headers that aiohttp would add if a client sends none."""


class Upstream:
    """Sends requests to the upstream in the settings.

    Raises:
        ConfigError: the certificates cannot be read.
    """

    def __init__(self, settings: ServeSettings) -> None:
        self._address = settings.upstream
        self._proxy = settings.proxy
        self._silent_seconds = settings.timeout
        self._certificates = _certificates(settings.ca_file)
        parts = urlsplit(settings.upstream)
        self._host = f"{parts.scheme}://{parts.netloc}"
        self._url = lru_cache(REMEMBERED_PATHS)(self._make_url)

    @cached_property
    def _session(self) -> aiohttp.ClientSession:  # it belongs to the running loop
        connector = aiohttp.TCPConnector(
            limit=0, keepalive_timeout=UNUSED_SECONDS, ssl=self._certificates
        )
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECTING_SECONDS, sock_read=self._silent_seconds
        )
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            timeout=timeout,
            skip_auto_headers=HEADERS_OF_AIOHTTP,
            max_line_size=LONGEST_HEADER,
            max_field_size=LONGEST_HEADER,
        )

    async def send(
        self,
        method: str,
        path: str,
        query: str,
        headers: RawHeaders,
        content: bytes = b"",
        protocol: Protocol | None = None,
        is_streamed: bool = False,
    ) -> UpstreamAnswer:
        """Send a request to the upstream's path for a client's path. Raises HttpError."""
        texts = ((name.decode(), value.decode("utf-8", "replace")) for name, value in headers)
        try:
            response = await self._session.request(
                method,
                self._url(path, query),
                headers=CIMultiDict(texts),
                data=content or None,
                allow_redirects=False,
                proxy=self._proxy,
            )
            return UpstreamAnswer(response, protocol, is_streamed)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise http_error_for(error) from None

    def _make_url(self, path: str, query: str) -> URL:
        target = target_of(self._address, path) + (f"?{query}" if query else "")
        return URL(self._host + target, encoded=True)

    async def close(self) -> None:
        """Close all connections."""
        if "_session" in vars(self):
            await self._session.close()


def _certificates(file: Path | None) -> ssl.SSLContext:
    path = file.expanduser() if file else os.environ.get("SSL_CERT_FILE") or certifi.where()
    try:
        return ssl.create_default_context(cafile=path)
    except OSError as error:
        setting = "serve.ca_file" if file is not None else "SSL_CERT_FILE"
        reason = error.strerror or "it holds no certificates"
        problem = f"{setting}: {path} cannot be used ({reason}); name a PEM file"
        raise ConfigError((problem,)) from None
