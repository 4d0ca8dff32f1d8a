"""Promise 13: a call stands in the notes with its result; what failed is never reported as done."""

import json
import re
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from compactor_support import compacted, new_compactor
from conspectus import Compactor
from conspectus.archive import Archive, Scope
from conspectus.messages import read_messages
from conspectus.notes.cutting import cut
from conspectus.notes.data import Notes
from conspectus.notes.extraction import extract_notes
from conspectus.notes.line_text import write_line
from conspectus.notes.outcomes import outcome_of
from conspectus.notes.rendering import NotesRenderer
from conspectus.notes.tally import tally_of
from conspectus.recall.for_agents import HOW_TO_RECALL
from histories import assistant, call_and_result, talk, user
from notes_read import COUNTED, DONE, GAP, left_out, under
from stateful.agent_world import AgentWorld
from stateful.budgets import budgeted
from stateful.compactor_world import CompactorWorld
from stateful.looks import Look
from stateful.messages import answering, calling, speaking
from stateful.oracle import text_of
from stateful.speaker import Speaker

Message = dict[str, Any]
PRINTED = "a line\n" * 90


def lines_of(history: list[Message], **settings: Any) -> list[str]:
    """The lines on what was done, as a compaction leaves them, with much that gives way."""
    compactor = new_compactor(window=40_000, keep=("messages", 1), **settings)
    conversation = [user("Go."), assistant("I go. " * 4_000), *history, user("And now?")]
    result = compacted(conversation, compactor, force=True)
    assert result.outcome == "compacted", result.reason
    return under(DONE, result.summary)


def done_lines(history: list[Message]) -> list[str]:
    """The lines of the history alone."""
    return under(DONE, notes_of(*history, room=10**6))


DEEDS = [
    ("book_flight", {"id": "TP9"}, '{"booking": "QX71", "status": "ok"}', "booking=QX71"),
    ("send_mail", {"to": "ann@example.org"}, "sent", "sent"),
    ("bash", {"command": "git commit -m 'Round late'"}, "[main 41ac9] Round late", "41ac9"),
    ("bash", {"command": "rm -r build"}, "<returncode>0</returncode>\n<output></output>", "0"),
    ("write_file", {"path": "/app/late.py", "content": "def late():\n    pass\n"}, "OK", "OK"),
    ("cancel_order", {"order": "W-88"}, '{"refund": 41.50, "state": "cancelled"}', "refund=41.50"),
]


def test_what_was_done_stands_in_order_with_what_came_of_it():
    history = [
        m
        for n, (tool, args, result, _) in enumerate(DEEDS)
        for m in call_and_result(tool, args, result, f"{n}")
    ]
    lines = lines_of(history)
    assert len(lines) == len(DEEDS)
    for line, (tool, args, _, words_of_result) in zip(lines, DEEDS, strict=True):
        call, arrow, outcome = line.partition(" → ")
        assert arrow
        assert call.startswith(f"{tool}(")
        assert words_of_result in outcome
        assert not outcome.startswith("failed")
        assert str(next(iter(args.values())))[:12] in call


def test_a_call_that_was_never_answered_takes_no_later_result():
    unanswered_call, _ = call_and_result("bash", {"command": "make release"}, "", "call_0")
    later = call_and_result("bash", {"command": "make test"}, "3 failed", "call_0")
    lines = done_lines([unanswered_call, user("Stop that. Run the tests."), *later])
    assert [line for line in lines if "make test" in line and "3 failed" in line]
    assert not [line for line in lines if "make release" in line and "3 failed" in line]


RESULTS = [
    ('{"booking": "QX71", "status": "ok"}', "status=ok; booking=QX71", False),
    (
        '[{"n": 1, "kind": "twin"}, {"n": 2, "kind": "king"}]',
        "(n | kind): 1 | twin; 2 | king",
        False,
    ),
    ("<returncode>1</returncode>\n<output>\nno such file\n</output>", "no such file", True),
    ("Exit code 2", "Exit code 2", True),
    ("all is well", "all is well", False),
]
"""Results as tools write them, what the notes show of each, and whether the call has failed."""


