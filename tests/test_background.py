"""Notes are prepared beside the caller, swapped in where they belong, and can be ended."""

import asyncio
import threading
import time
from collections.abc import Iterable
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from background_support import (
    LIMIT,
    Stopped,
    compactor,
    nobody_works,
    preparing,
    texts,
    told,
    until,
)
from conspectus import CompactionResult, Compactor
from conspectus.archive import Archive, Scope
from conspectus.engine.background import MISFIT
from conspectus.engine.preparations import Preparation

SCOPE = Scope("local", "t", "main")
NEAR = told(31)
DUE = told(42)
"""Histories above seven tenths of the trigger, and above the trigger."""


def long(count: int) -> list[dict[str, Any]]:
    return [{"role": "user", "content": f"{n}: " + "yes " * 90} for n in range(count)]


def compact(own: Compactor, messages: list[Any], **more: Any) -> CompactionResult:
    return own.compact(messages, thread_id="t", **more)


def prepared(own: Compactor, messages: list[Any]) -> Preparation:
    ahead = own.prepare(messages, thread_id="t")
    assert ahead.wait(LIMIT)
    return ahead


def check_whole(own: Compactor, messages: list[Any], result: CompactionResult) -> None:
    """Every message is in view or in the archive, as it was sent."""
    chain = own.archive.chain(SCOPE)
    left = [key for record in chain for key in record.covers]
    found = [one.message for one in own.archive.get(SCOPE, left)]
    kept = [one for one in result.messages if one in messages]
    assert sorted(map(str, [*found, *kept])) == sorted(map(str, messages))


def test_a_draft_is_swapped_in_without_waiting(heard):
    model, own = preparing(NEAR)
    again = compact(own, told(33))
    assert (again.outcome, again.preparing) == ("kept", False)
    model.finishes(heard)
    model.going.clear()  # whoever asks it now waits
    result = compact(own, DUE)
    assert result.outcome == "compacted"
    assert len(model.keys) == 1, "one call in all"
    assert result.tokens_after < 3_000
    assert result.record.covers == model.keys[0]
    later = texts(DUE[len(NEAR) :])
    assert later in texts(result.messages), "all that came after the snapshot stands in view"
    check_whole(own, DUE, result)
    assert [one.name for one in heard.all] == ["began", "finished", "swapped_in"]
    assert heard.all[-1].extra["waited"] < 1


@pytest.mark.parametrize("before", [[NEAR], []], ids=["prepared", "not prepared"])
def test_the_step_goes_on_while_the_messages_fit(heard, before):
    """Also where the trigger itself begins it."""
    model = Stopped()
    own = compactor(model)
    for messages in before:
        compact(own, messages)
    result = compact(own, DUE)
    assert (result.outcome, result.preparing, result.messages) == ("kept", True, DUE)
    model.finishes(heard)
    assert compact(own, DUE).outcome == "compacted"
    assert len(model.keys) == 1


def test_over_the_window_the_step_waits_for_what_is_under_way(heard):
    model, own = preparing(NEAR, window=3_200)
    threading.Timer(0.3, model.going.set).start()
    large = told(46)
    result = compact(own, large)
    assert result.outcome == "compacted"
    assert len(model.keys) == 1
    assert result.tokens_after <= 3_200
    check_whole(own, large, result)
    [waited] = heard.steps("swapped_in")
    assert 0 < waited.extra["waited"] < LIMIT
    assert result.record.bill["waited"] > 0.2, "its record says so"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "change",
    [
        lambda sent: told(12) + told(31, 100),
        lambda sent: [*sent[:3], {**sent[3], "content": "no"}, *sent[4:]],
        lambda sent: [*told(20), *long(20)],
    ],
    ids=["rewound", "edited", "gone back"],
)
def test_a_draft_of_another_history_is_dropped(heard, change):
    model = Stopped.at_once()
    own = compactor(model)
    prepared(own, NEAR)
    sent = change(DUE)
    until(lambda: compact(own, sent).outcome == "compacted")
    assert len(heard.steps("dropped")) == 1
    [dropped] = heard.steps("dropped")
    assert dropped.extra["reason"] == MISFIT
    assert len(model.keys) == 2
    result = compact(own, sent)
    check_whole(own, sent, result)


