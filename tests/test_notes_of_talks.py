"""The notes on long replies, pages, searches and tables: what stands where there is room."""

import json
import time

import pytest

from conspectus import Ledger
from conspectus.ledger import choose
from conspectus.ledger.pieces import pieces
from conspectus.messages import read_messages
from conspectus.summarize import SummaryRequest
from conspectus.summarize.answers import for_model
from conspectus.summarize.compacting import pairs_within
from conspectus.summarize.condensing import condensed
from conspectus.summarize.findings import conclusions
from conspectus.summarize.notes import DONE, FOUND, OPEN, SAID, Notes, cited, items
from conspectus.summarize.open_work import index
from conspectus.summarize.prompts import ANEW, STAYS
from conspectus.summarize.steps import steps_of
from conspectus.summarize.superseding import without_undone
from conspectus.summarize.writing import Answer, write
from notes_support import agent, count, step, user
from test_notes_giving_way import room_of, sections

ANSWER = "Here is the plan:\n" + "".join(
    f"- **Day {n}**: leave hut {n} at 07:{n:02d}, cross pass {n}00 and sleep in village {n}\n"
    for n in range(20)
)


def test_a_long_reply_stands_whole_where_there_is_room():
    looks = step("bash", {"command": "cat huts.txt"}, "a hut on a hill\n" * 400, "m2")
    [line] = sections([user("Plan my walk.", "u1"), *looks, agent(ANSWER, "a1")])[FOUND]
    assert all(f"Day {n}: leave hut {n}" in line for n in range(20))


def test_a_long_reply_gives_way_before_the_users_words():
    talk = [user("Plan my walk.", "u0"), agent(ANSWER, "a0")]
    ledger, standing = Ledger(), ""
    for n in range(12):
        talk += [user(f"In hut {n} I want soup {n} and a bed by window {n}.", f"u{n + 1}")]
        entries = read_messages(talk)
        ledger = ledger.updated(entries)
        standing = write(SummaryRequest(entries, standing, ledger, 700, count), Answer())
        talk = [agent("Noted, and looked up in the list of huts, which says so too.", f"a{n + 1}")]
    said = [line for text in Notes.parse(standing).segments for line in items(text).get(SAID, ())]
    assert [n for n in range(12) if any(f"soup {n} " in line for line in said)] == [*range(12)]


PAGE = "# Huts\n" + "".join(
    f"## Hut {n}\nHut {n} has {n}0 beds and opens in week {n}, when the snow is gone from there.\n"
    for n in range(12)
)


def test_of_a_page_its_paragraphs_stand_where_there_is_room():
    talk = [user("Read it.", "u1"), *step("read_page", {"url": "huts.example/all"}, PAGE, "m2")]
    talk += step("bash", {"command": "cat huts.txt"}, "a hut on a hill\n" * 400, "m3")
    roomy, tight = ("\n".join(sections(talk, limit=limit)[DONE]) for limit in (4_000, 120))
    assert all(f"Hut {n} has {n}0 beds" in roomy for n in range(12))
    assert "Hut 1 has" not in tight


def test_pages_and_searches_give_way_before_what_the_user_was_told():
    rows = "; ".join(
        f"Hut {n} https://huts.example/{n} {'a hut on a hill ' * 12}" for n in range(6)
    )
    deeds = [f"search_web(query=huts {n}) → [title url text]: {rows} [m{n}]" for n in range(4)]
    reply = " ".join(f"On day {n} you sleep in hut {n}." for n in range(20)) + " [a1]"
    [kept] = condensed([{DONE: deeds, FOUND: [reply]}], room_of([*deeds, reply], 0.4), count)
    assert kept[FOUND] == [reply]
    assert len(kept[DONE]) == 4


