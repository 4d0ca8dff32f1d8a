"""Stores that fail: the history stays, nothing is lost, a text says what to do, the thread goes on.

Each case is a failure that is brought about in earnest; `make stores` prints them all as a table.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conspectus.archive import Archive
from postgres_support import postgres_schema

pytestmark = pytest.mark.slow


sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
try:
    from failing_stores import main, went_through
    from store_failures import IN_MEMORY, SQLITE, Postgres
finally:
    sys.path.pop(0)


@pytest.mark.parametrize("case", [*IN_MEMORY, *SQLITE], ids=lambda case: case.name)
def test_a_store_that_fails_costs_no_message_and_no_turn(case):
    row = went_through(case)
    assert len(row.outcomes) == 4
    assert row.bad == []


@pytest.fixture(scope="module")
def postgres() -> Iterator[Any]:
    """The cases on a schema of its own."""
    from langgraph.store.postgres import PostgresStore

    with postgres_schema() as address:
        with PostgresStore.from_conn_string(address) as store:
            store.setup()
        yield {case.name: case for case in Postgres(address).cases()}


@pytest.mark.postgres
@pytest.mark.parametrize(
    "name",
    [
        "connection terminated, at each step",
        "the same, from a pool",
        "locked by another process",
        "the same, with statement_timeout",
        "the server stalls",
    ],
)
def test_a_server_that_fails_costs_no_message_and_no_turn(postgres, name):
    row = went_through(postgres[name], every=6)
    assert len(row.outcomes) >= 4
    assert row.bad == []


def test_a_store_that_forgets_would_cost_messages_if_nobody_looked(monkeypatch):
    monkeypatch.setattr(Archive, "missing", lambda self, scope, entries: ())
    [case] = [one for one in IN_MEMORY if one.name == "confirms and forgets every fourth"]
    assert any(one.lost for one in went_through(case).bad)


def test_the_table_is_printed(capsys):
    assert main(["--only", "other content"]) == 0
    assert "gives back other content" in capsys.readouterr().out
