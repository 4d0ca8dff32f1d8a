"""Pieces of a span: every character of every message once, in order, and none too large."""

from dataclasses import replace

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


def test_dividing_counts_each_character_a_bounded_number_of_times():
    weighed = 0

    def count(text: str) -> int:
        nonlocal weighed
        weighed += len(text)
        return estimate(text)

    body = ("word " * 400 + "漢字" * 200 + "\n") * 100
    divide([Part(0, body, estimate(body), FRAME)], 500, count)
    assert weighed < 8 * len(body)