def test_rows_keep_the_names_of_their_columns_when_the_first_ones_go():
    rows = [{"train": f"T{n}", "leaves": f"0{n}:00", "seats": n, "price": 10 + n} for n in range(4)]
    head, talk = "[train leaves seats price]", [user("Find a train.", "u1")]
    for place in ("Bern", "Genf"):
        talk += step("find_trains", {"to": place}, json.dumps(rows), f"m{place}")
    lines = sections(talk)[DONE]
    assert [head in lines[0], "[as mBern]" in lines[1]] == [True, True]
    lines.append(
        lines[0].replace(head, "[as mBern]").replace("10", "12").replace("[mBern]", "[m9]")
    )
    beds = "find_beds(to=Bern) → [hotel stars beds price]: H1 3 2 90; H2 4 1 120 [m8]"
    [kept] = condensed([{DONE: [*lines[:2], beds, lines[2]]}], room_of([*lines, beds], 0.95), count)
    assert [line.partition("(")[2][:7] for line in kept[DONE]] == ["to=Genf", "to=Bern", "to=Bern"]
    assert head in kept[DONE][0]
    assert "[as mGenf]" in kept[DONE][2]


def test_words_in_brackets_are_no_columns():
    call = {"command": "git commit -m '[frontend dashboard team]: fix logout'"}
    rows = [{"n": n, "title": "[frontend dashboard team]: fix logout"} for n in (1, 2)]
    talk = [user("Go.", "u1"), *step("bash", call, "ok", "m2")]
    for n in (3, 4):
        talk += step("find_issues", {"page": n}, json.dumps(rows), f"m{n}")
    text = "\n".join(sections(talk)[DONE])
    assert text.count("[frontend dashboard team]: fix logout") == 3


def test_a_reason_stands_with_what_it_points_at():
    thought = (
        "THOUGHT: Let me see what the oven says. The oven counts in Fahrenheit, and the plan in "
        "Celsius, as the drawing of the kitchen shows. This explains why the bread was black, and "
        "why nobody could eat it."
    )
    talk = [user("Bake.", "u1"), *step("bash", {"command": "./oven"}, "200", "m2", thought)]
    [(line, _)] = conclusions(read_messages(talk), 0.5)
    assert "The oven counts in Fahrenheit" in line
    assert "This explains" in line


UNDO = "$ git checkout menu.py → Updated 1 path [m9]"
EDIT = "$ sed -i 1d menu.py → ok [m{}]"


def test_an_edit_that_a_later_part_undid_is_counted_there_and_goes_when_it_gives_way():
    edits = [EDIT.format(n) for n in range(3)]
    [told] = without_undone([UNDO], before=edits)
    assert told == "$ git checkout menu.py → 3 edits above undone: Updated 1 path [m9]"
    assert without_undone([told], before=edits[:1]) == [told]
    assert without_undone([*edits, "$ make → ok [m5]"], later=[UNDO]) == ["$ make → ok [m5]"]
    talk = [
        user("Mend it.", "u1"),
        *step("bash", {"command": "git checkout menu.py"}, "Done", "m9"),
    ]
    before = write(SummaryRequest(read_messages(talk[:1]), "", Ledger(), 900, count), Answer())
    standing = before + "\n## Done\n" + "".join(f"- {line}\n" for line in edits)
    request = SummaryRequest(read_messages(talk[1:]), standing, Ledger(), 900, count)
    assert "3 edits above undone: Done" in write(request, Answer())


def test_originals_of_one_program_are_named_by_what_tells_them_apart():
    path = "src/kitchen/orders/of/the/evening/menu_of_the_day.py"
    talk = [user("Read.", "u1")]
    for n in (10, 20, 20):
        command = f"nl -ba {path} | sed -n '{n}0,{n}9p'"
        talk += step("bash", {"command": command}, "a line of it\n" * 200, f"m{len(talk)}")
    entries = read_messages(talk)
    lines = index(entries, [*steps_of(entries[:3]), *steps_of(entries[3:5])], (), 400)
    assert [line.partition("sed")[2] for line in lines] == [
        " -n '100,109p' [m1r]",
        " -n '200,209p' [m3r]",
    ]
    again = index(entries, steps_of(entries[5:]), lines, 400)
    assert [line.rpartition(" ")[2] for line in again] == ["[m1r]", "[m3r]", "[m5r]"]


