"""Legal cuts: a tool result is on the side of its call, whatever real histories look like."""

from dataclasses import replace

import pytest

from conspectus import Compactor
from conspectus.core.boundaries import exchanges, legal_cuts, must_stay, never_clipped
from conspectus.core.items import Item


def u(tokens: int = 1, **more: object) -> Item:
    return Item("k", "user", tokens, **more)  # type: ignore[arg-type]


def a(*calls: str) -> Item:
    return Item("k", "assistant", 1, calls=calls)


def t(*answers: str) -> Item:
    return Item("k", "tool", 1, answers=answers)


def cuts(items: list[Item]) -> list[int]:
    return [i for i, legal in enumerate(legal_cuts(items, exchanges(items))) if legal]


def stay(items: list[Item]) -> set[int]:
    return set(must_stay(items, exchanges(items)))


SYSTEM, PINNED = Item("k", "system", 1), Item("k", "tool", 1, answers=("2",), pinned=True)
STAY = {
    "an unanswered call with the answers that it has": (
        [u(), a("1", "2"), t("1"), u(), a()],
        {1, 2, 3},
    ),
    "a call that waits for approval at the end": ([u(), a(), u(), a("1")], {2, 3}),
    "the newest user message, and a summary is none": ([u(), a(), u(summary=True), a()], {0}),
    "a user's words beside results, with their call": (
        [u(), a("1"), Item("k", "user", 1, answers=("1",)), a()],
        {1, 2},
    ),
    "leading system messages, not later ones": ([SYSTEM, SYSTEM, u(), SYSTEM, a()], {0, 1, 2}),
    "a pinned result with its call and its brothers": (
        [a("1", "2"), t("1"), PINNED, a(), u()],
        {0, 1, 2, 4},
    ),
}


@pytest.mark.parametrize(("items", "places"), STAY.values(), ids=STAY)
def test_what_must_stay(items, places):
    assert stay(items) == places


def test_ids_that_are_used_again_are_matched_within_their_turn():
    items = [u(), a("1"), t("1"), u(), a("1"), t("1"), u()]
    assert cuts(items) == [0, 1, 3, 4, 6, 7]
    assert exchanges(items).orphans == frozenset()


def test_a_late_second_answer_goes_with_its_call_and_does_not_glue_turns_together():
    items = [a("1"), t("1"), u(), a(), t("1"), u()]
    assert exchanges(items).orphans == frozenset()
    assert exchanges(items).late == {4: 0}
    assert cuts(items) == [0, 2, 3, 4, 5, 6]


def test_what_goes_on_with_an_answer_is_not_cut_off_from_it():
    thought, call, other = a(), replace(a("1"), joined=True), replace(a("2"), joined=True)
    items = [u(), thought, call, other, t("2"), t("1"), u()]
    assert cuts(items) == [0, 1, 6, 7]
    unanswered = [u(), thought, call, other, t("1"), u()]
    assert stay(unanswered) == {1, 2, 3, 4, 5}
    assert never_clipped(unanswered, exchanges(unanswered)) == {1, 2, 3}


def test_what_needs_a_call_stays_with_it():
    program, inner = a("p", "1"), replace(a("2"), needs=("p",))
    items = [u(), program, t("1"), inner, t("2"), replace(a(), answers=("p",)), u()]
    assert cuts(items) == [0, 1, 6, 7]
    assert stay([*items[:5], u()]) == {1, 2, 3, 4, 5}


def test_what_a_message_answers_itself_waits_for_nothing():
    items = [u(), replace(a("s"), answers=("s",)), u()]
    assert exchanges(items).pending == frozenset()
    assert stay(items) == {2}


def test_an_exchange_that_is_tied_to_another_brings_the_results_that_it_had():
    items = [a("1"), a("2", "3"), t("2"), t("1", "3"), u()]
    assert exchanges(items).group == (0, 0, 0, 0, 4)


def test_a_late_second_answer_stays_in_view_while_its_call_does():
    """It is news that no model has read; where the call leaves, the notes tell both outcomes."""
    call = {"id": "c", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    talk = [{"role": "user", "content": f"Look at module {n}. " * 40} for n in range(12)]
    late = [
        {"role": "user", "content": "Run the tests."},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "still running"},
        {"role": "assistant", "content": "They are running."},
        {"role": "tool", "tool_call_id": "c", "content": "3 tests failed"},
    ]
    compactor = Compactor(keep=("messages", 8), archive="memory:")
    kept = compactor.compact([*talk, *late], thread_id="t", force=True)
    assert kept.outcome == "compacted"
    assert late[-1] in kept.messages
    gone = compactor.compact([*late, *talk], thread_id="gone", force=True)
    assert late[-1] not in gone.messages
    assert "3 tests failed" in gone.summary
