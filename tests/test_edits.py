"""Of an edit the notes tell the change, and not the words around it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.summarize.edits import LARGEST, change_of, with_change

LONG = "and so it goes on for a good while, to the end of the line"


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
def test_the_words_that_differ_are_told(old, new, change):
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
def test_the_two_texts_of_a_call_are_found_by_their_names(first, second):
    more = " # rows of the left side"
    told = with_change({"path": "a.py", first: f"seats = 4{more}", second: f"seats = 6{more}"})
    assert told == {"path": "a.py", "change": "seats = 4 ⇒ 6"}


@pytest.mark.parametrize(
    "args",
    [
        {"old": f"a b c d {LONG}"},
        {"old": "", "new": f"a b c d {LONG}"},
        {"old": f"a b c d {LONG}", "new": 4},
        {"folder": f"a b c d {LONG}", "new": f"a b c e {LONG}"},
        {"old": "word " * 2 * LARGEST, "new": "words " * 2 * LARGEST},
        {"old_name": "Ann Mills", "new_name": "Ann Ericson"},
        {"old_path": f"src/{'a' * 60}.py", "new_path": f"src/{'a' * 60}s.py"},
        {"from": f"John F. Kennedy, {LONG}", "to": f"LaGuardia, {LONG}"},
    ],
)
def test_all_other_calls_stay_as_they_are(args):
    assert with_change(args) is args


def test_a_small_change_of_a_large_text_is_told():
    page = "".join(f"line {n} of a long file\n" for n in range(2_000))
    assert change_of(page, page.replace("line 1500 of", "line 1500 off")) == "line 1500 of ⇒ off"


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_two_texts_have_a_change_in_one_line(old, new):
    assert "\n" not in change_of(old, new)