@pytest.mark.parametrize(("words", "heading"), [(4, STAYS), (60, ANEW)])
def test_a_model_writes_its_findings_anew_where_old_and_new_ones_do_not_fit(words, heading):
    found = [cited(f"Dish {n} burns{' and smokes' * words}.", [f"m{n}"]) for n in range(3)]
    talk = [user("Cook.", "u0"), *step("bash", {"command": "./cook"}, "hot", "m9")]
    request = SummaryRequest(read_messages(talk[:1]), "", Ledger(), 1_000, count)
    standing = write(request, Answer(found))
    shown = for_model(
        SummaryRequest(read_messages(talk[1:]), standing, Ledger(), 1_000, count), whole=False
    )
    assert f"## {heading}\n" in shown.standing
    assert all(line in shown.standing for line in found)


def test_a_model_is_asked_for_no_more_than_can_stand_beside_the_users_words():
    def asked(text: str) -> int:
        request = SummaryRequest(read_messages([user(text, "u1")]), "", Ledger(), 2_000, count)
        return for_model(request, whole=False).limit

    assert asked("Cook.") == 1_000
    assert asked("Cook dinner for all guests of the house. " * 200) < 800


def test_a_record_that_a_change_names_outlasts_searches():
    found = "; ".join(f"T{n} 0{n % 10}:00 {n} {90 + n}" for n in range(30))
    deeds = [
        f"get_booking(id=XE4WR9) → cabin=economy legs[from to train price]: "
        f"{'; '.join(f'A{n} B{n} TR{n}0 {n}9' for n in range(12))} [m0]",
        *(
            f"find_trains(to=Bern, day={n}) → [train leaves seats price]: {found} [f{n}]"
            for n in range(6)
        ),
        "change_booking(id=XE4WR9, train=TR990) → Error: TR990 is full [m9]",
    ]
    [kept] = condensed([{DONE: deeds}], room_of(deeds, 0.35), count)
    assert deeds[0] in kept[DONE]
    assert len(kept[DONE]) == len(deeds)


def test_a_block_of_code_that_was_never_closed_hides_no_rule():
    text = (
        "Mend the menu:\n```\nsoup = 3\n``\n\n## Rules\n- Do not change the tests.\n"
        "- Never burn the soup.\n\nFor example:\n```sh\nmake soup\n```\nThen say so."
    )
    own = [text[a:b].strip() for a, b, mine in pieces(text) if mine]
    assert "Do not change the tests." in own
    assert "Never burn the soup." in own
    assert "make soup" not in own


@pytest.mark.parametrize(
    "comment", ["<!-- Describe the feature. -->", "<!--\nDescribe it.\nBe brief.\n-->"]
)
def test_comments_of_a_template_give_way_to_the_task(comment):
    task = f"{comment}\n\n" * 30 + "Warm the soup to 60 degrees. " + "It is said to be cold. " * 60
    kept = choose([task], 120, count)
    assert "Warm the soup to 60 degrees." in kept[0].text
    assert "Describe" not in kept[0].text


def test_the_task_opens_before_the_rules_of_its_harness():
    rules = "".join(f"- IMPORTANT: you MUST NOT use spoon {n} in room {n}.\n" for n in range(60))
    task = f"Warm the soup to 60 degrees, as guest 7 is ill.\n\n# Instructions\n{rules}"
    kept = choose([task, "Never wake the cat."], 200, count)
    assert "Warm the soup to 60 degrees" in kept[0].text
    assert "MUST NOT use spoon" in kept[0].text
    assert kept[-1].text == "Never wake the cat."


def test_a_file_that_is_made_empty_is_not_told_by_the_next_ones_text():
    text = "EOF\ncat <<'EOF' > soup/menu.py\nclass Dish:\n    pass\nEOF"
    command = f"cat <<'EOF' > soup/__init__.py\n{text}"
    [line] = sections([user("Go.", "u1"), *step("bash", {"command": command}, "", "m2")])[DONE]
    first, _, second = line.partition("soup/menu.py")
    assert "__init__.py (empty)" in first
    assert "class Dish" in second


