"""Find the tenant of a request, check whether it is allowed, and read its body.

The operator chooses how tenants are named: one for all, a header, a claim, or a keyed hash of the
client's key.
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
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from urllib.parse import urlsplit

from starlette.requests import Request

from conspectus.archive import Archive, Scope
from conspectus.engine.history import LOCAL
from conspectus.errors import ArchiveError, ConfigError
from conspectus_serve.codings import CODINGS, CodingError, Decoder, GrowthError, codings_in
from conspectus_serve.protocols import HttpError
from conspectus_serve.settings import ServeSettings, is_loopback

logger = logging.getLogger("conspectus.serve")

SECRET_BYTES = 32
"""The length of a digest of SHA-256."""

TENANT_OF_NAMES = "conspectus serve"
"""The threads of this tenant are the names of our tenants."""

REMEMBERED_HOSTS = 64
"""Names of hosts that are remembered, with whether they are this machine; clients use few."""

MOST_TENANTS = 1_000
"""The most tenants that a page shows."""

CREDENTIALS = ("authorization", "x-api-key", "api-key")
"""Headers with a client's key: OpenAI's, Anthropic's, Azure's."""

MOST_GZIP_MEMBERS = 1_000
"""The most gzip members of a request's body, because each costs as much as many bytes."""

_PLAIN_NAME = re.compile(r"[\w.@+-]{1,100}", re.ASCII)  # a name that is used as it is
_SCHEME = re.compile(r"^(?:bearer|basic)\s", re.IGNORECASE)
_DOT_SEGMENT = re.compile(
    r"(?:^|[/\\]|%2f|%5c)(?:\.|%2e){1,2}(?:$|[/\\?#]|%2f|%5c)|\\", re.IGNORECASE
)
"""A step such as `..`. The upstream would resolve the path to one that was not checked."""


class TenantSecret:
    """Bytes that only the operator has. Names of tenants are made with them.

    Example:
        >>> secret = TenantSecret(b"s" * 32)
        >>> secret.tenant("Bearer k1") == secret.tenant("k1")
        True
    """

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def tenant(self, *credentials: str) -> str:
        """Name the tenant of credentials by a keyed hash, which does not reveal them.

        All keys are used: the endpoint does not know which one the upstream reads, and one may be a
        placeholder that several clients send.
        """
        keys = [_SCHEME.sub("", credential.strip()).strip() for credential in credentials]
        distinct_keys = dict.fromkeys(filter(None, keys))
        return self.digest("tenant", "\0".join(distinct_keys))[:32]

    def tenant_of(self, request: Request, rule: str) -> str:
        """Name the tenant of a request by a rule: `one`, `key`, `header:NAME` or `claim:NAME`.

        If the header or claim is missing, the tenant is that of the request's keys. Names that
        clients send get the prefix `by-name:`, so that they never equal the tenant of a key.
        """
        source, _, name = rule.partition(":")
        if source == "one":
            return LOCAL
        keys = [key for header in CREDENTIALS for key in request.headers.getlist(header)]
        tenant_name = ""
        if source == "header":
            tenant_name = request.headers.get(name.strip(), "").strip()
        elif source == "claim":
            claims = (_claim(key, name.strip()) for key in keys)
            tenant_name = next(filter(None, claims), "")
        if not tenant_name:
            return self.tenant(*keys)
        if not _PLAIN_NAME.fullmatch(tenant_name):
            tenant_name = self.digest("name", tenant_name)[:32]
        return f"by-name:{tenant_name}"

    def digest(self, purpose: str, text: str) -> str:
        """Return a keyed hash of a text, for one purpose only."""
        data = purpose.encode() + b"\0" + text.encode("utf-8", "surrogateescape")
        return hmac.new(self._raw, data, hashlib.sha256).hexdigest()


def _claim(credential: str, name: str) -> str:
    """Return a claim of a JSON Web Token (RFC 7519), which the upstream checks; else ""."""
    try:
        _, payload, _ = credential.split()[-1].split(".")
        padding = "=" * (-len(payload) % 4)
        claims = json.loads(base64.urlsafe_b64decode(payload + padding))
        value = claims.get(name)
    except (ValueError, AttributeError, IndexError, RecursionError):
        return ""
    is_name = isinstance(value, (str, int)) and not isinstance(value, bool)
    return str(value) if is_name else ""