@pytest.mark.parametrize(("result", "words", "failed"), RESULTS)
def test_a_result_is_shown_by_its_form(result, words, failed):
    outcome = outcome_of(result)
    assert words in outcome.text
    assert outcome.failed is failed


FAILURES = [
    '{"error": "card declined", "code": 402}',
    '{"success": false, "reason": "sold out"}',
    '{"reason": "no seat", "status": "failed"}',
]


def test_a_result_of_any_depth_has_an_outcome():
    """What can just be read as JSON may be too deep to be taken apart."""
    for depth in range(900, 1_000):
        assert outcome_of('{"a":' * depth + "1" + "}" * depth).text
        assert outcome_of("[" * depth + "]" * depth).text


@pytest.mark.parametrize("result", FAILURES)
def test_a_result_whose_fields_say_failed_is_told_as_failed(result):
    [line] = done_lines(call_and_result("book_flight", {"id": "TP9"}, result, "1"))
    assert " → failed: " in line


def test_a_result_marked_as_error_is_told_as_failed():
    call = {"type": "tool_use", "id": "t1", "name": "book_flight", "input": {"id": "TP9"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "QX71", "is_error": True}
    history = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    [line] = lines_of(history)
    assert line.startswith("book_flight(TP9) → failed: QX71 [")


def test_each_result_is_told_with_its_own_call():
    calls = [
        {"type": "tool_use", "id": f"t{n}", "name": "book", "input": {"seat": f"S{n}"}}
        for n in range(3)
    ]
    result_texts = ["booked as A", "Error: sold out", "booked as C"]
    results = [
        {"type": "tool_result", "tool_use_id": f"t{n}", "content": text}
        for n, text in enumerate(result_texts)
    ]
    history = [{"role": "assistant", "content": calls}, {"role": "user", "content": results[::-1]}]
    lines = lines_of(history)
    outcomes = [result_texts[0], f"failed: {result_texts[1]}", result_texts[2]]
    assert [line.partition(" [")[0] for line in lines] == [
        f"book(S{n}) → {text}" for n, text in enumerate(outcomes)
    ]


def test_a_call_without_an_answer_is_not_told_as_done():
    unanswered_call, _ = call_and_result("wire_money", {"eur": 900}, "", "c1")
    compactor = new_compactor(window=20_000, keep=("messages", 1))
    result = compacted(
        [user("Go."), unanswered_call, user("Well?"), *talk(4)], compactor, force=True
    )
    lines = [line for line in under(DONE, result.summary) if "wire_money" in line]
    assert all("(no result)" in line for line in lines)
    [line] = done_lines([unanswered_call])
    assert line.startswith("wire_money(900) → (no result)")


def test_an_empty_result_says_so():
    [line] = done_lines(call_and_result("press", {"key": "go"}, "", "1"))
    assert line.startswith("press(go) → (empty) [")


def forty_looks_and_mails() -> list[Message]:
    history: list[Message] = []
    for n in range(40):
        look = "\n".join(f"line {n}-{k} of a file" for k in range(30))
        history += call_and_result("read_file", {"path": f"/app/part_{n}.py"}, look, f"l{n}")
        answer = f"sent as S{n:03}" if n % 5 else json.dumps({"error": f"S{n:03} is refused"})
        history += call_and_result("send_mail", {"to": f"person-{n}@example.org"}, answer, f"s{n}")
    return history


def test_calls_that_only_read_give_way_first_and_are_counted():
    history = forty_looks_and_mails()
    compactor = new_compactor(window=4_000, keep=("messages", 1))
    view: list[Message] = []
    for n in range(0, len(history), 16):
        result = compacted(
            [*view, *history[n : n + 16], user(f"Go on {n}.")], compactor, force=True
        )
        view = [*result.messages, assistant("Yes.")]
        evicted = history[: n + 16]
        lines = under(DONE, result.summary)
        shown_lines = [line for line in lines if not COUNTED.match(line)]
        counted = [line for line in lines if COUNTED.match(line)]
        calls_counted = sum(int(match[1]) for line in counted if (match := COUNTED.match(line)))
        assert len(shown_lines) + calls_counted == len(evicted) // 2, (
            "each call stands or is counted"
        )
        for tool in ("read_file", "send_mail"):
            number = sum(line.startswith(f"{tool}(") for line in shown_lines)
            number += sum(map(int, re.findall(rf"\b{tool} (\d+)", "\n".join(counted))))
            assert number == len(evicted) // 4
        failed = sum(" → failed: " in line for line in shown_lines)
        failed += sum(map(int, re.findall(r"; (\d+) of them failed", "\n".join(counted))))
        assert failed == sum('"error"' in m["content"] for m in evicted), "failures are counted too"
        for line in shown_lines:
            if match := re.match(r"send_mail\(person-(\d+)@example\.org\) → (failed: )?", line):
                assert f"S{int(match[1]):03}" in line
                assert bool(match[2]) == (int(match[1]) % 5 == 0)
    sent = [int(match[1]) for line in shown_lines if (match := re.search(r"person-(\d+)@", line))]
    looked = [
        int(match[1]) for line in shown_lines if (match := re.search(r"part_(\d+)\.py", line))
    ]
    assert sent == sorted(sent)
    assert looked == sorted(looked)
    assert counted, "not all of them fit"
    assert len(sent) >= len(looked)


