"""Decide which tenants and threads a client sees, by its token."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

import yaml  # type: ignore[import-untyped]
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from conspectus.errors import InputError

SHORTEST = 16
"""Minimum characters of a token; `openssl rand -hex 32` gives 64."""

LOCAL = "local"
"""Default tenant of named threads."""


@dataclass(frozen=True, slots=True)
class Grant:
    """The threads that one client may read.

    Attributes:
        tenants: each tenant with its threads; None for all of them.

    Example:
        >>> grant = Grant({"ann": None, "team": frozenset({"plans"})})
        >>> grant.allows("ann", "any"), grant.allows("team", "plans"), grant.allows("team", "pay")
        (True, True, False)
    """

    tenants: Mapping[str, frozenset[str] | None]

    @classmethod
    def of(cls, tenants: Sequence[str] = (), threads: Sequence[str] = ()) -> Self:
        """Make a grant from the options of a command line.

        Args:
            tenants: names of tenants.
            threads: names of threads of the one tenant; without a tenant, of `local`.

        Raises:
            InputError: nothing is named, or threads of several tenants.
        """
        if not tenants and not threads:
            raise InputError(
                "nothing is granted; name what the client may read: --tenant NAME for all threads "
                "of a tenant, or --thread NAME for one of them, each as often as needed"
            )
        if not threads:
            return cls(dict.fromkeys(tenants))
        if len(set(tenants)) > 1:
            raise InputError("--thread goes with one --tenant; name the tenant of these threads")
        return cls({tenants[0] if tenants else LOCAL: frozenset(threads)})

    def allows(self, tenant: str, thread: str) -> bool:
        """Return whether the client may read a thread."""
        if tenant not in self.tenants:
            return False
        threads = self.tenants[tenant]
        return threads is None or thread in threads


@dataclass(frozen=True, slots=True)
class Client:
    """A client with a token.

    Attributes:
        name: in the log.
        digest: SHA-256 of its token, in hexadecimal digits.
    """

    name: str
    digest: str
    grant: Grant


def client_of(clients: Sequence[Client], token: str) -> Client | None:
    """Return the client of a token, in constant time; None for an unknown one."""
    digest = _digest(token)
    found = [one for one in clients if hmac.compare_digest(one.digest, digest)]
    return found[0] if found else None


class _Row(BaseModel):
    """One client of the file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    token: Annotated[str, Field(min_length=SHORTEST)] | None = None
    token_env: str | None = None
    token_sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    tenants: list[str] = []
    threads: dict[str, list[str]] = {}

    @model_validator(mode="after")
    def _means_something(self) -> Self:
        given = (self.token, self.token_env, self.token_sha256)
        if sum(one is not None for one in given) != 1:
            raise ValueError("give one of token, token_env and token_sha256")
        if not self.tenants and not any(self.threads.values()):
            raise ValueError("grants nothing; name tenants, or threads of a tenant")
        return self

    def client(self, name: str) -> Client:
        digest, token = self.token_sha256, self.token
        if self.token_env is not None:
            token = os.environ.get(self.token_env, "")
            if len(token) < SHORTEST:
                raise InputError(
                    f"client {name!r}: the environment variable {self.token_env} holds no token of "
                    f"{SHORTEST} characters or more; set it"
                )
        tenants: dict[str, frozenset[str] | None] = {
            tenant: frozenset(threads) for tenant, threads in self.threads.items() if threads
        }
        tenants.update(dict.fromkeys(self.tenants))
        return Client(name, digest or _digest(token or ""), Grant(tenants))


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    clients: Annotated[dict[str, _Row], Field(min_length=1)]


def read_grants(path: Path) -> tuple[Client, ...]:
    """Read the file of clients and their grants.

    Args:
        path: YAML; under `clients` each name has one of `token`, `token_env` (a variable of the
            environment) and `token_sha256`, and `tenants` (a list of names), `threads` (of a
            tenant, a list of names), or both.

    Raises:
        InputError: it cannot be read, or is invalid; no token is shown.

    Example:
        `read_grants(Path("grants.yaml"))`
    """
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "it is no UTF-8"
        raise InputError(f"the grant file {path} cannot be read: {why}") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        raise InputError(f"{path}{where}: this is no YAML; see docs/mcp.md for the form") from error
    try:
        rows = _File.model_validate(data)
    except ValidationError as error:
        said = "; ".join(
            f"{'.'.join(map(str, one['loc'])) or 'the file'}: {one['msg']}"
            for one in error.errors(include_input=False, include_url=False)
        )
        raise InputError(f"{path}: {said}") from None
    clients = tuple(row.client(name) for name, row in rows.clients.items())
    by_digest: dict[str, str] = {}
    for one in clients:
        other = by_digest.setdefault(one.digest, one.name)
        if other != one.name:
            raise InputError(f"{path}: {other!r} and {one.name!r} have the same token")
    return clients


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
