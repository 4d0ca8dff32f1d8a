"""Pieces of a span: every character of every message once, in order, and none too large."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conspectus.model.chunks import Part, divide, split_text
from conspectus.tokens import estimate
from stateful.budgets import few

FRAME = 4

# Drawn texts are short, so some are repeated: a long one is divided, and its parts again.
_prose = st.builds(
    lambda text, times: text * times,
    st.text(alphabet="ab .\n。漢</>é😀", max_size=40),
    st.sampled_from([1, 1, 5, 20]),
)
_part = st.builds(
    lambda text, begins: Part(0, text, len(text) + FRAME, FRAME, begins), _prose, st.booleans()
)


def numbered(parts: list[Part]) -> list[Part]:
    return [replace(part, index=index) for index, part in enumerate(parts)]


def _parts(most: int, least: int = 0) -> st.SearchStrategy[list[Part]]:
    return st.lists(_part, min_size=least, max_size=most).map(numbered)


def part(size: int, *, begins: bool = True) -> Part:
    return Part(0, "x" * (size - FRAME), size, FRAME, begins)


def read_back(parts: list[Part], pieces: list[list[Part]]) -> list[str]:
    back = [""] * len(parts)
    before = -1
    for one in (one for piece in pieces for one in piece):
        assert one.index >= before
        before = one.index
        back[one.index] += one.text
    return back


@given(_parts(25), st.integers(FRAME + 1, 120))
def test_pieces_give_every_character_back_once_and_in_order(parts, room):
    pieces = divide(parts, room, len)
    assert read_back(parts, pieces) == [one.text for one in parts]
    assert {one.index for piece in pieces for one in piece} == set(range(len(parts)))
    assert all(pieces)


@given(_parts(25), st.integers(FRAME + 1, 120))
def test_no_piece_is_larger_than_a_reading(parts, room):
    for piece in divide(parts, room, len):
        assert sum(one.size for one in piece) <= room
        assert all(one.size == len(one.text) + FRAME for one in piece)


@given(_parts(10, 1), st.integers(20, 120), st.integers(8, 60))
def test_a_piece_divided_again_still_gives_all_of_it_back(parts, room, smaller):
    again = [finer for piece in divide(parts, room, len) for finer in divide(piece, smaller, len)]
    assert read_back(parts, again) == [one.text for one in parts]


@settings(max_examples=few(50))
@given(_prose.map(lambda text: text * 5), st.integers(6, 60))
def test_parts_of_a_text_fit_by_the_real_estimate(body, room):
    texts = split_text(body, room, estimate)
    assert "".join(texts) == body
    assert all(estimate(text) <= room for text in texts)


PLAIN, RESULT = part(10), part(10, begins=False)
PIECES = {
    "a piece is as full as it can be": ([PLAIN] * 6, [[0, 1, 2, 3], [4, 5]]),
    "an exchange that fits stays together": ([part(25), PLAIN, RESULT, RESULT], [[0], [1, 2, 3]]),
    "a larger one is divided between its messages": (
        [part(20), *[part(20, begins=False)] * 3],
        [[0, 1], [2, 3]],
    ),
}


@pytest.mark.parametrize(("parts", "pieces"), PIECES.values(), ids=PIECES)
def test_where_a_piece_ends(parts, pieces):
    made = divide(numbered(parts), 40, len)
    assert [[one.index for one in piece] for piece in made] == pieces


def test_a_long_message_is_divided_at_line_ends_and_labelled():
    body = "".join(f"line number {n}\n" for n in range(20))
    parts = [one for piece in divide([Part(0, body, 999, FRAME)], 100, len) for one in piece]
    assert all(one.text.endswith("\n") for one in parts)
    assert [one.label for one in parts] == [
        f"{n} of {len(parts)}" for n in range(1, len(parts) + 1)
    ]
    halves = [one for piece in divide(parts[:1], 50, len) for one in piece]
    assert [one.label for one in halves] == [parts[0].label] * len(halves)


def test_a_text_without_lines_is_divided_after_sentences():
    texts = split_text("First comes this. Then comes that. 然后是这个。最后是那个。", 24, len)
    assert texts[0] == "First comes this. "


def test_dividing_counts_each_character_a_bounded_number_of_times():
    weighed = 0

    def count(text: str) -> int:
        nonlocal weighed
        weighed += len(text)
        return estimate(text)

    body = ("word " * 400 + "漢字" * 200 + "\n") * 100
    divide([Part(0, body, estimate(body), FRAME)], 500, count)
    assert weighed < 8 * len(body)
