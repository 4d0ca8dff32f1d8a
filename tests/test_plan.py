"""Plans: what is kept, what leaves, what is clipped, and when nothing helps."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.core.boundaries import exchanges, must_stay
from conspectus.core.items import Compact, Item, Keep, Plan, Size, Stuck, Window
from conspectus.core.plan import plan, plan_draft
from conspectus.core.policy import Arguments, Policy


def item(role: str, tokens: int, n: int, **more: object) -> Item:
    return Item(f"k{n}", role, tokens, **more)  # type: ignore[arg-type]


def talk(count: int, tokens: int = 100) -> list[Item]:
    return [item("user" if n % 2 == 0 else "assistant", tokens, n) for n in range(count)]


def kept(items: list[Item], found: Plan) -> list[int]:
    assert isinstance(found, Compact)
    return [i for i in range(len(items)) if i not in found.evicted]


def compacting(*given: Any, **more: Any) -> Compact:
    """A plan that compacts."""
    found = plan(*given, **more)
    assert isinstance(found, Compact)
    return found


@pytest.mark.parametrize(
    ("keep", "first"), [(("messages", 10), 30), (("tokens", 450), 36), (("fraction", 0.05), 35)]
)
def test_at_the_trigger_the_cut_is_where_keep_asks(keep, first):
    """Of tokens, the most messages that fit; a fraction means the window."""
    items = talk(40)
    window = Window(10_000) if keep[0] == "fraction" else None
    found = plan(items, Policy.build(trigger=("messages", 40), keep=keep), window)
    assert kept(items, found) == list(range(first, 40))


def test_a_cut_inside_an_exchange_moves_back_to_its_call():
    items = talk(20)
    items += [
        item("assistant", 10, 20, calls=("1", "2")),
        item("tool", 10, 21, answers=("2",)),
        item("tool", 10, 22, answers=("1",)),
    ]
    policy = Policy.build(trigger=("messages", 20), keep=("messages", 1))
    assert kept(items, plan(items, policy)) == [18, 20, 21, 22]


def test_the_newest_user_message_stays_although_it_is_before_the_cut():
    items = [item("user", 50, 0)] + [item("assistant", 50, n) for n in range(1, 30)]
    policy = Policy.build(trigger=("messages", 30), keep=("messages", 5))
    assert kept(items, plan(items, policy)) == [0, *range(25, 30)]


def test_a_standing_summary_is_replaced_and_never_evicted():
    items = [item("user", 300, 0, summary=True), *talk(30)[1:]]
    found = compacting(items, Policy.build(trigger=("messages", 30), keep=("messages", 10)))
    assert 0 not in found.evicted
    assert found.at_most == 10 * 100 + found.summary_tokens


def test_a_standing_summary_that_stays_keeps_its_room():
    items = [item("user", 120, 0, summary=True), item("user", 5_000, 1, floor=40)]
    found = compacting(items, Policy.build(trigger=("tokens", 100)), Window(500))
    assert (found.evicted, found.summary_tokens) == ((), 0)
    assert found.at_most == 120 + found.clips[0].limit <= 310  # what a plan aims at


def test_what_is_shown_short_fits_to_the_token():
    items = [item("user", 5_000, n, floor=40, pinned=True) for n in range(3)]
    found = compacting(items, Policy.build(trigger=("tokens", 100)), Window(2_000))
    assert [clip.limit for clip in found.clips] == [606, 606, 606]  # it may grow by a tenth
    assert found.at_most == 1_818


def test_stale_large_results_are_clipped_first_and_may_be_enough():
    items = talk(30, 50)
    items[3] = item("tool", 9_000, 3, floor=40)
    items[2] = item("assistant", 50, 2, calls=("1",))
    policy = Policy.build(
        trigger=("tokens", 8_000), keep=("messages", 10), stale_results={"newest": 0}
    )
    found = compacting(items, policy)
    assert (found.evicted, [c.index for c in found.clips], found.summary_tokens) == ((), [3], 0)
    assert found.at_most == 29 * 50 + 200


def test_what_shortened_arguments_save_is_taken_off_the_callers_own_count():
    items = [one if one.role == "user" else replace(one, tokens=400, brief=40) for one in talk(20)]
    old = Arguments.build({"trigger": ("tokens", 1_000), "keep": ("messages", 4)})
    policy = replace(Policy.build(trigger=("tokens", 3_000), keep=("messages", 4)), arguments=old)
    found = compacting(items, policy, asked=Size(3_500, 20))
    assert (found.evicted, len(found.clips)) == ((), 8)


def test_a_giant_in_the_kept_part_is_clipped_before_the_cut_moves():
    items = talk(30)
    items[28] = item("tool", 5_000, 28, floor=40)
    policy = Policy.build(trigger=("messages", 30), keep=("messages", 2))
    found = compacting(items, policy, Window(6_000))
    assert [c.index for c in found.clips] == [28]
    assert found.evicted == (*range(26), 27)  # what the user said last stays
    assert found.at_most <= 6_000


def test_where_shortening_a_long_result_is_enough_no_message_leaves():
    items = [*talk(3), item("assistant", 50, 3, calls=("1",))]
    items += [item("tool", 5_000, 4, floor=40, answers=("1",)), *talk(1, 60)]
    found = compacting(items, Policy.build(trigger=("tokens", 3_000)), Window(2_000))
    assert (found.evicted, found.summary_tokens) == ((), 0)
    assert [(clip.index, clip.limit) for clip in found.clips] == [(4, 1240 - 410)]


def test_notes_are_not_made_shorter_where_nothing_comes_to_them():
    notes, newest = item("user", 800, 0, summary=True), item("user", 500, 1, floor=400)
    policy = Policy.build(trigger=("tokens", 1_000))
    found = plan([notes, newest], policy, Window(3_000), force=True)
    assert isinstance(found, Keep) or found.summary_tokens == 0
    found = compacting([notes, newest], policy, Window(1_200), force=True)
    assert 0 < found.summary_tokens < 800


def test_a_call_without_its_message_leaves_with_a_summary_that_has_room():
    items = [item("tool", 300, 0, answers=("gone",)), *talk(3)]
    items += [item("user", 5_000, 4, floor=40)]
    found = compacting(items, Policy.build(trigger=("tokens", 3_000)), Window(2_000))
    assert 0 in found.evicted
    assert found.summary_tokens >= 64
    assert found.at_most <= 2_000


def test_what_the_user_said_last_stays_whole_beside_half_of_the_notes_room_or_more():
    items = [*talk(10), item("user", 690, 10, floor=40)]
    found = compacting(items, Policy.build(trigger=("messages", 9)), Window(1_140))
    assert (found.clips, found.summary_tokens) == ((), int(1_140 / 1.1) - 690)
    items = [*talk(10), item("user", 890, 10, floor=40)]
    found = compacting(items, Policy.build(trigger=("messages", 9)), Window(1_140))
    assert [clip.index for clip in found.clips] == [10]
    assert found.summary_tokens == 380


def test_when_nothing_helps_the_numbers_are_said():
    items = [item("system", 5_000, 0), item("user", 100, 1), item("assistant", 100, 2)]
    found = plan(items, Policy.build(trigger=("messages", 2)), Window(4_000))
    assert isinstance(found, Stuck)
    assert (found.tokens, found.budget) == (5_200, 4_000)
    assert found.needed > 4_000
    assert "4,000" in found.reason


def test_force_compacts_below_the_trigger_and_never_more_than_keep_allows():
    items = talk(30)
    policy = Policy.build(trigger=("messages", 1_000), keep=("messages", 10))
    assert kept(items, plan(items, policy, force=True)) == list(range(20, 30))
    assert isinstance(plan(talk(8), policy, force=True), Keep)


ITEMS = st.lists(
    st.builds(
        lambda role, tokens, floor, n, pinned: Item(
            f"k{n}",
            role,
            tokens,
            floor=min(floor, tokens),
            calls=(f"c{n % 3}",) if role == "assistant" and n % 2 else (),
            answers=(f"c{n % 3}",) if role == "tool" else (),
            pinned=pinned,
        ),
        st.sampled_from(["user", "assistant", "tool", "system"]),
        st.integers(0, 3_000),
        st.integers(1, 200),
        st.integers(0, 10**6),
        st.integers(0, 20).map(lambda n: n == 0),
    ),
    max_size=40,
)


LED = st.builds(
    lambda standing, rest: [*standing, *rest],
    st.sampled_from([[], *([Item("s", "user", n, summary=True)] for n in (80, 900))]),
    ITEMS,
)
"""Items after a standing summary, or without one."""


@given(
    LED,
    st.one_of(st.none(), st.integers(1, 20_000)),
    st.sampled_from([("tokens", 500), ("messages", 10), ("tokens", 1)]),
    st.sampled_from([("messages", 1), ("messages", 20), ("tokens", 700)]),
    st.booleans(),
    st.booleans(),
)
def test_every_plan_is_legal_fits_and_is_the_same_again(items, limit, trigger, keep, force, clip):
    policy = Policy.build(trigger=trigger, keep=keep)
    window = None if limit is None else Window(limit)
    found = plan(items, policy, window, force=force, clip=clip)
    assert found == plan(items, policy, window, force=force, clip=clip)
    total = sum(i.tokens for i in items)
    if isinstance(found, Keep):
        assert limit is None or total <= limit
    if isinstance(found, Stuck):
        assert total > found.budget
        assert found.needed > found.budget
    if isinstance(found, Compact):
        assert limit is None or found.at_most <= limit
        ex = exchanges(items)
        gone = set(found.evicted)
        assert not gone & must_stay(items, ex)
        for i in range(len(items)):
            assert (i in gone) == (ex.group[i] in gone)
        for c in found.clips:
            assert items[c.index].floor <= c.limit < items[c.index].tokens
            assert items[c.index].role != "system"
        assert found.evicted or found.clips or found.summary_tokens


@pytest.mark.parametrize(("trigger", "keep"), [(0.8, 0.4), (0.8, 0.6), (0.85, 0.5), (0.9, 0.7)])
def test_what_a_caller_wants_kept_is_kept_before_a_summary_has_all_its_room(trigger, keep):
    policy = Policy.build(trigger=("fraction", trigger), keep=("fraction", keep), keep_first=True)
    items = talk(int(1_000 * trigger))
    found = compacting(items, policy, Window(100_000))
    assert len(kept(items, found)) == round(1_000 * keep)
    assert found.summary_tokens >= 4_096
    free = found.tokens - found.at_most
    assert free >= max(0.1 * found.tokens - 1, min(found.summary_tokens, 33_333 - 4_096))


def test_a_small_gain_does_not_move_the_cut_that_a_caller_wants():
    policy = Policy.build(trigger=("fraction", 0.9), keep=("fraction", 0.88), keep_first=True)
    assert isinstance(plan(talk(900), policy, Window(100_000)), Keep)
    found = compacting(talk(1_001), policy, Window(100_000))
    assert len(kept(talk(1_001), found)) == 880


def around_a_giant(tokens: int) -> list[Item]:
    """A task, exchanges, a giant result whose call came long before the end, and exchanges."""
    items = [item("user", 100, 0)]
    for n in range(1, 41, 2):
        result = tokens if n == 31 else 120
        items.append(item("assistant", 120, n, calls=(f"c{n}",)))
        items.append(item("tool", result, n + 1, floor=20, answers=(f"c{n}",)))
    return items


def test_what_was_said_before_a_large_result_stays_where_that_fits_short():
    policy = Policy.build(keep=("messages", 20))
    items, window = around_a_giant(1_900), Window(8_000)
    found = compacting(items, policy, window, force=True)
    assert [clip.index for clip in found.clips] == [32]
    assert 21 <= kept(items, found)[1] < 31, "as much stays as fits"
    assert 8_000 // 16 < found.clips[0].limit < 1_900, "it takes all the room that is left"
    assert found.at_most <= 0.62 * 8_000
    without = compacting(items, policy, window, force=True, clip=False)
    assert kept(items, without)[1] > 32
    small = compacting(around_a_giant(300), policy, window, force=True)
    assert not small.clips, "what fits whole is not shown short"


def test_what_frees_too_little_is_not_made_unless_the_window_or_force_asks():
    policy = Policy.build(trigger=("tokens", 4_000), keep=("messages", 20))
    for window in (None, Window(15_000)):
        found = plan(talk(21, 300), policy, window)
        assert found == Keep("a compaction would free too little", 6_300)
        assert compacting(talk(21, 300), policy, window, force=True)
    found = compacting(talk(24, 300), policy)
    assert found.tokens - found.at_most >= 720
    assert found.summary_tokens >= 300
    tight = [item("user", 290, 0), *talk(20, 300)[1:], item("user", 300, 99)]
    assert compacting(tight, policy, Window(sum(one.tokens for one in tight) - 1))
    assert compacting(talk(5, 10), Policy.build(trigger=("tokens", 40), keep=("messages", 1)))


@pytest.mark.parametrize(
    ("window", "tokens", "share"),
    [(None, 100, 2_999), (16_000, 100, 2_999), (128_000, 100, 2_999), (128_000, 1_000, 15_000)],
)
def test_where_messages_are_counted_the_notes_have_half_of_what_leaves(window, tokens, share):
    """Of much; of little they may take all but the gain."""
    policy = Policy.build(trigger=("messages", 50), keep=("messages", 20), keep_first=True)
    found = compacting(talk(50, tokens), policy, window and Window(window), floor=170)
    assert (len(found.evicted), found.summary_tokens) == (30, share)


def test_for_a_prepared_draft_just_what_it_stands_for_leaves():
    talk = [Item(f"{n}", "user" if n % 2 == 0 else "assistant", 100) for n in range(12)]
    decided = Compact("trigger", tuple(range(8)), (), 200, 1_200, 600, 1_500)
    planned = plan_draft(talk, Window(1_500), decided, [0, 1, 2, 3], 150)
    assert planned is not None
    assert planned.evicted == (0, 1, 2, 3)
    assert planned.at_most <= 1_500