def test_changes_outlast_looks_and_are_named_where_they_are_counted():
    looks = [
        m
        for n in range(60)
        for m in call_and_result("bash", {"command": f"cat {n}"}, "a line\n" * 30, f"{n}")
    ]
    change = call_and_result("bash", {"command": "sed -i s/1/2/ late.py"}, "", "c1")
    changes = [
        m
        for n in range(13)
        for m in call_and_result("write_file", {"path": f"{n}.py"}, "done " * 9, f"w{n}")
    ]
    deep = [
        m
        for n in "12"
        for m in call_and_result("edit", {"path": "src/" * 20 + n}, "done " * 9, f"d{n}")
    ]
    assert "sed -i s/1/2/ late.py" in notes_of(*change, *looks, room=700)
    [counted, *_] = under(DONE, notes_of(*changes, *looks, room=400))
    assert "bash 60, write_file 13; among them write_file 1.py, write_file 2.py, " in counted
    [counted, *_] = under(DONE, notes_of(*deep, *looks, room=260))
    assert re.search(r"among them edit …\S+/1, edit …\S+/2;", counted)


def test_looks_and_long_results_are_counted_before_other_calls():
    calls: list[Message] = []
    for n in range(60):
        name, size = (("read_file", 60), ("some_tool", 60), ("long_tool", 130))[n % 3]
        calls += call_and_result(name, {"path": f"{n // 3:02}"}, "word " * size, f"{name}{n // 3}")
    calls += call_and_result("some_tool", {"path": "last"}, "word " * 60, "last")
    [counted, *_] = under(DONE, notes_of(*calls, room=3_000))
    assert re.search("read_file 20, long_tool 20, some_tool [0-9];", counted)


def test_of_a_long_edit_what_it_changed_is_shown():
    old, new = (f"{'before ' * 90}{word}{' after' * 90}" for word in ("left", "right"))
    edit = call_and_result(
        "edit", {"path": "a.py", "old_string": old, "new_string": new}, "done", "e"
    )
    assert re.search(r"before before left…, new_string=…right…", notes_of(*edit, room=250))


def test_the_range_of_counted_lines_runs_forward():
    """Looks are counted for good before an older edit is: the range begins with the edit."""
    whole = [
        *call_and_result("edit_file", {"path": "a.py"}, "ok", "m1"),
        *call_and_result("ls", {}, "b.py", "m2"),
    ]
    edit, look = extract_notes(read_messages(whole)).lines
    assert "recall range m1 to m2r" in write_line(tally_of([tally_of([look]), edit]))


