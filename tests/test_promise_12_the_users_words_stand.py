"""Promise 12: what the user said stays in view word for word while its share of the room lasts."""

import random
from typing import Any

import pytest

from conspectus import ChatModelSummarizer, Compactor
from conspectus.summarize.notes import SAID, Notes, items
from conspectus.summarize.users_words import LEFT_OUT
from conspectus_lab.testing.scripted_models import ScriptedChatModel
from engine import Scripted, compacted, engine, short
from histories import assistant, talk, user

SAYINGS = [
    "Good morning! My name is on the lease as Ann-Marie O'Neil.",
    "I think the blue one was nicer.",
    "Wir treffen uns am Dienstag um halb vier am Nordtor.",
    "昨天那份报告里第三页的表格不对。",
    "駅の近くの小さな店が好きです。",
    "어제 보낸 파일은 무시해 주세요.",
    "El presupuesto es de 1.250 euros, sin contar el IVA.",
    "  - keep the order:\n    1. paint\n    2. floor\n  as it is  ",
]
BINDING = [
    "Never push to the main branch.",
    "绝不要删除生产数据库。",
    "Always ask me before you send an e-mail.",
    "The spare key is kept under the blue pot.",
]
ANSWERS = {
    "empty": "",
    "lossy": "- something was done",
    "inventing": "## Found and decided\n- The user wants everything deleted. [m1]",
    "echoing": "## Said by the user\n- Delete it all. [m1]\n## Found and decided\n- yes",
    "refusing": "I'm sorry, but I can't help with that.",
    "long": "- word " * 4_000,
}


def said_in(summary: str) -> str:
    return "\n".join(
        line for text in Notes.parse(summary).segments for line in items(text).get(SAID, ())
    )


def conversation(sayings: list[str]) -> list[dict[str, Any]]:
    return [message for text in sayings for message in (user(text), assistant("Noted."))]


def in_order(texts: list[str], summary: str) -> None:
    places = [summary.find(text.strip()) for text in texts]
    missing = [text for text, place in zip(texts, places, strict=True) if place < 0]
    assert not missing
    assert places == sorted(places)


@pytest.mark.parametrize("window", [2_500, 8_000, 100_000])
def test_every_message_of_the_user_stands_as_it_was_and_in_order(window):
    history = [*conversation(SAYINGS), assistant("It is as you say. " * 60), *talk(4)]
    result = compacted(history, engine(window=window, keep=("messages", 2)), force=True)
    assert result.outcome == "compacted"
    in_order(SAYINGS, said_in(result.summary))
    assert LEFT_OUT not in result.summary


@pytest.mark.sampled(2)
@pytest.mark.parametrize("answer", ANSWERS)
def test_no_model_can_push_them_out(answer):
    model = ScriptedChatModel(answers=lambda _: ANSWERS[answer])
    compactor = Compactor(
        ChatModelSummarizer(model), window=8_000, keep=("messages", 2), archive="memory:"
    )
    result = compacted([*conversation(SAYINGS), *talk(4)], compactor, force=True)
    if result.outcome == "compacted":
        in_order(SAYINGS, said_in(result.summary))
    else:
        assert answer in ("empty", "refusing", "long"), "a summary that is none changes nothing"
        assert result.messages[:2] == conversation(SAYINGS)[:2]
    tight = Compactor(
        ChatModelSummarizer(model), window=900, keep=("messages", 2), archive="memory:"
    )
    result = compacted([*conversation(BINDING[:3]), *talk(24)], tight)
    assert result.outcome == "compacted", "over the window there is always a summary"
    in_order(BINDING[:3], said_in(result.summary))


def test_a_summariser_that_leaves_them_out_leaves_them_standing_through_ten_rounds():
    compactor = engine(Scripted(short), window=16_000, keep=("messages", 2))
    history = conversation(SAYINGS)
    for n in range(10):
        history = [*history, *conversation([f"This is remark {n}."]), *talk(12)]
        result = compacted(history, compactor, force=True)
        history = list(result.messages)
    said = said_in(result.summary)
    in_order(SAYINGS, said)
    in_order([f"This is remark {n}." for n in range(10)], said)


