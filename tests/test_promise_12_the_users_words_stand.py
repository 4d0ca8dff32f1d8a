"""Promise 12: what the user said stays in view word for word while there is room for it."""

import random
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactor_support import compacted, new_compactor
from conspectus import ChatModelSummarizer, Compactor
from conspectus.notes.data import Line, Notes
from conspectus.notes.rendering import NotesRenderer
from histories import assistant, talk, user
from notes_read import FEWER, GAP, LEFT_OUT, SAID, left_out, said_in, under, words
from scripted_models import ScriptedChatModel
from stateful.budgets import LONG, few

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
]
USELESS_ANSWERS = {
    "lossy": "- something was done",
    "inventing": "## Found and decided\n- The user wants everything deleted. [m1]",
    "echoing": "## Said by the user\n- Delete it all. [m1]\n## Found and decided\n- yes",
    "refusing": "I'm sorry, but I can't help with that.",
}
"""Answers that tell nothing of the messages; without the check of summaries they are accepted."""

BAD_ANSWERS = {**USELESS_ANSWERS, "empty": "", "long": "- word " * 4_000}
"""Answers that are refused, the last two with and without that check."""


def conversation(sayings: list[str]) -> list[dict[str, Any]]:
    return [message for text in sayings for message in (user(text), assistant("Noted."))]


def summary_of(lines: list[str], window: int = 8_000) -> str:
    """What a compaction leaves of a conversation in which all of this was said."""
    messages = [*conversation(lines), *talk(4)]
    compactor = new_compactor(window=window, keep=("messages", 2))
    return compacted(messages, compactor, force=True).summary


def notes_on(user_texts: list[str], room: int) -> str:
    """The notes on what a user has said, and on nothing else."""
    lines = (Line("said", (f"m{n}",), text, span=(n, n)) for n, text in enumerate(user_texts))
    return NotesRenderer([Notes(tuple(lines))]).render(room, len)


def check_order(texts: list[str], summary: str) -> None:
    positions = [summary.find(text.strip()) for text in texts]
    missing = [text for text, position in zip(texts, positions, strict=True) if position < 0]
    assert not missing
    assert positions == sorted(positions)


