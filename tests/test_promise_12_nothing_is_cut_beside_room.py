"""Promise 12: nothing of the notes is cut or left out while a tenth of their room is free."""

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conspectus.notes.rendering import Notes
from conspectus.notes.segment import Line, Segment
from engine import Scripted, compacted, engine, short
from histories import agent, assistant, talk, user
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
    kind = draw(st.sampled_from(["said", "done", "done", "found", "model"]))
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
    return Line("found", ids, draw(texts(80)).replace("\n", " "), model=kind == "model")


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


HISTORIES = {
    "talk": [m for n in range(12) for m in talk(4, 10 + 9 * n)],
    "an agent's": agent(40, 30),
    "many short words": [
        m for n in range(90) for m in (user(f"Note {n}: {n * 7}."), assistant("ok"))
    ],
    "one long text": [
        user("Build it.\n" + "\n".join(f"- point {n} of the plan is {n * 3}" for n in range(900))),
        assistant("I do."),
        *talk(6),
        *agent(12)[2:],
    ],
}


@pytest.mark.parametrize("name", HISTORIES)
@pytest.mark.parametrize("window", [3_000, 8_000, 60_000])
@pytest.mark.parametrize("make", [lambda: None, lambda: Scripted(short)], ids=["embedded", "own"])
def test_through_the_compactor_too_over_rounds(name, window, make):
    rendered: list[tuple[str, int, int]] = []
    real = Notes.render

    def render(self: Notes, room: int, count: Any, **how: Any) -> str:
        text = real(self, room, count, **how)
        if how.get("deeds", True):  # else it is what a model is shown of earlier notes
            rendered.append((text, count(text), room))
        return text

    compactor = engine(make(), window=window, keep=("messages", 4))
    whole, view = HISTORIES[name], list[Any]()
    with patch.object(Notes, "render", render):
        for start in range(0, len(whole), 30):
            view = [*view, *whole[start : start + 30]]
            view = list(compacted(view, compactor, force=True).messages)
    assert rendered
    for text, size, room in rendered:
        assert size <= room
        if less(text.partition("\n## Summary\n")[0]):
            assert size >= room * 9 // 10, f"{size} of {room} tokens:\n{text[:400]}"
