"""Check who may send a request, say whose it is, and read its body."""

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
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request

from conspectus._newest import Newest
from conspectus.archive import Archive, default_archive_path
from conspectus.archive.sqlite import private_folder
from conspectus.errors import ArchiveError, ConfigError, install_command
from conspectus_serve.settings import ServeSettings, is_loopback

logger = logging.getLogger("conspectus.serve")

LENGTH = 32  # bytes of a secret, as many as the digest of SHA-256 has
LOCAL = "local"  # the tenant of an endpoint with one tenant: also that of the command line
LONGEST_NAME = 100  # maximum characters of a tenant's name that stands for itself
MOST = 1_000  # tenants whose names are kept
CREDENTIALS = ("authorization", "x-api-key", "api-key")  # OpenAI's, Anthropic's, Azure's

_SCHEME = re.compile(r"^(?:bearer|basic)\s", re.IGNORECASE)

CODINGS = ("gzip", "x-gzip", "deflate", "zstd", "br")
"""Codings of bodies that are read."""

_DOTS = re.compile(r"(?:^|[/\\]|%2f|%5c)(?:\.|%2e){1,2}(?:$|[/\\?#]|%2f|%5c)|\\", re.IGNORECASE)
"""Dot segments: the upstream would resolve the path to another than the one checked."""


