"""How long a summary may be: each size that limits it."""

from dataclasses import replace
from typing import Any

import pytest

from compactor_support import Scripted, compacted, new_compactor
from conspectus.core.growth import REARM
from conspectus.core.summary_room import (
    BOUNDLESS,
    LARGEST_SUMMARY,
    MeasuredSizes,
    SummaryRoom,
    narrowed,
)

LARGE = MeasuredSizes(replaced=50_000, without_summary=1_000, always_allowed=200)
PLANNED = SummaryRoom(target=2_000)


def room(planned: SummaryRoom = PLANNED, sizes: MeasuredSizes = LARGE, **plan: Any) -> SummaryRoom:
    settings: dict[str, Any] = {
        "budget": 10_000,
        "planned_within": 6_000,
        "fits": True,
        "is_callers_own": False,
    }
    return narrowed(planned, sizes, **{**settings, **plan})


def test_the_kept_messages_leave_the_rest_of_the_budget():
    expected = SummaryRoom(
        target=2_000, soft=LARGEST_SUMMARY, hard=10_000 - 1_000, roomy=6_000 - 1_000
    )
    assert room() == expected


def test_the_budget_keeps_room_to_grow_beside_a_long_text():
    assert room(budget=5_000, planned_within=None).soft == int(5_000 / REARM) - 1_000


def test_a_summary_is_no_longer_than_what_it_replaces():
    few = replace(LARGE, replaced=900)
    assert room(sizes=few) == SummaryRoom(target=900, soft=900, hard=900, roomy=900)


def test_a_tiny_history_may_have_a_summary_of_the_size_that_is_always_allowed():
    assert room(sizes=replace(LARGE, replaced=30)).hard == 200


@pytest.mark.parametrize("limit", ["soft", "hard"])
def test_a_size_that_is_set_is_never_exceeded(limit):
    assert getattr(room(SummaryRoom.capped(2_000, 2_500)), limit) == 2_500


def test_without_a_window_only_what_is_replaced_is_a_limit():
    unlimited = room(budget=None, planned_within=None)
    assert unlimited == SummaryRoom(2_000, soft=LARGEST_SUMMARY, hard=50_000, roomy=50_000)


def test_where_nothing_fits_the_summary_gets_its_target_at_most():
    least = room(SummaryRoom(target=150), fits=False)
    assert (least.target, least.soft, least.hard) == (150, 150, 150)


def test_where_clips_are_larger_than_planned_the_summary_gets_what_is_left():
    crowded = room(sizes=replace(LARGE, without_summary=9_400))
    assert (crowded.target, crowded.hard) == (600, 600)
    assert room(sizes=replace(LARGE, without_summary=12_000)).hard == 1


def test_a_callers_own_message_need_only_fit_a_tiny_budget_by_itself():
    tiny = {"budget": 50, "planned_within": None}
    assert room(**tiny, is_callers_own=True).hard == 50
    assert room(**tiny).hard == 1


def test_the_sizes_are_in_order():
    for without_summary in range(0, 12_000, 500):
        sizes = replace(LARGE, without_summary=without_summary)
        for target in (0, 64, 2_000, 9_000):
            sized = room(SummaryRoom(target), sizes)
            assert sized.target <= sized.soft <= max(sized.hard, sized.target) < BOUNDLESS
            assert sized.target <= sized.roomy <= sized.hard


def test_a_counter_of_large_lists_scales_what_is_always_allowed():
    def by_characters(messages: Any) -> int:
        """Count lists by characters, and one message alone as an eighth of that."""
        characters = sum(len(message["content"]) for message in messages)
        return characters if len(messages) > 1 else characters // 8

    summarizer = Scripted(lambda request: "- The port of the database is 5433.")
    compactor = new_compactor(
        summarizer, window=100_000, token_counter=by_characters, notes=False, keep=("messages", 1)
    )
    question = {"role": "user", "content": "Which port does the database listen on?"}
    answer = {"role": "assistant", "content": "It listens on 5433, and on no other one."}
    result = compacted([question, answer, question], compactor, force=True)
    assert result.failed is None, result.reason
    assert result.outcome == "compacted"
