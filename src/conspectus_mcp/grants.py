"""Decide which tenants and threads a client sees, by its token."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

import yaml  # type: ignore[import-untyped]
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from conspectus.archive import Scope
from conspectus.errors import InputError

SHORTEST = 16
"""Minimum characters of a token; `openssl rand -hex 32` gives 64."""


@dataclass(frozen=True, slots=True)
class Grant:
    """The threads that one client may read: each tenant with its threads, None for all of them.

    Example:
        >>> grant = Grant({"ann": None, "team": frozenset({"plans"})})
        >>> grant.allows("ann", "any"), grant.allows("team", "plans"), grant.allows("team", "pay")
        (True, True, False)
    """

    tenants: Mapping[str, frozenset[str] | None]

    @classmethod
    def of(cls, tenants: Sequence[str] = (), threads: Sequence[str] = ()) -> Self:
        """Make a grant of whole tenants, or of threads of one tenant (default: `local`).

        Raises:
            InputError: nothing is named, or threads of several tenants.
        """
        if not tenants and not threads:
            raise InputError(
                "nothing is granted; name what the client may read: --tenant NAME for all threads "
                "of a tenant, or --thread NAME for one of them, each as often as needed"
            )
        if threads and len(set(tenants)) > 1:
            raise InputError("--thread goes with one --tenant; name the tenant of these threads")
        return cls({one: frozenset(threads) or None for one in tenants or ["local"]})

    def allows(self, tenant: str, thread: str) -> bool:
        """Return whether the client may read a thread."""
        threads = self.tenants.get(tenant, frozenset())
        return threads is None or thread in threads


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    token: Annotated[str, Field(min_length=SHORTEST)] | None = None
    token_env: str | None = None
    token_sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    tenants: list[str] = []
    threads: dict[str, list[str]] = {}

    def digest(self) -> str:
        """Return the digest of the one token; an `InputError` says why there is none."""
        if sum(one is not None for one in (self.token, self.token_env, self.token_sha256)) != 1:
            raise InputError("give one of token, token_env and token_sha256")
        if not self.tenants and not any(self.threads.values()):
            raise InputError("grants nothing; name tenants, or threads of a tenant")
        token = self.token or os.environ.get(self.token_env or "", "")
        if not self.token_sha256 and len(token) < SHORTEST:
            raise InputError(f"the environment variable {self.token_env} holds no token; set it")
        return self.token_sha256 or digest(token)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    clients: Annotated[dict[str, _Row], Field(min_length=1)]


def read_grants(path: Path) -> dict[str, Grant]:
    """Read the YAML file of clients: their grants by the digests of their tokens.

    Under `clients` each name has one of `token`, `token_env` (a variable of the environment) and
    `token_sha256`, and `tenants` (a list of names), `threads` (of a tenant, a list of names), or
    both.

    Raises:
        InputError: it cannot be read, or is invalid; no token is shown.

    Example:
        `read_grants(Path("grants.yaml"))`
    """
    grants: dict[str, Grant] = {}
    where = ""
    try:
        clients = _File.model_validate(yaml.safe_load(path.read_text(encoding="utf-8"))).clients
        for name, row in clients.items():
            where = f"clients.{name}: "
            threads = {tenant: frozenset(names) for tenant, names in row.threads.items() if names}
            grants[row.digest()] = Grant({**threads, **dict.fromkeys(row.tenants)})
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "it is no UTF-8"
        raise InputError(f"the grant file {path} cannot be read: {why}") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark is not None else ""
        raise InputError(f"{path}, {line}this is no YAML; see docs/mcp.md for the form") from error
    except (ValidationError, InputError) as error:
        why = f"{where}{error}"
        if isinstance(error, ValidationError):
            why = "; ".join(map(problem_of, error.errors(include_input=False, include_url=False)))
        raise InputError(f"{path}: {why}; see docs/mcp.md for the form") from None
    if len(grants) < len(clients):
        raise InputError(f"{path}: two clients have the same token; give each its own")
    return grants


def digest(token: str) -> str:
    """Return the SHA-256 of a token, in hexadecimal digits."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def handle_of(scope: Scope) -> str:
    """Return a thread's id of 16 hexadecimal digits, whatever characters its name has."""
    return hashlib.sha256("".join(scope.hashes[:2]).encode()).hexdigest()[:16]


def problem_of(error: Mapping[str, Any]) -> str:
    """Say what is wrong with a value that pydantic has refused, without the value.

    Example:
        >>> problem_of({"loc": ("limit",), "type": "int_parsing", "msg": "Input should be an int"})
        'limit: should be an int'
    """
    where = ".".join(map(str, error["loc"])) or "the file"
    if error["type"] == "missing":
        return f"{where} is missing; give it"
    text = re.sub("^Value error, |^Input |, unable.*|Extra inputs are", "", str(error["msg"]))
    return f"{where}: {text.strip()}"
