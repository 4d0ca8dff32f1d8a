"""The notes on edits: what they changed, which of them still count, and what outlasts them."""

from typing import Any

import pytest

from conspectus import Ledger
from conspectus.messages import read_messages
from conspectus.summarize import SummaryRequest
from conspectus.summarize.answers import composed, for_model
from conspectus.summarize.condensing import condensed
from conspectus.summarize.notes import DONE, FOUND, GOAL, NEXT, Notes
from conspectus.summarize.scripts import edits_of
from conspectus.summarize.superseding import named_nowhere, without_undone
from conspectus.summarize.users_words import said
from conspectus.summarize.writing import Answer, write
from notes_support import agent, count, step, user
from test_notes_giving_way import room_of, sections

READ = "with open('menu.py') as f:\n    text = f.read()\n"
WRITE = "with open('menu.py', 'w') as f:\n    f.write(text)\n"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("text = text.replace('soup = 3', 'soup = 4')\n", "soup = 3 ⇒ soup = 4"),
        (
            "old = 'def price(dish):'\nnew = 'def price(dish, guests=1):'\n"
            "text = text.replace(old, new)\n",
            "guests=1",
        ),
        (
            "lines = []\nfor line in text.splitlines():\n    if 'def serve(self):' in line:\n"
            "        lines.append('    cool(dish, to=60)')\n    print('looking at it')\n",
            "cool(dish, to=60)",
        ),
    ],
)
def test_a_script_that_edits_a_file_is_told_by_its_edits(body, told):
    padding = "".join(f"def helper_{n}(a, b):\n    return a, b\n" for n in range(40))
    command = f"cat > fix_menu.py <<'EOF'\n{padding}{READ}{body}{WRITE}EOF"
    notes = sections([user("Mend the menu.", "u1"), *step("bash", {"command": command}, "", "m2")])
    [line] = [line for line in notes[DONE] if "fix_menu.py" in line]
    assert told in line
    assert "looking at it" not in line


@pytest.mark.parametrize(
    ("between", "told"),
    [("", False), ("text = text.replace('x', new)\n", True), ("new = new + ' rice'\n", True)],
)
def test_a_text_that_a_script_drops_is_no_edit(between, told):
    body = f"new = 'cold soup'\n{between}new = 'hot soup'\ntext = text + new\n"
    found = edits_of(READ + body + WRITE)
    assert ("cold soup" in found) == told


def test_a_script_that_only_writes_a_report_is_told_by_its_outline():
    body = "def report():\n    with open('out.txt', 'w') as f:\n        f.write('all is well')\n"
    command = "cat > report.py <<'EOF'\n" + body * 40 + "EOF"
    notes = sections([user("Report.", "u1"), *step("bash", {"command": command}, "", "m2")])
    [line] = [line for line in notes[DONE] if "report.py" in line]
    assert "120 lines: def report()" in line


@pytest.mark.parametrize(
    "script", ["def broken(:", "x = (" * 300, "", "\0", "x = " + "1 + " * 9_000 + "1"]
)
def test_what_is_no_script_has_no_edits(script):
    assert edits_of(READ + WRITE + script) == ""


UNDO = "$ git checkout menu.py → Updated 1 path from the index [m9]"


@pytest.mark.parametrize(
    "call",
    [
        "sed -i 3d menu.py && sed -i 's/a/b/' menu.py",
        "sed -i 3d menu.py ⏎ sed -i 's/a && b/c/' menu.py",
    ],
)
def test_a_chain_of_edits_of_one_file_is_undone_with_it(call):
    [left] = without_undone([f"$ {call} → ok [m2]", UNDO])
    assert "1 edit above undone" in left


@pytest.mark.parametrize(
    "call",
    [
        "sed -i 3d menu.py && sed -i 3d bill.py",
        "sed -i 3d menu.py && git push origin main",
        "sed -i 3d menu.py; rm bill.py",
        "sed -i 3d menu.py > changes.txt",
        "sed -i 3d menu.py | mail ann",
        "sed -i 3d… menu.py",
    ],
)
def test_a_line_that_did_another_thing_too_stays(call):
    line = f"$ {call} → ok [m2]"
    assert without_undone([line, UNDO]) == [line, UNDO]