def test_a_cut_call_keeps_the_name_of_its_object():
    history: list[Message] = []
    for n in range(30):
        args = {"new": f"value = {n}\n" * 60, "file": "line\n" * 60, "old": "value\n" * 60}
        args["path"] = f"/app/part_{n}.py"  # before the file, which names a thing for other tools
        history += call_and_result("edit_file", args, f"edited at line {n}", f"e{n}")
    compactor = new_compactor(window=12_000, keep=("messages", 1))
    result = compacted([user("Go."), *history, user("And?")], compactor, force=True)
    lines = [line for line in under(DONE, result.summary) if not COUNTED.match(line)]
    assert lines
    assert any(GAP in line for line in lines)
    for line in lines:
        match = re.match(r"edit_file\(path=/app/part_(\d+)\.py, file=", line)
        assert match, line
        assert f"→ edited at line {match[1]} [" in line


@pytest.mark.parametrize(
    ("result", "stands"),
    [
        (f"plan for s: 2\n{PRINTED}DRY RUN: nothing was applied", "nothing was applied"),
        (f"Transfer of 90 EUR\n{PRINTED}Status: pending approval", "pending approval"),
        (f"Ran 9 cases in 0.1s\n{PRINTED}OK", "OK"),
        (
            json.dumps({"text": "word " * 300, "id": "B1", "status": "waitlisted"}, indent=2),
            "status=waitlisted",
        ),
        (json.dumps({"log": "word " * 300, "exit_code": 3}), "→ failed: exit_code=3"),
        (f"step 4 of 8\n{PRINTED}progress: 50%", "50%"),
        (json.dumps({"code": 0, "stdout": f"{PRINTED}score=0.95"}), "score=0.95"),
    ],
)
def test_how_a_call_ended_stands_where_its_outcome_is_cut(result, stands):
    history = [
        m for n in range(12) for m in call_and_result("apply_change", {"n": n}, result, f"e{n}")
    ]
    lines = under(DONE, notes_of(*history, room=3_000))
    cut = [line for line in lines if not COUNTED.match(line)]
    assert cut
    for line in cut:
        assert GAP in line
        assert stands in line


def notes_of(*messages: Message, room: int = 10_000) -> str:
    """The notes on messages alone."""
    return NotesRenderer([extract_notes(read_messages(list(messages)))]).render(room, len)


def test_a_refused_to_do_list_is_not_the_one_in_force():
    first = {"todos": [{"content": "ship", "status": "pending"}]}
    second = {"todos": [{"content": "ship", "status": "completed"}]}
    refused = call_and_result("write_todos", second, "refused", "a2")
    refused[1]["status"] = "error"
    notes = notes_of(
        *call_and_result("write_todos", first, "ok", "a1"),
        *refused,
        *call_and_result("write_todos", {}, "?", "a3"),
    )
    assert "## Open\n- ship | pending" in notes
    assert "→ failed: refused" in notes
    two_items = [{"id": "1", "content": "ship"}, {"id": "2", "content": "test"}]
    merged = {"merge": True, "todos": [{"id": "1", "content": "shipped"}]}
    notes = notes_of(
        *call_and_result("todo_write", {"todos": two_items}, "ok", "a1"),
        *call_and_result("todo_write", merged, "ok", "a2"),
    )
    assert "## Open\n- 2 | test\n- 1 | shipped" in notes


def test_an_answer_to_a_tools_question_is_the_users():
    notes = notes_of(
        *call_and_result("AskUserQuestion", {"question": "Which?"}, "The blue one,\nplease.", "a1")
    )
    assert "- The user, to AskUserQuestion: The blue one,\n  please. [" in notes
    notes_on_exit_code = notes_of(
        *call_and_result("ask_user", {}, "I got:\nCommand exited with code 1\nMend it.", "a1")
    )
    assert "Mend it. [" in notes_on_exit_code
    assert "failed" not in notes_on_exit_code


def test_two_calls_under_one_id_keep_their_own_results():
    first = call_and_result("pay", {"to": "x"}, "paid x", "a1")
    second = call_and_result("pay", {"to": "y"}, "declared y", "a2")
    for message in second:
        message.update({"tool_call_id": "c-a1"} if message["role"] == "tool" else {})
    second[0]["tool_calls"][0]["id"] = "c-a1"
    notes = notes_of(first[0], second[0], first[1], second[1])
    assert "pay(x) → paid x" in notes
    assert "pay(y) → declared y" in notes


