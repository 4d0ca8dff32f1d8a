"""Notes are prepared beside the caller, swapped in where they belong, and can be ended."""

import asyncio
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from background_support import (
    LIMIT,
    Stopped,
    joined_texts,
    new_compactor,
    nobody_works,
    talk_of,
    wait_until,
    while_preparing,
)
from conspectus import CompactionResult, Compactor
from conspectus.archive import Archive, Scope
from conspectus.engine import background, preparations
from conspectus.engine.background import MISFIT
from conspectus.engine.preparations import Preparation

SCOPE = Scope("local", "t", "main")
NEAR = talk_of(31)
DUE = talk_of(42)
"""Histories above seven tenths of the trigger, and above the trigger."""


def long_talk(count: int) -> list[dict[str, Any]]:
    return [{"role": "user", "content": f"{n}: " + "yes " * 90} for n in range(count)]


def compact(compactor: Compactor, messages: list[Any], **arguments: Any) -> CompactionResult:
    return compactor.compact(messages, thread_id="t", **arguments)


def prepared(compactor: Compactor, messages: list[Any]) -> Preparation:
    preparation = compactor.prepare(messages, thread_id="t")
    assert preparation.wait(LIMIT)
    return preparation


def check_whole(compactor: Compactor, messages: list[Any], result: CompactionResult) -> None:
    """Every message is in view or in the archive, as it was sent."""
    chain = compactor.archive.chain(SCOPE)
    covered = [key for record in chain for key in record.covers]
    archived = [original.message for original in compactor.archive.get(SCOPE, covered)]
    in_view = [message for message in result.messages if message in messages]
    assert sorted(map(str, [*archived, *in_view])) == sorted(map(str, messages))


def test_a_draft_is_swapped_in_without_waiting(heard):
    model, compactor = while_preparing(NEAR)
    early = compact(compactor, talk_of(33))
    assert (early.outcome, early.preparing) == ("kept", False)
    model.finish(heard)
    model.may_go_on.clear()  # whoever asks it now waits
    result = compact(compactor, DUE)
    assert result.outcome == "compacted"
    assert len(model.keys) == 1, "one call in all"
    assert result.tokens_after < 3_000
    assert result.record.covers == model.keys[0]
    later = joined_texts(DUE[len(NEAR) :])
    assert later in joined_texts(result.messages), "all that came after the snapshot stands in view"
    check_whole(compactor, DUE, result)
    assert [event.name for event in heard.all] == ["began", "finished", "swapped_in"]
    assert heard.all[-1].extra["waited"] < 1


@pytest.mark.parametrize("histories_before", [[NEAR], []], ids=["prepared", "not prepared"])
def test_the_step_goes_on_while_the_messages_fit(heard, histories_before):
    """Also where the trigger itself begins it."""
    model = Stopped()
    compactor = new_compactor(model)
    for messages in histories_before:
        compact(compactor, messages)
    result = compact(compactor, DUE)
    assert (result.outcome, result.preparing, result.messages) == ("kept", True, DUE)
    model.finish(heard)
    assert compact(compactor, DUE).outcome == "compacted"
    assert len(model.keys) == 1


def test_over_the_window_the_step_waits_for_what_is_under_way(heard):
    model, compactor = while_preparing(NEAR, window=3_200)
    threading.Timer(0.3, model.may_go_on.set).start()
    large = talk_of(46)
    result = compact(compactor, large)
    assert result.outcome == "compacted"
    assert len(model.keys) == 1
    assert result.tokens_after <= 3_200
    check_whole(compactor, large, result)
    [waited] = heard.steps("swapped_in")
    assert 0 < waited.extra["waited"] < LIMIT
    assert result.record.bill["waited"] > 0.2, "its record says so"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "change",
    [
        lambda sent: talk_of(12) + talk_of(31, 100),
        lambda sent: [*sent[:3], {**sent[3], "content": "no"}, *sent[4:]],
        lambda sent: [*talk_of(20), *long_talk(20)],
    ],
    ids=["rewound", "edited", "gone back"],
)
def test_a_draft_of_another_history_is_dropped(heard, change):
    model = Stopped.at_once()
    compactor = new_compactor(model)
    prepared(compactor, NEAR)
    sent = change(DUE)
    wait_until(lambda: compact(compactor, sent).outcome == "compacted")
    assert len(heard.steps("dropped")) == 1
    [dropped] = heard.steps("dropped")
    assert dropped.extra["reason"] == MISFIT
    assert len(model.keys) == 2
    result = compact(compactor, sent)
    check_whole(compactor, sent, result)


def test_a_hanging_summariser_is_waited_for_one_timeout(heard):
    model, compactor = while_preparing(NEAR, summarizer_timeout=0.5)
    began = time.monotonic()
    large = talk_of(60)
    result = compact(compactor, large)
    assert time.monotonic() - began < LIMIT / 2
    assert result.outcome == "compacted", "the embedded summariser has written"
    assert result.tokens_after <= 4_000
    [in_vain] = heard.steps("waited")
    assert result.record.bill["waited"] >= in_vain.extra["waited"] + 0.5, (
        "both tries are on the bill"
    )
    check_whole(compactor, large, result)
    model.may_go_on.set()


