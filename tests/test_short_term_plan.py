"""The plan in LangMem's order: pure, legal, within its limits."""

from conspectus.core.items import Compact, Item
from conspectus.core.plan import Limits, oldest_first


def test_what_is_left_is_the_most_that_a_summary_may_take():
    talk = [Item(f"{n}", "user" if n % 2 == 0 else "assistant", 10) for n in range(9)]
    plan = oldest_first(talk, Limits(50, 60, 20, 14, 10, slack=4), clip=False)
    assert isinstance(plan, Compact)
    assert plan.summary_tokens == 20
    assert plan.at_most <= 50
    roomy = oldest_first(talk, Limits(60, 60, 20, 14, 10, slack=4), clip=False)
    assert isinstance(roomy, Compact)
    assert (roomy.summary_tokens, roomy.at_most) == (30, 60)


def test_a_cut_that_leaves_the_asked_room_for_the_summary_is_not_passed_by():
    sizes = [("user", 7), ("assistant", 47), ("tool", 9), ("tool", 9), ("user", 7), ("user", 38)]
    calls = {1: ("a", "b")}
    answers = {2: ("a",), 3: ("b",)}
    talk = [
        Item(f"{n}", role, size, calls=calls.get(n, ()), answers=answers.get(n, ()))
        for n, (role, size) in enumerate(sizes)
    ]
    plan = oldest_first(talk, Limits(71, 71, 20, 12, 132, slack=2), clip=False)
    assert isinstance(plan, Compact)
    assert plan.evicted == (0, 1, 2, 3)