def test_files_of_a_folder_that_was_given_another_name_are_named_by_that():
    talk = [user("Go.", "u1")]
    for n, command in enumerate(
        ["echo 1 > try/a.py", "touch try/b.py", "mv try done", "mv done/a.py c.py"]
    ):
        talk += step("bash", {"command": command}, "", f"m{n}")
    [line] = sections(talk)[OPEN]
    assert sorted(line.partition(": ")[2].split(", ")) == ["c.py", "done/b.py"]


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("mv src/a.py src/b.py && rm src/b.py", []),
        ("mv src/a.py src/b.py; echo y > src/a.py", ["src/a.py", "src/b.py"]),
        ("git commit -m 'mv src/a.py src/b.py done'", ["src/a.py"]),
        ("mv src/a.py old", ["old/a.py"]),
        ("mv src/a.py old/", ["old/a.py"]),
        ("mv src/a.py ..", ["src/a.py"]),
        ("cp src/a.py src/c.py old/", ["src/a.py"]),
        ("cp src/a.py c.py", ["c.py", "src/a.py"]),
        ("touch x.py y.py", ["src/a.py", "x.py", "y.py"]),
        ("pip install foo # then cp foo bar.py", ["src/a.py"]),
    ],
)
def test_moves_and_copies_are_told_as_they_were_made(command, named):
    talk = [user("Go.", "u1"), *step("bash", {"command": "echo 1 > src/a.py"}, "", "m1")]
    talk += step("bash", {"command": command}, "", "m2")
    [line, *_] = [*sections(talk).get(OPEN, []), "files: "]
    assert sorted(filter(None, line.partition(": ")[2].split(", "))) == named


@pytest.mark.parametrize(
    "result",
    ["The user declined to run this command.", "Permission denied", "bash: git: not found"],
)
def test_an_edit_stands_where_nothing_says_that_it_was_undone(result):
    talk = [user("Go.", "u1"), *step("bash", {"command": "sed -i s/a/b/ a.py"}, "", "m1")]
    talk += step("bash", {"command": "git checkout a.py"}, result, "m2")
    assert any("sed -i" in line for line in sections(talk)[DONE])


def test_edits_that_go_when_notes_give_way_are_counted_all_the_same():
    edits = [f"$ sed -i {n}d menu.py → ok [m{n}]" for n in range(9)]
    deeds = [f"book_table(guests={n}, name=Ann) → table={n}0 [b{n}]" for n in range(20)]
    standing = "# Part 1\n## Done\n" + "".join(f"- {line}\n" for line in [*edits, *deeds])
    talk = step("bash", {"command": "git checkout menu.py"}, "Updated 1 path from the index", "m20")
    text = write(SummaryRequest(read_messages(talk), standing, Ledger(), 330, count), Answer())
    assert "9 edits above undone: Updated 1 path" in text
    assert "sed -i" not in text


def test_a_reason_is_tied_to_no_other_sentence():
    thought = (
        "THOUGHT: Plate 7 is blue and stands on the upper shelf. Perhaps the oven counts in "
        "Fahrenheit, as it is an old one. This explains why the bread was black and bitter."
    )
    talk = [user("Bake.", "u1"), *step("bash", {"command": "./oven"}, "200", "m2", thought)]
    [(line, _)] = conclusions(read_messages(talk), 0.1)
    assert "Plate 7" not in line


@pytest.mark.parametrize(
    "text",
    [
        "<!--\nDescribe it.\n--> Never push to main.",
        "<!-- TODO\n\nNever push to main.\n\n<!-- other -->\nBye.",
        "<!--> Never push to main.",
        "Never push to main. <!-- or do -->",
    ],
)
def test_a_comment_hides_no_sentence_beside_it(text):
    own = " ".join(text[a:b] for a, b, mine in pieces(text) if mine)
    assert "Never push to main." in own


@pytest.mark.parametrize(
    "body", ["END users see this\nhello", "python = 3\nhello", "{}", "  EOF\nhello"]
)
def test_a_text_that_begins_like_its_end_is_no_empty_one(body):
    command = f"cat > a.txt <<'END'\n{body}\nEND"
    [line] = sections([user("Go.", "u1"), *step("bash", {"command": command}, "", "m2")])[DONE]
    assert "(empty)" not in line


@pytest.mark.parametrize(
    "hostile",
    ["# a\n" + "." * 60_000, "# a\n" + "[](" * 30_000, "# a\n" + "\n".join([" . " * 300] * 100)],
)
def test_a_hostile_page_takes_no_longer_than_its_length(hostile):
    start = time.process_time()
    sections([user("Go.", "u1"), *step("read_page", {"url": "a.example"}, hostile, "m2")])
    assert time.process_time() - start < 5  # a guard against squares and worse, not a measurement


