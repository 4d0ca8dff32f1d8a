"""How calls and their outcomes are shown in the notes: by the shape of the data, and by a table."""

from typing import Any

import pytest

from conspectus import Compactor
from conspectus.archive import Archive, Scope
from conspectus.messages import read_messages
from conspectus.notes.reading import read_segment
from conspectus.notes.rendering import Notes
from conspectus.notes.segment import Segment
from conspectus.notes.tools import ToolTable
from histories import deed, user
from notes_read import left_out


def count(text: str) -> int:
    return len(text) // 4


def notes(*messages: Any, room: int = 10_000, tools: ToolTable | None = None) -> str:
    segment = read_segment(read_messages(list(messages)), tools=tools)
    return Notes([segment]).render(room, len)


def test_a_refused_to_do_list_is_not_the_one_in_force():
    first = {"todos": [{"content": "ship", "status": "pending"}]}
    second = {"todos": [{"content": "ship", "status": "completed"}]}
    refused = deed("write_todos", second, "refused", "a2")
    refused[1]["status"] = "error"
    shown = notes(
        *deed("write_todos", first, "ok", "a1"), *refused, *deed("write_todos", {}, "?", "a3")
    )
    assert "## Open\n- ship | pending" in shown
    assert "→ failed: refused" in shown


def test_two_calls_under_one_id_keep_their_own_results():
    one, two = deed("pay", {"to": "x"}, "paid x", "a1"), deed("pay", {"to": "y"}, "refused y", "a2")
    for message in two:
        message.update({"tool_call_id": "c-a1"} if message["role"] == "tool" else {})
    two[0]["tool_calls"][0]["id"] = "c-a1"
    shown = notes(one[0], two[0], one[1], two[1])
    assert "pay(x) → paid x" in shown
    assert "pay(y) → refused y" in shown


@pytest.mark.parametrize("room", [40, 64, 80, 120])
def test_in_the_smallest_room_what_is_left_out_is_counted(room):
    messages = [user(f"Look at number {n}, and be careful. " * 6, id=f"u{n}") for n in range(9)]
    for n in range(12):
        messages += deed(f"tool_{n}", {"path": f"/srv/{n}"}, "fine " * 40, f"s{n}")
    text = Notes([read_segment(read_messages(messages), ())]).render(room, count)
    assert count(text) <= room
    if room >= 80:
        assert "7 messages of the user left out; recall range u1 to u7" in text
        assert "(12 more calls: " in text
        assert "others 4" in text


def test_a_long_session_counts_what_it_left_out_and_reads_no_line_for_ever():
    with Archive.open("memory:") as archive:
        compactor = Compactor(window=3_000, archive=archive)
        view: list[Any] = []
        for turn in range(200):
            said = f"What does part {turn} of the project do, and who calls it?"
            answer = f"Part {turn} adds up the rows of table {turn % 37} and prints them. " * 3
            view += [{"role": "user", "content": said}, {"role": "assistant", "content": answer}]
            result = compactor.compact(view, thread_id="t")
            view = list(result.messages)
        shown = result.summary.count("- What does part ")
        there = sum(one["role"] == "user" for one in view[1:])
        assert left_out(result.summary) + shown + there == 200
        chain = archive.chain(Scope("local", "t", "main"))
    lines = len(Segment.from_json(chain[-1].segment).lines)
    assert lines < 300, "of four hundred lines those that are shown, and those since"


def test_a_short_edit_shows_what_is_new_and_its_file():
    """What both texts begin with is left out first."""
    path = "/home/someone/projects/shop/packages/server/src/checkout/session_of_a_customer.ts"
    old = "import a;\n" * 9 + "const limit = 3;"
    edit = {"path": path, "old": old, "new": f"{old}\nconst retries = 5;"}
    said = f"Successfully replaced text in {path}. Changed 99 characters to 118."
    text = notes(*deed("edit_file", edit, said, "m1"), room=300)
    assert "/checkout/session_of_a_customer.ts" in text
    assert "const retries = 5;" in text
    assert text.count("import a;") < 4


@pytest.mark.parametrize(
    "answer",
    [
        "Exit code: 2\nKeyError: 'vat'",
        '{"exit_code": 2, "output": "KeyError: vat"}',
        '{"output": "KeyError: vat", "metadata": {"exit_code": 2}}',
    ],
)
def test_a_program_that_ended_with_an_error_outlasts_those_that_did_not(answer):
    messages = [user("Make it pass.", id="u0")]
    for n in range(40):
        said = answer if n == 5 else "Exit code: 0 (ok)\n" + "all of it is well\n" * 9
        messages += deed("bash", {"command": f"pytest tests/test_{n}.py"}, said, f"s{n}")
    text = Notes([read_segment(read_messages(messages), ())]).render(300, count)
    assert "bash(pytest tests/test_5.py) → failed: " in text
    assert "pytest tests/test_6.py" not in text
