"""The notes where not all fits: what gives way first, and what outlasts it."""

import json
import time

import pytest

from conspectus import Ledger
from conspectus.ledger import choose, statements
from conspectus.messages import read_messages
from conspectus.summarize import EmbeddedSummarizer, SummaryRequest
from conspectus.summarize.condensing import _told_once, condensed
from conspectus.summarize.findings import conclusions
from conspectus.summarize.notes import DONE, FOUND, OPEN, SAID, Notes, items
from conspectus.summarize.superseding import newest_of_each_run, without_undone
from notes_support import Message, count, step, user


def sections(
    talk: list[Message], kept: list[Message] = (), limit: int = 2_000, ahead: int = 0
) -> dict[str, list[str]]:
    """The lines of the notes of a talk, by section."""
    ledger = Ledger().updated(read_messages(talk))
    request = SummaryRequest(
        read_messages(talk), "", ledger, limit, count, kept=read_messages(kept), ahead=ahead
    )
    notes = Notes.parse(EmbeddedSummarizer().summarize(request).text)
    return {**items(notes.segments[-1]), **{name: list(lines) for name, lines in notes.now.items()}}


def room_of(lines: list[str], share: float) -> int:
    return int(count("\n".join(f"- {line}" for line in lines)) * share)


CAUSE = "thought: The problem is that the oven was never told the time zone. [m3]"
MUSINGS = [
    f"thought: Plate {n} is blue, since the plates of this series are. [m{n}]"
    for n in range(10, 30)
]


def test_a_cause_outlasts_later_musings():
    deeds = [f"$ ./bake.sh tray{n} → ok: tray {n} is done [m4{n}]" for n in range(20)]
    [kept] = condensed(
        [{DONE: deeds, FOUND: [CAUSE, *MUSINGS]}], room_of([*deeds, *MUSINGS], 0.3), count
    )
    assert CAUSE in kept[FOUND]
    assert len(kept[FOUND]) < len(MUSINGS)


@pytest.mark.parametrize(
    "lines",
    [
        [
            f"$ cd app && pytest -k {'a' * n} tests/menu.py → exit 1: {n} failed [m{n}]"
            for n in range(1, 9)
        ],
        [f"$ cat > menu.py ({n} lines: class Menu:) → ok [m{n}]" for n in range(1, 9)],
        [f"write_file(path=menu.py, content: {n} lines) → ok [m{n}]" for n in range(1, 9)],
    ],
)
def test_one_program_on_one_thing_stands_as_its_newest(lines):
    others = [f"$ git push origin part-{n} → ok: part {n} went out [n{n}]" for n in range(8)]
    [kept] = condensed([{DONE: [*lines, *others]}], room_of([*others, lines[-1]], 1.1), count)
    [newest] = [line for line in kept[DONE] if "menu.py" in line]
    assert newest.endswith("(newest of 8) [m8]")
    assert [line for line in kept[DONE] if "git push" in line] == others


def test_a_record_that_nothing_names_again_gives_way_to_one_that_does():
    fields = (
        f"cabin=economy note={'window seat ' * 30}owner=Ann bags=2 paid=yes legs=HAT100, HAT200"
    )
    lines = [f"get_trip(id=TRIP{n}) → {fields} [m{n}]" for n in range(100, 106)]
    lines.append("cancel_trip(id=TRIP103) → ok [m200]")
    [kept] = condensed([{DONE: lines}], room_of(lines, 0.52), count)
    sizes = {line[12:19]: len(line) for line in kept[DONE] if line.startswith("get_trip")}
    assert sizes["TRIP103"] > 1.5 * max(sizes[name] for name in sizes if name != "TRIP103")


def test_ids_and_dates_outlast_the_short_fields_of_a_record():
    fields = " ".join(f"field{n}=some text" for n in range(30))
    line = f"get_trip(id=TRIP1) → {fields} legs=HAT100 on 2026-05-19, HAT200 on 2026-05-20 [m1]"
    [kept] = condensed([{DONE: [line]}], room_of([line], 0.4), count)
    assert "legs=HAT100 on" in kept[DONE][0]
    assert "field29" not in kept[DONE][0]