def test_a_long_session_counts_what_it_left_out():
    with Archive.open("memory:") as archive:
        compactor = Compactor(window=3_000, archive=archive, alternate_roles="off")
        view: list[Any] = []
        for turn in range(200):
            question = f"What does part {turn} of the project do, and who calls it?"
            answer = f"Part {turn} adds up the rows of table {turn % 37} and prints them. " * 3
            view += [
                {"role": "user", "content": question},
                {"role": "assistant", "content": answer},
            ]
            result = compactor.compact(view, thread_id="t")
            view = list(result.messages)
        shown = result.summary.count("- The user: What does part ")
        in_view = sum(message["role"] == "user" for message in view[1:])
        assert left_out(result.summary) + shown + in_view == 200
        chain = archive.chain(Scope("local", "t", "main"))
    notes = Notes.from_json(chain[-1].notes)
    assert len(notes.lines) < 300, "of four hundred lines those that are shown, and those since"
    newer = [{**line.plain, "texts": "of a newer version"} for line in notes.lines]
    assert Notes.from_json({**chain[-1].notes, "lines": newer}) == notes


@pytest.mark.parametrize(
    "answer",
    [
        "Exit code: 2\nKeyError: 'vat'",
        "Wall time: 1 seconds\nProcess exited with code 2\nOutput:\nKeyError: 'vat'",
        "KeyError: 'vat'\n[Command failed with exit code 2]",
        '{"exit_code": 2, "output": "KeyError: vat"}',
        '{"output": "KeyError: vat", "metadata": {"exit_code": 2}}',
    ],
)
def test_a_failed_program_outlasts_successful_ones(answer):
    messages = [user("Make it pass.", id="u0")]
    for n in range(40):
        output = answer if n == 5 else "Exit code: 0 (ok)\n" + "all of it is well\n" * 9
        messages += call_and_result(
            "bash", {"command": f"pytest tests/test_{n}.py"}, output, f"s{n}"
        )
    notes = notes_of(*messages, room=1_200)
    assert "bash(pytest tests/test_5.py) → failed: " in notes
    assert "pytest tests/test_6.py" not in notes


def test_a_refusal_stands_under_what_it_refused():
    notes = notes_of(
        user("Delete the old branch.", id="u1"),
        *call_and_result("ask_git", {"branch": "old"}, "It has two commits of its own.", "a1"),
        assistant("It has commits that are nowhere else. Delete it?", id="a2"),
        user("No, leave it.", id="u2"),
    )
    asked, refused = (notes.index(text) for text in ("Delete it?", "No, leave it."))
    assert notes.index("Delete the old branch.") < notes.index("ask_git(old)") < asked < refused


def test_calls_that_are_left_out_stand_where_the_first_of_them_was_made():
    looks = [
        m
        for n in range(40)
        for m in call_and_result("read_file", {"path": f"{n}"}, "x " * 90, f"{n}")
    ]
    messages = [user("First.", id="u1"), *looks, user("Second.", id="u2")]
    lines = notes_of(*messages, room=300).splitlines()
    assert [line for line in lines if "read_file(" not in line] == [
        "## In order",
        "- The user: First. [u1]",
        lines[2],
        "- The user: Second. [u2]",
    ]
    assert COUNTED.search(lines[2])


@pytest.mark.parametrize(
    ("command", "effect"),
    [
        ("grep -rn total src | head -5", False),
        ("cd /app && git diff", False),
        ("sed -n 1,40p a.py 2>/dev/null", False),
        ("cat <<'EOF' > a.py\nrm = 1\nEOF", True),
        ("sed -i 's/1/2/' a.py", True),
        ("git add -A && git commit -m 'as it is'", True),
        ("echo 'a > b'", False),
        ("make test", None),
    ],
)
def test_a_command_of_a_shell_changes_something_by_its_programs(command, effect):
    messages = call_and_result("bash", {"command": command}, "done", "c")
    [line] = extract_notes(read_messages(messages)).lines
    assert line.effect is effect


