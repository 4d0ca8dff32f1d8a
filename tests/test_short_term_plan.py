"""The plan in LangMem's order: pure, legal, within its limits."""

from conspectus.core.items import Compact, Item
from conspectus.core.oldest_first import Limits, oldest_first


def test_what_is_left_is_the_most_that_a_summary_may_take():
    talk = [Item(f"{n}", "user" if n % 2 == 0 else "assistant", 10) for n in range(9)]
    plan = oldest_first(talk, Limits(50, 60, 20, 14, 10, slack=4), clip=False)
    assert isinstance(plan, Compact)
    assert plan.summary_tokens == 20
    assert plan.at_most <= 50
    roomy = oldest_first(talk, Limits(60, 60, 20, 14, 10, slack=4), clip=False)
    assert isinstance(roomy, Compact)
    assert (roomy.summary_tokens, roomy.at_most) == (30, 60)