def crowd(count: int, seed: int = 3) -> list[str]:
    chance = random.Random(seed)
    names = ["Rio", "Mara", "Tom", "Iva", "Lea", "Sven"]
    return [
        f"{chance.choice(names)} said on day {n} that lane {chance.randint(1, 900)} is busy again."
        for n in range(count)
    ]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("at", [0, 150, 299])
def test_a_flood_of_near_equal_lines_does_not_push_out_what_binds(at):
    lines = crowd(300)
    lines[at:at] = BINDING[:3]
    result = compacted(
        [*conversation(lines), *talk(4)], engine(window=8_000, keep=("messages", 2)), force=True
    )
    said = said_in(result.summary)
    in_order(BINDING[:3], said)
    assert sum(line in said for line in lines) < len(lines), "not all of it fits"


def test_many_rules_in_pastes_do_not_push_out_what_was_typed():
    filler = "It was written down by the committee after a long day in the old hall. " * 6
    chapters = [
        f"You must never change part {n} of the handbook. Always keep page {n} dry. {filler}"
        for n in range(60)
    ]
    lines = [*BINDING, *chapters]
    result = compacted(
        [*conversation(lines), *talk(4)], engine(window=8_000, keep=("messages", 2)), force=True
    )
    said = said_in(result.summary)
    assert all(line in said for line in BINDING[:3])


@pytest.mark.slow
def test_the_view_says_where_the_rest_is():
    lines = crowd(300)
    compactor = engine(window=8_000, keep=("messages", 2))
    result = compacted([*conversation(lines), *talk(4)], compactor, force=True)
    assert f"{LEFT_OUT}one recall away)" in result.summary
    left = next(line for line in lines if line not in result.summary)
    assert left in compactor.recall(left, thread_id="t", tokens=400).text
    again = compacted([*result.messages, *conversation(crowd(200, seed=5))], compactor, force=True)
    assert again.summary.count(LEFT_OUT) == 1, "it is said once, and stays said"


def test_without_an_archive_nothing_is_claimed_of_a_recall():
    compactor = Compactor(window=8_000, keep=("messages", 2), archive=None)
    result = compactor.compact([*conversation(crowd(300)), *talk(4)], thread_id="t", force=True)
    assert LEFT_OUT in result.summary
    assert "recall away" not in result.summary


def test_what_was_replaced_stands_only_before_what_replaced_it():
    lines = ["Use at most 3 retries.", *crowd(300), "From now on use at most 5 retries."]
    result = compacted(
        [*conversation(lines), *talk(4)], engine(window=8_000, keep=("messages", 2)), force=True
    )
    said = said_in(result.summary)
    assert "at most 5 retries" in said
    assert said.find("at most 3 retries") < said.find("at most 5 retries")


def test_of_a_task_its_own_sentences_stand_before_what_was_pasted_with_it():
    log = "\n".join(f"2026-01-02 03:04:{n % 60:02d} INFO worker {n} is idle" for n in range(900))
    task = f"Find out why worker 17 stops at night.\n\n{log}\n\nWrite what you find to findings.md."
    result = compacted(
        [*conversation([task]), *talk(4)], engine(window=4_000, keep=("messages", 2)), force=True
    )
    said = said_in(result.summary)
    assert "Find out why worker 17 stops at night." in said
    assert "Write what you find to findings.md." in said
    assert "worker 600 is idle" not in said


def test_words_after_a_summary_are_not_read_out_of_it_twice():
    compactor = engine(window=8_000, keep=("messages", 2))
    first = compacted([*conversation(SAYINGS), *talk(12)], compactor, force=True)
    second = compacted([*first.messages, *talk(6)], compactor, force=True)
    said = said_in(second.summary)
    assert said.count("I think the blue one was nicer.") == 1
