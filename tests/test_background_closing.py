"""What prepares notes in the background can be ended, and touches no store after that."""

import asyncio
import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from background_support import LIMIT, Stopped, compactor, told, until
from conspectus.archive import Archive, Scope
from scripts import ran

SCOPE = Scope("local", "t", "main")
NEAR, DUE = told(31), told(42)


def at_work() -> list[str]:
    """Threads and tasks of ours."""
    names = [one.name for one in threading.enumerate()]
    with suppress(RuntimeError):  # there is no event loop
        names += [one.get_name() for one in asyncio.all_tasks()]
    return [name for name in names if name == "conspectus-background"]


class Slow(InMemoryStore):
    """Its calls take until they are let go; how many are inside, and whether any came too late."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.going = threading.Event(), threading.Event()
        self.inside, self.closed, self.late = 0, False, 0

    def batch(self, ops: Iterable[Any]) -> Any:
        self.late += self.closed
        self.inside += 1
        self.entered.set()
        self.going.wait(LIMIT)
        try:
            return super().batch(ops)
        finally:
            self.inside -= 1


# Without an event loop


def test_close_waits_for_the_notes_that_are_being_written():
    model = Stopped()
    with compactor(model) as own:
        ahead = own.prepare(NEAR, thread_id="t")
        assert model.asked.wait(LIMIT)
        threading.Timer(0.1, model.going.set).start()
    assert ahead.outcome == "ready"
    assert at_work() == []


def test_close_gives_up_what_takes_too_long_and_it_writes_nothing_more():
    model, store = Stopped(), InMemoryStore()
    own = compactor(model, archive=store)
    ahead = own.prepare(NEAR, thread_id="t")
    assert model.asked.wait(LIMIT)
    own.close(0.05)
    assert (ahead.outcome, ahead.under_way) == ("cancelled", False)
    assert at_work(), "its model has not answered"
    before = len(store._data)
    kept = {name: dict(values) for name, values in store._data.items()}
    model.going.set()
    until(lambda: not at_work())
    assert len(store._data) == before
    assert {name: dict(values) for name, values in store._data.items()} == kept
    assert Archive(store).chain(SCOPE) == ()


def test_close_waits_for_a_call_of_the_store_that_is_under_way():
    model, store = Stopped(), Slow()
    own = compactor(model, archive=Archive(store, timeout=None))
    own.prepare(NEAR, thread_id="t")
    assert store.entered.wait(LIMIT)
    closing = threading.Thread(target=own.close, args=(0,))
    closing.start()
    closing.join(0.1)
    assert closing.is_alive(), "a connection must not be closed under it"
    store.going.set()
    closing.join(LIMIT)
    assert not closing.is_alive()
    assert store.inside == 0
    store.closed = True
    model.going.set()
    until(lambda: not at_work())
    assert store.late == 0


def test_what_it_has_opened_is_closed_and_what_was_given_is_not(tmp_path):
    model = Stopped.at_once()
    given = Archive.open(tmp_path / "given.db")
    with compactor(model, archive=given) as own:
        compact_outcome(own, DUE)
    assert given.threads("local") is not None
    with compactor(model, archive=tmp_path / "own.db") as own:
        opened = own.archive
    with pytest.raises(Exception, match="closed"):
        opened.threads("local")
    given.close()


def compact_outcome(own: Any, messages: list[Any]) -> str:
    return str(own.compact(messages, thread_id="t").outcome)


# Processes


FORKED = """
import os, sys, time, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, {tests!r})
from background_support import LIMIT, Stopped, compactor, told
model = Stopped()
own = compactor(model, archive="memory:")
ahead = own.prepare(told(31), thread_id="t")
assert model.asked.wait(LIMIT)
child = os.fork()
if not child:
    model.going.set()
    assert not ahead.under_way
    again = own.prepare(told(31), thread_id="t")
    assert again is not ahead and again.wait(LIMIT)
    own.close()
    print(again.outcome, flush=True)
    sys.exit()
print(os.waitpid(child, 0)[1], ahead.under_way, flush=True)
model.going.set()
own.close()
print(ahead.outcome, flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked there")
def test_a_forked_process_waits_for_no_thread_that_stayed_behind():
    code = FORKED.format(tests=str(Path(__file__).parent))
    done = ran("-c", code, timeout=LIMIT)
    assert done.stdout.split() == ["ready", "0", "True", "ready"], done.stderr