def test_a_summariser_that_hangs_is_waited_for_as_long_as_one_call_may_take(heard):
    model, own = preparing(NEAR, summarizer_timeout=0.5)
    began = time.monotonic()
    large = told(60)
    result = compact(own, large)
    assert time.monotonic() - began < LIMIT / 2
    assert result.outcome == "compacted", "the embedded summariser has written"
    assert result.tokens_after <= 4_000
    [in_vain] = heard.steps("waited")
    assert result.record.bill["waited"] >= in_vain.extra["waited"] + 0.5, (
        "both tries are on the bill"
    )
    check_whole(own, large, result)
    model.going.set()


def test_on_an_event_loop_it_is_begun_once():
    model = Stopped()
    own = compactor(model)

    async def agent() -> tuple[bool, str]:
        ahead = await asyncio.to_thread(own.prepare, NEAR, thread_id="t")
        assert not await asyncio.to_thread(ahead.wait, 0.05)
        assert await asyncio.to_thread(own.prepare, NEAR, thread_id="t") is ahead
        model.going.set()
        return await asyncio.to_thread(ahead.wait, LIMIT), ahead.outcome

    assert asyncio.run(agent()) == (True, "ready")
    assert compact(own, DUE).outcome == "compacted"
    assert len(model.keys) == 1


def test_what_was_prepared_is_found_after_a_restart(tmp_path):
    model = Stopped.at_once()
    other = Stopped()
    first = compactor(model, archive=tmp_path / "a.db")
    prepared(first, NEAR)
    first.archive.close()  # type: ignore[union-attr]
    again = compactor(other, archive=tmp_path / "a.db")
    result = compact(again, DUE)
    assert result.outcome == "compacted"
    assert other.keys == []
    check_whole(again, DUE, result)


class Slow(InMemoryStore):
    """Its calls take until they are let go; how many are inside, and whether any came too late."""

    def __init__(self) -> None:
        super().__init__()
        self.entered = threading.Event()
        self.going = threading.Event()
        self.inside = 0
        self.closed = False
        self.late = 0

    def batch(self, ops: Iterable[Any]) -> Any:
        self.late += self.closed
        self.inside += 1
        self.entered.set()
        self.going.wait(LIMIT)
        try:
            return super().batch(ops)
        finally:
            self.inside -= 1


def test_close_waits_for_the_notes_that_are_being_written():
    model = Stopped()
    with compactor(model) as own:
        ahead = own.prepare(NEAR, thread_id="t")
        assert model.asked.wait(LIMIT)
        threading.Timer(0.1, model.going.set).start()
    assert ahead.outcome == "ready"
    assert nobody_works()


def test_close_gives_up_what_takes_too_long_and_it_writes_nothing_more():
    model = Stopped()
    store = InMemoryStore()
    own = compactor(model, archive=store)
    ahead = own.prepare(NEAR, thread_id="t")
    assert model.asked.wait(LIMIT)
    own.close(0.05)
    assert (ahead.outcome, ahead.under_way) == ("cancelled", False)
    assert not nobody_works(), "its model has not answered"
    kept = {name: dict(values) for name, values in store._data.items()}
    model.going.set()
    until(nobody_works)
    assert {name: dict(values) for name, values in store._data.items()} == kept
    assert Archive(store).chain(SCOPE) == ()


def test_close_waits_for_a_call_of_the_store_that_is_under_way():
    model = Stopped()
    store = Slow()
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
    until(nobody_works)
    assert store.late == 0


def test_what_it_has_opened_is_closed_and_what_was_given_is_not(tmp_path):
    model = Stopped.at_once()
    given = Archive.open(tmp_path / "given.db")
    with compactor(model, archive=given) as own:
        compact(own, DUE)
    assert given.threads("local") is not None
    with compactor(model, archive=tmp_path / "own.db") as own:
        opened = own.archive
    with pytest.raises(Exception, match="closed"):
        opened.threads("local")
    given.close()
