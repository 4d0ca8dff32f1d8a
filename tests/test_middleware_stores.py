"""The middleware over real checkpointers and stores, with and without an event loop."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

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


def test_a_step_in_another_archive_does_not_touch_this_one():
    """A state whose record is elsewhere says nothing of what is in force here."""
    archives, saver = [InMemoryStore(), InMemoryStore()], InMemorySaver()
    scope = Scope("local", "t")
    for store, count in zip([*archives, archives[0]], [8, 8, 0], strict=True):
        own = middleware(archive=store, trigger=("messages", 10 if count else 1000))
        graph, _ = agent(steps(count), own, checkpointer=saver, store=None)
        graph.invoke(said("Look at all modules."), thread())
        assert Archive(store).chain(scope)
