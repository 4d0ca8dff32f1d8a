"""How long a summary may be: what fits is used, and a limit of a caller's is kept by a cut."""

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from conspectus import Compactor
from conspectus.core.records import Record
from conspectus.tokens import estimate
from scripted_models import ScriptedChatModel


def notes(lines: int) -> str:
    """A summary of so many lines, of some 30 tokens each."""
    said = "it was looked at, and what it does was told to the user in a few words"
    return "\n".join(["## Done", *(f"- part {n}: {said}" for n in range(lines))])


LONG = notes(84)


def talk(turns: int, words: int = 60, first: int = 0) -> list[AnyMessage]:
    said: list[AnyMessage] = []
    for n in range(first, first + turns):
        said.append(HumanMessage(f"Question {n}: " + "what is in it " * words, id=f"h{n}"))
        said.append(AIMessage(f"Answer {n}: " + "some lines of code " * words, id=f"a{n}"))
    return said


def compacted(model: Any, messages: list[Any], *, on_loop: bool = False, **settings: Any) -> Any:
    settings.setdefault("notes", False)  # the summariser's text alone
    compactor = Compactor(model, keep=("messages", 4), archive="memory:", **settings)
    if on_loop:
        return asyncio.run(compactor.acompact(messages, thread_id="t", force=True))
    return compactor.compact(messages, thread_id="t", force=True)


@pytest.mark.parametrize("on_loop", [False, True])
def test_what_does_not_fit_is_asked_for_once_more_and_used_if_that_fits(on_loop):
    answers = [notes(400), notes(84), "- no third time"]
    model = ScriptedChatModel(answers=answers)
    messages = talk(30)
    result = compacted(model, messages, window=6_000, on_loop=on_loop)
    assert result.record.summary.startswith(answers[1])
    assert len(model.calls) == 2
    assert result.record.cut == 0
    assert result.tokens_after <= 6_000


@pytest.mark.parametrize("on_loop", [False, True])
def test_with_a_limit_of_the_callers_one_request_to_shorten_and_then_a_cut_at_a_lines_end(on_loop):
    model = ScriptedChatModel(answers=lambda _: LONG, cites=False)
    result = compacted(model, talk(40), max_summary_tokens=300, on_loop=on_loop)
    assert result.outcome == "compacted"
    assert len(model.calls) == 2
    kept = result.summary.splitlines()
    assert kept == LONG.splitlines()[: len(kept)]
    assert len(kept) > 2
    assert 150 < estimate(result.summary) <= 300
    assert result.record.cut == estimate(LONG) - estimate(result.summary)
    assert Record.from_json(result.record.to_json()) == result.record


def test_a_trigger_that_counts_messages_leaves_the_notes_room_in_a_large_window():
    compactor = Compactor(trigger=("messages", 50), keep=("messages", 20), window=128_000)
    talk = [
        {"role": role, "content": text, "id": f"{role[0]}{n}"}
        for n in range(25)
        for role, text in (
            ("user", f"Book the hotel near street {n * 7} for guest Person{n}."),
            ("assistant", "I have arranged this as asked. " * 120),
        )
    ]
    result = compactor.compact(talk, thread_id="t")
    assert result.outcome == "compacted", result.reason
    assert result.tokens_after < result.tokens_before * 3 // 4
    shown = "\n".join(str(message["content"]) for message in result.messages)
    assert [n for n in range(25) if f"Person{n}." not in shown] == []
