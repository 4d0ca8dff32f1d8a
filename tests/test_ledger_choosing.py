"""Where the users' words outgrow their room, what binds stands first, and nothing is made up."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conspectus.ledger import Said, choose, statements
from stateful.budgets import few

RULES = [
    "Never deploy on Fridays without the approval of Ilse Vandermolen.",
    "The hotel in Porto must not cost more than 120 EUR per night.",
    "The vault item is called ferrymead-prod; never paste the key into the repo.",
]
CHAT = [
    "It was such a lovely walk along the river with everybody from the old school yesterday.",
    "I felt so happy when the children sang, and my mother cried a little, as she always does.",
    "Thanks so much for listening, it really means a lot to me these days!",
    "What do you think, is it worth going there again in the autumn?",
]


def count(text: str) -> int:
    return len(text) // 4


def talk(rounds: int = 12) -> list[str]:
    said = [f"{text} And so on, {n}." for n in range(rounds) for text in CHAT]
    for place, rule in zip((3, 17, 31), RULES, strict=True):
        said.insert(place, f"Good morning to you! {rule} Anyway, back to work.")
    return said


def test_what_binds_stands_where_not_all_fits():
    shown = "\n".join(kept.text for kept in choose(talk(), 150, count))
    assert all(rule in shown for rule in RULES)


def test_all_stands_as_it_was_where_it_fits():
    assert [kept.text for kept in choose(talk(), 100_000, count)] == talk()


@given(
    st.lists(st.sampled_from([*RULES, *CHAT, "• a\n\n```\nx = 1\n```\n> never", ""]), max_size=9),
    st.lists(st.text(max_size=80), max_size=4),
    st.integers(0, 200),
)
@settings(deadline=None, max_examples=few(60))
def test_what_stands_is_quoted_in_order_and_fits(known, texts, room):
    said = [*known, *texts]
    chosen = choose(said, room, count)
    assert sum(count(kept.text) + 4 for kept in chosen) <= room
    assert [kept.place for kept in chosen] == sorted({kept.place for kept in chosen})
    for kept in chosen:
        words = " … ".join(said[kept.place][start:end] for start, end in kept.spans)
        assert words in kept.text
        assert kept.whole == (kept.text == said[kept.place])


@given(st.text(max_size=300), st.sampled_from(["user", "system", "tool"]))
@settings(deadline=None, max_examples=few(80))
def test_every_letter_of_a_message_is_in_one_sentence(text, role):
    end = 0
    for one in statements(text, role):
        assert end <= one.start < one.end
        assert text[one.start : one.end] == one.text
        end = one.end


def test_a_flood_of_near_equal_lines_pushes_no_other_rule_out():
    line = "Part {0} of `plan-{0}` must never cost more than {0} EUR without approval by Wren Oak."
    flood = [line.format(n) for n in range(400)]
    said = [Said(text) for text in (RULES[0], *flood[:200], RULES[1], *flood[200:], RULES[2])]
    shown = "\n".join(kept.text for kept in choose(said, 300, count))
    assert all(rule in shown for rule in RULES)


@given(st.integers(0, 400), st.integers(0, 3))
@settings(deadline=None, max_examples=few(40))
def test_what_was_replaced_stands_only_with_what_replaced_it(room, shift):
    caps = [
        "Hotels in Rome must never cost more than 120 EUR.",
        "Hotels in Bonn must never cost more than 130 EUR.",
        f"Hotels are at 150 EUR now{', as somebody in the hall told me' * 8}.",
    ]
    said = [*caps[:2], *talk(4)]
    said.insert(14 + shift, caps[2])
    shown = "\n".join(kept.text for kept in choose(said, room, count))
    assert (caps[0] not in shown and caps[1] not in shown) or caps[2] in shown


@pytest.mark.parametrize("room", range(20, 200, 20))
def test_what_is_said_anew_of_a_named_thing_stands_before_what_was_said(room):
    old = "So we are settled: the orders-bus-v3 broker will be Redpanda, as ops knows it in Gdansk."
    new = "The licence did not come. orders-bus-v3 runs on JetStream now, so redo the consumer."
    shown = "\n".join(kept.text for kept in choose([old, *talk(4), new, *CHAT], room, count))
    assert "Redpanda" not in shown or "JetStream" in shown


@pytest.mark.slow
def test_a_value_that_changed_a_thousand_times_stands_as_it_is_now():
    said = [f"The hotel cap is now {n} EUR per night." for n in range(100, 1_100)]
    shown = "\n".join(kept.text for kept in choose(said, 40, count))
    assert "1099 EUR" in shown
