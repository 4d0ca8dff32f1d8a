"""Triggers and keep: the forms that LangChain's users write, refused when they mean nothing."""

import math

import pytest

from conspectus.core.items import Size
from conspectus.core.policy import Policy, parse_trigger
from conspectus.errors import PolicyError


@pytest.mark.parametrize(
    ("trigger", "said"),
    [
        (("tokens", 4000), ["4,000 tokens"]),
        (("messages", 20), ["20 messages"]),
        (("fraction", 0.8), ["0.8 of the window"]),
        (("fraction", 1), ["1 of the window"]),
        ({"tokens": 4000, "messages": 10}, ["4,000 tokens and 10 messages"]),
        (
            [("messages", 50), {"tokens": 9, "fraction": 0.5}],
            ["50 messages", "9 tokens and 0.5 of the window"],
        ),
        (None, []),
    ],
)
def test_every_form_of_langchain_is_taken(trigger, said):
    assert [str(clause) for clause in parse_trigger(trigger)] == said


@pytest.mark.parametrize(
    "wrong",
    [
        True,
        "tokens",
        ("tokens", "4000"),
        ("tokens", 0),
        ("tokens", math.nan),
        ("fraction", 1.01),
        ("words", 10),
        ("tokens",),
        ["tokens", 4000],
        [],
        {},
        {"words": 3},
        [("tokens", 1), "x"],
    ],
)
def test_what_means_nothing_is_refused_when_built_and_the_right_form_is_shown(wrong):
    with pytest.raises(PolicyError, match=r'\("tokens", 4000\)'):
        Policy.build(trigger=wrong)
    if not isinstance(wrong, dict):
        with pytest.raises(PolicyError, match=r'\("tokens", 4000\)'):
            Policy.build(keep=wrong)


def test_all_parts_of_a_clause_must_hold_and_any_clause_is_enough():
    policy = Policy.build(trigger=[{"tokens": 100, "messages": 10}, ("tokens", 1000)])
    assert policy.fired(Size(100, 9), None) is None
    assert policy.fired(Size(99, 10), None) is None
    assert str(policy.fired(Size(100, 10), None)) == "100 tokens and 10 messages"
    assert str(policy.fired(Size(1000, 1), None)) == "1,000 tokens"


def test_a_fraction_means_the_window_and_never_fires_without_one():
    policy = Policy.build(trigger=("fraction", 0.5))
    assert policy.fired(Size(10**9, 10**6), None) is None
    assert policy.fired(Size(499, 1), 1000) is None
    assert policy.fired(Size(500, 1), 1000)


def test_a_trigger_that_the_last_compaction_still_met_waits_for_growth():
    policy = Policy.build(trigger=("tokens", 1000))
    last = Size(1200, 20)
    assert policy.fired(Size(1210, 22), None, last) is None
    assert policy.fired(Size(1319, 22), None, last) is None
    assert policy.fired(Size(1320, 22), None, last)
    assert policy.fired(Size(1000, 22), None, Size(900, 20))


@pytest.mark.parametrize(
    ("trigger", "keep"),
    [
        (("tokens", 4000), ("tokens", 4000)),
        (("messages", 20), ("messages", 20)),
        (("fraction", 0.5), ("fraction", 0.6)),
        ([("tokens", 9000), {"messages": 5, "tokens": 10}], ("messages", 6)),
    ],
)
def test_a_keep_that_cannot_get_below_its_trigger_is_warned_about(trigger, keep):
    (caveat,) = Policy.build(trigger=trigger, keep=keep).caveats
    assert "Lower keep or raise trigger" in caveat