def test_of_a_table_that_is_cut_the_rows_stand_before_the_names_of_the_columns():
    rows = [{"number": f"HAT{n}", "departure": "10:00", "seats": n} for n in range(40)]
    notes = notes_of(*call_and_result("search_flight", {"day": 1}, json.dumps(rows), "f"), room=200)
    assert "→ HAT0 | 10:00 | 0; HAT1 | 10:00 | 1; " in notes


def test_of_a_record_that_is_cut_what_the_call_named_and_what_is_empty_come_last():
    record = {"user": "mia_7", "middle_name": None, "born": "1957-10-05", "notes": "a word " * 90}
    call = call_and_result("get_user", {"user": "mia_7"}, json.dumps(record), "g")
    assert "get_user(mia_7) → born=1957-10-05; " in notes_of(*call, room=200)


def test_of_a_call_like_the_last_one_what_differs_stands():
    calls = [
        m
        for n, what in enumerate(("summary", "tree"))
        for m in call_and_result(
            "bash",
            {"command": f"python tools/api_of_the_shop.py --owner acme {what}"},
            "x " * 200,
            f"{n}",
        )
    ]
    assert "bash(…tree)" in notes_of(*calls, room=360)


PARCEL = re.compile(r"parcel-(\d+)-(well|badly)")


class CallsAreReported:
    """Each call that left has its line, in order, with its own result, or is counted."""

    settings_of: ClassVar = {"max_summary_tokens": 1_200, "window": 9_000}

    @rule(well=st.lists(st.booleans(), min_size=1, max_size=3), at_once=st.booleans())
    def the_agent_sends_parcels(self: Speaker, well: list[bool], at_once: bool) -> None:
        """Calls that go well or badly, each by a number of its own; side by side or in turn."""
        parcels = []
        for goes_well in well:
            self.planted += 1
            parcels.append(f"parcel-{self.planted}-{'well' if goes_well else 'badly'}")
        for group in [parcels] if at_once else [[parcel] for parcel in parcels]:
            calls = [(f"do-{parcel}", parcel) for parcel in group]
            self.say(calling(self.form, "", calls, self.name(), tool="send_parcel"))
            for call, parcel in calls:
                refusal = json.dumps({"error": f"refused by the clerk, {parcel}"})
                result = f"sent {parcel}" if parcel.endswith("well") else refusal
                self.say(answering(self.form, call, result, self.name()))
        self.say(speaking(self.form, "assistant", "done", name=self.name()))

    def judge(self, look: Look) -> None:
        if not look.evicted:
            return
        did = {
            int(n): outcome_word
            for message in look.whole
            for n, outcome_word in PARCEL.findall(text_of(message))
        }
        evicted = {int(n) for message in look.evicted for n, _ in PARCEL.findall(text_of(message))}
        lines = under(DONE, look.summary)
        reported: list[int] = []
        counts = "\n".join(line for line in lines if COUNTED.match(line))
        dropped = sum(map(int, re.findall(r"\b(?:send_parcel|others) (\d+)", counts)))
        for line in lines:
            call, arrow, outcome = line.partition(" → ")
            for n, outcome_word in dict.fromkeys(PARCEL.findall(call)):
                assert arrow, line
                assert int(n) in did, f"parcel {n} was not sent"
                assert outcome_word == did[int(n)]
                failed = outcome.startswith("failed: ")
                assert failed == (outcome_word == "badly"), f"reported otherwise: {line}"
                reported.append(int(n))
        assert reported == sorted(reported), "calls stand in another order"
        missing = len(evicted - set(reported))
        assert missing <= dropped, f"{missing} calls are gone and {dropped} are said to be"


TestCallsAreReportedThroughCompactor = budgeted(CallsAreReported, CompactorWorld, short=6, long=600)


TestCallsAreReportedThroughAgents = budgeted(CallsAreReported, AgentWorld, short=2, long=100)


