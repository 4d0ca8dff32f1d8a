"""Check who may send a request or see a page, and read the body of a request."""

from __future__ import annotations

import asyncio
import base64
import hmac
import re
import zlib
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import brotli  # type: ignore[import-untyped]
import zstandard
from starlette.requests import Request

from conspectus_serve.protocols import Refusal
from conspectus_serve.settings import ServeSettings, is_loopback

CODINGS = ("gzip", "x-gzip", "deflate", "zstd", "br")  # of bodies that are read

_DOTS = re.compile(r"(?:^|[/\\]|%2f|%5c)(?:\.|%2e){1,2}(?:$|[/\\?#]|%2f|%5c)|\\", re.IGNORECASE)
"""Dot segments: the upstream would resolve the path to another than the one checked."""


class Entrance:
    """Check requests before anything is done with them."""

    def __init__(self, settings: ServeSettings) -> None:
        self._settings = settings

    def check(self, request: Request) -> None:
        """Refuse a request without the token, of another site's page, or with a path elsewhere."""
        if request.headers.get("upgrade", "").lower() == "websocket":
            raise Refusal(426, "WebSockets are not served here; use HTTP")
        if self._settings.token is None:
            self._check_site(request)
        elif not self._is_token(request.headers.get("x-conspectus-token", "")):
            raise Refusal(401, "send the token of this endpoint as x-conspectus-token")
        target = request.scope.get("raw_path", b"").decode("latin-1")
        if not target.startswith("/") or target.startswith("//") or _DOTS.search(target):
            raise Refusal(400, "this path has steps that lead elsewhere; write it plainly")

    def check_page(self, request: Request) -> None:
        """Let see the pages of operation who is on this machine, or has the token.

        A browser is asked for the token as a password. Where clients of several tenants have it,
        they must also be on this machine, and no proxy may have passed them on: a page shows all
        tenants. Raises Refusal.
        """
        token, passed_on = self._settings.token, {"forwarded", "x-forwarded-for"}
        here = request.client is not None and is_loopback(request.client.host)
        here = here and passed_on.isdisjoint(request.headers.keys())
        if token is None:
            self._check_site(request)
        if not here and (token is None or self._settings.by != "one"):
            raise Refusal(403, "this page is for this machine alone, as it shows all tenants")
        scheme, _, coded = request.headers.get("authorization", "").partition(" ")
        password = request.headers.get("x-conspectus-token", "")
        if scheme.lower() == "basic":
            with suppress(ValueError):
                password = base64.b64decode(coded).decode("utf-8", "replace").partition(":")[2]
        if token is not None and not self._is_token(password):
            raise Refusal(401, "the token of this endpoint is the password of this page")

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), (self._settings.token or "").encode())

    def _check_site(self, request: Request) -> None:
        """Keep web pages out: a browser on this machine reaches loopback for any site.

        A page can point its own name at 127.0.0.1 (DNS rebinding), but not choose `Host` or
        `Origin`. The transport section of the Model Context Protocol asks for the same check. Only
        pages have an origin that is `null`, http or https.
        """
        names = request.headers.getlist("host")
        if len(names) != 1 or not self._is_here(f"//{names[0]}"):
            why = "this endpoint is asked for by a name that is not of this machine"
            cure = "use 127.0.0.1 or localhost, add the name to serve.hosts, or set a token"
            raise Refusal(421, f"{why}; {cure}")
        for origin in request.headers.getlist("origin"):
            web = origin == "null" or origin.lower().startswith(("http:", "https:"))
            if web and not self._is_here(origin):
                cure = "add its host to serve.hosts, or set a token"
                raise Refusal(403, f"a page of another site may not use this endpoint; {cure}")

    def _is_here(self, address: str) -> bool:
        try:
            host = urlsplit(address).hostname or ""
        except ValueError:
            return False
        return is_loopback(host) or host in self._settings.names

    async def body(self, request: Request, *, decoded: bool) -> bytes:
        """Read the body of a request, decompressed if it is to be `decoded`. Raises Refusal."""
        raw, most = bytearray(), self._settings.max_body_bytes
        async for piece in request.stream():
            raw += piece
            _check_size(raw, most)
        whole, codings = bytes(raw), request.headers.get("content-encoding", "").lower()
        for coding in reversed(codings.split(",") if decoded else ()):
            if coding.strip() not in ("", "identity"):
                whole = await asyncio.to_thread(_decoded, whole, coding.strip(), most)
        return whole


def _check_size(raw: bytes | bytearray, most: int) -> None:
    if len(raw) > most:
        cure = "send less at once, or raise serve.max_body_bytes"
        raise Refusal(413, f"the request is larger than {most:,} bytes; {cure}")


def _decoded(raw: bytes, coding: str, most: int) -> bytes:
    """Decompress a body, up to the size that a request may have."""
    if coding not in CODINGS:
        known = ", ".join(CODINGS)
        raise Refusal(415, f"a body in {coding[:20]!r} is not read here; send {known}")
    reading: Any
    try:
        if coding == "zstd":
            reading = zstandard.ZstdDecompressor(max_window_size=2**27)
            with reading.stream_reader(raw, read_across_frames=True) as stream:
                text, ended = stream.read(most + 1), True
        elif coding == "br":
            reading = brotli.Decompressor()
            text = reading.process(raw, output_buffer_limit=most + 1)
            ended = reading.is_finished()
        else:
            reading = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or zlib, as its head says
            text = reading.decompress(raw, most + 1)
            ended = reading.eof
        if not ended and len(text) <= most:
            raise ValueError("the end is missing")
    except Exception:  # each library has errors of its own
        raise Refusal(400, f"the body is not in {coding}, as its header says") from None
    _check_size(text, most)
    return bytes(text)
