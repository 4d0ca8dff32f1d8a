"""Decide which tenants and threads a client sees, by its token."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from conspectus.archive import Scope
from conspectus.config.reading import read_section
from conspectus.errors import ConfigError

SHORTEST_TOKEN = 16
"""The fewest characters of a token; `openssl rand -hex 32` prints 64."""

Grant = Mapping[str, frozenset[str] | None]
"""The threads that one client may read: names by tenant, or None for all of a tenant."""

ONLY_CLIENT = ""
"""It is used instead of a token's digest, for a process with one client."""


class _Client(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    token: Annotated[str, Field(min_length=SHORTEST_TOKEN)] | None = Field(None, repr=False)
    token_sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = Field(None, repr=False)
    tenants: list[str] = []
    threads: dict[str, list[str]] = {}

    @model_validator(mode="after")
    def _has_a_token_and_a_grant(self) -> Self:
        if (self.token is None) == (self.token_sha256 is None):
            raise ValueError("give one of token and token_sha256")
        if not self.tenants and not any(self.threads.values()):
            raise ValueError("grants nothing; name tenants, or threads of a tenant")
        return self


def read_grants(path: Path) -> dict[str, Grant]:
    """Read the YAML file of clients: their grants by the digests of their tokens.

    Under `clients` each name has one of `token` (`$NAME` for a variable of the environment) and
    `token_sha256`, and `tenants` (a list of names), `threads` (of a tenant, a list of names), or
    both.

    Raises:
        ConfigError: the file cannot be read, or is invalid. The error has the line of each mistake,
            and no tokens.
    """
    section, source = read_section(path, "clients")
    try:
        clients = TypeAdapter(dict[str, _Client]).validate_python(section or {})
    except ValidationError as error:
        raise ConfigError(source.problems(source.mistakes(error, _Client))) from None
    grants = dict[str, Grant]()
    for client in clients.values():
        threads = {tenant: frozenset(names) for tenant, names in client.threads.items() if names}
        token_digest = client.token_sha256 or digest(client.token or "")
        grants[token_digest] = {**threads, **dict.fromkeys(client.tenants)}
    if not grants or len(grants) < len(clients):
        raise source.error((), "name clients, each with a token of its own; docs/mcp.md has a file")
    return grants


def digest(token: str) -> str:
    """Return the SHA-256 of a token, in hexadecimal digits."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def handle_of(scope: Scope) -> str:
    """Return a thread's id of 16 hexadecimal digits, whatever characters its name has."""
    return hashlib.sha256("".join(scope.hashes[:2]).encode()).hexdigest()[:16]
