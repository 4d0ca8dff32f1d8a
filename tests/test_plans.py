"""The core: where a history may be cut, and what a plan keeps."""

from dataclasses import replace
from typing import Any

import pytest

from conspectus.core.exchanges import match_calls, must_stay
from conspectus.core.items import Item, Window
from conspectus.core.ladder import LADDER, Ladder, SummaryBounds
from conspectus.core.plan_types import FORCED, Compact, Keep
from conspectus.core.planner import PlanOptions, make_plan, plan_draft, window_or_trigger
from conspectus.core.policy import SUMMARY_DIVISOR
from conspectus.core.summary_room import SummaryRoom
from conspectus.engine.settings import Settings


def item(role: str, tokens: int, n: int, **fields: object) -> Item:
    return Item(f"k{n}", role, tokens, **fields)  # type: ignore[arg-type]


class Large(Item):
    """A message of the user that may be clipped."""

    @property
    def least(self) -> int:
        return 40


def talk(count: int, tokens: int = 100) -> list[Item]:
    return [item("user" if n % 2 == 0 else "assistant", tokens, n) for n in range(count)]


def compacting_plan(*arguments: Any, **options: Any) -> Compact:
    """A plan that compacts."""
    plan = make_plan(*arguments, **options)
    assert isinstance(plan, Compact)
    return plan


def test_without_a_window_a_summary_takes_a_third_of_the_trigger():
    policy = Settings(trigger=("tokens", 3_000), keep=("messages", 4)).policy()
    assert compacting_plan(talk(60), policy).summary_room.target == 1_000


def test_a_standing_summary_is_replaced_and_never_evicted():
    items = [item("user", 300, 0, is_summary=True), *talk(30)[1:]]
    plan = compacting_plan(
        items, Settings(trigger=("messages", 30), keep=("messages", 10)).policy()
    )
    assert 0 not in plan.evicted_places
    assert plan.at_most == 10 * 100 + plan.summary_room.target


MIXED_TRIGGER = {"tokens": 4_000, "fraction": 0.5}


def test_a_clause_of_tokens_and_share_uses_the_larger():
    for limit, basis in ((20_000, 10_000), (6_000, 4_000)):
        policy = Settings(trigger=MIXED_TRIGGER).policy()
        assert policy.fires_at(limit, 0) == basis
        assert policy.summary_room(Window(limit), 0).target == basis // SUMMARY_DIVISOR


def test_a_trigger_with_a_share_makes_no_window():
    assert window_or_trigger(Settings(trigger=MIXED_TRIGGER).policy(), None) is None
    alone = Settings(trigger=("tokens", 4_000)).policy()
    assert window_or_trigger(alone, None) == Window(4_000)


def test_a_standing_summary_that_stays_keeps_its_room():
    items = [item("user", 120, 0, is_summary=True), Large("k1", "user", 5_000)]
    plan = compacting_plan(items, Settings(trigger=("messages", 1)).policy(), Window(500))
    assert (plan.evicted_places, plan.summary_room.target) == ((), 0)
    assert plan.at_most == 120 + plan.clips[0].tokens == 300  # two fifths are free


def test_the_reason_for_little_free_room_counts_the_newest_exchange():
    items = [*talk(9), item("user", 100, 9), item("assistant", 6_500, 10)]
    plan = compacting_plan(items, Settings(trigger=("messages", 1)).policy(), Window(10_000))
    assert "takes 6,600 of 10,000 tokens" in plan.tight


def test_a_standing_summary_is_counted_once_with_clips():
    items = [item("user", 3_000, 0, is_summary=True), Large("k1", "assistant", 8_000), *talk(9)[2:]]
    settings = Settings(trigger=("tokens", 10_000), keep=("messages", 4), stale_results=True)
    plan = compacting_plan(items, settings.policy())
    assert ([clip.place for clip in plan.clips], plan.summary_room.target) == ([1], 0)
    assert plan.at_most == 3_000 + 200 + 700