def secret_beside(archive: str, file: Path | None) -> TenantSecret:
    """Read the secret from a file, by default next to the archive; make the file at first.

    Only its owner can read the file.

    Raises:
        ConfigError: the file cannot be read or made, or instances would have different secrets.
    """
    if file is None:
        if archive in ("memory:", ":memory:"):
            return TenantSecret(secrets.token_bytes(SECRET_BYTES))
        file = _default_secret_file(archive)
    try:
        if not file.exists():
            _make_secret_file(file)
        raw = bytes.fromhex(file.read_text("ascii").strip())
        if len(raw) < SECRET_BYTES:
            raise ValueError
    except (OSError, ValueError) as error:
        no_digits = f"it holds no {2 * SECRET_BYTES} hexadecimal digits"
        reason = getattr(error, "strerror", None) or no_digits
        remedy = "name another with --secret-file, or delete it to have one made"
        raise ConfigError((f"the secret {file} cannot be used ({reason}); {remedy}",)) from None
    return TenantSecret(raw)


def _default_secret_file(archive: str) -> Path:
    """Return the file next to an archive; raise `ConfigError` if the archive is no file."""
    scheme, is_url, address = archive.partition("://")
    if is_url and scheme != "sqlite":
        need = "several instances on one archive need one secret: name a file that all of them"
        remedy = "read, with --secret-file or serve.secret_file; it is made where it is missing"
        raise ConfigError((f"{need} {remedy}",))
    path = address[1:] if is_url else archive
    return Path(f"{path}.secret").expanduser()


def _make_secret_file(file: Path) -> None:
    """Make a secret; if two are made at once, one of them is used."""
    with NamedTemporaryFile("w", dir=file.parent) as temporary, suppress(FileExistsError):
        temporary.write(secrets.token_hex(SECRET_BYTES) + "\n")
        temporary.flush()
        os.fsync(temporary.fileno())
        file.hardlink_to(temporary.name)


def tenants_in(archive: Archive) -> tuple[str, ...]:
    """Return the sorted names of tenants with archived messages. Raises ArchiveError.

    Each name is stored as a thread of one special tenant, so that two names can be added at the
    same moment.
    """
    return archive.threads(TENANT_OF_NAMES)[:MOST_TENANTS]


def add_tenant(archive: Archive, tenant: str) -> None:
    """Store a name; a failure does not stop the answer."""
    try:
        archive.write_remarks(Scope(TENANT_OF_NAMES, tenant), "tenant", {"": {}})
    except ArchiveError as error:
        logger.warning("the name of a tenant could not be kept: %s", error)


