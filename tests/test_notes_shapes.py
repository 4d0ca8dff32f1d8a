"""How calls and their outcomes are shown in the notes: by the shape of the data, and by a table."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from conspectus import Compactor, Tool
from conspectus.messages import read_messages
from conspectus.notes.cutting import chosen, cut, differing
from conspectus.notes.reading import read_segment
from conspectus.notes.rendering import Notes
from conspectus.notes.shapes import shape_of
from conspectus.notes.tools import ToolTable
from notes_support import agent, step, user


def notes(*messages: Any, room: int = 10_000, tools: ToolTable | None = None) -> str:
    segment = read_segment(read_messages(list(messages)), tools=tools)
    return Notes([segment]).render(room, len)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ('{"id": 7, "ok": true}', ("ok=true", "id=7")),
        ('{"a": {"b": {"c": 1}}}', ("a.b.c=1",)),
        ('{"ids": ["x", "y"], "none": []}', ("ids=x, y", "none=none")),
        ('[{"n": 1, "s": "a"}, {"n": 2, "s": "b"}]', ("(n | s):", "1 | a", "2 | b")),
        ('[{"n": 1, "s": "a"}]', ("n=1", "s=a")),
        ("<returncode>1</returncode>\n<output>\nno\n</output>", ("returncode=1", "no")),
        ("<returncode>0</returncode>\n<output>\nyes\n</output>", ("yes",)),
        ("one\n\n  two", ("one", "two")),
        ("{not json}", ("{not json}",)),
        ("", ()),
    ],
)
def test_the_pieces_of_a_result(given, shown):
    assert shape_of(given).pieces == shown


@pytest.mark.parametrize(
    ("given", "failed"),
    [
        ('{"error": "no such room"}', True),
        ('{"status": "failed"}', True),
        ('{"success": false}', True),
        ('{"error": null, "status": "ok"}', False),
        ('{"errors": []}', False),
        ("Error: it says so in prose", False),
    ],
)
def test_a_call_failed_where_its_data_says_so(given, failed):
    assert shape_of(given).failed is failed
    line = notes(user("Go.", "u1"), *step("book", {"room": "12"}, given, "a1"))
    assert ("→ failed: " in line) is failed


def test_what_names_the_thing_is_shown_first_and_cut_last():
    text = "word " * 400
    shown = notes(
        *step("write_file", {"content": text, "path": "src/deep/in/a.py"}, "ok", "a1"), room=200
    )
    assert "write_file(path=src/deep/in/a.py, content=word" in shown


def test_an_edit_shows_what_differs():
    old, new = (
        "return total + tax_of(total, rate, year)",
        "return total - tax_of(total, rate, year)",
    )
    shown = notes(*step("edit_file", {"path": "a.py", "old": old, "new": new}, "edited", "a1"))
    assert "edit_file(path=a.py, old=return total + …, new=return total - …) → edited" in shown
    assert differing("abc", "abd") == ("abc", "abd")


def test_the_agents_reason_stands_beside_its_call_without_what_the_call_says_too():
    shown = notes(
        *step("bash", {"command": "pytest -q tests"}, "2 passed", "a1", "I run:\npytest -q tests")
    )
    assert "- I run: bash(pytest -q tests) → 2 passed [a1, a1r]" in shown


def test_the_newest_to_do_list_is_open_and_stands_once():
    first = [{"content": "read", "status": "pending"}, {"content": "write", "status": "pending"}]
    second = [{"content": "read", "status": "completed"}, {"content": "write", "status": "pending"}]
    shown = notes(
        *step("write_todos", {"todos": first}, "Updated", "a1"),
        *step("write_todos", {"todos": second}, "Updated", "a2"),
    )
    assert "## Open\n- read | completed\n- write | pending" in shown
    assert "read | pending" not in shown


def test_a_callers_tools_and_what_tools_say_of_themselves():
    @dataclass
    class Described:
        name: str
        metadata: dict[str, Any] = field(default_factory=dict)

    table = ToolTable([Tool("peek", key="at", effect=False), Tool("set_*", effect=True)])
    table.learn([Described("lookup", {"readOnlyHint": True}), Described("odd"), object()])
    assert (table["Peek"].key, table["set_price"].effect) == ("at", True)
    assert (table["lookup"].effect, table["odd"].effect) == (False, None)
    assert table["read_file"].effect is False
    with pytest.raises(ValueError, match="tool_table must be a list"):
        Compactor(tool_table=["peek"])  # type: ignore[list-item]


def test_looks_give_way_before_changes():
    looks = [
        m
        for n in range(30)
        for m in step("read_file", {"path": f"a{n}.py"}, "x = 1\n" * 40, f"l{n}")
    ]
    change = step("cancel_booking", {"id": "B-77"}, json.dumps({"status": "cancelled"}), "c1")
    shown = notes(user("Go.", "u1"), *change, *looks, room=900)
    assert "cancel_booking(B-77) → status=cancelled [c1, c1r]" in shown
    assert "other calls: read_file" in shown


def test_a_row_that_is_named_later_outlasts_the_others():
    rows = [
        {"flight": f"HAT{n:03}", "price": 100 + n, "seats": n, "from": "JFK"} for n in range(60)
    ]
    shown = notes(
        *step("find", {"day": "May 20"}, json.dumps(rows), "a1"),
        agent("I suggest HAT042.", "a2"),
        room=500,
    )
    assert "HAT042 | 142 | 42 | JFK" in shown


def test_cuts_are_marked_and_fit():
    text = "The first sentence. " * 30
    for room in (1, 5, 20, 60, 200, 599, 600, 700):
        shown = cut(text, room)
        assert len(shown) <= max(room, 0)
        assert ("…" in shown) is (room < len(text) and bool(shown))
    pieces = [f"line {n}" for n in range(100)]
    kept = chosen(pieces, [2 * (n == 50) for n in range(100)], 60, "\n")
    assert {"line 0", "line 50", "line 99", "…"} <= set(kept)