def answering(answer: str, window: int, **settings: Any) -> Compactor:
    """A compactor whose chat model always gives this answer."""
    model = ScriptedChatModel(answers=lambda _: answer, cites=False)
    return new_compactor(
        ChatModelSummarizer(model), window=window, keep=("messages", 2), **settings
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("answer", USELESS_ANSWERS.values(), ids=USELESS_ANSWERS)
def test_no_model_can_push_them_out(answer):
    compactor = answering(answer, 8_000, check_summaries=False)
    result = compacted([*conversation(SAYINGS), *talk(8)], compactor, force=True)
    assert result.record.by == "ScriptedChatModel:scripted", "without the check it is accepted"
    check_order(SAYINGS, said_in(result.summary))
    assert "Delete it all" not in said_in(result.summary)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("answer", BAD_ANSWERS.values(), ids=BAD_ANSWERS)
def test_they_stand_where_a_models_answer_was_refused(answer):
    compactor = answering(answer, 8_000)
    result = compacted([*conversation(SAYINGS), *talk(8)], compactor, force=True)
    assert result.record.by == "embedded", "none of these tells of the messages"
    check_order(SAYINGS, said_in(result.summary))
    assert "Delete it all" not in said_in(result.summary)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("answer", BAD_ANSWERS.values(), ids=BAD_ANSWERS)
def test_over_the_window_what_binds_stands_whatever_a_model_answers(answer):
    result = compacted([*conversation(BINDING), *talk(60)], answering(answer, 2_800))
    assert result.outcome == "compacted", "over the window there is always a summary"
    check_order(BINDING, said_in(result.summary))


def near_equal_lines(count: int, seed: int = 3) -> list[str]:
    chance = random.Random(seed)
    names = ["Rio", "Mara", "Tom", "Iva", "Lea", "Sven"]
    return [
        f"{chance.choice(names)} said on day {n} that lane {chance.randint(1, 900)} is busy again."
        for n in range(count)
    ]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("index", [0, 150, 299])
def test_near_equal_lines_do_not_push_out_unique_ones(index):
    lines = near_equal_lines(300)
    lines[index:index] = BINDING
    shown_text = said_in(summary_of(lines))
    check_order(BINDING, shown_text)
    assert sum(line in shown_text for line in lines) < len(lines), "not all of it fits"


def test_without_spaces_what_is_said_once_outlasts_what_is_said_again():
    rule = "请不要删除任何生产数据库的备份文件也不要改动配置"
    user_texts = ["开始工作", rule, f"好{rule}", "报告必须用法语写作", "我们继续下一步", "结束"]
    assert user_texts[3] in notes_on(user_texts, 180)


def test_the_longest_are_cut_first_and_visibly():
    long = " ".join(f"word{n}" for n in range(2_000))
    summary = summary_of([*SAYINGS, long, *BINDING])
    check_order([*SAYINGS, *BINDING], said_in(summary))
    [shown] = [text for text in words(summary) if text.startswith("word0 ")]
    head, mark, tail = shown.partition(f" {GAP} ")
    assert mark
    assert long.startswith(head)
    assert long.endswith(tail)
    assert not left_out(summary)


def test_of_a_list_each_item_keeps_its_beginning():
    rules = "\n".join(f"{n}. Never touch host-{n}, {'whatever anybody says. ' * 3}" for n in "1234")
    text = notes_on(["Hi.", rules, "Go.", "Ok."], 300)
    assert all(f"{n}. Never touch host-{n}, " in text for n in "1234")
    assert text.count(GAP) == 4


def test_a_few_left_out_messages_are_named_one_by_one():
    for room, reference in (
        (1_600, r"recall m\d+(, m\d+){2,11}\)"),
        (300, r"recall range m1 to m2\d\)"),
    ):
        assert re.search(reference, notes_on(["again " * 9] * 30, room))


def test_a_list_of_rules_outlasts_hundreds_of_short_requests():
    rules = "\n".join(
        [
            "We migrate the billing service.",
            "- The deadline for the migration is Friday at 17:00.",
            "- All amounts are stored in integer cents, never in floats.",
            "- The load test must stay below 250 ms at the 99th percentile.",
            "- Nobody touches the folder legacy/ before Monday.",
            "- Names of tables begin with bl_ and never with bill.",
            "- Commit messages name the ticket, as in BIL-1188: round the totals.",
            "- Ask Petra before you drop a column, also an empty one.",
        ]
    )
    for index in (0, 150):
        requests = [f"Now look at part {n}, please, and tell me what it does." for n in range(600)]
        requests.insert(index, rules)
        assert rules.replace("\n", "\n  ") in notes_on(requests, 4_000)


def test_the_first_message_is_cut_last_while_others_are_long():
    first = "Rules: " + " ".join(f"rule{n} holds." for n in range(120))
    pages = [" ".join(f"page{p}-{n}" for n in range(400)) for p in range(12)]
    shown_words = words(summary_of([first, *pages], 20_000))
    assert shown_words[0] == first
    assert all(GAP in text for text in shown_words[1:12])


def test_the_first_and_the_newest_stand_whatever_came_between():
    for first, last in ((BINDING[0], BINDING[2]), near_equal_lines(2, seed=9)):
        lines = [first, *near_equal_lines(300), last]
        compactor = new_compactor(window=4_000, keep=("messages", 2))
        messages = [*conversation(lines), user("Go."), assistant("I go.")]
        result = compacted(messages, compactor, force=True)
        shown_words = words(result.summary)
        assert shown_words[0] == first
        assert shown_words[-1] in (last, "Go.")
        assert left_out(result.summary) > 200


def test_in_least_room_the_first_message_still_stays():
    user_texts = ["Fix it.", *near_equal_lines(60)]
    for room in range(160, 400, 20):
        assert "Fix it." in notes_on(user_texts, room), room


def test_without_an_archive_nothing_is_claimed_of_a_recall():
    compactor = Compactor(window=8_000, keep=("messages", 2), archive=None)
    result = compactor.compact(
        [*conversation(near_equal_lines(300)), *talk(4)], thread_id="t", force=True
    )
    assert left_out(result.summary)
    assert "recall" not in result.summary
    lines = [line for line in under(SAID, result.summary) if LEFT_OUT.match(line)]
    assert lines
    assert all(line.endswith("left out)") for line in lines)


WORDS = "window harbour Tisch mesa 修复登录页面 テスト проверь मॉड्यूल f.py:17 42.5".split()


SMALL = 48
"""Tokens in which no line of use would stand."""


def tokens(text: str) -> int:
    return (len(text) + 3) // 4


def text_of_words(number: int, start: int, joint: str) -> str:
    return joint.join(f"{WORDS[(start + n) % len(WORDS)]}{n}" for n in range(number))


def texts(longest: int, *joints: str) -> st.SearchStrategy[str]:
    joint = st.sampled_from([" ", ", ", *joints])
    return st.builds(text_of_words, st.integers(1, longest), st.integers(0, len(WORDS)), joint)


IDS = st.integers(1, 9_999).map(lambda n: (f"m{n}",))
ARGS = st.lists(st.tuples(st.sampled_from(["path", "old", "q"]), texts(20)), max_size=3)
DONE = st.builds(
    Line,
    st.just("done"),
    IDS,
    st.just("") | texts(20),
    call=st.sampled_from(["bash", "edit_file", "get"]),
    args=ARGS.map(tuple),
    outcome=st.lists(texts(12), max_size=30).map(" ⏎ ".join),
    effect=st.sampled_from([True, False, None]),
    failed=st.booleans(),
)
WORDS_SAID = st.builds(Line, st.just("said"), IDS, texts(200, "\n"))
OTHERS = st.builds(Line, st.sampled_from(["agent", "found"]), IDS, texts(80))
CHAINS = st.lists(
    st.lists(WORDS_SAID | DONE | DONE | OTHERS, max_size=25), min_size=1, max_size=5
).map(lambda found: [Notes(tuple(lines)) for lines in found])


@settings(max_examples=3_000 if LONG else few(200), deadline=None)
@given(CHAINS, st.integers(300, 4_000))
def test_no_line_is_cut_while_room_is_free(chain, room):
    text = NotesRenderer(chain).render(room, tokens)
    assert tokens(text) <= room
    whole = NotesRenderer(chain).render(10**9, tokens)
    if GAP in text or FEWER.search(text):  # something is cut or left out
        free = max(room // 10, SMALL)
        assert tokens(text) >= room - free, f"{tokens(whole)} tokens of lines"
    else:  # all of it stands, perhaps in fewer parts
        assert all(line in text for line in whole.split("\n"))


def test_the_first_message_is_cut_by_no_more_than_must_be():
    first = text_of_words(132, 0, "\n")
    chain = [
        Notes((Line("said", ("m1",), first), Line("said", ("m2",), text_of_words(31, 0, " "))))
    ]
    whole = tokens(NotesRenderer(chain).render(10**9, tokens))
    text = NotesRenderer(chain).render(whole - 1, tokens)
    assert whole - SMALL <= tokens(text) < whole
