"""Say whose a request is and whether it may come in, and read its body.

A tenant is named by the operator: one for all, a header, a claim, or a keyed hash of the client's
key.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import os
import re
import secrets
import zlib
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any
from urllib.parse import urlsplit

import brotli  # type: ignore[import-untyped]
import zstandard
from starlette.requests import Request

from conspectus.archive import Archive, Scope
from conspectus.engine.history import LOCAL
from conspectus.errors import ArchiveError, ConfigError
from conspectus_serve.codings import CODINGS, GZIP, ZSTD_WINDOW
from conspectus_serve.protocols import Refusal
from conspectus_serve.settings import ServeSettings, is_loopback

logger = logging.getLogger("conspectus.serve")

LENGTH = 32  # bytes of a secret, as many as the digest of SHA-256 has
TENANTS = "conspectus serve"  # among whose threads the archive has the names of our tenants
NAMES = 64  # of this machine, or not, that are remembered; clients use few
MOST = 1_000  # tenants that are named
CREDENTIALS = ("authorization", "x-api-key", "api-key")  # OpenAI's, Anthropic's, Azure's
SLICE, MEMBERS = 16_384, 1_000  # bytes of gzip that are read at once, and most members of a body

_PLAIN = re.compile(r"[\w.@+-]{1,100}", re.ASCII)  # a name that stands for itself
_SCHEME = re.compile(r"^(?:bearer|basic)\s", re.IGNORECASE)
_DOTS = re.compile(r"(?:^|[/\\]|%2f|%5c)(?:\.|%2e){1,2}(?:$|[/\\?#]|%2f|%5c)|\\", re.IGNORECASE)
"""Dot segments: the upstream would resolve the path to another than the one checked."""


class Secret:
    """Hold bytes that only the operator has.

    Example:
        >>> Secret(b"s" * 32).tenant("Bearer k1") == Secret(b"s" * 32).tenant("k1")
        True
    """

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def tenant(self, *credentials: str) -> str:
        """Name the tenant of credentials by a keyed hash, which does not reveal them.

        All keys count: the endpoint does not know which one the upstream reads, and one may be a
        placeholder that several clients send.
        """
        keys = (_SCHEME.sub("", one.strip()).strip() for one in credentials)
        return self.digest("tenant", "\0".join(dict.fromkeys(filter(None, keys))))[:32]

    def tenant_of(self, request: Request, by: str) -> str:
        """Name the tenant of a request, by a header, a claim of its token, or else its keys.

        What clients give stands behind `by-name:`, so that it never equals the tenant of a key.
        """
        kind, _, name = by.partition(":")
        if kind == "one":
            return LOCAL
        keys = [value for one in CREDENTIALS for value in request.headers.getlist(one)]
        named = [_claim(one, name.strip()) for one in keys if kind == "claim"]
        if kind == "header":
            named = [request.headers.get(name.strip(), "").strip()]
        if not (given := next(filter(None, named), "")):
            return self.tenant(*keys)
        return f"by-name:{given if _PLAIN.fullmatch(given) else self.digest('name', given)[:32]}"

    def digest(self, purpose: str, text: str) -> str:
        """Return a keyed hash of a text, for one purpose alone."""
        data = purpose.encode() + b"\0" + text.encode("utf-8", "surrogateescape")
        return hmac.new(self._raw, data, hashlib.sha256).hexdigest()


def _claim(credential: str, name: str) -> str:
    """Return a claim of a JSON Web Token (RFC 7519), which the upstream checks; else nothing."""
    try:
        _, payload, _ = credential.split()[-1].split(".")
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        value = claims.get(name)
    except (ValueError, AttributeError, IndexError, RecursionError):
        return ""
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""


def secret_beside(archive: str, file: Path | None) -> Secret:
    """Read the secret of a file, by default beside the archive; make it at the first start.

    Only its owner can read it. Raises ConfigError.
    """
    if file is None:
        scheme, mark, rest = archive.partition("://")
        if archive in ("memory:", ":memory:"):
            return Secret(secrets.token_bytes(LENGTH))
        if mark and scheme != "sqlite":
            need = "several instances on one archive need one secret: name a file that all of them"
            cure = "read, with --secret-file or serve.secret_file; it is made where it is missing"
            raise ConfigError((f"{need} {cure}",))
        file = Path(f"{rest[1:] if mark else archive}.secret").expanduser()
    try:
        if not file.exists():
            with NamedTemporaryFile("w", dir=file.parent) as made, suppress(FileExistsError):
                made.write(secrets.token_hex(LENGTH) + "\n")
                made.flush()
                os.fsync(made.fileno())
                file.hardlink_to(made.name)  # of two made at once, one stands
        raw = bytes.fromhex(file.read_text("ascii").strip())
        if len(raw) < LENGTH:
            raise ValueError
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or f"it holds no {2 * LENGTH} hexadecimal digits"
        cure = "name another with --secret-file, or delete it to have one made"
        raise ConfigError((f"the secret {file} cannot be used ({why}); {cure}",)) from None
    return Secret(raw)


def tenants_in(archive: Archive) -> tuple[str, ...]:
    """Return the names of tenants of whom something is archived, sorted. Raises ArchiveError.

    Each is a thread of a tenant of its own, so that two can be added at the same moment.
    """
    return archive.threads(TENANTS)[:MOST]


def add_tenant(archive: Archive, tenant: str) -> None:
    """Keep a name; a failure does not stop the answer."""
    try:
        archive.note(Scope(TENANTS, tenant), "tenant", {"": {}})
    except ArchiveError as error:
        logger.warning("the name of a tenant could not be kept: %s", error)


class Entrance:
    """Check requests before anything is done with them."""

    def __init__(self, settings: ServeSettings) -> None:
        self._settings = settings
        self._is_here = lru_cache(NAMES)(self._names_this_machine)

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
        `Origin`. The transport section of the Model Context Protocol asks for the same check.
        Programs send no origin. A page has one of http or https; another scheme, such as `file:`
        or that of an app, needs its host in `serve.hosts`.
        """
        names = request.headers.getlist("host")
        # A browser names its host in each request. Only a client of HTTP/1.0 may leave it out.
        unnamed = not names and request.scope.get("http_version") == "1.0"
        if not unnamed and (len(names) != 1 or not self._is_here(f"//{names[0]}")):
            why = "this endpoint is asked for by a name that is not of this machine"
            cure = "use 127.0.0.1 or localhost, add the name to serve.hosts, or set a token"
            raise Refusal(421, f"{why}; {cure}")
        for origin in request.headers.getlist("origin"):
            if not self._is_own_page(origin):
                cure = "add its host to serve.hosts, or set a token"
                raise Refusal(403, f"a page of another site may not use this endpoint; {cure}")

    def _is_own_page(self, origin: str) -> bool:
        if origin.lower().startswith(("http://", "https://")):
            return self._is_here(origin)
        try:
            host = urlsplit(origin).hostname or ""
        except ValueError:
            return False
        return host in self._settings.names

    def _names_this_machine(self, address: str) -> bool:
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
        whole = bytes(raw)
        codings = ",".join(request.headers.getlist("content-encoding")).lower()
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
            reading = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW)
            with reading.stream_reader(raw, read_across_frames=True) as stream:
                text, ended = stream.read(most + 1), True
        elif coding == "br":
            reading = brotli.Decompressor()
            text = reading.process(raw, output_buffer_limit=most + 1)
            ended = reading.is_finished()
        elif raw.startswith(b"\x1f\x8b"):
            text, ended = _unzipped(raw, most)
        else:
            text, ended = _inflated(raw, most)
        if not ended and len(text) <= most:
            raise ValueError("the end is missing")
    except Exception:  # each library has errors of its own
        raise Refusal(400, f"the body is not in {coding}, as its header says") from None
    _check_size(text, most)
    return bytes(text)


def _inflated(raw: bytes, most: int) -> tuple[bytes, bool]:
    """Decompress `deflate`, with the header of zlib or, as some clients send it, without."""
    reading = zlib.decompressobj()
    try:
        text = reading.decompress(raw, most + 1)
    except zlib.error:
        reading = zlib.decompressobj(-zlib.MAX_WBITS)
        text = reading.decompress(raw, most + 1)
    return text, reading.eof


def _unzipped(raw: bytes, most: int) -> tuple[bytearray, bool]:
    """Decompress gzip of one or several members; return it, and whether its end is there."""
    text, reading, members = bytearray(), zlib.decompressobj(GZIP), 1
    for at in range(0, len(raw), SLICE):
        piece = raw[at : at + SLICE]
        while piece and len(text) <= most:
            if reading.eof:
                if piece[:1] != b"\x1f":  # padding, which no other reader minds
                    return text, True
                members += 1
                if members > MEMBERS:
                    raise ValueError("it has too many members")
                reading = zlib.decompressobj(GZIP)
            text += reading.decompress(piece, most + 1 - len(text))
            piece = reading.unconsumed_tail or reading.unused_data
    return text, reading.eof
