"""The measures, piece by piece, against results worked out by hand."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately as count

from conspectus_lab.evaluate import Question, Transcript, identifiers
from conspectus_lab.evaluate.answers import Marker, lines
from conspectus_lab.evaluate.bm25 import Bm25
from conspectus_lab.evaluate.future_use import cut_places, needs, quoted
from conspectus_lab.evaluate.intervals import mean_of
from conspectus_lab.evaluate.picker import pick
from conspectus_lab.evaluate.rounds import ends_of
from conspectus_lab.evaluate.words import dates, terms


def call(name: str = "c1", text: str = "", **args: Any) -> AIMessage:
    return AIMessage(text, tool_calls=[{"id": name, "name": "run", "args": args}])


def answer(name: str = "c1", text: str = "done") -> ToolMessage:
    return ToolMessage(text, tool_call_id=name)


# Identifiers


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("see https://example.org/a/b).", "https://example.org/a/b", "url"),
        ("in ./src/app/main.py:", "src/app/main.py", "path"),
        ("in /testbed/src/app/main.py", "src/app/main.py", "path"),
        ("open setup.cfg now", "setup.cfg", "path"),
        ("a KeyError came", "KeyError", "error"),
        ("commit 3f2a9bc was", "3f2a9bc", "opaque"),
        ("booking ZX81Q7", "ZX81Q7", "opaque"),
        ("ask user_4711", "user_4711", "opaque"),
        ("write to a.b@example.org", "a.b@example.org", "opaque"),
        ("call a.b.c", "a.b.c", "symbol"),
        ("the snake_case name", "snake_case", "symbol"),
        ("a ClassName here", "ClassName", "symbol"),
        ("a camelCase name", "camelCase", "symbol"),
        ("on 2024-05-01.", "2024-05-01", "number"),
        ("version 1.2.3", "1.2.3", "number"),
        ("port 8080", "8080", "number"),
    ],
)
def test_each_kind_of_identifier_is_found(text, value, kind):
    assert dict(identifiers(text)) == {value: kind}


@pytest.mark.parametrize("text", ["and/or", "s/a.py/b.py/", "12 or 123", "e.g. stdout", "Hello"])
def test_what_only_looks_like_an_identifier_is_none(text):
    assert not identifiers(text)


def test_what_an_earlier_kind_has_taken_no_later_one_sees():
    assert dict(identifiers("https://a.org/x_y/2024")) == {"https://a.org/x_y/2024": "url"}


# Future use


def test_needed_is_what_the_agent_writes_before_anything_shows_it_again():
    messages = [
        HumanMessage("mend src/a/one.py and src/a/two.py and src/a/three.py"),
        answer(text="src/a/one.py again"),
        AIMessage("a turn that is cut here"),
        ToolMessage("here is src/a/two.py", tool_call_id="x"),
        call(path="src/a/one.py", other="src/a/two.py"),
        AIMessage("src/a/new.py and src/a/three.py"),
    ]
    found = {need.value: need for need in needs(messages, 2)}
    # two.py was shown again, new.py was never there before.
    assert set(found) == {"src/a/one.py", "src/a/three.py"}
    assert found["src/a/one.py"].distance == 4 - 1
    assert found["src/a/three.py"].distance == 5 - 0


def test_a_history_is_cut_before_the_agent_at_two_three_and_four_fifths():
    messages = [m for n in range(20) for m in (call(f"c{n}", "word"), answer(f"c{n}", "x" * 40))]
    sizes = [count([m]) for m in messages]
    total = sum(sizes)
    for place, fraction in zip(cut_places(messages, count), (0.4, 0.6, 0.8), strict=True):
        assert isinstance(messages[place], AIMessage)
        assert sum(sizes[:place]) >= fraction * total > sum(sizes[: place - 2])


def test_a_cut_that_leaves_too_little_of_the_agent_is_none():
    messages = [HumanMessage("x" * 4000), AIMessage("one"), AIMessage("two")]
    assert list(cut_places(messages, count)) == []
    assert list(cut_places([*messages, AIMessage("three")], count)) == [1]


LINE = "one two three four src/core/engine.py five six seven eight nine"


@pytest.mark.parametrize(
    ("context", "kept"),
    [
        (f"notes: {LINE} and so on", True),
        ("- three  four src/core/engine.py five\tsix seven [m1]", True),
        ("four src/core/engine.py five six seven", False),  # five words
        ("src/core/engine.py src/core/other.py src/core/more.py", False),
        ("nine eight seven src/core/engine.py six five four", False),
        ("one two three four five six", False),  # six words without it
        ("three four src/core/engine.py\nfive six seven", False),  # on two lines
    ],
)
def test_quoted_asks_for_six_words_of_the_line_that_it_came_from(context, kept):
    found = quoted({"src/core/engine.py"}, [HumanMessage(context)], [HumanMessage(LINE)])
    assert found == ({"src/core/engine.py"} if kept else set())


def test_a_line_of_fewer_words_has_to_stand_there_whole():
    prefix = [call(path="src/core/engine.py"), answer(text="fine: src/core/engine.py it is")]
    wanted = {"src/core/engine.py"}
    # The line of a tool call is its name and its first argument.
    assert quoted(wanted, [HumanMessage("run src/core/engine.py")], prefix) == wanted
    assert quoted(wanted, [HumanMessage("run src/core/engine.py")], prefix[1:]) == set()
    assert quoted(wanted, [HumanMessage("see src/core/engine.py")], prefix) == set()
    assert quoted(wanted, [HumanMessage("fine: src/core/engine.py it is")], prefix[1:]) == wanted


def test_an_identifier_inside_a_longer_one_is_not_quoted_by_it():
    prefix = [HumanMessage("the file app.py is small")]
    assert quoted({"app.py"}, [HumanMessage("the file my_app.py is small")], prefix) == set()


# Answers


def marked(question: Question, *messages: tuple[str, str]) -> Marker:
    talk = [{"role": "user", "content": text, "id": name} for name, text in messages]
    return Marker(Transcript.of("talk", talk, [question]))


def test_an_answer_of_two_things_may_be_there_by_half():
    marker = marked(
        Question("Which instruments does Ann play?", "violin and oboe", ("a", "b")),
        ("a", "Ann has practised her violin in the cold kitchen"),
        ("b", "the oboe came later, Ann says, from an aunt"),
        ("c", "weather"),
    )
    (gold,) = marker.gold
    both = ["Ann practised violin in the cold kitchen", "an oboe came later from an aunt"]
    assert marker.share(gold, lines(both)) == 1.0
    assert marker.share(gold, lines(both[:1])) == 0.5
    assert marker.share(gold, lines(["violin oboe"])) == 0.0
    # Enough of the question stands in for the words of the evidence.
    assert marker.share(gold, lines(["instruments that Ann has: violin"])) == 0.5


def test_a_date_counts_with_its_event_and_by_the_day_on_which_it_was_said():
    talk = [
        {
            "role": "user",
            "content": "my sister opened a bakery downtown today",
            "id": "a",
            "session_time": "1:56 pm on 8 May, 2023",
        }
    ]
    asked = Question("When did the bakery open?", "8 May 2023", ("a",), 2)
    marker = Marker(Transcript.of("talk", talk, [asked]))
    (gold,) = marker.gold
    event = "sister opened a bakery downtown"
    assert marker.share(gold, lines([f"[8 May 2023] {event}"])) == 1.0
    assert marker.share(gold, lines([f"{event} on May 8th, 2023"])) == 1.0
    assert marker.share(gold, lines([event, "8 May 2023"])) == 0.0
    assert marker.share(gold, lines([f"{event} on 9 May 2023"])) == 0.0


def test_a_date_that_the_message_itself_names_counts_with_its_event():
    marker = marked(
        Question("When did they move?", "June 2019", ("a",), 2),
        ("a", "they moved into the old mill house in June 2019"),
    )
    (gold,) = marker.gold
    assert marker.share(gold, lines(["moved into the mill house, June 2019"])) == 1.0
    assert marker.share(gold, lines(["moved into the mill house, July 2019"])) == 0.0


@pytest.mark.parametrize(
    "question",
    [
        Question("Who?", "Ann", ("nowhere",)),
        Question("Who?", "", ("a",)),
        Question("Who?", "Ann", ("a",), 5),
        Question("Who?", "somebody else", ("a",)),
    ],
)
def test_a_question_that_cannot_be_marked_is_left_out(question):
    assert marked(question, ("a", "Ann is here")).gold == ()


def test_evidence_counts_messages_that_stand_there_whole():
    asked = Question("Who?", "Ann", ("a", "b"))
    marker = marked(asked, ("a", "Ann is\n\nhere"), ("b", "and Ben"))
    (gold,) = marker.gold
    assert marker.evidence(gold, "[a] Ann is\nhere\nand others") == 0.5


def test_words_are_compared_by_stem_number_and_pairs_of_characters():
    assert terms("She hiked twice") == terms("hiking two") | set()
    assert terms("故宫的") == {"故宫", "宫的"}
    assert dates("in May 2023, and on 3rd of June 2024") == {
        "2023",
        "2023-05",
        "2024",
        "2024-06",
        "2024-06-03",
    }


def test_plain_search_gives_the_best_with_its_neighbours_within_its_tokens():
    messages = [HumanMessage(f"message {n} about weather") for n in range(10)]
    messages[5] = HumanMessage("the parrot escaped")
    search = Bm25(messages)
    # Three messages stand next to it or are it, and score alike; the first of them comes first.
    assert search.recall("parrot", 100).split("\n")[:4] == [
        "message 3 about weather",
        "message 4 about weather",
        "the parrot escaped",
        "message 6 about weather",
    ]
    # 4 tokens for the message, 6 for 23 characters and a line break: 11 hold one of them.
    assert search.recall("parrot", 11) == "message 3 about weather"
    assert search.recall("parrot", 8) == ""


# The scripted summariser


def test_the_picker_quotes_whole_lines_in_order_and_stays_within_its_tokens():
    messages = [
        AIMessage("nothing here\nuse src/core/engine.py"),
        AIMessage("and then OTHER_NAME in src/core/other.py"),
        answer(text="plain words only"),
    ]
    whole = "use src/core/engine.py\nand then OTHER_NAME in src/core/other.py"
    assert pick(messages, 100) == whole
    assert pick(messages, 12) == "and then OTHER_NAME in src/core/other.py"
    assert pick([HumanMessage("plain words")], 100) == "nothing"


# Numbers


def test_an_interval_holds_its_mean_and_comes_out_the_same_again():
    values = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    one = mean_of(values, seed=1)
    assert one.low is not None
    assert one.high is not None
    assert one.value == pytest.approx(0.5)
    assert 0.0 <= one.low < 0.5 < one.high <= 1.0
    assert one == mean_of(values, seed=1) != mean_of(values, seed=2)
    single = mean_of([0.3], seed=1)
    assert (single.value, single.low, single.count) == (0.3, None, 1)
    assert mean_of([], seed=1) is None


def test_rounds_are_spread_over_what_has_to_leave():
    assert ends_of(30, 20, 10) == list(range(21, 31))
    assert ends_of(29, 20, 10) == []
    assert ends_of(120, 20, 4) == [45, 70, 95, 120]