TASK = """Please make the menu load.

It fails with "no such dish" where a dish has an accent, as in "crème".

# Task Instructions
- You must NOT change the tests.
""" + "\n".join(
    f"- Some people like to keep module {n} of the kitchen in a folder of its own."
    for n in range(60)
)


def test_advice_of_a_long_message_gives_way_to_deeds():
    room = count(TASK) // 2
    [kept] = choose([TASK], room, count)
    assert "make the menu load" in kept.text
    assert "NOT change the tests" in kept.text
    assert count(kept.text) <= 0.8 * room


def test_an_example_in_a_message_states_nothing():
    said = "Answer so:\n<example_response>\nI must never use tabs.\n</example_response>\nBe brief."
    assert [one.text for one in statements(said) if one.own] == ["Answer so:", "Be brief."]
    open_ended = "<example>\nYou must never use tabs."
    assert [one.text for one in statements(open_ended) if one.own] == ["You must never use tabs."]


def test_signs_in_backticks_make_no_code():
    said = "Save it as: `report_{topic}_{date}.md`"
    assert [one.text for one in statements(said) if one.own] == [said]


def test_a_question_to_the_user_is_told_once():
    question = "Which dish do you mean, the one with rice or the one with beans?"
    talk = [
        user("Cook my dish.", "m1"),
        *step("ask_user", {"question": question}, f"❓ {question}", "m2"),
        {"role": "assistant", "content": f"❓ {question}", "id": "m3"},
    ]
    text = json.dumps(sections(talk), ensure_ascii=False)
    assert text.count("the one with rice") == 1
    assert "the same text" in text


def test_what_a_list_says_stands_with_what_announces_it():
    reply = (
        "Here is what I would change:\n\n- **Flight:** HAT072 on 2026-05-19\n- **Bags:** 2 more\n\n"
        "Have a good day."
    )
    talk = [user("Change my flight.", "m1"), {"role": "assistant", "content": reply, "id": "m2"}]
    [line] = sections(talk)[FOUND]
    assert line.startswith(
        "Here is what I would change: Flight: HAT072 on 2026-05-19; Bags: 2 more"
    )
    [(line, _)] = conclusions(read_messages(talk), 0.15)
    assert line.startswith("Here is what I would change: Flight: HAT072 on 2026-05-19")


REFUSED = "Please always write exactly one command, in a block of its own, and nothing after it."


def test_a_repeated_refusal_is_not_the_request_under_way():
    talk = [user("Mend the menu.", "m1"), user(REFUSED, "m2"), *step("look", {}, "a.py", "m3")]
    kept = [user(REFUSED, "m4"), *step("look", {"n": 1}, "b.py", "m5")]
    assert "newest message" not in json.dumps(sections(talk, kept, ahead=1).get(OPEN, []))
    kept[0] = user("Now mend the bill, too, and tell me how it went.", "m4")
    assert (
        "the user's newest message, from before the last deeds above: Now mend the bill"
        in json.dumps(sections(talk, kept, ahead=1)[OPEN])
    )


def test_repeats_of_one_message_stand_as_one_when_condensed():
    said = [
        "Stop. [m1]",
        "(the same as m1, once more) [m4]",
        "(the same as m1, 2 times more) [m6, m9]",
    ]
    [kept] = condensed([{SAID: said}], 10, count)
    assert kept[SAID] == ["Stop. [m1]", "(the same as m1, 3 times more) [m4, m9]"]


def test_repeats_in_other_figures_stand_as_one_with_the_figures():
    first = f"Found 3 blocks. {REFUSED} {'Look at the first message. ' * 6}"
    talk = [user("Mend the menu.", "m1"), user(first, "m2")]
    talk += [user(first.replace("3", figure), f"m{figure}9") for figure in ("2", "14", "2")]
    *_, line = sections(talk)[SAID]
    assert line == "(the same as m2 but with Found 14; Found 2, 3 times more) [m29]"
    limits = [f"Never pay more than {n} EUR for a night." for n in (90, 80)]
    talk = [user(text, f"m{n}") for n, text in enumerate(limits)]
    assert sections(talk)[SAID] == [f"{text} [m{n}]" for n, text in enumerate(limits)]


