"""The ledger as a whole: read in parts or at once, merged, bounded, stored; quotations checked."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conspectus import Fact, Ledger
from conspectus.errors import InputError
from conspectus.ledger import facts_of, quoted
from conspectus.ledger.book import LIMIT
from conspectus.messages import read_messages
from histories import assistant, user
from stateful.budgets import few

SAID = [
    "Never push to main.",
    "Hotels may cost at most 120 EUR per night.",
    "Raise the hotel cap to 150 EUR per night.",
    "We decided to use Redis for the Tamsin cache.",
    "I prefer window seats.",
    "I changed my mind: I'd rather have an aisle seat.",
    "The demo box listens on port 8843.",
    "绝不要删除生产数据库。",
    "Lovely weather today!",
]
TURNS = st.lists(
    st.builds(
        lambda text, who: who(text), st.sampled_from(SAID), st.sampled_from([user, assistant])
    ),
    max_size=14,
)


def book(*messages: dict[str, Any]) -> Ledger:
    return Ledger().updated(read_messages(messages))


@given(TURNS, st.integers(0, 14), st.integers(0, 14))
@settings(deadline=None, max_examples=few(40))
def test_a_thread_read_in_parts_gives_the_ledger_of_the_whole(turns, one, other):
    entries = read_messages(turns)
    first, second = sorted((one, other))
    ledger = Ledger()
    for part in (entries[:first], entries[first:second], entries[second:]):
        ledger = Ledger.from_json(json.loads(json.dumps(ledger.to_json()))).updated(part)
    assert ledger == Ledger().updated(entries)


def test_a_later_ledger_put_on_top_replaces_what_it_changes():
    entries = read_messages([user(SAID[1]), user(SAID[2])])
    merged = Ledger().updated(entries[:1]).merged(Ledger().updated(entries[1:]))
    assert {f.value for f in merged.standing()} == {SAID[2]}
    assert merged.seen == 2


@given(st.lists(st.text(max_size=300), max_size=5), st.sampled_from(["user", "system"]))
@settings(deadline=None, max_examples=few(60))
def test_any_text_is_read_and_every_fact_is_quoted_from_its_message(texts, role):
    for entry in read_messages([{"role": role, "content": text} for text in texts]):
        for fact in facts_of(entry):
            assert fact.value
            assert fact.quote in entry.text
            assert fact.value in fact.quote


def test_a_sentence_that_needs_the_one_before_it_is_quoted_with_it():
    text = "Get the Quillfeed import working. It must not cost more than $43.50 per night."
    (fact,) = [fact for fact in book(user(text)).facts if fact.kind == "rule"]
    assert fact.value == "It must not cost more than $43.50 per night."
    assert fact.quote == text
    later = "The Quillfeed import may now use up to $71.25 per night."
    assert fact.value in book(user(text), user(later)).gone


def test_rules_outlive_a_flood_of_decisions_and_of_near_equal_rules():
    rule = "Never push to main."
    near = [user(f"The part {n} must never cost more than {n} EUR.") for n in range(LIMIT)]
    names = [f"{chr(97 + n // 20)}{chr(97 + n % 20)}" for n in range(LIMIT)]
    decided = [user(f"We decided to use Al{name} for Be{name}.") for name in names]
    for flood in (near, decided):
        ledger = book(user(rule), *flood)
        assert len(ledger.facts) == LIMIT
        assert rule in {fact.value for fact in ledger.facts}


def test_a_record_of_an_earlier_version_is_carried_on():
    old = {"kind": "path", "value": "app.py", "source": "m1", "role": "tool", "used": 2, "told": 1}
    rule = {"kind": "rule", "value": SAID[1], "source": "m2", "role": "user", "order": 3}
    ledger = Ledger.from_json({"facts": [old, rule], "gone": ["x"]})
    assert ledger.seen == 4
    assert [fact.to_json() for fact in ledger.facts] == [old, rule]
    later = ledger.updated(read_messages([user(SAID[2])]))
    assert {fact.value for fact in later.facts} == {"app.py", SAID[2]}
    assert later.gone == ("x", SAID[1])


def test_what_is_still_in_view_takes_from_the_ledger_what_it_has_replaced():
    ledger = book(user(SAID[1])).without_superseded(read_messages([user(SAID[2])]))
    assert not ledger.facts
    assert ledger.seen == 1


@pytest.mark.parametrize("text", ["a." * 9_000, "1," * 9_000, '"' * 9_000, "never must " * 2_000])
def test_hostile_lines_are_read_to_an_end(text):
    assert len(book(user(text)).facts) <= LIMIT


def test_a_quotation_of_a_user_is_taken_and_anything_else_is_not():
    said, answer = read_messages([user("So:  keep the “Halden”\nnumbers to us."), assistant("ok")])
    fact = quoted(said, 'keep the "Halden" numbers to us')
    assert fact.value == "keep the “Halden”\nnumbers to us"
    assert fact.source == said.cite
    assert quoted(said, "keep the Halden numbers to yourself") is None
    assert quoted(answer, "ok") is None
    assert Ledger().merged([fact]).standing() == (fact,)


GOOD = {"kind": "rule", "value": "Never push.", "source": "m", "role": "user", "order": 2}


@pytest.mark.parametrize(
    ("odd", "why"),
    [
        (None, "must be an object"),
        ({"facts": 3}, "'facts' of a ledger must be a list"),
        ({"gone": {"a": 1}}, "'gone' of a ledger must be a list"),
        ({"gone": [1]}, "'gone' of a ledger must be a list of texts"),
        ({"seen": "2"}, "'seen' of a ledger must be a whole number"),
        ({"facts": [7]}, "fact 0 of the ledger: a fact must be an object"),
        ({"facts": [{"kind": "rule", "source": "m", "role": "user"}]}, "no 'value'"),
        ({"facts": [GOOD, {**GOOD, "value": None}]}, "fact 1 of the ledger: 'value'"),
        ({"facts": [{**GOOD, "order": "1"}]}, "'order' of a fact must be a whole number"),
        ({"facts": [{**GOOD, "kind": []}]}, "'kind' of a fact must be text"),
    ],
)
def test_what_is_no_ledger_is_refused_with_its_place(odd, why):
    with pytest.raises(InputError, match=why):
        Ledger.from_json(odd)


def test_of_a_damaged_ledger_all_that_can_be_read_is_recovered():
    odd = {"facts": [GOOD, 7, {**GOOD, "role": 1}], "gone": ["x", 3], "seen": None, "more": 1}
    ledger, wrong = Ledger.recovered(odd)
    assert ledger == Ledger((Fact.from_json(GOOD),), ("x",), 3)
    assert len(wrong) == 4
    whole = Ledger.recovered({"facts": [GOOD], "gone": [], "seen": 4})
    assert whole == (Ledger((Fact.from_json(GOOD),), (), 4), ())
