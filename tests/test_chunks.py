"""Pieces of a span: every character of every message once, in order, and none too large."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conspectus.summarize.chunks import Part, Text, divide, part_size, split_text
from conspectus.tokens import estimate
from stateful.budgets import few

FRAME = 4

# Drawn texts are short, so some are repeated: a long one is divided, and its parts again.
_prose = st.builds(
    lambda text, times: text * times,
    st.text(alphabet="ab .\n。漢</>é😀", max_size=40),
    st.sampled_from([1, 1, 5, 20]),
)
_text = st.builds(
    lambda text, turn, legal: Text(text, len(text) + FRAME, FRAME, turn, legal),
    _prose,
    st.booleans(),
    st.booleans(),
)


def text(size: int, *, turn: bool = False, legal: bool = True) -> Text:
    return Text("x" * (size - FRAME), size, FRAME, turn, legal)


def indexes(pieces: list[tuple[Part, ...]]) -> list[list[int]]:
    return [[part.index for part in piece] for piece in pieces]


def read_back(texts: list[Text], pieces: list[tuple[Part, ...]]) -> list[str]:
    back = [""] * len(texts)
    reached = [0] * len(texts)
    before = -1
    for part in (part for piece in pieces for part in piece):
        assert part.index >= before
        assert part.start == reached[part.index]
        before, reached[part.index] = part.index, part.stop
        back[part.index] += texts[part.index].text[part.start : part.stop]
    return back


@given(st.lists(_text, max_size=25), st.integers(FRAME + 1, 120))
def test_pieces_give_every_character_back_once_and_in_order(texts, room):
    pieces = divide(texts, room, len)
    assert read_back(texts, pieces) == [text.text for text in texts]
    assert {part.index for piece in pieces for part in piece} == set(range(len(texts)))
    assert all(pieces)


@given(st.lists(_text, max_size=25), st.integers(FRAME + 1, 120))
def test_no_piece_is_larger_than_a_reading(texts, room):
    for piece in divide(texts, room, len):
        assert sum(part_size(texts, part, len) for part in piece) <= room


@given(st.lists(_text, min_size=1, max_size=10), st.integers(20, 120), st.integers(8, 60))
def test_a_piece_divided_again_still_gives_all_of_it_back(texts, room, smaller):
    again = [
        finer for piece in divide(texts, room, len) for finer in divide(texts, smaller, len, piece)
    ]
    assert read_back(texts, again) == [text.text for text in texts]


@settings(max_examples=few(50))
@given(_prose.map(lambda text: text * 5), st.integers(6, 60))
def test_spans_of_a_text_fit_by_the_real_estimate(body, room):
    spans = split_text(body, room, estimate)
    assert "".join(body[a:b] for a, b in spans) == body
    assert all(estimate(body[a:b]) <= room for a, b in spans)


TURN, PLAIN, BOUND = text(10, turn=True), text(10), text(10, legal=False)
PIECES = {
    "a piece ends before a new turn": ([TURN, PLAIN, TURN, PLAIN, PLAIN], [[0, 1], [2, 3, 4]]),
    "a short turn has no reading of its own": (
        [text(6, turn=True), TURN, *[PLAIN] * 6],
        [[0, 1, 2, 3], [4, 5, 6, 7]],
    ),
    "an exchange that fits stays together": ([text(25), PLAIN, BOUND, BOUND], [[0], [1, 2, 3]]),
    "a larger one is divided between its messages": (
        [text(20), *[text(20, legal=False)] * 3],
        [[0, 1], [2, 3]],
    ),
}


@pytest.mark.parametrize(("texts", "pieces"), PIECES.values(), ids=PIECES)
def test_where_a_piece_ends(texts, pieces):
    assert indexes(divide(texts, 40, len)) == pieces


def test_a_long_message_is_divided_at_line_ends_and_labelled():
    body = "".join(f"line number {n}\n" for n in range(20))
    texts = [Text(body, len(body) + FRAME, FRAME)]
    parts = [part for piece in divide(texts, 100, len) for part in piece]
    assert all(body[part.stop - 1] == "\n" for part in parts)
    assert [part.label for part in parts] == [
        f"{n} of {len(parts)}" for n in range(1, len(parts) + 1)
    ]
    half = divide(texts, 50, len, parts[:1])
    assert half[0][0].label.endswith(f"of part 1 of {len(parts)}")


def test_a_text_without_lines_is_divided_after_sentences():
    spans = split_text("First comes this. Then comes that. 然后是这个。最后是那个。", 24, len)
    assert spans[0] == (0, 18)


def test_dividing_counts_each_character_a_bounded_number_of_times():
    weighed = 0

    def count(part: str) -> int:
        nonlocal weighed
        weighed += len(part)
        return estimate(part)

    body = ("word " * 400 + "漢字" * 200 + "\n") * 100
    divide([Text(body, estimate(body), FRAME)], 500, count)
    assert weighed < 8 * len(body)