def test_files_that_a_script_writes_when_it_is_run_are_named():
    script = "name = 'src/menu.py'\nwith open(name, 'w') as file:\n    file.write('x')\n"
    talk = [
        user("Mend the menu.", "m1"),
        *step("bash", {"command": f"cat <<'EOF' > fix.py\n{script}EOF"}, "", "m2"),
    ]
    assert sections(talk)[OPEN] == ["files written or changed: fix.py"]
    talk += step("bash", {"command": "cd app && python3 fix.py"}, "done", "m4")
    assert sections(talk)[OPEN] == ["files written or changed: fix.py, src/menu.py"]


def test_courtesies_are_no_conclusions():
    reply = "You're welcome! Your seat is 12A. Have a lovely trip!"
    talk = [user("Thanks.", "m1"), {"role": "assistant", "content": reply, "id": "m2"}]
    assert sections(talk)[FOUND] == ["Your seat is 12A. [m2]"]


def test_a_long_output_keeps_how_it_ended():
    rows = [f"compiling part {n} of the kitchen and its pantry" for n in range(9)]
    line = f"$ make → {' ⏎ '.join(rows)} ⏎ 3 tests failed, 29 passed [m2]"
    [kept] = condensed([{DONE: [line]}], room_of([line], 0.4), count)
    assert "3 tests failed, 29 passed" in kept[DONE][0]


def test_a_text_that_looks_like_a_repeat_is_a_text():
    said = ["(the same as m2, once more)", "Go on. [m3]"]
    [kept] = condensed([{SAID: said}], 10, count)
    assert kept[SAID] == said


def test_every_figure_of_a_repeated_question_stands():
    talk = [
        user(f"Question {n}. {'How is the weather in Lisbon? ' * 9}", f"m{n}") for n in range(30)
    ]
    told = " ".join(sections(talk)[SAID])
    assert all(f"Question {n}." in told for n in range(30))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("$ python deploy.py prod", "$ python deploy.py staging"),
        ("$ make deploy", "$ make clean"),
        ("$ ./release.sh --draft", "$ ./release.sh"),
        ("$ npm run deploy", "$ npm run build"),
        ("$ STAGE=prod ./release.sh", "$ STAGE=test ./release.sh"),
        ("$ cd lobby && make test", "$ cd kitchen && make test"),
        ("$ rm -rf stock && pytest menu.py", "$ pytest menu.py"),
        ("$ env STAGE=prod ./release.sh && pytest menu.py", "$ pytest menu.py"),
        ("$ python plan.py | psql prod", "$ python plan.py | psql staging"),
        ("$ cd lobby && cat > menu.py (3 lines: x)", "$ cd kitchen && cat > menu.py (3 lines: x)"),
        ("$ cat > menu.py (3 lines: x) && ./release.sh $(date)", "$ cat > menu.py (3 lines: x)"),
        ("write_cell(path=menu.xlsx, cell=A1)", "write_cell(path=menu.xlsx, cell=B2)"),
        ("write_file(path=/srv/li…menu.py, n=3)", "write_file(path=/srv/li…menu.py, n=4)"),
    ],
)
def test_runs_that_may_do_different_things_both_stand(one, other):
    lines = [f"{one} → ok [m2]", f"{other} → ok [m4]"]
    assert newest_of_each_run(lines) == lines


def test_a_run_that_failed_or_names_less_stands_for_no_earlier_one():
    for was, came in (("ok", "exit 1: no room"), ("released R1001", "released R1002")):
        lines = [f"$ ./release.sh → {was} [m2]", f"$ ./release.sh → {came} [m4]"]
        assert newest_of_each_run(lines) == lines
    lines = ["$ cat > menu.py (3 lines: x) → ok [m2]", "$ cat > menu.py (4 lines: y) → exit 1 [m4]"]
    assert newest_of_each_run(lines) == lines


@pytest.mark.parametrize(
    "edit", ["$ sed -i s/ham/egg/ menu.py wine.py", "$ cd lobby && sed -i 1d menu.py"]
)
def test_an_edit_of_another_file_is_not_undone(edit):
    lines = [f"{edit} → ok [m2]", "$ cd kitchen && git checkout menu.py → Updated 1 path [m4]"]
    lines[1] = lines[1].replace("cd kitchen && ", "" if "wine" in edit else "cd kitchen && ")
    assert without_undone(lines) == lines


