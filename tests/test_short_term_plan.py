"""The plan in LangMem's order: pure, legal, within its limits."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conspectus.core.boundaries import exchanges, must_stay
from conspectus.core.items import Compact, Item, Keep, Stuck
from conspectus.core.oldest_first import Limits, oldest_first
from stateful.budgets import few


@st.composite
def histories(draw: st.DrawFn) -> list[Item]:
    made: list[Item] = []
    for n in range(draw(st.integers(0, 14))):
        role = draw(st.sampled_from(["system", "user", "assistant", "tool", "summary"]))
        tokens = draw(st.sampled_from([1, 5, 20, 60, 400]))
        floor = draw(st.sampled_from([-1, 1, 4]))
        calls = tuple(draw(st.lists(st.sampled_from("abc"), max_size=2, unique=True)))
        if role == "summary":
            made.append(Item(f"{n}", "user", tokens, summary=True))
        elif role == "assistant":
            made.append(Item(f"{n}", "assistant", tokens, floor, calls=calls))
        elif role == "tool":
            made.append(Item(f"{n}", "tool", tokens, floor, answers=calls[:1]))
        else:
            made.append(Item(f"{n}", role, tokens, floor))  # type: ignore[arg-type]
    return made


LIMITS = st.builds(
    Limits,
    most=st.integers(1, 400),
    reach=st.integers(0, 400),
    share=st.integers(0, 60),
    frame=st.integers(0, 20),
    floor=st.integers(0, 40),
    slack=st.just(4),
)


@settings(max_examples=few(500), deadline=None)
@given(histories(), LIMITS, st.booleans())
def test_every_plan_is_legal_and_says_what_it_comes_to(items, limits, clip):
    plan = oldest_first(items, limits, clip=clip)
    assert plan == oldest_first(items, limits, clip=clip)
    assert plan.tokens == sum(item.tokens for item in items)
    if isinstance(plan, Stuck):
        assert plan.tokens > limits.most
        return
    if isinstance(plan, Keep):
        return
    ex = exchanges(items)
    gone, fixed = set(plan.evicted), must_stay(items, ex)
    assert not gone & fixed
    assert not any(items[i].summary for i in gone)
    left = {ex.group[i] for i in range(len(items)) if i not in gone and i not in ex.orphans}
    assert not {ex.group[i] for i in gone - ex.orphans} & left
    assert bool(gone) == bool(plan.summary_tokens)
    assert gone or plan.clips
    clips = {one.index: one.limit for one in plan.clips}
    assert clip or not clips
    assert not gone & set(clips)
    for index, limit in clips.items():
        assert items[index].smallest() <= limit < items[index].tokens
    standing = sum(item.tokens for item in items if item.summary)
    kept = sum(
        clips.get(i, item.tokens)
        for i, item in enumerate(items)
        if i not in gone and not item.summary
    )
    assert plan.at_most == kept + (plan.summary_tokens if gone else standing)


def test_the_cut_is_the_first_that_is_enough():
    talk = [Item(f"{n}", "user" if n % 2 == 0 else "assistant", 10) for n in range(9)]
    plan = oldest_first(talk, Limits(60, 60, 20, 4, 10), clip=False)
    assert isinstance(plan, Compact)
    assert plan.evicted == (0, 1, 2, 3, 4, 5)
    later = oldest_first(talk, Limits(40, 60, 20, 4, 10), clip=False)
    assert isinstance(later, Compact)
    assert later.evicted == (0, 1, 2, 3, 4, 5, 6)


@pytest.mark.slow
def test_ten_thousand_messages_are_planned_in_linear_time():
    """No timing: a plan that looked at every cut anew would not come back."""
    talk = [Item(f"{n}", "user" if n % 2 == 0 else "assistant", 10) for n in range(60_001)]
    for limits in (Limits(500_000, 10, 20, 4, 10), Limits(30, 100_000, 28, 20, 10)):
        assert isinstance(oldest_first(talk, limits, clip=False), Compact)


def test_what_is_left_is_the_most_that_a_summary_may_take():
    talk = [Item(f"{n}", "user" if n % 2 == 0 else "assistant", 10) for n in range(9)]
    plan = oldest_first(talk, Limits(50, 60, 20, 14, 10, slack=4), clip=False)
    assert isinstance(plan, Compact)
    assert plan.summary_tokens == 20
    assert plan.at_most <= 50
    roomy = oldest_first(talk, Limits(60, 60, 20, 14, 10, slack=4), clip=False)
    assert isinstance(roomy, Compact)
    assert (roomy.summary_tokens, roomy.at_most) == (30, 60)
