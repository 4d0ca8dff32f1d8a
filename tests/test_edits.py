"""Of an edit the notes tell the change, and not the words around it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.summarize.edits import LARGEST, change_of, with_change


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ("def go(n: int):", "def run(n: int):", "def go ⇒ run"),
        ("wait = 3", "wait = 5", "wait = 3 ⇒ 5"),
        ("def go(n):", "def go(n, quiet=False):", "+ def go(n, quiet=False"),
        ("a = 1\nb = 2\nc = 3", "a = 1\nc = 3", "- b = 2"),
        ("请把超时设为三十秒", "请把超时设为九十秒", "请把超时设为三 ⇒ 九"),
        ("x = 1; y = 2; z = 3", "x = 4; y = 2; z = 5", "x = 1 ⇒ 4; ; y = 2; z = 3 ⇒ 5"),
        ("eggs and spam", "None", ""),
        ("same  words", "same words", ""),
    ],
)
def test_the_words_that_differ_are_told(old: str, new: str, change: str) -> None:
    assert change_of(old, new) == change


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("old_string", "new_string"),
        ("old_str", "new_str"),
        ("old", "new"),
        ("search", "replace"),
        ("find_text", "replace_text"),
    ],
)
def test_the_two_texts_of_a_call_are_found_by_their_names(first: str, second: str) -> None:
    told = with_change({"path": "a.py", first: "seats = 4 # rows", second: "seats = 6 # rows"})
    assert told == {"path": "a.py", "change": "seats = 4 ⇒ 6"}


@pytest.mark.parametrize(
    "args",
    [
        {"old": "a b c d"},
        {"old": "", "new": "a b c d"},
        {"old": "a b c d", "new": 4},
        {"folder": "a b c d", "new": "a b c e"},
        {"old": "word " * LARGEST, "new": "words " * LARGEST},
        {"from": "JFK", "to": "LAX"},
    ],
)
def test_all_other_calls_stay_as_they_are(args: dict[str, object]) -> None:
    assert with_change(args) is args


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_two_texts_have_a_change_in_one_line(old: str, new: str) -> None:
    assert "\n" not in change_of(old, new)