@pytest.mark.parametrize(
    "call",
    [
        "$ sed -i 's/soup = 3/soup = 4/' kitchen/menu.py",
        "$ git commit -am 'Warm the soup'",
        "$ cd kitchen && pip install oven",
        "$ cat > a.py (2 lines: a = 1) && git push && cat > b.py (2 lines: b = 1)",
        "$ cat > mend.py (edits: soup = 3 ⇒ soup = 4)",
        "book_table(guests=4)",
    ],
)
def test_changes_outlast_what_was_tried_out(call):
    edit = f"{call} → ok [m1]"
    trials = [f"$ python try_{n}.py → dish {n} is {'very ' * 20}hot [t{n}]" for n in range(30)]
    [kept] = condensed([{DONE: [edit, *trials]}], room_of([edit, *trials], 0.15), count)
    assert edit in kept[DONE]
    assert kept[DONE][0].startswith("(")


def test_findings_that_a_model_wrote_outlast_trials():
    found = [
        f"Dish {n} burns since `oven.heat` of kitchen {n} takes degrees and is given kelvin, which "
        f"was measured twice; the mend is to divide by {n}.5 there. [f{n}]"
        for n in range(8)
    ]
    trials = [f"$ python try_{n}.py → dish {n} is {'very ' * 20}hot [t{n}]" for n in range(60)]
    room = room_of(found, 1.6)
    [kept] = condensed([{DONE: trials, FOUND: found}], room, count, written=True)
    assert kept[FOUND] == found
    [own] = condensed([{DONE: trials, FOUND: found}], room, count)
    assert len(own[DONE]) > len(kept[DONE]) > 1


def test_the_only_record_of_its_kind_does_not_give_way():
    lines = [
        "get_booking(id=B100) → seats=2 [m2]",
        "find_train(id=T200) → leaves=9 [m4]",
        "find_train(id=T300) → leaves=10 [m6]",
    ]
    assert named_nowhere(lines, ["T300 it is. [m7]"]) == [1]


REFUSED = (
    "Not valid: give one block.\n\n<example>\nham and eggs\n</example>\n\nThen wait for the result."
)


def test_a_message_that_stands_short_and_comes_again_is_named():
    [entry, other] = read_messages([{"role": "user", "content": one} for one in (REFUSED, "No.")])
    before = [f"Not valid: give one block. … Then wait for the result. [{entry.cite}]"]
    named = f"(the same as {entry.cite}, once more) [{entry.cite}]"
    assert said([entry, other], before) == [f"No. [{other.cite}]", named]


def test_another_version_of_a_message_that_stands_short_stands_itself():
    before = ["Not valid: give one block. … Then wait for the result. [m2]"]
    changed = REFUSED.replace("result.", "result, or give two blocks.")
    [line] = said(read_messages([user(changed, "m2")]), before)
    assert "two blocks" in line


def asked_of_a_model(limit: int, kept: str, **more: Any) -> SummaryRequest:
    talk = read_messages([user(kept, "u1"), *step("bash", {"command": "./cook 1"}, "hot", "m2")])
    return SummaryRequest(talk[1:], "", Ledger(), limit, count, kept=talk[:1], ahead=1, **more)


def test_a_model_is_shown_the_task_that_stays_in_view_and_may_cite_it():
    request = asked_of_a_model(2_000, "Warm the soup, and never burn it.")
    shown = for_model(request, whole=False)
    assert "Warm the soup, and never burn it. [u1]" in shown.standing
    text, _ = composed(request, "## Goal\n- a warm soup [u1]", whole=False, most=2_000)
    assert "- a warm soup [u1]" in text


@pytest.mark.parametrize(("limit", "most"), [(2_000, 1_100), (300, 300)])
def test_of_a_long_task_a_model_is_shown_as_much_as_the_room_allows(limit, most):
    shown = for_model(asked_of_a_model(limit, "Warm the soup. " * 2_000), whole=False)
    assert count(shown.standing) < most


def test_the_next_step_that_a_model_wrote_outlasts_old_deeds():
    talk = [user("Cook.", "u0"), agent("Yes.", "a0")]
    for n in range(60):
        talk += step("bash", {"command": f"./cook {n} --slowly"}, f"dish {n} is hot", f"m{n}")
    request = SummaryRequest(read_messages(talk), "", Ledger(), 300, count)
    found = [f"Dish {n} burns at {n} degrees. [m{n}]" for n in range(30)]
    notes = Notes.parse(write(request, Answer(found, ["a warm soup [m1]"], ["stir it [m2]"])))
    stands = [list(notes.now.get(name, ())) for name in (GOAL, NEXT)]
    assert stands == [["a warm soup [m1]"], ["stir it [m2]"]]