def test_on_an_event_loop_it_is_begun_once():
    model = Stopped()
    compactor = new_compactor(model)

    async def agent() -> tuple[bool, str]:
        preparation = await asyncio.to_thread(compactor.prepare, NEAR, thread_id="t")
        assert not await asyncio.to_thread(preparation.wait, 0.05)
        assert await asyncio.to_thread(compactor.prepare, NEAR, thread_id="t") is preparation
        model.may_go_on.set()
        return await asyncio.to_thread(preparation.wait, LIMIT), preparation.outcome

    assert asyncio.run(agent()) == (True, "ready")
    assert compact(compactor, DUE).outcome == "compacted"
    assert len(model.keys) == 1


def test_two_callers_at_once_begin_one_preparation(monkeypatch):
    class SlowToStart(threading.Thread):
        def start(self) -> None:
            time.sleep(0.2)
            super().start()

    compactor = Compactor(
        "embedded",
        background=True,
        archive="memory:",
        trigger=("messages", 40),
    )
    with compactor, ThreadPoolExecutor(2) as pool:
        with monkeypatch.context() as patch:
            patch.setattr(background.threading, "Thread", SlowToStart)
            calls = [pool.submit(compactor.prepare, NEAR, thread_id="t") for _ in range(2)]
            first, second = (call.result() for call in calls)
        assert first is second
        assert first.wait(LIMIT)


def test_what_was_prepared_is_found_after_a_restart(tmp_path):
    model = Stopped.at_once()
    second_model = Stopped()
    first_compactor = new_compactor(model, archive=tmp_path / "a.db")
    prepared(first_compactor, NEAR)
    first_compactor.archive.close()  # type: ignore[union-attr]
    second_compactor = new_compactor(second_model, archive=tmp_path / "a.db")
    result = compact(second_compactor, DUE)
    assert result.outcome == "compacted"
    assert second_model.keys == []
    check_whole(second_compactor, DUE, result)


class SlowStore(InMemoryStore):
    """Its calls take until they are let go; how many are inside, and whether any came too late."""

    def __init__(self) -> None:
        super().__init__()
        self.entered = threading.Event()
        self.may_go_on = threading.Event()
        self.inside = 0
        self.closed = False
        self.late = 0

    def batch(self, ops: Iterable[Any]) -> Any:
        self.late += self.closed
        self.inside += 1
        self.entered.set()
        self.may_go_on.wait(LIMIT)
        try:
            return super().batch(ops)
        finally:
            self.inside -= 1


def test_close_waits_for_the_notes_that_are_being_written():
    model = Stopped()
    with new_compactor(model) as compactor:
        preparation = compactor.prepare(NEAR, thread_id="t")
        assert model.was_asked.wait(LIMIT)
        threading.Timer(0.1, model.may_go_on.set).start()
    assert preparation.outcome == "ready"
    assert nobody_works()


def test_close_waits_for_every_preparation_however_many_sessions_there_are(monkeypatch):
    """Also for one whose session is no longer among those whose latest preparation is known."""
    monkeypatch.setattr(preparations, "SESSIONS", 1)
    model = Stopped()
    with new_compactor(model) as compactor:
        first = compactor.prepare(NEAR, thread_id="t")
        others = [compactor.prepare(NEAR, thread_id=name) for name in ("u", "v")]
        again = compactor.prepare(NEAR, thread_id="t")
        wait_until(lambda: len(model.keys) == 3)
        threading.Timer(0.1, model.may_go_on.set).start()
    assert again is first, "one that is under way is known"
    assert [job.outcome for job in (first, *others)] == ["ready"] * 3
    assert nobody_works()


def test_close_stops_slow_work_which_then_writes_nothing():
    model = Stopped()
    store = InMemoryStore()
    compactor = new_compactor(model, archive=store)
    preparation = compactor.prepare(NEAR, thread_id="t")
    assert model.was_asked.wait(LIMIT)
    compactor.close(0.05)
    assert (preparation.outcome, preparation.under_way) == ("cancelled", False)
    assert not nobody_works(), "its model has not answered"
    stored = {name: dict(values) for name, values in store._data.items()}
    model.may_go_on.set()
    wait_until(nobody_works)
    assert {name: dict(values) for name, values in store._data.items()} == stored
    assert Archive(store).chain(SCOPE) == ()


def test_close_waits_for_a_running_call_of_the_store():
    model = Stopped()
    store = SlowStore()
    compactor = new_compactor(model, archive=Archive(store, timeout=None))
    compactor.prepare(NEAR, thread_id="t")
    assert store.entered.wait(LIMIT)
    closing = threading.Thread(target=compactor.close, args=(0,))
    closing.start()
    closing.join(0.1)
    assert closing.is_alive(), "a connection must not be closed under it"
    store.may_go_on.set()
    closing.join(LIMIT)
    assert not closing.is_alive()
    assert store.inside == 0
    store.closed = True
    model.may_go_on.set()
    wait_until(nobody_works)
    assert store.late == 0


def test_it_closes_only_what_it_has_opened(tmp_path):
    model = Stopped.at_once()
    callers_archive = Archive.open(tmp_path / "given.db")
    with new_compactor(model, archive=callers_archive) as compactor:
        compact(compactor, DUE)
    assert callers_archive.threads("local") is not None
    with new_compactor(model, archive=tmp_path / "own.db") as compactor:
        opened = compactor.archive
    with pytest.raises(Exception, match="closed"):
        opened.threads("local")
    callers_archive.close()
