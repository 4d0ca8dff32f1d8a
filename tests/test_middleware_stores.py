"""The middleware over real checkpointers and stores, with and without an event loop."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

from conspectus import Compactor
from conspectus.archive import Archive, Scope
from graph_support import (
    agent,
    check_nothing_lost,
    check_sent,
    middleware,
    said,
    steps,
    thread,
)
from postgres_support import postgres_schema

POSTGRES = pytest.param("postgres", marks=pytest.mark.postgres)
KINDS = ["memory", "sqlite", POSTGRES]


@contextlib.contextmanager
def parts(kind: str, folder: Path) -> Iterator[tuple[Any, Any]]:
    """A checkpointer and a store."""
    if kind == "memory":
        yield InMemorySaver(), InMemoryStore()
    elif kind == "sqlite":
        connection = sqlite3.connect(
            folder / "store.db", check_same_thread=False, isolation_level=None
        )
        store = SqliteStore(connection)
        store.setup()
        with SqliteSaver.from_conn_string(str(folder / "checkpoints.db")) as saver:
            yield saver, store
        connection.close()
    else:
        from langgraph.checkpoint.postgres import PostgresSaver
        from langgraph.store.postgres import PostgresStore

        with (
            postgres_schema() as address,
            PostgresSaver.from_conn_string(address) as saver,
            PostgresStore.from_conn_string(address) as store,
        ):
            saver.setup()
            store.setup()
            yield saver, store


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_two_turns_a_step_back_and_a_recall(kind, tmp_path):
    with parts(kind, tmp_path) as (saver, store):
        own = middleware()
        script = [*steps(12), *steps(12, prefix="n"), *steps(12, prefix="f")]
        graph, model = agent(script, own, store=store, checkpointer=saver)
        graph.invoke(said("Look at all modules."), thread())
        fork = graph.get_state(thread()).config
        graph.invoke(said("And now at n."), thread())
        assert check_nothing_lost(graph, store) > 40
        recall = Compactor(archive=store).recall
        assert "module n1:" in recall("module n1", thread_id="t", tokens=4000).text
        graph.invoke(said("Rather at f."), fork)
        assert check_nothing_lost(graph, store) > 40
        assert "module n1:" not in str(Archive(store).export(Scope("local", "t")))
        assert "module f1:" in recall("module f1", thread_id="t", tokens=4000).text
        assert "module m1:" in recall("module m1", thread_id="t", tokens=4000).text
        check_sent(model)


@pytest.mark.parametrize("tenants", [("ann", "bob")])
def test_tenants_with_one_name_for_a_thread_see_nothing_of_each_other(tenants):
    store = InMemoryStore()
    for tenant in tenants:
        own = middleware(tenant=lambda runtime, name=tenant: name)
        graph, model = agent(steps(12, prefix=tenant), own, store=store)
        graph.invoke(said("Look at all modules."), thread())
        assert check_nothing_lost(graph, store, tenant=tenant) > 10
        check_sent(model)
    for tenant, other in (tenants, tenants[::-1]):
        rows = str(Archive(store).export(Scope(tenant, "t")))
        assert f"module {tenant}1:" in rows
        assert f"module {other}" not in rows


def test_a_thread_that_changes_its_archive_leaves_both_in_order():
    archives, saver = [InMemoryStore(), InMemoryStore()], InMemorySaver()
    for turn, prefix in enumerate("mnk"):
        own = middleware(archive=archives[turn % 2])
        graph, model = agent(steps(8, prefix=prefix), own, checkpointer=saver, store=None)
        graph.invoke(said("Look at all modules."), thread())
        check_sent(model)
        assert own.model.calls
    scope = Scope("local", "t")
    for store in archives:
        archive = Archive(store)
        assert archive.chain(scope), "it points to a record that it does not hold"
        for record in archive.records(scope):
            assert len(archive.get(scope, record.covers)) == len(record.covers)


def test_a_step_in_another_archive_does_not_touch_this_one():
    """A state whose record is elsewhere says nothing of what is in force here."""
    archives, saver = [InMemoryStore(), InMemoryStore()], InMemorySaver()
    scope = Scope("local", "t")
    for store, count in zip([*archives, archives[0]], [8, 8, 0], strict=True):
        own = middleware(archive=store, trigger=("messages", 10 if count else 1000))
        graph, _ = agent(steps(count), own, checkpointer=saver, store=None)
        graph.invoke(said("Look at all modules."), thread())
        assert Archive(store).chain(scope)
