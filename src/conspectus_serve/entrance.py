"""Check who may send a request, how large it is, and whose it is."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import re
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request

from conspectus.errors import install_command
from conspectus_serve.requests import Refusal
from conspectus_serve.secret import LOCAL, Secret
from conspectus_serve.settings import ServeSettings, is_loopback

CREDENTIALS = ("authorization", "x-api-key", "api-key")
"""Headers with a client's key: OpenAI's, Anthropic's, Azure's."""

_DOTS = re.compile(r"(?:^|[/\\]|%2f|%5c)(?:\.|%2e){1,2}(?:$|[/\\?#]|%2f|%5c)|\\", re.IGNORECASE)
"""Dot segments: the upstream would resolve the path to another than the one checked."""


class Entrance:
    """Check requests before anything is done with them."""

    def __init__(self, settings: ServeSettings, secret: Secret) -> None:
        self._token, self._hosts, self._by = settings.token, settings.names, settings.by
        self._most, self._secret = settings.max_body_bytes, secret

    def check(self, request: Request) -> None:
        """Refuse a request that may not pass.

        Raises:
            Refusal: the token is missing, another site's page sent it, or its path leads elsewhere.
        """
        if self._token is None:
            self._check_site(request)
        else:
            given = request.headers.get("x-conspectus-token", "")
            if not hmac.compare_digest(given.encode(), self._token.encode()):
                raise Refusal(401, "send the token of this endpoint as x-conspectus-token")
        target = request.scope.get("raw_path", b"").decode("latin-1")
        if not target.startswith("/") or target.startswith("//") or _DOTS.search(target):
            raise Refusal(400, "this path has steps that lead elsewhere; write it plainly")

    def _check_site(self, request: Request) -> None:
        """Keep web pages out: a browser on this machine reaches loopback for any site.

        A page can point its own name at 127.0.0.1 (DNS rebinding), but not choose `Host` or
        `Origin`. The transport section of the Model Context Protocol asks for the same check. Only
        pages have an origin that is `null`, http or https.
        """
        names = request.headers.getlist("host")
        if len(names) != 1 or not self._is_here(f"//{names[0]}"):
            raise Refusal(
                421,
                "this endpoint is asked for by a name that is not of this machine; use 127.0.0.1 "
                "or localhost, add the name to serve.hosts, or set a token",
            )
        for origin in request.headers.getlist("origin"):
            web = origin == "null" or origin.lower().startswith(("http:", "https:"))
            if web and not self._is_here(origin):
                raise Refusal(
                    403,
                    "a page of another site may not use this endpoint; add its host to "
                    "serve.hosts, or set a token",
                )

    def _is_here(self, address: str) -> bool:
        try:
            host = urlsplit(address).hostname or ""
        except ValueError:
            return False
        return is_loopback(host) or host in self._hosts

    def check_page(self, request: Request) -> None:
        """Let see the pages of operation who is on this machine, or has the token.

        A browser is asked for the token as a password. Where clients of several tenants have it,
        they must also be on this machine, and no proxy may have passed them on: a page shows all
        tenants.

        Raises:
            Refusal: it is not so.
        """
        passed_on = "forwarded" in request.headers or "x-forwarded-for" in request.headers
        here = request.client is not None and is_loopback(request.client.host) and not passed_on
        if self._token is None:
            self._check_site(request)
        if not here and (self._token is None or self._by != "one"):
            raise Refusal(403, "this page is for this machine alone, as it shows all tenants")
        if self._token is None:
            return
        scheme, _, coded = request.headers.get("authorization", "").partition(" ")
        given = request.headers.get("x-conspectus-token", "")
        if scheme.lower() == "basic":
            with suppress(ValueError):
                given = base64.b64decode(coded).decode("utf-8", "replace").partition(":")[2]
        if not hmac.compare_digest(given.encode(), self._token.encode()):
            raise Refusal(401, "the token of this endpoint is the password of this page")

    async def body(self, request: Request) -> bytes:
        """Read the body of a request, decompressed.

        Raises:
            Refusal: its coding is unknown or broken, or it is too large.
        """
        pieces, size = [], 0
        async for piece in request.stream():
            size += len(piece)
            if size > self._most:
                raise self._too_large()
            pieces.append(piece)
        raw = b"".join(pieces)
        for coding in reversed(request.headers.get("content-encoding", "").lower().split(",")):
            if coding.strip() not in ("", "identity"):
                raw = await asyncio.to_thread(self._decoded, raw, coding.strip())
        return raw

    def _too_large(self) -> Refusal:
        return Refusal(
            413,
            f"the request is larger than {self._most:,} bytes; send less at once, or raise "
            "serve.max_body_bytes",
        )

    def _decoded(self, raw: bytes, coding: str) -> bytes:
        """Decompress a body, up to the size that a request may have."""
        try:
            if coding not in CODINGS:
                raise Refusal(
                    415, f"a body in {coding[:20]!r} is not read here; send {', '.join(CODINGS)}"
                )
            text = CODINGS[coding](raw, self._most + 1)
        except ModuleNotFoundError as error:
            raise Refusal(
                415,
                f"a body in {coding} needs {error.name}, which is not installed here; send it as "
                f"it is, or {install_command('serve')}",
            ) from None
        except Refusal:
            raise
        except Exception:  # each library has errors of its own
            raise Refusal(400, f"the body is not in {coding}, as its header says") from None
        if len(text) > self._most:
            raise self._too_large()
        return text

    def tenant(self, request: Request) -> str:
        """Name the tenant of a request, by a header, a claim of its token, or else its keys."""
        kind, _, name = self._by.partition(":")
        if kind == "one":
            return LOCAL
        if kind == "header" and (value := request.headers.get(name.strip(), "").strip()):
            return self._secret.named(value)
        found = [one for name in CREDENTIALS for one in request.headers.getlist(name)]
        if kind == "claim":
            for value in found:
                if claimed := _claim(value, name.strip()):
                    return self._secret.named(claimed)
        return self._secret.tenant(*found)


def _claim(credential: str, name: str) -> str:
    """Return a claim of a JSON Web Token (RFC 7519), which the upstream checks; else nothing."""
    parts = credential.split()[-1:] or [""]
    try:
        _, payload, _ = parts[0].split(".")
        said = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        value = said.get(name)
    except (ValueError, AttributeError, RecursionError):
        return ""
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""


def _inflated(bits: int) -> Callable[[bytes, int], bytes]:
    def inflate(raw: bytes, most: int) -> bytes:
        reader = zlib.decompressobj(bits)
        text = reader.decompress(raw, most)
        if not reader.eof and len(text) < most:
            raise ValueError("the end is missing")
        return text

    return inflate


def _zstd(raw: bytes, most: int) -> bytes:
    import zstandard

    with zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(raw) as reader:
        return reader.read(most)


def _brotli(raw: bytes, most: int) -> bytes:
    import brotli  # type: ignore[import-untyped]

    reader: Any = brotli.Decompressor()
    made = [reader.process(raw, output_buffer_limit=most)]
    while not reader.is_finished() and sum(map(len, made)) < most:
        made.append(piece := reader.process(b"", output_buffer_limit=most))
        if not piece and reader.can_accept_more_data():
            raise ValueError("the end is missing")
    return b"".join(made)


CODINGS: dict[str, Callable[[bytes, int], bytes]] = {
    "gzip": _inflated(zlib.MAX_WBITS | 16),
    "x-gzip": _inflated(zlib.MAX_WBITS | 16),
    "deflate": _inflated(zlib.MAX_WBITS),
    "zstd": _zstd,
    "br": _brotli,
}
"""Readers of compressed bodies, by the name of the coding; each stops at a number of bytes."""
