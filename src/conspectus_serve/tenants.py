"""Say whose a request is: by one name, a header, a claim, or a keyed hash of the client's key."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import os
import re
import secrets
from contextlib import suppress
from pathlib import Path

from starlette.requests import Request

from conspectus.archive import Archive
from conspectus.errors import ArchiveError, ConfigError

logger = logging.getLogger("conspectus.serve")

LENGTH = 32  # bytes of a secret, as many as the digest of SHA-256 has
LOCAL = "local"  # the tenant of an endpoint with one tenant: also that of the command line
MOST = 1_000  # tenants whose names are kept
CREDENTIALS = ("authorization", "x-api-key", "api-key")  # OpenAI's, Anthropic's, Azure's

_PLAIN = re.compile(r"[\w.@+-]{1,100}", re.ASCII)  # a name that stands for itself
_SCHEME = re.compile(r"^(?:bearer|basic)\s", re.IGNORECASE)


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
        return self._digest("tenant", "\0".join(dict.fromkeys(filter(None, keys))))[:32]

    def tenant_of(self, request: Request, by: str) -> str:
        """Name the tenant of a request, by a header, a claim of its token, or else its keys.

        What clients give stands behind `by-name:`, so that it never equals the tenant of a key.
        """
        kind, _, name = by.partition(":")
        keys = [value for one in CREDENTIALS for value in request.headers.getlist(one)]
        if kind == "one":
            return LOCAL
        named = ""
        if kind == "header":
            named = request.headers.get(name.strip(), "").strip()
        elif kind == "claim":
            named = next(filter(None, (_claim(one, name.strip()) for one in keys)), "")
        if not named:
            return self.tenant(*keys)
        plain = named if _PLAIN.fullmatch(named) else self._digest("name", named)[:32]
        return f"by-name:{plain}"

    def signing_key(self) -> str:
        """Return the default signing key."""
        return self._digest("signing", "")

    def _digest(self, purpose: str, text: str) -> str:
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
            _make(file)
        raw = bytes.fromhex(file.read_text("ascii").strip())
        if len(raw) < LENGTH:
            raise ValueError
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or f"it holds no {2 * LENGTH} hexadecimal digits"
        cure = "name another with --secret-file, or delete it to have one made"
        raise ConfigError((f"the secret {file} cannot be used ({why}); {cure}",)) from None
    return Secret(raw)


def _make(file: Path) -> None:
    """Make a missing secret; of two made at once, one stands."""
    mine = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
    try:
        with open(mine, "x", opener=lambda path, flags: os.open(path, flags, 0o600)) as stream:
            stream.write(secrets.token_hex(LENGTH) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        with suppress(FileExistsError):
            file.hardlink_to(mine)
    finally:
        mine.unlink(missing_ok=True)


def tenants_in(archive: Archive) -> list[str]:
    """Return the names of the tenants of whom something is archived, sorted.

    They are a note beside the threads of the command line's own tenant. Raises ArchiveError.
    """
    note = archive.notes(LOCAL, "tenants", ["serve"]).get("serve", {})
    return sorted(note.get("names", ()))


def add_tenant(archive: Archive, tenant: str) -> None:
    """Keep a name; a failure does not stop the answer."""
    try:
        names = {*tenants_in(archive), tenant}
        archive.note(LOCAL, "tenants", {"serve": {"names": sorted(names)[-MOST:]}})
    except ArchiveError as error:
        logger.warning("the name of a tenant could not be kept: %s", error)