class Entrance:
    """Checks requests before anything is done with them."""

    def __init__(self, settings: ServeSettings) -> None:
        self._settings = settings
        self._is_here = lru_cache(REMEMBERED_HOSTS)(self._names_this_machine)

    def check(self, request: Request) -> None:
        """Refuse a request without the token, of another site's page, or with a path elsewhere."""
        if request.headers.get("upgrade", "").lower() == "websocket":
            raise HttpError(426, "WebSockets are not served here; use HTTP")
        if self._settings.token is None:
            self._check_site(request)
        elif not self._is_token(request.headers.get("x-conspectus-token", "")):
            raise HttpError(401, "send the token of this endpoint as x-conspectus-token")
        target = request.scope.get("raw_path", b"").decode("latin-1")
        if not target.startswith("/") or target.startswith("//") or _DOT_SEGMENT.search(target):
            raise HttpError(400, "this path has steps that lead elsewhere; write it plainly")

    def check_page(self, request: Request) -> None:
        """Check that a request may see the pages: from this machine, or with the token.

        A browser asks for the token as a password. If clients of several tenants have the token,
        the request must also come from this machine without a proxy, because a page shows all
        tenants.

        Raises:
            HttpError: the request may not see the page.
        """
        token = self._settings.token
        if token is None:
            self._check_site(request)
        shows_one_tenant = self._settings.tenant_source == "one"
        if not _is_of_this_machine(request) and (token is None or not shows_one_tenant):
            raise HttpError(403, "this page is for this machine alone, as it shows all tenants")
        if token is not None and not self._is_token(_password_of(request)):
            raise HttpError(401, "the token of this endpoint is the password of this page")

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), (self._settings.token or "").encode())

    def _check_site(self, request: Request) -> None:
        """Keep out web pages: a browser on this machine reaches loopback for any site.

        A page can point its own name at 127.0.0.1 (DNS rebinding), but cannot choose `Host` or
        `Origin`. The transport section of the Model Context Protocol requires the same check.
        Programs send no origin. The origin of a page has http or https; another scheme, such as
        `file:` or that of an app, needs its host in `serve.hosts`.
        """
        names = request.headers.getlist("host")
        # A browser sends the host in each request. Only a client of HTTP/1.0 may leave it out.
        unnamed = not names and request.scope.get("http_version") == "1.0"
        if not unnamed and (len(names) != 1 or not self._is_here(f"//{names[0]}")):
            problem = "this endpoint is asked for by a name that is not of this machine"
            remedy = "use 127.0.0.1 or localhost, add the name to serve.hosts, or set a token"
            raise HttpError(421, f"{problem}; {remedy}")
        for origin in request.headers.getlist("origin"):
            if not self._is_own_page(origin):
                remedy = "add its host to serve.hosts, or set a token"
                raise HttpError(403, f"a page of another site may not use this endpoint; {remedy}")

    def _is_own_page(self, origin: str) -> bool:
        if origin.lower().startswith(("http://", "https://")):
            return self._is_here(origin)
        return _host_of(origin) in self._settings.own_hosts

    def _names_this_machine(self, address: str) -> bool:
        host = _host_of(address)
        return host is not None and (is_loopback(host) or host in self._settings.own_hosts)

    async def body(self, request: Request, *, is_decoded: bool) -> bytes:
        """Read the body of a request, and decompress it if it is to be decoded.

        Raises:
            HttpError: it is too large, or not in the codings that its header names.
        """
        largest = self._settings.max_body_bytes
        raw = bytearray()
        async for piece in request.stream():
            raw += piece
            if len(raw) > largest:
                raise _too_large(largest)
        codings = codings_in(",".join(request.headers.getlist("content-encoding")))
        if not is_decoded or not codings:
            return bytes(raw)
        return await asyncio.to_thread(_decompress, bytes(raw), codings, largest)


def _is_of_this_machine(request: Request) -> bool:
    """Tell whether a request comes from this machine, and not through a proxy."""
    if request.client is None or not is_loopback(request.client.host):
        return False
    return "forwarded" not in request.headers and "x-forwarded-for" not in request.headers


def _password_of(request: Request) -> str:
    """Return the password that a browser sends, or a program in a header of ours."""
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic":
        with suppress(ValueError):
            user_and_password = base64.b64decode(credentials).decode("utf-8", "replace")
            return user_and_password.partition(":")[2]
    return request.headers.get("x-conspectus-token", "")


def _host_of(address: str) -> str | None:
    """Return the host of an address; empty if it has none; None if it is no address."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return None


def _too_large(largest: int) -> HttpError:
    remedy = "send less at once, or raise serve.max_body_bytes"
    return HttpError(413, f"the request is larger than {largest:,} bytes; {remedy}")


def _decompress(raw: bytes, codings: list[str], largest: int) -> bytes:
    """Decompress a body, up to the size that a request may have. Raises HttpError."""
    for coding in reversed(codings):
        if coding not in CODINGS:
            readable = ", ".join(CODINGS)
            raise HttpError(415, f"a body in {coding[:20]!r} is not read here; send {readable}")
    decoder = Decoder(codings, largest=largest, most_gzip_members=MOST_GZIP_MEMBERS)
    try:
        text = decoder.decode(raw)
        decoder.end()
    except CodingError as error:
        raise HttpError(400, f"the body is not in {error}, as its header says") from None
    except GrowthError:
        raise _too_large(largest) from None
    return text