@pytest.mark.parametrize(
    "refusal",
    [
        "bash: ./deploy: Permission denied",
        "The user doesn't want to proceed with this tool use.",
        "Command was not executed: it needs an approval.",
        "Rejected by the reviewer.",
        "Tool call cancelled by the user",
        "HTTP 403 Forbidden",
        "404 Client Error: Not Found for url: https://example.org/orders/9",
        '{"status": 409, "message": "the seat is taken"}',
        '{"status": "denied", "ticket": "W-88"}',
        '{"approved": false}',
        "Zugriff verweigert",
        "没有权限执行此操作",
    ],
)
def test_a_refused_call_is_told_as_failed(refusal):
    [line] = done_lines(call_and_result("deploy", {"to": "live"}, refusal, "1"))
    assert line.startswith("deploy(live) → failed: ")


@pytest.mark.parametrize(
    ("tool", "result"),
    [
        ("read_file", "Permission denied"),
        ("grep", "log.txt:3: access denied"),
        ("cancel_order", '{"order": "W-88", "status": "cancelled"}'),
        ("write_file", "Wrote policy.md. " + "Not all requests are allowed. " * 30),
        ("count", "404 rows"),
    ],
)
def test_what_only_speaks_of_a_refusal_is_not_told_as_failed(tool, result):
    [line] = done_lines(call_and_result(tool, {"path": "W-88"}, result, "1"))
    assert " → failed: " not in line


def test_calls_that_are_counted_name_what_they_changed_and_found():
    history = [
        *call_and_result("bash", {"command": "cd /app && cat <<'E' > a.py\nx\nE"}, "", "b1"),
        *call_and_result("bash", {"command": "rm -r build && ls"}, "no such file", "b2"),
        *call_and_result("get_order", {"id": "W-88"}, '{"state": "paid", "total": 41.50}', "g"),
        *call_and_result("send_mail", {"to": "ann"}, '{"error": "no such address"}', "s"),
    ]
    unanswered, _ = call_and_result("wire_money", {"eur": 900}, "", "w")
    lines = extract_notes(read_messages([*history, unanswered])).lines
    counted = write_line(tally_of(lines))
    assert "bash > a.py, bash rm -r build, send_mail ann → failed: " in counted
    assert "found: get_order W-88 → state=paid; total=41.50;" in counted


def test_a_call_without_a_result_is_not_counted_as_done():
    unanswered, _ = call_and_result("write_file", {"path": "a.py"}, "", "w")
    lines = extract_notes(read_messages([unanswered])).lines
    assert "among them write_file a.py → no result;" in write_line(tally_of(lines))


def test_names_and_short_commands_outlast_long_outputs():
    history: list[Message] = []
    for n in range(30):
        args = {
            "path": f"/srv/app/releases/2031-05-01/part_{n}/settings.py",
            "command": f"make t{n}",
        }
        history += call_and_result("run", args, f"{PRINTED}{n} passed", f"r{n}")
    lines = [line for line in under(DONE, notes_of(*history, room=5_000)) if "more" not in line]
    assert any(GAP in line for line in lines)
    for line in lines:
        assert re.search(
            r"path=/srv/app/releases/2031-05-01/part_\d+/settings.py, command=make", line
        )


def test_an_id_is_not_cut_in_the_middle():
    text = "I cancelled the booking, and its number is NM1VX1-2024-05-15, " + "as you said. " * 9
    for room in range(30, len(text)):
        names = re.findall(r"NM1VX1\S*|\S*05-15", cut(text, room))
        assert set(names) <= {"NM1VX1-2024-05-15,"}, room


def test_a_message_that_stayed_in_view_stands_in_its_place_later():
    compactor = new_compactor(window=20_000, keep=("messages", 2))
    first = [user("Build it."), *forty_looks_and_mails()[:20]]
    view = compacted(first, compactor, force=True).messages
    result = compacted(
        [*view, user("Paint it."), *forty_looks_and_mails()[20:40]], compactor, force=True
    )
    assert "- The user: Build it. [" in result.summary.splitlines()[1]
    assert "is below, although it came before" in result.summary


def test_the_notes_say_how_to_recall_where_that_is_possible():
    def summary(archive: str | None) -> str:
        compactor = Compactor(window=4_000, keep=("messages", 1), archive=archive)
        return compacted([*talk(30), user("And now?")], compactor, force=True).summary

    assert HOW_TO_RECALL in summary("memory:")
    assert HOW_TO_RECALL not in summary(None)
