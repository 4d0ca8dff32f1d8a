"""The secret of an endpoint: names of tenants, and signatures of what clients bring back."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path

from conspectus.archive import default_archive_path
from conspectus.archive.backend import private_folder
from conspectus.errors import ConfigError

LENGTH = 32
"""Bytes of a secret, as many as the digest of SHA-256 has."""

PREFIXES = ("bearer ", "basic ")
"""Schemes of an `authorization` header; the key behind them names the tenant."""


class Secret:
    """Bytes that only the operator has.

    Args:
        raw: the bytes.

    Example:
        >>> Secret(b"s" * 32).tenant("Bearer k1") == Secret(b"s" * 32).tenant("k1")
        True
    """

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def __repr__(self) -> str:
        return "Secret(...)"

    def tenant(self, *credentials: str) -> str:
        """The tenant of a client's credentials: a keyed hash, from which nobody reads a key.

        Of several keys each counts: which one the upstream asks for is not known here, and one of
        them may be a placeholder that others send, too.
        """
        keys = dict.fromkeys(key for one in credentials if (key := _key(one)))
        return self._digest("tenant", "\0".join(keys).encode("utf-8", "surrogateescape"))[:32]

    def signing_key(self) -> str:
        """The key that signs where the operator has given none."""
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
    """The secret of a file, made there at the first start, for its owner alone.

    Args:
        archive: where originals go.
        file: where the secret is; None for beside the archive.

    Raises:
        ConfigError: it cannot be read or made, or nothing says where it is.
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
    """Make a secret where there is none; of two that make one at once, one stands."""
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
