"""Promise 12: nothing of the notes is cut or left out while a tenth of their room is free."""

from hypothesis import given, settings
from hypothesis import strategies as st

from conspectus.notes.rendering import Notes
from conspectus.notes.segment import Line, Segment
from notes_read import FEWER, GAP
from stateful.budgets import LONG, few

WORDS = (
    "window",
    "harbour",
    "Tisch",
    "mesa",
    "修复登录页面",
    "テスト",
    "проверь",
    "मॉड्यूल",
    "f.py:17",
    "42.5",
)


SMALL = 48
"""Tokens in which no line of use would stand."""


def tokens(text: str) -> int:
    return (len(text) + 3) // 4


@st.composite
def texts(draw: st.DrawFn, most: int = 60) -> str:
    number = draw(st.integers(1, most))
    start = draw(st.integers(0, len(WORDS) - 1))
    step = draw(st.sampled_from([1, 3, 7]))
    joint = draw(st.sampled_from([" ", " ", ", ", "\n"]))
    return joint.join(f"{WORDS[(start + n * step) % len(WORDS)]}{n}" for n in range(number))


@st.composite
def lines(draw: st.DrawFn) -> Line:
    kind = draw(st.sampled_from(["said", "done", "done", "agent", "found"]))
    ids = (f"m{draw(st.integers(1, 9_999))}",)
    if kind == "done":
        args = draw(
            st.lists(st.tuples(st.sampled_from(["path", "old", "q"]), texts(20)), max_size=3)
        )
        outcome = draw(st.lists(texts(12), max_size=30))
        return Line(
            "done",
            ids,
            draw(st.one_of(st.just(""), texts(20))),
            call=draw(st.sampled_from(["bash", "edit_file", "get"])),
            args=tuple((name, value.replace("\n", " ")) for name, value in args),
            outcome=tuple(piece.replace("\n", " ") for piece in outcome),
            named=tuple(len(piece) % 2 for piece in outcome),
            effect=draw(st.sampled_from([True, False, None])),
            failed=draw(st.booleans()),
            worth=draw(st.integers(0, 3)),
        )
    if kind == "said":
        return Line("said", ids, draw(texts(200)), worth=draw(st.integers(0, 3)))
    return Line(kind, ids, draw(texts(80)).replace("\n", " "))


CHAINS = st.lists(st.lists(lines(), max_size=25), min_size=1, max_size=5).map(
    lambda found: [Segment(tuple(one)) for one in found]
)


def less(text: str) -> bool:
    """Whether something of the lines is cut or left out."""
    return GAP in text or FEWER.search(text) is not None


@settings(max_examples=3_000 if LONG else few(400), deadline=None)
@given(CHAINS, st.integers(300, 4_000))
def test_no_line_is_cut_while_a_tenth_of_the_room_is_free(chain, room):
    text = Notes(chain).render(room, tokens)
    assert tokens(text) <= room
    whole = tokens(Notes(chain).render(10**9, tokens))
    if less(text):
        free = max(room // 10, SMALL)
        assert tokens(text) >= room - free, f"{whole} tokens of lines"
    else:
        assert tokens(text) == whole
