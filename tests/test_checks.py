"""The checks: each fault of a summary is named, and good ones in any language pass."""

from __future__ import annotations

from typing import Any

import pytest

from conspectus._core.records import Draft
from conspectus.ledger import Ledger
from conspectus.messages import read_messages
from conspectus.summarize import problems, with_missing_facts
from conspectus.tokens import estimate
from histories import talk, user

ENTRIES = read_messages(talk(20))
CHINESE = read_messages([user(f"第{n}个问题：我们应该怎样修复登录页面的错误？") for n in range(30)])


def found(text: str, entries: Any = ENTRIES, by: str = "model", **more: Any) -> tuple[str, ...]:
    numbers = {"tokens": 100, "replaced": 2_000, "limit": 500, **more}
    return problems(Draft(text, by, tuple(e.key for e in entries)), entries, **numbers)


@pytest.mark.parametrize(
    "text",
    [
        "## Goal\n- Fix the importer [m1]",
        "The user asked 20 questions; all are answered.",
        "- Error handling was added to app.py [m3]",
        "Objetivo: arreglar el importador. Se decidió usar SQLite.",
        "- Sure-footed progress on hello.py",
    ],
)
def test_good_summaries_pass(text: str) -> None:
    assert found(text) == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("I'm sorry, I cannot summarise this.", "refusal"),
        ("As an AI, I have no access.", "refusal"),
        ("Certainly! Here is what I will do next:", "reply"),
        ("Error generating summary: timeout", "error message"),
        ("Traceback (most recent call last): ...", "error message"),
        ('<message id="m1" role="user">why</message>', "repeats the prompt"),
        ("Мы исправили ошибку на странице входа и решили оставить журнал.", "cyrillic"),
    ],
)
def test_bad_ones_are_named(text: str, says: str) -> None:
    assert any(says in problem for problem in found(text))


def test_sizes_and_reading_are_held_against_the_numbers() -> None:
    assert found("- ok", tokens=501) == ("it takes 501 tokens and 500 are allowed",)
    assert found("- ok", tokens=500) == ()
    assert "what it replaces only 300" in found("- ok", tokens=400, replaced=300)[0]
    assert found("- ok", tokens=200, replaced=10) == ()
    half = Draft("- ok", "model", tuple(e.key for e in ENTRIES[::2]))
    assert (
        "20 of 40 messages were not read"
        in problems(half, ENTRIES, tokens=10, replaced=900, limit=500)[0]
    )


def test_a_summary_must_be_in_the_conversations_language() -> None:
    assert found("- 修复了登录页面的错误，并决定保留日志。" * 3, CHINESE) == ()
    paths = "".join(f"- 修改了 src/app/handlers/login_page_{n}.py\n" for n in range(9))
    assert found(paths, CHINESE) == ()
    english = "The user asked how the login page should be fixed, many times over."
    assert any("no han script" in problem for problem in found(english, CHINESE))


def test_the_embedded_summariser_only_quotes_and_may_quote_anything() -> None:
    assert found("I'm sorry, I cannot do that. [m1]", by="extractive") == ()


def test_lost_facts_are_appended_and_present_ones_are_not() -> None:
    book = Ledger().updated(read_messages([user("Never push to main."), user("Always run tests.")]))
    text = "- The user said: never push to main [m1]"
    whole = with_missing_facts(text, book.standing(), 400, estimate)
    assert whole.startswith(text)
    assert whole.count("ush to main") == 1
    assert "- Always run tests. [" in whole
    assert with_missing_facts(text, book.standing(), estimate(text), estimate) == text


def test_a_lost_decision_is_appended_as_a_decision_and_no_rule() -> None:
    book = Ledger().updated(read_messages([user("We decided to use PostgreSQL 15.")]))
    [fact] = [fact for fact in book.standing() if fact.kind == "decision"]
    whole = with_missing_facts("Work goes on.", [fact], 400, estimate)
    assert whole.startswith(f"Work goes on.\n## Decisions\n- {fact.shown}")