def test_what_is_shown_short_fits_to_the_token():
    items = [Large(f"k{n}", "user", 5_000, pinned=True) for n in range(3)]
    plan = compacting_plan(items, Settings(trigger=("tokens", 100)).policy(), Window(2_000))
    assert [clip.tokens for clip in plan.clips] == [606, 606, 606]  # it may grow by a tenth
    assert plan.at_most == 1_818


def test_the_users_last_words_stay_whole_beside_short_notes():
    items = [*talk(10), Large("k10", "user", 690)]
    plan = compacting_plan(items, Settings(trigger=("messages", 9)).policy(), Window(1_140))
    assert (plan.clips, plan.summary_room.target) == ((), (1_140 - 690) // 2)
    items = [*talk(10), Large("k10", "user", 1_060)]
    plan = compacting_plan(items, Settings(trigger=("messages", 9)).policy(), Window(1_140))
    assert [clip.place for clip in plan.clips] == [10]
    assert plan.summary_room.target >= 380 // 2


def test_with_long_instructions_the_request_comes_before_the_summary():
    items = [item("system", 700, 0), *talk(11)[1:], Large("k11", "user", 900)]
    plan = compacting_plan(
        items,
        Settings(trigger=("messages", 9)).policy(),
        Window(1_000),
        options=PlanOptions(floor=64),
    )
    assert plan.summary_room.target == 64
    assert [clip.tokens for clip in plan.clips] == [1_000 - 700 - 64]


def test_a_summary_is_no_larger_than_what_leaves_in_the_end():
    """Where a large result is clipped, what stood before it comes back to the view."""
    items = [
        item("system", 50, 0),
        *talk(6, 200)[1:],
        item("assistant", 100, 6, calls=("c",)),
        Large("k7", "tool", 20_000, answers=("c",)),
        item("user", 50, 8),
    ]
    policy = Settings(trigger=("fraction", 0.8), keep=("messages", 2)).policy()
    options = PlanOptions(never_larger=True)
    plan = compacting_plan(items, policy, Window(4_347), options=options)
    assert plan.clips
    replaced = sum(items[index].tokens for index in plan.evicted_places)
    assert 0 < plan.summary_room.target <= replaced


def test_a_compaction_that_frees_little_needs_window_or_force():
    policy = Settings(trigger=("tokens", 4_000), keep=("messages", 20)).policy()

    def pinned(count: int) -> list[Item]:
        """A talk of which all but the first messages is pinned."""
        return [
            replace(message, pinned=n >= count - 20) for n, message in enumerate(talk(count, 300))
        ]

    for window in (None, Window(15_000)):
        plan = make_plan(pinned(21), policy, window)
        assert plan == Keep("a compaction would free too little", 6_300)
        assert compacting_plan(pinned(21), policy, window, options=PlanOptions(force=True))
    plan = compacting_plan(pinned(24), policy)
    assert plan.tokens - plan.at_most >= 720
    assert plan.summary_room.target >= 300
    barely_too_large = [item("user", 290, 0), *talk(20, 300)[1:], item("user", 300, 99)]
    assert compacting_plan(
        barely_too_large, policy, Window(sum(message.tokens for message in barely_too_large) - 1)
    )
    assert compacting_plan(
        talk(5, 10), Settings(trigger=("tokens", 40), keep=("messages", 1)).policy()
    )


@pytest.mark.parametrize(
    ("window", "tokens", "share"),
    [(None, 100, 2_999), (16_000, 100, 2_800), (128_000, 100, 2_999), (128_000, 1_000, 15_000)],
)
def test_where_messages_are_counted_the_notes_have_half_of_what_leaves(window, tokens, share):
    """Of much; of little they may take all but the gain."""
    policy = replace(
        Settings(trigger=("messages", 50), keep=("messages", 20)).policy(), keep_is_set=True
    )
    plan = compacting_plan(
        talk(50, tokens), policy, window and Window(window), options=PlanOptions(floor=170)
    )
    assert (len(plan.evicted_places), plan.summary_room.target) == (30, share)


def test_for_a_prepared_draft_just_what_it_stands_for_leaves():
    talk = [Item(f"{n}", "user" if n % 2 == 0 else "assistant", 100) for n in range(12)]
    prepared = Compact(FORCED, tuple(range(8)), (), SummaryRoom(200), 1_200, 600, 1_500)
    plan = plan_draft(talk, Window(1_500), prepared, [0, 1, 2, 3], 150)
    assert plan is not None
    assert plan.evicted_places == (0, 1, 2, 3)
    assert plan.at_most <= 1_500


def user_item(tokens: int = 1, **fields: object) -> Item:
    return Item("k", "user", tokens, **fields)  # type: ignore[arg-type]


def assistant_item(*calls: str) -> Item:
    return Item("k", "assistant", 1, calls=calls)


def tool_item(*answers: str) -> Item:
    return Item("k", "tool", 1, answers=answers)


SYSTEM = Item("k", "system", 1)
PINNED = Item("k", "tool", 1, answers=("2",), pinned=True)
THOUGHT = [
    user_item(),
    assistant_item(),
    replace(assistant_item("1"), continues_reply=True),
    replace(assistant_item("2"), continues_reply=True),
]
PROGRAM = [
    user_item(),
    assistant_item("p", "1"),
    tool_item("1"),
    replace(assistant_item("2"), needs=("p",)),
    tool_item("2"),
]
STAY = {
    "an unanswered call with the answers that it has": (
        [user_item(), assistant_item("1", "2"), tool_item("1"), user_item(), assistant_item()],
        {1, 2, 3},
    ),
    "a call that waits for approval at the end": (
        [user_item(), assistant_item(), user_item(), assistant_item("1")],
        {2, 3},
    ),
    "the newest user message, and a summary is none": (
        [user_item(), assistant_item(), user_item(is_summary=True), assistant_item()],
        {0},
    ),
    "a user's words beside results, with their call": (
        [user_item(), assistant_item("1"), Item("k", "user", 1, answers=("1",)), assistant_item()],
        {1, 2},
    ),
    "leading system messages, not later ones": (
        [SYSTEM, SYSTEM, user_item(), SYSTEM, assistant_item()],
        {0, 1, 2},
    ),
    "what goes on with an answer, where it waits": (
        [*THOUGHT, tool_item("1"), user_item()],
        {1, 2, 3, 4, 5},
    ),
    "what needs a call that runs": ([*PROGRAM, user_item()], {1, 2, 3, 4, 5}),
    "nothing of what a message answers itself": (
        [user_item(), replace(assistant_item("s"), answers=("s",)), user_item()],
        {2},
    ),
    "a pinned result with its call and its brothers": (
        [assistant_item("1", "2"), tool_item("1"), PINNED, assistant_item(), user_item()],
        {0, 1, 2, 4},
    ),
    "an unread late answer and its call": (
        [user_item(), assistant_item("1"), tool_item("1"), assistant_item(), tool_item("1")],
        {0, 1, 2, 4},
    ),
    "a pinned one": (
        [
            user_item(),
            assistant_item("2"),
            tool_item("2"),
            assistant_item(),
            PINNED,
            assistant_item(),
        ],
        {0, 1, 2, 4},
    ),
    "no late answer that was read": (
        [
            user_item(),
            assistant_item("1"),
            tool_item("1"),
            assistant_item(),
            tool_item("1"),
            assistant_item(),
        ],
        {0},
    ),
}


@pytest.mark.parametrize(("items", "staying"), STAY.values(), ids=STAY)
def test_what_must_stay(items, staying):
    assert set(must_stay(items, match_calls(items))) == staying


CUTS = {
    "ids that are used again are matched within their turn": (
        [
            user_item(),
            assistant_item("1"),
            tool_item("1"),
            user_item(),
            assistant_item("1"),
            tool_item("1"),
            user_item(),
        ],
        [0, 1, 3, 4, 6, 7],
    ),
    "a late second answer goes with its call and does not glue turns together": (
        [
            assistant_item("1"),
            tool_item("1"),
            user_item(),
            assistant_item(),
            tool_item("1"),
            user_item(),
        ],
        [0, 2, 3, 4, 5, 6],
    ),
    "what goes on with an answer is not cut off from it": (
        [*THOUGHT, tool_item("2"), tool_item("1"), user_item()],
        [0, 1, 6, 7],
    ),
    "what needs a call stays with it": ([*PROGRAM, user_item()], [0, 1, 5, 6]),
}


@pytest.mark.parametrize(("items", "legal_cuts"), CUTS.values(), ids=CUTS)
def test_where_a_history_may_be_cut(items, legal_cuts):
    exchanges_found = match_calls(items)
    assert [i for i, legal in enumerate(exchanges_found.may_cut_before) if legal] == legal_cuts
    assert exchanges_found.orphans == frozenset()


def test_notes_under_a_message_trigger_take_a_sixteenth():
    items = [user_item(tokens=200) for _ in range(90)]
    often = Settings(trigger=("messages", 50)).policy()
    windows = [Window(size) for size in (64_000, 160_000, 999_000)]
    rooms = [make_plan(items, often, window).summary_room.target for window in windows]
    assert rooms == [7_000, 10_000, 13_999]  # of 14,000 that leave


def test_a_tied_exchange_brings_its_results():
    items = [
        assistant_item("1"),
        assistant_item("2", "3"),
        tool_item("2"),
        tool_item("1", "3"),
        user_item(),
    ]
    assert match_calls(items).part_of == (0, 0, 0, 0, 4)


def with_a_late_result(call_at: int, late_at: int, tokens: int = 100) -> list[Item]:
    """A talk of 60 messages with a call that got a second result after the agent had spoken."""
    items = talk(60)
    items[call_at] = item("assistant", 100, call_at, calls=("c",))
    items[call_at + 1] = item("tool", 100, call_at + 1, answers=("c",))
    items[late_at] = Large(f"k{late_at}", "tool", tokens, answers=("c",))
    return items


@pytest.mark.parametrize("tokens", [100, 20_000])
def test_a_late_result_that_was_read_takes_nothing_with_it(tokens):
    items = with_a_late_result(call_at=5, late_at=55, tokens=tokens)
    policy = Settings(keep=("messages", 20)).policy()
    plan = compacting_plan(items, policy, Window(100_000), options=PlanOptions(force=True))
    assert plan.evicted_places == (*range(40), 55)  # it leaves with its call
    assert plan.clips == ()


def test_a_late_result_comes_back_with_its_call_after_clipping():
    items = with_a_late_result(call_at=37, late_at=55)
    for large in (44, 50):
        items[large] = Large(f"k{large}", "assistant", 6_000)
    ladder = Ladder(items, 16_000, SummaryBounds(room=SummaryRoom(500), floor=100))
    plan_found = ladder.climb(LADDER, keeps_from=35, clip=True)
    assert isinstance(plan_found, Compact)
    assert plan_found.evicted_places == tuple(range(37))  # up to the call, and 55 stays
    assert [clip.place for clip in plan_found.clips] == [44]
    assert plan_found.at_most == 9_600  # two fifths are free


def test_large_sizes_are_told_to_the_token():
    settings = Settings(trigger=("tokens", 1_000_000), keep=("tokens", 1_234_567))
    assert "keep 1,234,567 tokens" in next(settings.policy().caveats(None))


def test_a_result_without_id_answers_the_newest_call():
    calling = item("assistant", 10, 0, calls=("a", "b"))
    results = [item("tool", 10, number, answers=("",)) for number in (1, 2)]
    assert match_calls([calling, results[0]]).pending, "one of the calls is open"
    assert not match_calls([calling, *results]).pending
