"""Promise 6: what the ledger holds survives rounds, unless superseded or evicted by priority."""

from typing import Any

import pytest

from conspectus import Ledger
from conspectus.messages import read_messages
from engine import Scripted, compacted, engine, short
from histories import assistant, talk, user

RULES = [
    "Never push to the main branch.",
    "绝不要删除生产数据库。",
    "テストは必ず実行してください。",
    "Nunca cambies el archivo de licencia.",
    "The deadline is 2031-04-05, no later than noon.",
]


def rounds(compactor: Any, first: list[dict[str, Any]], count: int) -> Any:
    history = first
    for n in range(count):
        turns = [{**m, "content": f"{m['content']} (round {n})"} for m in talk(20)]
        result = compacted([*history, *turns], compactor, force=True)
        assert result.outcome == "compacted", result.reason
        history = list(result.messages)
    return result


@pytest.mark.slow
def test_standing_rules_are_in_the_summary_after_ten_rounds_word_for_word():
    first = [m for rule in RULES for m in (user(rule), assistant("Understood."))]
    for summarizer in (None, Scripted(short)):
        result = rounds(engine(summarizer, max_summary_tokens=900), first, 10)
        for rule in RULES:
            assert rule in result.messages[0]["content"]
        assert {f.value for f in result.carried if f.kind == "rule"} >= set(RULES)


def test_a_model_that_loses_a_rule_loses_nothing():
    first = [user(RULES[0]), assistant("ok")]
    result = rounds(engine(Scripted(lambda _: "- nothing much happened [x]")), first, 1)
    assert f"- {RULES[0]} [" in result.summary


def test_a_superseded_limit_stands_only_before_the_new_one():
    first = [
        user("A function may have at most 40 lines."),
        assistant("Noted."),
        user("From now on a function may have at most 60 lines."),
        assistant("Noted."),
    ]
    result = rounds(engine(max_summary_tokens=600), first, 3)
    assert "at most 60 lines" in result.summary
    assert result.summary.find("at most 40 lines") < result.summary.find("at most 60 lines")


def test_a_limit_superseded_in_the_kept_part_stands_before_it_at_most():
    history = [user("The cap is 40 lines per function."), *talk(30)[1:]]
    history += [assistant("ok"), user("Let us raise it: the cap is 60 lines per function.")]
    result = compacted(history, engine(), force=True)
    shown = str(result.messages)
    assert shown.rfind("cap is 40") < shown.find("cap is 60")
    assert not any("cap is 40" in fact.value for fact in result.carried)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The cap must be 500 EUR.", "The cap must be 900 EUR."),
        ("A file may have at most 40 lines.", "From now on files may have at most 60 lines."),
        ("报告最多10页。", "从现在起报告最多改为20页。"),
    ],
)
def test_a_rule_that_was_changed_is_replaced_and_can_be_changed_back(old, new):
    book = Ledger().updated(read_messages([user(old), user(new)]))
    assert {f.value for f in book.standing()} == {new}
    assert old in book.gone
    assert not [f for f in book.facts if f.value in old]
    if "cap" in old:
        back = book.updated(read_messages([user(old)]))
        assert {f.value for f in back.standing()} == {old}


def test_a_long_request_that_sets_a_rule_is_neither_lost_nor_taken_for_superseded():
    long = (
        "Please build the importer for the warehouse so that every row that cannot be parsed must "
        "be written to rejected-rows.csv together with the reason, the line number and the name of "
        "the file it came from, because the people who look after the shelves want to correct such "
        "rows by hand in the evening before the next delivery; make sure that nothing is lost"
    )
    result = compacted([user(long), *talk(20)], engine(), force=True)
    assert "rejected-rows.csv" in result.summary


@pytest.mark.slow
def test_what_was_handed_to_others_and_what_came_back_is_in_the_summary_after_ten_rounds():
    def handed(number: int, answer: str) -> list[dict[str, Any]]:
        function = {
            "name": "task",
            "arguments": f'{{"description": "Ask vendor {number} for its price"}}',
        }
        call = {"id": f"v{number}", "type": "function", "function": function}
        return [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"v{number}", "content": answer},
        ]

    first = [
        user("Compare the vendors."),
        *handed(1, "# Findings\n\nVendor 1 asks for 41 USD per seat."),
        *handed(2, "Error: the agent gave up."),
    ]
    for summarizer in (None, Scripted(short)):
        result = rounds(engine(summarizer, max_summary_tokens=1_800), first, 10)
        text = result.messages[0]["content"]
        done = text.split("## Done")[1]
        assert "Ask vendor 1 for its price) → " in done
        assert "Vendor 1 asks for 41 USD per seat." in done
        assert "Ask vendor 2 for its price) → Error: the agent gave up." in done


def test_a_user_cannot_change_what_the_system_has_set():
    cap, raised = "The cap must be 500 EUR.", "Raise the cap: it must be 900 EUR."
    book = Ledger().updated(read_messages([{"role": "system", "content": cap}, user(raised)]))
    assert cap in {fact.value for fact in book.standing()}
    own = Ledger().updated(read_messages([user(cap), user(raised)]))
    assert cap not in {fact.value for fact in own.standing()}
