"""Plans: what is kept, what leaves, what is clipped, and when nothing helps."""

from dataclasses import replace
from typing import Any

import pytest

from conspectus.core.items import Compact, Item, Keep, Plan, Size, Window
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


def test_what_shortened_arguments_save_is_taken_off_the_callers_own_count():
    items = [one if one.role == "user" else replace(one, tokens=400, brief=40) for one in talk(20)]
    old = Arguments.build({"trigger": ("tokens", 1_000), "keep": ("messages", 4)})
    policy = replace(Policy.build(trigger=("tokens", 3_000), keep=("messages", 4)), arguments=old)
    found = compacting(items, policy, asked=Size(3_500, 20))
    assert (found.evicted, len(found.clips)) == ((), 8)


def test_what_the_user_said_last_stays_whole_beside_half_of_the_notes_room_or_more():
    items = [*talk(10), item("user", 690, 10, floor=40)]
    found = compacting(items, Policy.build(trigger=("messages", 9)), Window(1_140))
    assert (found.clips, found.summary_tokens) == ((), int(1_140 / 1.1) - 690)
    items = [*talk(10), item("user", 890, 10, floor=40)]
    found = compacting(items, Policy.build(trigger=("messages", 9)), Window(1_140))
    assert [clip.index for clip in found.clips] == [10]
    assert found.summary_tokens == 380


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
