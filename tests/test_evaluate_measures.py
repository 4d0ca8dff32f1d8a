"""The measures, piece by piece, against results worked out by hand."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately as count

from conspectus_lab.evaluate.future_use import cut_places, needs, quoted
from conspectus_lab.evaluate.identifiers import identifiers


def call(name: str = "c1", text: str = "", **args: Any) -> AIMessage:
    return AIMessage(text, tool_calls=[{"id": name, "name": "run", "args": args}])


def answer(name: str = "c1", text: str = "done") -> ToolMessage:
    return ToolMessage(text, tool_call_id=name)


# Identifiers


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("see https://example.org/a/b).", "https://example.org/a/b"),
        ("in ./src/app/main.py:", "src/app/main.py"),
        ("open setup.cfg now", "setup.cfg"),
        ("a KeyError came", "KeyError"),
        ("commit 3f2a9bc was", "3f2a9bc"),
        ("booking ZX81Q7", "ZX81Q7"),
        ("ask user_4711", "user_4711"),
        ("write to a.b@example.org", "a.b@example.org"),
        ("call a.b.c", "a.b.c"),
        ("the snake_case name", "snake_case"),
        ("a ClassName here", "ClassName"),
        ("a camelCase name", "camelCase"),
        ("on 2024-05-01.", "2024-05-01"),
        ("version 1.2.3", "1.2.3"),
        ("port 8080", "8080"),
    ],
)
def test_each_kind_of_identifier_is_found(text, value):
    assert identifiers(text) == {value}


@pytest.mark.parametrize("text", ["and/or", "s/a.py/b.py/", "12 or 123", "e.g. stdout", "Hello"])
def test_what_only_looks_like_an_identifier_is_none(text):
    assert not identifiers(text)


def test_what_an_earlier_kind_has_taken_no_later_one_sees():
    assert identifiers("https://a.org/x_y/2024") == {"https://a.org/x_y/2024"}


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
    # two.py was shown again, new.py was never there before.
    assert needs(messages, 2) == ["src/a/one.py", "src/a/three.py"]


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
