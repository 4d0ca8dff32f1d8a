"""The checks: each fault of a summary is named, and good ones in any language pass."""

from typing import Any

import pytest

from conspectus._core.records import Draft
from conspectus.messages import read_messages
from conspectus.summarize import problems, wrong_with
from conspectus.summarize.prompts import UPDATE
from histories import talk, user

ENTRIES = read_messages(talk(20))
CHINESE = read_messages([user(f"第{n}个问题：我们应该怎样修复登录页面的错误？") for n in range(30)])


def found(text: str, entries: Any = ENTRIES, **more: Any) -> tuple[str, ...]:
    numbers = {"tokens": 100, "replaced": 2_000, "limit": 500, **more}
    draft = Draft(text, "model", tuple(e.key for e in entries))
    return (*wrong_with(text, entries), *problems(draft, entries, **numbers))


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
def test_good_summaries_pass(text):
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
        (f"## Goal\n{UPDATE[:300]}", "repeats the prompt"),
        ("Мы исправили ошибку на странице входа и решили оставить журнал.", "cyrillic"),
    ],
)
def test_bad_ones_are_named(text, says):
    assert any(says in problem for problem in found(text))


def test_sizes_and_reading_are_held_against_the_numbers():
    assert found("- ok", tokens=501) == ("it takes 501 tokens and 500 are allowed",)
    assert found("- ok", tokens=500) == ()
    assert "what it replaces only 300" in found("- ok", tokens=400, replaced=300)[0]
    assert found("- ok", tokens=200, replaced=10) == ()
    half = Draft("- ok", "model", tuple(e.key for e in ENTRIES[::2]))
    assert (
        "20 of 40 messages were not read"
        in problems(half, ENTRIES, tokens=10, replaced=900, limit=500)[0]
    )


def test_a_summary_must_be_in_the_conversations_language():
    assert found("- 修复了登录页面的错误，并决定保留日志。" * 3, CHINESE) == ()
    paths = "".join(f"- 修改了 src/app/handlers/login_page_{n}.py\n" for n in range(9))
    assert found(paths, CHINESE) == ()
    english = "The user asked how the login page should be fixed, many times over."
    assert any("no cjk script" in problem for problem in found(english, CHINESE))
