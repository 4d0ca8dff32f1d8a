"""Promise 14: a summary in force tells of the messages that it replaces."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus import CompactionResult, Compactor
from conspectus.errors import SummaryRejected
from conspectus.messages import read_messages
from conspectus.model.answers import answer_of
from conspectus.model.base import SummaryRequest
from conspectus.model.callables import CallableSummarizer
from conspectus.model.gate import begins_as_asked, reason_not_a_summary
from conspectus.tokens import estimate
from model_support import ScriptedChatModel

EXAMPLES = Path(__file__).parent / "summary_examples"
NAMES = ["de_renovierung", "h02_en_diet_training", "h10_zh_image_service", "h03_ar_coffee_kiosk"]
CONVERSATIONS = {name: json.loads((EXAMPLES / f"{name}.json").read_text("utf-8")) for name in NAMES}


def request_of(name: str, **settings: Any) -> SummaryRequest:
    messages = [
        {"role": "user" if m["role"] == "user" else "assistant", "content": m["content"]}
        for m in CONVERSATIONS[name]["messages"]
    ]
    entries = read_messages(messages)
    return SummaryRequest(entries[:-4], "", 4_000, estimate, kept=entries[-4:], **settings)


def request_of_a_parser() -> SummaryRequest:
    messages = [
        {
            "role": "user" if number % 2 == 0 else "assistant",
            "content": f"In step {number} we consider the parser and its tests; the function "
            f"parse_{number} returns wrong values. The log says error {number}, and the fix is to "
            f"change the buffer size to {number * 8}.",
        }
        for number in range(60)
    ]
    return SummaryRequest(read_messages(messages), "", 4_000, estimate)


def longest(texts: list[dict[str, Any]]) -> str:
    return max((text["text"] for text in texts), key=len)


def answers(name: str, kind: str) -> list[dict[str, Any]]:
    return [answer for answer in CONVERSATIONS[name]["others"] if answer["kind"] == kind]


@pytest.mark.parametrize("name", NAMES)
def test_a_true_summary_is_accepted(name):
    assert reason_not_a_summary(longest(CONVERSATIONS[name]["summaries"]), request_of(name)) == ""


@pytest.mark.parametrize("kind", ["refusal", "greeting", "asks_for_more", "error_page"])
@pytest.mark.parametrize("name", NAMES)
def test_a_text_that_tells_nothing_of_the_messages_is_refused(name, kind):
    assert reason_not_a_summary(longest(answers(name, kind)), request_of(name))


@given(st.sampled_from(NAMES), st.sampled_from(NAMES))
def test_a_summary_of_another_conversation_is_refused(name, other):
    text = longest(CONVERSATIONS[other]["summaries"])
    reason = reason_not_a_summary(text, request_of(name))
    assert bool(reason) == (name != other)


@pytest.mark.parametrize(
    "text",
    [
        "用户打算5月去里斯本旅行，带2个孩子。助手建议住在 Alfama 的酒店。用户决定选便宜的航班。",
        "ユーザーは5月に子供2人とリスボンへ旅行する予定である。アシスタントは川沿いのホテルを提案した。",
        "Der Benutzer plant eine Reise nach Lissabon im Mai. Der Assistent schlug ein Hotel am "
        "Rossio vor, für 85 Euro. Der Benutzer hat sich für den Flug um 21 Uhr entschieden.",
    ],
    ids=["zh", "ja", "de"],
)
def test_another_language_needs_names_or_numbers_of_the_messages(text):
    assert reason_not_a_summary(text, request_of_a_parser())


def test_one_common_number_is_no_ground():
    text = (
        "The user asked whether the tenancy agreement may be ended early. The assistant said "
        "notice of three months is needed and the deposit is due back within 30 days. Open: the "
        "landlord's letter."
    )
    assert "tells of nothing" in reason_not_a_summary(text, request_of_a_parser())


@pytest.mark.parametrize("name", NAMES)
def test_a_copy_of_a_message_is_refused(name):
    copied = max((m["content"] for m in CONVERSATIONS[name]["messages"][:-4]), key=len)
    assert "copies" in reason_not_a_summary(copied, request_of(name))


def test_without_the_check_any_text_is_accepted():
    request = request_of("h02_en_diet_training", check_summaries=False)
    assert reason_not_a_summary("Fine.", request) == ""
    assert reason_not_a_summary(" ", request) == "it is empty"


def test_the_reason_names_what_is_missing():
    text = longest(CONVERSATIONS["de_renovierung"]["summaries"])
    reason = reason_not_a_summary(text, request_of("h02_en_diet_training"))
    assert "numbers in it, the messages have" in reason


SHORT_HISTORY = [
    {"role": "user", "content": "What does part 1 do?"},
    {"role": "assistant", "content": "Part 1 reads."},
]


@pytest.mark.parametrize(
    ("text", "is_accepted"),
    [
        ("The user asked for part 1; it reads.", True),
        ("Part 1 reads.", True),
        ("I'm sorry, I cannot help with that.", False),
        ("Es tut mir leid, dabei kann ich nicht helfen.", False),
        ("申し訳ありませんが、お手伝いできません。", False),
        ("Please share the conversation you would like me to summarize.", False),
        ("Sure! How can I help?", False),
        ("Error: rate limit", False),
        ("a" * 3_000, False),
        ("So it goes on and on. " * 40, False),
    ],
)
def test_of_a_history_of_few_words_a_text_is_judged_by_its_form(text, is_accepted):
    request = SummaryRequest(read_messages(SHORT_HISTORY), "", 400, estimate)
    assert (reason_not_a_summary(text, request) == "") == is_accepted


@pytest.mark.parametrize("text", ["<think>The user wants part 1.</think>", "<think>So, part 1"])
def test_thoughts_alone_are_refused_from_a_function_too(text):
    summarizer = CallableSummarizer(lambda messages: text)
    with pytest.raises(SummaryRejected, match="it is empty"):
        summarizer.summarize(SummaryRequest(read_messages(SHORT_HISTORY), "", 400, estimate))


@pytest.mark.parametrize(
    "heading", ["## Goal", "**Ziel:**", "### 1. Objectif", "## 目标", "# Цель"]
)
def test_an_answer_to_our_prompt_begins_with_a_heading_in_any_language(heading):
    assert begins_as_asked(f"{heading}\n- to read")
    assert not begins_as_asked("Sure!\n## Goal")
    assert not begins_as_asked("## Weather\n- fine")


def test_a_model_is_told_which_rules_stand():
    rule = "Never push to the branch release-7."
    model = ScriptedChatModel(answers=lambda _: "## Goal\n- module_3 and its tests")
    messages: list[Any] = [{"role": "user", "content": rule}]
    for number in range(20):
        content = f"Ticket {number}: please look at module_{number} and its {number} tests."
        messages.append({"role": "assistant", "content": f"Done with {number}."})
        messages.append({"role": "user", "content": content})
    with Compactor(model, window=8_000, keep=("messages", 4), check_summaries=False) as compactor:
        result = compactor.compact(messages, thread_id="t", force=True)
    rules = model.calls[0].text.partition("<rules>")[2].partition("</rules>")[0]
    assert rule in rules
    assert rule in result.summary


def test_a_rule_that_a_model_quotes_without_an_id_is_found():
    rule = "Keep it at 40 euros, please."
    messages = [{"role": "user", "content": f"Hello. {rule} Thanks.", "id": "m1"}]
    request = SummaryRequest(read_messages(messages), "", 400, estimate, form="findings")
    answer = answer_of(f'## Regeln\n- "{rule}"\n- "Pay at once, please."', request)
    assert answer.binding == [(rule, "m1")]


TICKETS = 90
"""A ticket adds two messages. A compaction at 30 messages leaves 6 of them and a summary, so the
first is due at ticket 15 and each later one after 12 more."""
COMPACTIONS = 7


@dataclass
class AnsweredTicket:
    """What a compaction before the answer to a ticket did."""

    result: CompactionResult
    calls: int  # of the model


def answered_tickets(model: ScriptedChatModel, **settings: Any) -> list[AnsweredTicket]:
    """Compact before each answer to one ticket after another."""
    tickets: list[AnsweredTicket] = []
    messages: list[Any] = []
    with Compactor(
        model, window=8_000, trigger=("messages", 30), keep=("messages", 6), **settings
    ) as compactor:
        for number in range(TICKETS):
            content = f"Ticket {number}: please look at module_{number} and its {number} tests."
            messages.append({"role": "user", "content": content})
            calls_before = len(model.calls)
            result = compactor.compact(messages, thread_id="t")
            tickets.append(AnsweredTicket(result, len(model.calls) - calls_before))
            messages = [*result.messages, {"role": "assistant", "content": f"Done with {number}."}]
    return tickets


def test_a_model_that_never_summarises_is_asked_twice_a_compaction():
    model = ScriptedChatModel(answers=lambda _: "Sure! What would you like to do next?")
    tickets = answered_tickets(model, archive=None)
    assert all(len(ticket.result.messages) < 30 for ticket in tickets)
    compactions = [ticket for ticket in tickets if ticket.result.outcome == "compacted"]
    assert len(compactions) == COMPACTIONS
    assert all("no summary" in str(ticket.result.failures) for ticket in compactions)
    assert [ticket.calls for ticket in tickets if ticket.calls] == [2] * COMPACTIONS


class RefusesThenFails:
    """Answers of a model whose first text is no summary, and whose second try fails."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, messages: list[Any]) -> str:
        self.calls += 1
        if self.calls % 2:
            return "Sure! What would you like to do next?"
        raise ConnectionError("the provider hung up")


def test_a_model_that_fails_after_its_text_was_refused_is_not_asked_at_each_step():
    model = ScriptedChatModel(answers=RefusesThenFails())
    tickets = answered_tickets(model, archive="memory:")
    assert all(len(ticket.result.messages) < 30 for ticket in tickets)
    compacted_at = [n for n, ticket in enumerate(tickets) if ticket.result.outcome == "compacted"]
    assert len(compacted_at) == COMPACTIONS
    assert [n for n, ticket in enumerate(tickets) if ticket.calls] == compacted_at