def test_a_value_that_is_left_out_takes_no_part_of_another_key():
    came = "id=A100 owner=Ann1 owner_id=A100 n=3 name=x"
    lines = [f"get(x) → {came} [m{n}]" for n in range(2)]
    lines.append("get(x) → id=A100 owner=Ann1 other_id=A100 n=3 [m2]")
    lines += [f"$ git push origin part-{n} → ok: part {n} went out [n{n}]" for n in range(8)]
    assert _told_once(lines)[2] == "get(x) → other_id=A100 n=3 [m2]"


def test_figures_that_could_stand_in_two_places_are_told_in_their_words():
    rest = "Say what you think of it. " * 9
    first = f"Move part 3 behind part 3 of the other menu. {rest}"
    other = f"Move part 3 behind part 4 of the other menu. {rest}"
    said = sections([user(first, "m1"), user(other, "m2")])[SAID]
    assert said[1] == f"{other.strip()} [m2]"


def test_figures_of_one_message_stay_together_and_apart_from_a_plain_repeat():
    rest = "Say what you think of it. " * 9
    first = f"Take page 1 of menu 1. {rest}"
    talk = [user(first, "m1"), user(first, "m2")]
    for page, menu in ((2, 7), (3, 7), (2, 8)):
        text = first.replace("page 1", f"page {page}").replace("menu 1", f"menu {menu}")
        talk.append(user(text, f"m{page}{menu}"))
    assert sections(talk)[SAID][1:] == [
        "(the same as m1, once more) [m2]",
        "(the same as m1 but with page 2 + menu 7.; page 3 + menu 7.; page 2 + menu 8.,"
        " 3 times more) [m27, m28]",
    ]


@pytest.mark.parametrize(
    "command",
    [
        "git branch -D menu",
        "git branch menu",
        "git remote add origin menu",
        "env STAGE=prod ./release.sh",
        "find . -name menu | xargs -n 1 kill",
        "find . -exec chmod 700 {} +",
    ],
)
def test_a_command_that_does_a_thing_behind_a_look_is_a_deed(command):
    talk = [user("Mend it.", "m1"), *step("bash", {"command": command}, "", "m2")]
    [line] = sections(talk)[DONE]
    assert line.startswith(f"$ {command} → ")


@pytest.mark.parametrize(
    "hostile",
    [
        "\n",
        '\\"',
        "sed ",
        "perl ",
        "cat <<A\n",
        "cat <<EOF\n" + "\n" * 9,
        "rm -f a",
        "a (1 lines: ",
        "touch a ",
        "cp -cp ",
        "mv a b\n",
        "git mv ",
    ],
)
def test_a_hostile_command_takes_no_longer_than_its_length(hostile):
    command = (hostile * 60_000)[:60_000]
    talk = [user("Mend it.", "m1"), *step("bash", {"command": command}, "", "m2")]
    start = time.perf_counter()
    sections(talk)
    assert time.perf_counter() - start < 5


def test_a_message_that_drops_lines_of_an_earlier_one_stands_whole():
    rules = [f"Never touch the {word} in the kitchen of this house." for word in ("oven", "sink")]
    rules.append("Tell me before you buy anything for more than 20 EUR.")
    talk = [user("\n".join(rules), "m1"), user("\n".join([*rules[:2], "Go on."]), "m2")]
    assert "rest as" not in sections(talk)[SAID][1]
    talk[1] = user("\n".join([*rules[:2], rules[2].replace("20", "40")]), "m2")
    news = "Tell me before you buy anything for more than 40 EUR. (the rest as m1) [m2]"
    assert sections(talk)[SAID][1] == news


def test_a_file_that_a_text_only_speaks_of_is_not_named():
    command = "cat <<'EOF' > a.md\nWrite it like this: open('menu.py', 'w')\nEOF"
    talk = [user("Tell how.", "m1"), *step("bash", {"command": command}, "", "m2")]
    assert sections(talk)[OPEN] == ["files written or changed: a.md"]