class Refusal(Exception):
    """A request that the endpoint refuses, or that its upstream cannot answer."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code = status, code


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
        given = request.headers.get("x-conspectus-token", "")
        if scheme.lower() == "basic":
            with suppress(ValueError):
                given = base64.b64decode(coded).decode("utf-8", "replace").partition(":")[2]
        if token is not None and not self._is_token(given):
            raise Refusal(401, "the token of this endpoint is the password of this page")

    def _is_token(self, given: str) -> bool:
        token = self._settings.token or ""
        return hmac.compare_digest(given.encode(), token.encode())

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

    async def body(self, request: Request) -> bytes:
        """Read the body of a request, decompressed. Raises Refusal."""
        raw, most = bytearray(), self._settings.max_body_bytes
        async for piece in request.stream():
            raw += piece
            if len(raw) > most:
                raise _too_large(most)
        whole = bytes(raw)
        for coding in reversed(request.headers.get("content-encoding", "").lower().split(",")):
            if coding.strip() not in ("", "identity"):
                whole = await asyncio.to_thread(_decoded, whole, coding.strip(), most)
        return whole


def _too_large(most: int) -> Refusal:
    cure = "send less at once, or raise serve.max_body_bytes"
    return Refusal(413, f"the request is larger than {most:,} bytes; {cure}")


def _decoded(raw: bytes, coding: str, most: int) -> bytes:
    """Decompress a body, up to the size that a request may have."""
    if coding not in CODINGS:
        known = ", ".join(CODINGS)
        raise Refusal(415, f"a body in {coding[:20]!r} is not read here; send {known}")
    try:
        text = _unpacked(raw, coding, most + 1)
    except ModuleNotFoundError as error:
        need = f"a body in {coding} needs {error.name}, which is not installed here"
        raise Refusal(415, f"{need}; send it as it is, or {install_command('serve')}") from None
    except Exception:  # each library has errors of its own
        raise Refusal(400, f"the body is not in {coding}, as its header says") from None
    if len(text) > most:
        raise _too_large(most)
    return text


def _unpacked(raw: bytes, coding: str, most: int) -> bytes:
    if coding == "zstd":
        import zstandard

        with zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(raw) as stream:
            return stream.read(most)
    if coding != "br":
        inflating = zlib.decompressobj(zlib.MAX_WBITS | (16 if "gzip" in coding else 0))
        text = inflating.decompress(raw, most)
        if not inflating.eof and len(text) < most:
            raise ValueError("the end is missing")
        return text
    import brotli  # type: ignore[import-untyped]

    reader: Any = brotli.Decompressor()
    made = [reader.process(raw, output_buffer_limit=most)]
    while not reader.is_finished() and sum(map(len, made)) < most:
        made.append(piece := reader.process(b"", output_buffer_limit=most))
        if not piece and reader.can_accept_more_data():
            raise ValueError("the end is missing")
    return b"".join(made)


class Secret:
    """Hold bytes that only the operator has.

    Example:
        >>> Secret(b"s" * 32).tenant("Bearer k1") == Secret(b"s" * 32).tenant("k1")
        True
    """

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def __repr__(self) -> str:
        return "Secret(...)"

    def tenant(self, *credentials: str) -> str:
        """Name the tenant of credentials by a keyed hash, which does not reveal them.

        All keys count: the endpoint does not know which one the upstream reads, and one may be a
        placeholder that several clients send.
        """
        keys = (_SCHEME.sub("", one.strip()).strip() for one in credentials)
        text = "\0".join(dict.fromkeys(filter(None, keys)))
        return self._digest("tenant", text.encode("utf-8", "surrogateescape"))[:32]

    def named(self, name: str) -> str:
        """Return the tenant of a name that the operator's clients give, as it is if it is plain.

        It never equals the tenant of a key.

        Example:
            >>> Secret(b"s" * 32).named("ann@example.org")
            'by-name:ann@example.org'
        """
        if len(name) > LONGEST_NAME or not re.fullmatch(r"[\w.@+-]+", name, re.ASCII):
            name = self._digest("name", name.encode("utf-8", "surrogateescape"))[:32]
        return f"by-name:{name}"

    def tenant_of(self, request: Request, by: str) -> str:
        """Name the tenant of a request, by a header, a claim of its token, or else its keys."""
        kind, _, name = by.partition(":")
        if kind == "one":
            return LOCAL
        given = [value for name in CREDENTIALS for value in request.headers.getlist(name)]
        if kind == "header" and (value := request.headers.get(name.strip(), "").strip()):
            return self.named(value)
        claims = (_claim(one, name.strip()) for one in given) if kind == "claim" else ()
        claimed = next(filter(None, claims), "")
        return self.named(claimed) if claimed else self.tenant(*given)

    def signing_key(self) -> str:
        """Return the default signing key."""
        return self._digest("signing", b"")

    def _digest(self, purpose: str, data: bytes) -> str:
        return hmac.new(self._raw, purpose.encode() + b"\0" + data, hashlib.sha256).hexdigest()


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
        beside = Path(rest[1:] if mark else archive).expanduser()
        file = beside.with_name(beside.name + ".secret")
    try:
        if file.absolute().parent == default_archive_path().parent:
            private_folder(file.absolute().parent)  # the archive comes after its secret
        _make(file)
        raw = bytes.fromhex(file.read_text("ascii").strip())
    except (OSError, ValueError) as error:
        why = (
            str(error.strerror) if isinstance(error, OSError) else "it holds no hexadecimal digits"
        )
        cure = "name another with --secret-file"
        raise ConfigError((f"the secret {file} cannot be used ({why}); {cure}",)) from None
    if len(raw) < LENGTH:
        why = f"is shorter than {LENGTH} bytes; delete it to have one made"
        raise ConfigError((f"the secret {file} {why}",))
    return Secret(raw)


def _make(file: Path) -> None:
    """Make a missing secret; of two made at once, one stands."""
    if file.exists():
        return
    mine = file.with_name(f"{file.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        number = os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(number, "w") as stream:
            stream.write(secrets.token_hex(LENGTH) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        with suppress(FileExistsError):
            os.link(mine, file)
    finally:
        mine.unlink(missing_ok=True)


class Tenants:
    """The names of the tenants of whom something is archived, for pages and `archive list`.

    They are a note beside the threads of the command line's own tenant.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive, self._known = archive, Newest[str, bool](MOST)

    def names(self) -> list[str]:
        """Return them, sorted; `local` where there are none. Raises ArchiveError."""
        note = self._archive.notes(LOCAL, "tenants", ["serve"]).get("serve", {})
        return sorted({*note.get("names", ()), *self._known.keys()}) or [LOCAL]

    def add(self, tenant: str) -> None:
        """Keep a name; a failure does not stop the answer."""
        if self._known.get(tenant) is not None:
            return
        self._known.put(tenant, True)
        try:
            self._archive.note(LOCAL, "tenants", {"serve": {"names": self.names()[-MOST:]}})
        except ArchiveError as error:
            logger.warning("the name of a tenant could not be kept: %s", error)
