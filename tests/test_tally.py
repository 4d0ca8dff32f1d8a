"""Sizes of growing threads: each message counted once, replaced ones noticed, memory bounded."""

import gc
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from conspectus.tokens import tally
from conspectus.tokens.tally import Tallies, Tally, fingerprint


class Counter:
    """Counts characters, and how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, message: BaseMessage) -> int:
        self.asked += 1
        return len(str(message.content))


def talk(count: int, text: str = "part") -> list[BaseMessage]:
    return [HumanMessage(f"{text} {n}", id=f"m{n}") for n in range(count)]


def whole(messages: list[BaseMessage]) -> int:
    return sum(len(str(message.content)) for message in messages)


def answer(total: int | None = None, provider: str | None = "openai", **more: Any) -> AIMessage:
    made = AIMessage("yes", response_metadata={"model_provider": provider} if provider else {})
    if total is not None:
        made.usage_metadata = {
            "input_tokens": more.get("sent", total - 1),
            "output_tokens": 1,
            "total_tokens": total,
        }
    return made


def test_a_growing_thread_is_counted_once_a_message():
    count, history = Counter(), talk(200)
    sizes = Tally([count])
    for length in range(1, 201):
        found = sizes.follow(history[:length])
        assert found.totals == (whole(history[:length]),)
        assert found.messages == length
        assert found.fresh == length - 1
    assert count.asked == 200


@pytest.mark.parametrize("place", [0, 1, 50, 98, 99])
def test_a_replaced_message_is_noticed_wherever_it_is(place):
    count, history = Counter(), talk(100)
    sizes = Tallies(count)
    sizes.follow("t", history)
    other = [*history]
    other[place] = HumanMessage("something else entirely", id=history[place].id)
    found = sizes.follow("t", other)
    assert found.totals == (whole(other),)
    assert found.fresh == place
    assert count.asked == 101


@given(st.lists(st.lists(st.integers(0, 9), max_size=12), max_size=8))
def test_whatever_happens_to_a_thread_its_sizes_are_those_of_its_messages(states):
    pool: list[BaseMessage] = [
        answer(n + 1, sent=n) if n % 3 == 0 else HumanMessage("x" * n) for n in range(10)
    ]
    sizes = Tallies(Counter(), lambda message: 7)
    for state in states:
        messages = [pool[n] for n in state]
        found, anew = sizes.follow("t", messages), Tally([Counter(), lambda _: 7]).follow(messages)
        assert found.totals == anew.totals == (whole(messages), 7 * len(messages))
        assert found.newest_answer == anew.newest_answer
        assert found.newest_report == anew.newest_report
        assert found.one_provider == anew.one_provider
        assert [found.upto(n) for n in range(len(messages) + 1)] == [
            whole(messages[:n]) for n in range(len(messages) + 1)
        ]
        for since in range(len(messages) + 1):
            assert found.reports(since, 0) == anew.reports(since, 0)


def test_equal_copies_as_after_a_checkpoint_are_not_measured_again():
    count, history = Counter(), talk(100)
    sizes = Tallies(count)
    sizes.follow("t", history)
    copies = [message.model_copy(deep=True) for message in history]
    assert sizes.follow("t", copies).totals == (whole(history),)
    assert sizes.follow("another", copies).totals == (whole(history),)
    assert count.asked == 100


@pytest.mark.parametrize(
    "changed",
    [
        {"content": "tear"},
        {"content": [{"type": "text", "text": "part"}]},
        {"id": "other"},
        {"name": "ada"},
        {"additional_kwargs": {"reasoning_content": "hm"}},
        {"tool_calls": [{"name": "f", "args": {"a": 1}, "id": "c", "type": "tool_call"}]},
        {"response_metadata": {"reasoning_content": "hm"}},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_message_that_differs_in_anything_that_has_a_size_is_another(changed):
    plain = AIMessage("part", id="m")
    assert fingerprint(plain) == fingerprint(AIMessage("part", id="m"))
    assert fingerprint(plain) != fingerprint(plain.model_copy(update=changed))


def test_sizes_of_an_earlier_step_stay_what_they_were():
    sizes, history = Tally([Counter()]), [*talk(5), answer(100), *talk(5)]
    before = sizes.follow(history)
    sizes.follow([*talk(2, "quite another"), answer(7)])
    assert before.upto(5) == whole(history[:5])
    assert (before.newest_report.index, before.newest_report.total) == (5, 100)


@pytest.mark.slow
def test_no_message_is_kept_alive():
    sizes = Tallies(Counter())
    history = talk(50)
    sizes.follow("t", history)
    watched = [tally.ref(message) for message in history]
    del history
    gc.collect()
    assert all(one() is None for one in watched)


def test_threads_are_bounded_and_the_least_used_goes_first(monkeypatch):
    monkeypatch.setattr(tally, "THREADS", 4)
    sizes, histories = Tallies(Counter()), [talk(3, f"thread {n}") for n in range(12)]
    for n, history in enumerate(histories):
        sizes.follow(f"t{n}", history)
        sizes.follow("t0", histories[0])
    assert len(sizes._threads) == 4
    assert all(map(sizes._threads.get, ("t0", "t10", "t11")))
    assert sizes.follow("t5", histories[5]).totals == (whole(histories[5]),)


def test_many_workers_at_once_get_right_sizes(monkeypatch):
    monkeypatch.setattr(tally, "THREADS", 6)
    monkeypatch.setattr(tally, "FINGERPRINTS", 40)
    sizes, wrong = Tallies(Counter()), []
    histories = {f"t{n}": talk(60, f"thread {n} ") for n in range(8)}

    def work(worker: int) -> None:
        for length in range(1, 61):
            for n in range(8):
                name = f"t{(n + worker) % 8}"
                history = histories[name][:length]
                if worker % 3 == 0:  # another branch of the same thread
                    history = [*history[: length // 2], *talk(3, f"branch {worker}")]
                found = sizes.follow(name, history)
                if found.totals != (whole(history),) or found.upto(1) != whole(history[:1]):
                    wrong.append((name, length))

    workers = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    assert wrong == []
    assert len(sizes._threads) <= 6