PAGE_OF_CODE = "<!DOCTYPE html>\n" + "".join(
    f"<!-- part {n} -->\n<section id='hut{n}'>\n<p class='beds'>{n}0 beds</p>\n</section>\n"
    for n in range(30)
)


def test_a_page_that_was_written_is_told_by_its_parts():
    def told(limit: int) -> str:
        talk = [
            user("Go.", "u1"),
            *step("write_file", {"path": "a.html", "content": PAGE_OF_CODE}, "OK", "m2"),
        ]
        talk += step("bash", {"command": "cat huts.txt"}, "a hut on a hill\n" * 400, "m3")
        return sections(talk, limit=limit)[DONE][0]

    assert "<section id='hut8'> ⏎ <p class='beds'>80 beds</p>" in told(4_000)
    assert "<!-- part 2 -->; <section id='hut2'>; <!-- part 3 -->" in told(300)


def test_a_deed_says_all_that_it_was_given():
    args = {
        "guest": "ann_li_3668",
        "from": "Bern",
        "to": "Genf",
        "class": "second",
        "trains": [
            {"train": "TR136", "day": "2024-05-20"},
            {"train": "TR039", "day": "2024-05-20"},
        ],
        "payments": [{"id": "voucher_485", "amount": 250}, {"id": "card_4421", "amount": 55}],
        "bags": 3,
    }
    [line] = sections([user("Go.", "u1"), *step("book_trip", args, "ok", "m2")])[DONE]
    for value in ("TR136", "TR039", "voucher_485 250", "card_4421 55", "bags=3"):
        assert value in line


def test_a_record_that_was_made_is_not_told_by_that_of_its_owner():
    owner = {"id": "ann_li_3668", "city": "Bern", "level": "gold"}
    made = {"booking_id": "HUTHUT", "city": "Bern", "level": "gold", "made": "2024-05-15"}
    entries = read_messages(
        [user("Go.", "u1"), *step("get_user", {"id": "ann_li_3668"}, json.dumps(owner), "m2")]
    )
    standing = write(SummaryRequest(entries, "", Ledger(), 900, count), Answer())
    entries = read_messages(step("book", {"user": "ann_li_3668"}, json.dumps(made), "m4"))
    text = write(SummaryRequest(entries, standing, Ledger(), 900, count), Answer())
    assert "booking_id=HUTHUT city=Bern level=gold" in text


def test_the_id_of_a_record_outlasts_its_other_fields():
    pairs = ["legs: A1 B1 TR11; A2 B2 TR12; A3 B3 TR13;", "made=2024-05-15", "booking_id=HUTHUT"]
    assert pairs_within(pairs, 40) == "booking_id=HUTHUT +2 more"


def test_a_file_that_is_written_anew_is_told_by_its_newest_text():
    body = "soup = {n}\n" + "\n".join(f"dish_{k} = {k}" for k in range(30))
    talk = [user("Go.", "u1")]
    for n in (1, 2):
        command = f"cat > menu.py <<'EOF'\n{body.replace('{n}', str(n))}\nEOF"
        talk += step("bash", {"command": command}, "", f"m{n}")
    talk += step("bash", {"command": "cat huts.txt"}, "a hut on a hill\n" * 400, "m3")
    old, new, _ = sections(talk)[DONE]
    assert "dish_29" in new
    assert "dish_29" not in old


def test_names_in_code_and_the_number_of_lines_are_told_as_they_are():
    text = "print(self.__class__.__name__)\n====\n\n" + "made a hut of stone\n\n" * 30 + "29 passed"
    talk = [user("Go.", "u1"), *step("bash", {"command": "./build"}, text, "m2")]
    [line] = sections(talk, limit=200)[DONE]
    assert "(64 lines)" in line
    [line] = sections(talk, limit=4_000)[DONE]
    assert "self.__class__.__name__" in line
    assert "====" not in line


