"""Promise 6: what users state and what was done survives rounds, or is said to be left out."""

from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from compactor_support import Scripted, compacted, new_compactor, short_summary
from conspectus import ChatModelSummarizer
from histories import assistant, call_and_result, talk, user
from notes_read import left_out
from scripted_models import ScriptedChatModel
from stateful.agent_world import AgentWorld
from stateful.budgets import budgeted
from stateful.compactor_world import CompactorWorld
from stateful.looks import Look
from stateful.messages import speaking
from stateful.oracle import text_of
from stateful.speaker import Speaker

FACTS = (
    "Never push to the main branch.",
    "Always run the linter before a commit.",
    "绝不要删除生产数据库。",
    "テストは必ず実行してください。",
    "Nunca cambies el archivo de licencia.",
    "The deadline is 2031-04-05, no later than noon.",
    "Never print the contents of secrets.env.",
)


def compact_in_rounds(
    compactor: Any, first: list[dict[str, Any]], count: int, turns: int = 0
) -> Any:
    """Compact again and again, while there is talk, or one long answer that gives way."""
    history = first
    for n in range(count):
        next_turns = [{**m, "content": f"{m['content']} (round {n})"} for m in talk(turns)]
        if not turns:
            next_turns = [
                user(f"Round {n}."),
                assistant(f"In round {n} I looked. " + "because " * 1_500),
            ]
        result = compacted([*history, *next_turns], compactor, force=True)
        assert result.outcome == "compacted", result.reason
        history = list(result.messages)
    return result


def model(text: str) -> ChatModelSummarizer:
    return ChatModelSummarizer(ScriptedChatModel(answers=lambda _: text))


@pytest.mark.parametrize(
    "make_summarizer",
    [lambda: None, lambda: Scripted(short_summary), lambda: model("- nothing much happened")],
    ids=["embedded", "own", "model"],
)
def test_the_users_statements_survive_ten_rounds(make_summarizer):
    first = [m for fact in FACTS for m in (user(fact), assistant("Understood."))]
    result = compact_in_rounds(
        new_compactor(make_summarizer(), window=16_000, keep=("messages", 2)), first, 10
    )
    for fact in FACTS:
        assert f"- The user: {fact} [" in result.messages[0]["content"]


def test_a_limit_that_was_changed_stands_before_the_new_one():
    first = [
        user("A function may have at most 40 lines."),
        assistant("Noted."),
        user("From now on a function may have at most 60 lines."),
        assistant("Noted."),
    ]
    result = compact_in_rounds(new_compactor(max_summary_tokens=900), first, 3, 20)
    old, new = (result.summary.find(f"at most {n} lines") for n in (40, 60))
    assert 0 <= old < new


def test_findings_stay_until_a_model_rewrites_them():
    numbers = iter(range(100))
    answers = ScriptedChatModel(answers=lambda _: f"- The cause is number {next(numbers)}.")
    compactor = new_compactor(ChatModelSummarizer(answers), window=16_000, keep=("messages", 2))
    result = compact_in_rounds(compactor, [user("Find the cause.")], 4)
    parts = result.summary.split("## Found and decided")
    finding_lines = [
        line for part in parts[1:] for line in part.splitlines() if "The cause is" in line
    ]
    assert [line.partition(" [")[0] for line in finding_lines] == [
        f"- The cause is number {n}." for n in range(4)
    ]


def test_the_newest_to_do_list_stays_through_rounds():
    def listed(number: int, *items: tuple[str, str]) -> list[dict[str, Any]]:
        todos = [{"content": text, "status": status} for text, status in items]
        return call_and_result("write_todos", {"todos": todos}, "Updated.", f"t{number}")

    first = [
        user("Go."),
        *listed(1, ("build the hull", "in_progress"), ("paint it", "pending")),
        *listed(2, ("build the hull", "completed"), ("paint it", "in_progress")),
    ]
    result = compact_in_rounds(new_compactor(window=16_000, keep=("messages", 2)), first, 3)
    open_lines = result.summary.partition("## Open\n")[2].splitlines()[:2]
    assert open_lines == ["- paint it | in_progress", "- done: build the hull"]


def test_a_callers_summary_replaces_the_one_before():
    numbers = iter(range(100))
    scripted = Scripted(lambda _: f"- This is summary {next(numbers)}.")
    result = compact_in_rounds(
        new_compactor(scripted, window=16_000, keep=("messages", 2)), [user("Go.")], 3
    )
    assert result.summary.endswith("## Summary\n- This is summary 2.")
    assert "This is summary 1." not in result.summary
    assert "This is summary 1." in scripted.requests[-1].summary_so_far


class FactsSurvive:
    """A rule of the user that left is in the records; in the view it stands or is counted."""

    settings_of: ClassVar = {"max_summary_tokens": 1_200, "window": 9_000}

    @rule(fact=st.sampled_from(FACTS))
    def somebody_states_a_rule(self: Speaker, fact: str) -> None:
        self.say(speaking(self.form, "user", fact, name=self.name()))
        self.planted += 1

    def judge(self, look: Look) -> None:
        if not look.evicted:
            return
        covered = {text_of(message) for message in look.evicted}
        for fact in FACTS:
            if fact in covered:
                assert fact in look.lines, f"the records lost {fact}"
                assert fact in look.summary or left_out(look.summary), f"the view lost {fact}"


TestFactsSurviveThroughCompactor = budgeted(FactsSurvive, CompactorWorld, short=7, long=600)


class FactsSurviveAgent(FactsSurvive, AgentWorld):
    @rule(fact=st.sampled_from(FACTS), on_a_loop=st.booleans())
    def a_rule_is_stated_before_much_talk(self, fact: str, on_a_loop: bool) -> None:
        self.somebody_states_a_rule(fact)
        self.the_talk_goes_on(4, on_a_loop)


TestFactsSurviveThroughAgents = budgeted(FactsSurviveAgent, short=2, long=100)
