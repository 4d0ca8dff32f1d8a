"""A PostgreSQL server for tests that need one: given by the environment, or found nearby."""

import os
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from urllib.parse import quote

import pytest

VARIABLE = "CONSPECTUS_TEST_POSTGRES"
NEARBY = (
    "postgresql:///test?host=/var/run/postgresql",
    "postgresql://postgres@127.0.0.1:5432/test",
)


@cache
def _find() -> tuple[str | None, str]:
    psycopg = pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")
    chosen = os.environ.get(VARIABLE)
    reasons = []
    for address in (chosen,) if chosen else NEARBY:
        try:
            psycopg.connect(address, connect_timeout=3).close()
            return address, ""
        except psycopg.Error as error:
            reasons.append(str(error).strip().splitlines()[0])
    return None, "; ".join(reasons)


@contextmanager
def postgres_schema() -> Iterator[str]:
    """The address of an empty schema of its own, dropped at the end; skips without a server."""
    address, reason = _find()
    if address is None:
        pytest.skip(f"NO POSTGRESQL SERVER ANSWERED; set {VARIABLE} to an address ({reason})")
    import psycopg

    name = f"conspectus_test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
        try:
            # No server is killed here, so nobody has to wait for its disk.
            options = quote(f"-csearch_path={name} -csynchronous_commit=off")
            yield f"{address}{'&' if '?' in address else '?'}options={options}"
        finally:
            connection.execute(f"DROP SCHEMA {name} CASCADE")


if __name__ == "__main__":  # for scripts: whether a server answers
    sys.exit(0 if _find()[0] else 1)