def test_a_thought_that_is_thought_again_gives_way_first():
    again = [
        f"thought: The oven counts in Fahrenheit, said page {n} of its manual. [m{n}]"
        for n in range(6)
    ]
    other = [
        f"thought: Dish {n} needs {'very ' * n} long, since its pot {n} is thick. [d{n}]"
        for n in range(6)
    ]
    [kept] = condensed([{FOUND: [*again, *other]}], room_of([*again, *other], 0.7), count)
    stand = [line for line in kept[FOUND] if line in again]
    assert 0 < len(stand) < 4
    assert stand == again[-len(stand) :]
    assert kept[FOUND][len(stand) :] == other


@pytest.mark.parametrize(
    ("edit", "undo"),
    [
        ("edit_file(path=b.py, old=import a.py, new=import z.py)", "a.py"),
        ("edit_file(path=b.py, instructions=like a.py)", "a.py"),
        ("edit_file(b.py, def main ():)", "main"),
        ("edit_file(path=a.py, old=x, new=y)", "sub && a.py"),
    ],
)
def test_an_edit_of_a_file_that_only_names_another_is_not_undone(edit, undo):
    folder, _, path = undo.rpartition(" && ")
    line = f"$ {f'cd {folder} && ' * bool(folder)}git checkout {path} → Updated 1 path [m9]"
    assert without_undone([f"{edit} → ok [m1]", line]) == [f"{edit} → ok [m1]", line]


def test_a_field_that_is_gone_is_not_among_the_rest():
    before = {"id": "A-1700", "status": "open", "hold": "yes", "owner": "Ann"}
    now = {"id": "A-1700", "status": "open", "owner": "Ann", "paid": "no"}
    standing = ""
    for n, record in enumerate((before, now)):
        entries = read_messages(step("get_order", {"id": "A-1700"}, json.dumps(record), f"m{n}"))
        standing = write(SummaryRequest(entries, standing, Ledger(), 900, count), Answer())
    assert "status=open owner=Ann paid=no" in standing


def test_rows_point_at_a_line_with_one_table_alone():
    trains = [{"train": f"T{n}", "leaves": f"{n}:0", "seats": n, "price": 9 + n} for n in range(3)]
    beds = [{"hotel": f"H{n}", "stars": n, "rooms": n, "night_rate": 80 + n} for n in range(3)]
    talk = [user("Go.", "u1"), *step("find_trains", {"n": 0}, json.dumps(trains), "m0")]
    talk += step("find_both", {"n": 1}, json.dumps({"trains": trains, "beds": beds}), "m1")
    talk += step("find_beds", {"n": 2}, json.dumps(beds), "m2")
    lines = sections(talk, limit=4_000)[DONE]
    assert "trains[as m0]" in lines[1]
    assert "[as m1]" not in lines[2]
    assert "[hotel stars rooms night_rate]" in lines[2]


def test_a_file_that_was_changed_before_another_command_failed_is_named():
    command = "sed -i s/a/b/ menu.py\npytest tests"
    failed = "<returncode>1</returncode>\n2 failed in 0.3s"
    talk = [user("Go.", "u1"), *step("bash", {"command": command}, failed, "m1")]
    assert sections(talk)[OPEN] == ["files written or changed: menu.py"]
    missing = "<returncode>1</returncode>\nsed: can't read menu.py: No such file"
    talk = [user("Go.", "u1"), *step("bash", {"command": command}, missing, "m1")]
    assert OPEN not in sections(talk)


@pytest.mark.parametrize("share", [0.9, 0.8, 0.7, 0.6, 0.5])
def test_what_all_rows_share_is_not_parted_from_them(share):
    line = (
        "get_trip(id=XE4WR9) → from=LAS to=EWR kind=one_way cabin=economy legs[from to train "
        "price] (all day=2024-05-09): LAS MIA HAT115 153; MIA EWR HAT192 193; guests[first last "
        "born]: Ann Li 1984-03-05; Juan Roe 1972-06-04; paid=card_5799376 752 "
        "made=2024-05-08T14:58:17 bags=0 insurance=yes [m1]"
    )
    [kept] = condensed([{DONE: [line]}], room_of([line], share), count)
    assert "day=2024-05-09):" not in kept[DONE][0].replace("(all day=2024-05-09):", "")
