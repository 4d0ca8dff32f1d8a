"""How recall ranks: what stands around a message, who speaks, when, exact names, each sentence."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import recall_support
from conspectus.archive import Archive
from conspectus.messages import Source, read_messages
from conspectus.recall.rank import fused, merged, strong
from conspectus.recall.search import CANDIDATES
from conspectus.recall.steps import Act, Steps
from conspectus.recall.words import date_terms, query_of, stem
from recall_support import ask

FILLER = [
    f"{what} number {n}, as it happens to be on that day."
    for n in range(12)
    for what in ("A walk", "Some tea", "The garden", "Bad weather", "An old song")
]


@pytest.fixture
def archive() -> Iterator[Archive]:
    with Archive.open("memory:") as archive:
        yield archive


def keep(archive: Archive, messages: Sequence["Source | str"]) -> None:
    made = [{"role": "user", "content": m} if isinstance(m, str) else m for m in messages]
    recall_support.keep(archive, read_messages(made))


def best(archive: Archive, query: str) -> str:
    return max(ask(archive, query).hits, key=lambda hit: hit.score).text


def said(role: str, text: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": text, **more}


def test_an_answer_without_a_word_of_the_question_is_found(archive):
    talk = [
        "Let us set up the staging database.",
        said("assistant", "Good. Which port does it use?"),
        "5433.",
    ]
    keep(archive, [*FILLER[:30], *talk, *FILLER[30:]])
    found = ask(archive, "staging database port", tokens=140)
    assert "5433." in found.text
    assert next(hit for hit in found.hits if hit.text == "5433.").neighbour


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("鼎泰小馆的电话是多少？", "010-5550199。"),
        ("松本さんの電話番号は何ですか", "010-5550199。"),
        ("김민지 씨의 전화번호는 무엇입니까", "010-5550199。"),
    ],
)
def test_an_answer_is_found_in_scripts_without_spaces(archive, question, answer):
    chatter = [f"今天天气第{n}次不错。" for n in range(40)]
    other = ["推荐您去蓝湖饭店。", "电话？", "010-5550222。"]
    talk = {
        "鼎": ["推荐您去鼎泰小馆。", "它的电话呢？", answer],
        "松": ["松本さんに会いました。", "電話番号は？", answer],
        "김": ["김민지 씨를 만났어요.", "전화번호는?", answer],
    }[question[0]]
    keep(archive, [*chatter[:20], *other, *chatter[20:30], *talk, *chatter[30:]])
    assert answer in ask(archive, question, tokens=150).text


def test_who_is_named_in_the_question_comes_first(archive):
    both = "I bought a boat last summer."
    talk = [said("user", both, name="Mara"), said("user", both + " Yes.", name="Jonas")]
    keep(archive, [*FILLER[:20], talk[0], *FILLER[20:40], talk[1], *FILLER[40:]])
    for name in ("Mara", "Jonas"):
        [hit, *_] = sorted(ask(archive, f"What did {name} buy?").hits, key=lambda hit: -hit.score)
        assert hit.name == name
    in_text = [f"[3 May] {name}: I bought a kite." for name in ("Mara", "Jonas")]
    keep(archive, [*FILLER[:20], in_text[0], *FILLER[20:40], in_text[1], *FILLER[40:]])
    assert best(archive, "Which kite did Jonas buy?") == in_text[1]


def test_a_date_is_found_however_it_is_written(archive):
    days = ["2023-05-07T09:00:00Z", "2023-05-08T09:00:00Z", "2023-06-08T09:00:00Z"]
    keep(archive, [said("user", "We met at the lake.", date=day) for day in days for _ in "12345"])
    for query in (
        "lake 8 May 2023",
        "lake on May 8th, 2023",
        "lake 2023-05-08",
        "lake 2023年5月8日",
    ):
        hits = sorted(ask(archive, query).hits, key=lambda hit: -hit.score)
        assert hits[0].date == days[1], query


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("2023-05-08", {"day20230508", "day0508", "month202305"}),
        ("8th of May 2023", {"day20230508", "day0508", "month202305"}),
        ("Sept. 3", {"day0903"}),
        ("June, 2021", {"month202106"}),
        ("2023年5月", {"month202305"}),
        ("5月8日", {"day0508"}),
        ("version 2023-99-99, part 12/13, may be", set()),
    ],
)
def test_dates_become_terms(text, terms):
    assert set(date_terms(text)) == terms


def test_an_exact_identifier_wins_over_many_mentions_of_its_parts(archive):
    parts = ["tax rules, and the rules of tax again" for _ in range(20)]
    exact = "The rate is set in tax_rules.py now."
    keep(archive, [*parts[:10], *FILLER[:9], exact, *FILLER[9:], *parts[10:]])
    assert best(archive, "Where does tax_rules.py come in?") == exact


def test_the_words_of_how_it_is_asked_find_nothing(archive):
    asked = "What do you do when it is what it is?"
    answer = "The boiler leaks."
    keep(archive, [asked, *FILLER[:30], answer, *FILLER[30:]])
    assert best(archive, "What was it that you do when the boiler is what it is?") == answer
    assert best(archive, "what is it") == asked  # there is nothing else to go by
    assert query_of("is IT down?").whole.words.keys() == {"it", "down"}


def test_each_sentence_of_a_long_question_has_its_share(archive):
    facts = ["The boiler was made in Ghent.", "Her bicycle has a red saddle.", "He plays the oboe."]
    much = [f"The boiler hummed {n} times in the boiler room." for n in range(30)]
    keep(archive, [*much[:15], facts[0], *FILLER[:20], facts[1], *FILLER[20:40], facts[2], *much])
    question = "Where was the boiler made? Which colour is the bicycle's saddle? Who plays an oboe?"
    found = ask(archive, question, tokens=420)
    assert [fact for fact in facts if fact not in found.text] == []


def test_a_message_said_again_is_shown_once(archive):
    again = "The backup of the shop database ran through without any error tonight"
    keep(archive, [f"{again}{mark}" for mark in ("", "!", " ...")] + FILLER[:5])
    assert len([hit for hit in ask(archive, "backup").hits if hit.text.startswith(again)]) == 1


def test_messages_that_differ_by_a_number_are_not_the_same(archive):
    texts = [f"The nightly backup job of the shop database failed on node {n}" for n in range(4)]
    keep(archive, texts)
    assert {hit.text for hit in ask(archive, "backup").hits} == set(texts)


def test_what_fits_far_worse_is_not_shown(archive):
    keep(archive, [*FILLER, "The zebra enclosure opens at nine.", *FILLER])
    found = ask(archive, "When does the zebra enclosure open, on that day?")
    assert "zebra" in found.text
    assert len(found.hits) < 12
    assert not found.truncated


def test_of_equals_the_later_comes_first(archive):
    texts = [f"Status {n}: the build is green" for n in ("1a", "2b", "3c")]
    same = FILLER[:20]
    keep(archive, [*same, *(one for text in texts for one in (text, *same))])
    hits = sorted(ask(archive, "green build").hits, key=lambda hit: -hit.score)
    assert [hit.text for hit in hits if "build" in hit.text] == texts[::-1]


def test_what_follows_each_other_stands_together_in_its_order(archive):
    talk = ["The lamp flickers.", "The lamp in the hall?", "Yes, the lamp."]
    keep(archive, [*FILLER[:30], *talk, *FILLER[30:], "A lamp."])
    texts = [hit.text for hit in ask(archive, "lamp").hits]
    at = texts.index(talk[0])
    assert texts[at : at + 3] == talk


def test_more_candidates_than_are_looked_at_still_give_new_ones(archive):
    keep(archive, [f"The owl called {n} times" for n in range(3 * CANDIDATES)])
    shown = [int(hit.text.split()[3]) for hit in ask(archive, "owl", tokens=300).hits]
    assert len(shown) > 3
    assert min(shown) >= 2 * CANDIDATES


@pytest.mark.parametrize(
    "forms",
    [
        ("hike", "hikes", "hiked", "hiking"),
        ("adopt", "adopted", "adoption", "adoptions"),
        ("buy", "buys", "buying"),
        ("activity", "activities"),
        ("study", "studies", "studied", "studying"),
        ("relate", "related", "relating"),
        ("stop", "stopped", "stopping"),
    ],
)
def test_forms_of_a_word_meet(forms):
    assert len({stem(form) for form in forms}) == 1


@pytest.mark.parametrize("word", ["", "bus", "this", "ring", "5433", "größe", "密码", "red", "as"])
def test_a_word_without_an_ending_stays(word):
    assert stem(word) == word


def test_a_message_counts_the_words_before_it_more_than_those_after_it(archive):
    keep(archive, [*FILLER[:20], "Look there.", "The harbour is closed.", "So it is.", *FILLER])
    ranked = {hit.text: hit.score for hit in ask(archive, "harbour").hits}
    assert ranked["The harbour is closed."] > ranked["So it is."] > ranked.get("Look there.", 0)


def test_rankings_are_merged_by_what_a_message_fits_best():
    same = {number: number for number in range(6)}
    assert merged({1: 2.0}, []) == {1: 2.0}
    assert merged({1: 2.0, 2: 1.0}, [{2: 5.0}, {3: 0.1, 1: 0.05}]) == {1: 0.8, 2: 1.0, 3: 1.0}
    assert strong({1: 1.0, 2: 0.3, 3: 0.3, 4: 0.2, 5: 1.0}, {1, 2, 4}, same) == [5, 1, 2]
    assert strong({}, set(), {}) == []


def test_reciprocal_ranks_prefer_what_both_rankings_hold():
    found = fused([[1, 2, 3], [3, 4]])
    assert max(found, key=lambda place: found[place]) == 3
    assert found[1] == 1 / 61


def rounds(count: int, of: str, at_once: int = 2) -> list[dict[str, Any]]:
    """Rounds of parallel tool calls with their results."""
    done: list[dict[str, Any]] = []
    for n in range(count):
        names = [f"{of}-{n}-{one}" for one in range(at_once)]
        calls = [
            {"id": name, "function": {"name": "look", "arguments": f'{{"path": "/{name}.txt"}}'}}
            for name in names
        ]
        done.append(said("assistant", "", tool_calls=calls))
        done += [said("tool", f"nothing new, {n}", tool_call_id=name) for name in names]
    return done


def work(of: str, turns: int = 30) -> list[dict[str, Any]]:
    """Turns about other things."""
    turn = [
        [said("user", f"What has {of} {n}?"), *rounds(2, f"{of}{n}"), said("assistant", f"A {n}.")]
        for n in range(turns)
    ]
    return [message for messages in turn for message in messages]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("count", [0, 1, 4, 20])
@pytest.mark.parametrize("at_once", [1, 3])
@pytest.mark.parametrize(
    ("question", "answer", "query"),
    [
        (
            "Which port does the staging database use?",
            "It is 5433.",
            "Which port does the staging database use?",
        ),
        ("预发布数据库用的是哪个端口？", "是5433。", "预发布数据库的端口是多少？"),
    ],
)
def test_an_answer_is_found_however_many_tools_were_called_before_it(
    archive, question, answer, query, count, at_once
):
    turn = [said("user", question), *rounds(count, "x", at_once), said("assistant", answer)]
    keep(archive, [*work("boat"), *turn, *work("house")])
    found = ask(archive, query, tokens=110)
    assert question in found.text
    assert answer in found.text


def test_an_answer_stands_right_behind_its_question_where_there_is_no_room_for_the_work(archive):
    turn = [
        said("user", "Which port has the database?"),
        *rounds(4, "x"),
        said("assistant", "It is 5433."),
    ]
    keep(archive, [*work("boat"), *turn, *work("house")])
    hits = ask(archive, "database port", tokens=110).hits
    assert [hit.text for hit in hits][:2] == [turn[0]["content"], turn[-1]["content"]]


def test_a_result_is_found_by_its_own_call_and_not_by_those_beside_it(archive):
    cities = ["Lisbon", "Oslo", "Quito"]
    calls = [
        {"id": city, "function": {"name": "weather", "arguments": f'{{"city": "{city}"}}'}}
        for city in cities
    ]
    results = [said("tool", f"{n + 11} degrees", tool_call_id=c) for n, c in enumerate(cities)]
    turn = [said("user", "Compare them."), said("assistant", "", tool_calls=calls), *results]
    keep(archive, [*work("boat"), *turn, said("assistant", "Fine."), *work("house")])
    for n, city in enumerate(cities):
        hits = ask(archive, f"weather in {city}").hits
        ranked = {hit.text: hit.score for hit in hits if hit.text.endswith("degrees")}
        assert max(ranked, key=lambda text: ranked[text]) == f"{n + 11} degrees"


def test_of_a_talk_without_tools_each_message_follows_the_one_before_it():
    steps = Steps([Act.SAYS] * 10)
    assert steps.around(4) == {4: 0, 5: 1, 6: 2, 7: 3, 8: 4, 9: 5, 3: -1, 2: -2}


def test_steps_go_by_rounds_and_an_answer_follows_what_was_said():
    does = [Act.SAYS, Act.CALLS, Act.RESULT, Act.RESULT, Act.CALLS, Act.RESULT, Act.SAYS]
    steps = Steps(does)
    assert steps.around(0) == {0: 0, 1: 1, 6: 1, 2: 2, 3: 2, 4: 2}
    assert steps.around(2) == {2: 0, 4: 1, 5: 2, 6: 3, 1: -1, 0: -2}


def test_a_result_that_nobody_called_for_stands_as_if_it_were_said():
    does = [Act.SAYS, Act.RESULT, Act.RESULT, Act.SAYS]
    assert [Steps(does).follows(n) for n in range(4)] == [(), (0,), (1,), (2,)]


def test_a_long_message_is_stepped_over():
    steps = Steps([Act.SAYS] * 4, frozenset({1, 2}))
    assert [steps.follows(n) for n in range(4)] == [(), (0,), (0, 1), (0, 2)]
    assert [steps.followed(n) for n in range(4)] == [(1, 2, 3), (2,), (3,), ()]
