"""Keep the endpoint's secret, which names tenants and signs items."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from contextlib import suppress
from pathlib import Path

from conspectus.archive import default_archive_path
from conspectus.archive.sqlite import private_folder
from conspectus.errors import ConfigError

LENGTH = 32
"""Bytes of a secret, as many as the digest of SHA-256 has."""

LOCAL = "local"
"""The tenant of an endpoint with one tenant: also that of the command line."""

LONGEST_NAME = 100
"""Maximum characters of a tenant's name that stands for itself."""

PREFIXES = ("bearer ", "basic ")
"""Schemes of an `authorization` header before the key."""


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
        keys = dict.fromkeys(key for one in credentials if (key := _key(one)))
        return self._digest("tenant", "\0".join(keys).encode("utf-8", "surrogateescape"))[:32]

    def named(self, name: str) -> str:
        """Return the tenant of a name that the operator's clients give, as it is if it is plain.

        It never equals the tenant of a key.

        Example:
            >>> Secret(b"s" * 32).named("ann@example.org")
            'by-name:ann@example.org'
        """
        plain = len(name) <= LONGEST_NAME and re.fullmatch(r"[\w.@+-]+", name, re.ASCII)
        if not plain:
            name = self._digest("name", name.encode("utf-8", "surrogateescape"))[:32]
        return f"by-name:{name}"

    def signing_key(self) -> str:
        """Return the default signing key."""
        return self._digest("signing", b"")

    def _digest(self, purpose: str, data: bytes) -> str:
        return hmac.new(self._raw, purpose.encode() + b"\0" + data, hashlib.sha256).hexdigest()


def _key(credential: str) -> str:
    text = credential.strip()
    for prefix in PREFIXES:
        if text.lower().startswith(prefix):
            text = text[len(prefix) :].strip()
    return text


def secret_beside(archive: str, file: Path | None) -> Secret:
    """Read the secret of a file, and make it at the first start, readable by its owner alone.

    Args:
        archive: where originals go.
        file: of the secret. Default: beside the archive.

    Raises:
        ConfigError: it cannot be read or made, or its place is not known.
    """
    if file is None:
        scheme, mark, rest = archive.partition("://")
        if archive in ("memory:", ":memory:"):
            return Secret(secrets.token_bytes(LENGTH))
        if mark and scheme != "sqlite":
            raise ConfigError(
                (
                    "several instances on one archive need one secret: name a file that all of "
                    "them read, with --secret-file or serve.secret_file; it is made where it is "
                    "missing",
                )
            )
        beside = Path(rest[1:] if mark else archive).expanduser()
        file = beside.with_name(beside.name + ".secret")
    try:
        if file.absolute().parent == default_archive_path().parent:
            private_folder(file.absolute().parent)  # the archive comes after its secret
        _make(file)
        raw = bytes.fromhex(file.read_text("ascii").strip())
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it holds no hexadecimal digits"
        raise ConfigError(
            (f"the secret {file} cannot be used ({why}); name another with --secret-file",)
        ) from None
    if len(raw) < LENGTH:
        raise ConfigError(
            (f"the secret {file} is shorter than {LENGTH} bytes; delete it to have one made",)
        )
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
