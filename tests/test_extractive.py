"""The embedded summariser: within its limit, cited, in every script, from what the messages say."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus import ExtractiveSummarizer, Ledger, SummaryRequest
from conspectus.messages import read_messages
from conspectus.tokens import estimate as estimate_of
from histories import agent, assistant, histories, talk, tool, user


def estimate(text: str) -> int:
    return estimate_of(text, "o200k")


def ask(messages: list[dict[str, Any]], limit: int = 400, **more: Any) -> str:
    entries = read_messages(messages)
    more.setdefault("standing", "")
    more.setdefault("ledger", Ledger().updated(entries))
    request = SummaryRequest(entries, limit=limit, count=estimate, **more)
    summary = ExtractiveSummarizer().summarize(request)
    assert summary.read == tuple(e.key for e in entries)
    assert summary.cost.calls == 0
    return summary.text


def numbered(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**m, "id": f"m{n}"} for n, m in enumerate(messages)]


@given(histories(broken=True), st.integers(1, 600))
def test_the_limit_holds_and_there_is_always_something(
    messages: list[dict[str, Any]], limit: int
) -> None:
    text = ask(messages, limit)
    assert text
    assert estimate(text) <= max(limit, 1)


@given(histories())
def test_the_same_messages_give_the_same_summary(messages: list[dict[str, Any]]) -> None:
    assert ask(messages) == ask(messages)


def test_every_line_cites_a_message_and_quotes_it() -> None:
    messages = numbered(agent(30))
    by_id = {m["id"]: " ".join(str(m).split()) for m in messages}
    lines = [line for line in ask(messages).split("\n") if line.startswith("- ")]
    assert len(lines) > 5
    for line in lines:
        cited = re.fullmatch(r"- (.+) \[(m\d+)\]", line)
        assert cited, line
        for piece in cited[1].split(" · "):
            words = piece.split()[:3]
            assert all(word.strip("'\"") in by_id[cited[2]] for word in words), line


def test_what_the_agent_used_itself_comes_before_what_a_tool_printed() -> None:
    messages = [user("Fix it")]
    for n in range(20):
        messages.append(assistant("", (f"c{n}", "edit src/core/engine.py now please")))
        messages.append(tool(f"c{n}", f"noise/path_{n}/other_{n}.log says nothing of use"))
    assert "src/core/engine.py" in ask(messages, 150)


def test_decisions_rules_and_the_goal_have_their_places() -> None:
    messages = numbered(
        [
            user("Make the importer twice as fast. Never change the file format."),
            assistant("I decided to cache parsed headers because parsing them took most time."),
            *talk(10),
        ]
    )
    text = ask(messages, 500)
    assert "## Goal\n- Make the importer twice as fast. [m0]" in text
    assert "## Standing rules\n- Never change the file format. [m0]" in text
    assert re.search(r"## Decisions\n- I decided to cache parsed headers .* \[m1\]", text)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("决定使用 PostgreSQL，因为需要事务。", "PostgreSQL"),
        ("キャッシュを使うと決定しました。理由は速度です。", "決定"),
        ("속도가 중요하므로 캐시를 쓰기로 결정했습니다.", "결정"),
    ],
)
def test_other_scripts_are_read_as_well(said: str, kept: str) -> None:
    assert kept in ask([user("开始 시작 始める"), assistant(said), *talk(3)], 300)


def test_what_is_still_in_view_is_not_said_again() -> None:
    messages = agent(20)
    kept = read_messages([assistant("I keep module_3 and function_3 and src/module_3.py here.")])
    without = ask(messages, 4_000)
    with_view = ask(messages, 4_000, kept=kept)
    assert "function_3()" in without
    assert (
        with_view.count("module_3.py") < without.count("module_3.py")
        or "function_3()" not in with_view
    )


def test_the_standing_summary_is_extended_and_not_quoted_as_a_message() -> None:
    first = ask(numbered(agent(15)), 400)
    later = [{**m, "id": f"n{n}"} for n, m in enumerate(talk(10))]
    second = ask(later, 700, standing=first)
    assert second.count("## Goal") == 1
    assert "[m" in second
    assert "[n" in second


def test_a_focus_brings_up_what_it_names() -> None:
    messages = numbered(talk(40))
    messages[25]["content"] = "The refund for the broken lamp goes to the blue account."
    assert "blue account" not in ask(messages, 120)
    assert "blue account" in ask(messages, 120, focus="refund lamp account")


def test_what_a_user_says_of_themselves_is_not_crowded_out_by_what_tools_print() -> None:
    first = "I am Ana Ruiz. My budget is 2,400 EUR. I am allergic to peanuts. Booking ref XK77P."
    messages = numbered([user(first)])
    for n in range(40):
        messages += [
            user(f"Option {n}: what about a hotel in city_{n}?"),
            assistant("", (f"c{n}", f"search city_{n}")),
            tool(f"c{n}", f"hotel_{n} in city_{n} costs {n}00 EUR"),
        ]
    text = ask(messages, 330)
    for fact in ("2,400 EUR", "peanuts", "XK77P"):
        assert fact in text
