"""Promise 13: a deed stands in the notes with its outcome; what failed is never told as done."""

import json
import re
from typing import Any

import pytest

from conspectus import ChatModelSummarizer, Compactor
from conspectus.messages import read_messages
from conspectus.summarize import journal
from conspectus.summarize.condensing import condensed
from conspectus.summarize.notes import DONE, FOUND, Notes, items
from conspectus.summarize.steps import steps_of
from conspectus_lab.testing.scripted_models import ScriptedChatModel
from engine import compacted, engine
from histories import assistant, talk, user

Message = dict[str, Any]


def deed(tool: str, args: dict[str, Any], result: str, name: str) -> list[Message]:
    function = {"name": tool, "arguments": json.dumps(args)}
    call = {"id": f"c-{name}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c-{name}", "content": result},
    ]


def done_in(summary: str) -> list[str]:
    return [line for text in Notes.parse(summary).segments for line in items(text).get(DONE, ())]


def lines_of(history: list[Message], window: int = 20_000, **more: Any) -> list[str]:
    compactor = engine(window=window, keep=("messages", 1), **more)
    talked = [user("Go."), *talk(12), *history, user("And now?")]
    result = compacted(talked, compactor, force=True)
    assert result.outcome == "compacted", result.reason
    return done_in(result.summary)


DEEDS = [
    ("book_flight", {"id": "TP9"}, '{"booking": "QX71", "status": "ok"}', "booking=QX71"),
    ("send_mail", {"to": "ann@example.org"}, "sent", "sent"),
    ("bash", {"command": "git commit -m 'Round late'"}, "[main 41ac9] Round late", "41ac9"),
    ("bash", {"command": "rm -r build"}, "<returncode>0</returncode>\n<output></output>", "ok"),
    ("write_file", {"path": "/app/late.py", "content": "def late():\n    pass\n"}, "OK", "OK"),
    ("cancel_order", {"order": "W-88"}, '{"refund": 41.5, "state": "cancelled"}', "refund=41.5"),
]


def test_what_had_an_effect_stands_in_order_with_what_came_of_it():
    history = [
        m
        for n, (tool, args, result, _) in enumerate(DEEDS)
        for m in deed(tool, args, result, f"{n}")
    ]
    lines = lines_of(history)
    assert len(lines) == len(DEEDS)
    for line, (_, args, _, came) in zip(lines, DEEDS, strict=True):
        call, arrow, outcome = line.partition(" → ")
        assert arrow
        assert came in outcome
        assert str(next(iter(args.values())))[:12] in call


FAILURES = [
    "Error: not enough seats on flight TP9",
    "<returncode>1</returncode>\n<output>fatal: cannot lock ref</output>",
    '{"error": "card declined", "code": 402}',
    '{"success": false, "reason": "sold out"}',
    'Traceback (most recent call last):\n  File "a.py"\nValueError: no such seat',
    "错误：座位已满",
    "Exit code: 2\nmake: *** No rule to make target 'late'",
]


@pytest.mark.parametrize("result", FAILURES)
def test_what_failed_is_told_as_failed(result):
    [line] = lines_of(deed("book_flight", {"id": "TP9"}, result, "1"))
    outcome = line.partition(" → ")[2]
    assert re.match(r"(?:FAILED|Error|exit [1-9]|fail)", outcome, re.IGNORECASE), line


def test_a_result_marked_as_an_error_is_told_as_failed_whatever_it_says():
    call = {"type": "tool_use", "id": "t1", "name": "book_flight", "input": {"id": "TP9"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "QX71", "is_error": True}
    history = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    assert any("FAILED" in line for line in lines_of(history))


def test_each_of_several_results_in_one_message_is_told_with_its_own_call():
    calls = [
        {"type": "tool_use", "id": f"t{n}", "name": "book", "input": {"seat": f"S{n}"}}
        for n in range(3)
    ]
    said = ["booked as A", "Error: sold out", "booked as C"]
    results = [
        {"type": "tool_result", "tool_use_id": f"t{n}", "content": text}
        for n, text in enumerate(said)
    ]
    history = [{"role": "assistant", "content": calls}, {"role": "user", "content": results[::-1]}]
    lines = lines_of(history)
    assert [line.partition(" [")[0] for line in lines] == [
        f"book(seat=S{n}) → {text}" for n, text in enumerate(said)
    ]


def test_what_failed_and_then_went_well_stands_twice_in_order():
    history = deed("book_flight", {"id": "TP9"}, FAILURES[0], "1")
    history += deed("book_flight", {"id": "TP9"}, '{"booking": "QX71"}', "2")
    failed, well = lines_of(history)
    assert "not enough seats" in failed
    assert "QX71" in well


def test_a_call_without_an_answer_is_not_told_as_done():
    function = {"name": "wire_money", "arguments": '{"eur": 900}'}
    call = {"id": "c1", "type": "function", "function": function}
    asked = {"role": "assistant", "content": "", "tool_calls": [call]}
    compactor = engine(window=20_000, keep=("messages", 1))
    result = compacted([user("Go."), asked, user("Well?"), *talk(4)], compactor, force=True)
    assert not any("wire_money" in line for line in done_in(result.summary)), "it has not left"
    [(told, _)] = journal.lines(steps_of(read_messages([asked])), 1)
    assert told == "wire_money(eur=900) → no answer"


def test_equal_deeds_are_counted_and_other_outcomes_are_not_folded_into_them():
    history = [m for n in range(3) for m in deed("press", {"key": "go"}, "pressed", f"{n}")]
    history += deed("press", {"key": "go"}, "Error: stuck", "9")
    lines = lines_of(history)
    assert len(lines) == 2
    same, stuck = lines
    assert "(3 times)" in same
    assert "stuck" in stuck


def test_no_model_can_tell_a_deed_that_was_not_done():
    lies = "## Done\n- wire_money(eur=900) → ok [m1]\n## Found and decided\n- All was wired."
    compactor = Compactor(
        ChatModelSummarizer(ScriptedChatModel(answers=lambda _: lies)),
        window=20_000,
        keep=("messages", 1),
        archive="memory:",
    )
    history = deed("wire_money", {"eur": 900}, "Error: refused by the bank", "1")
    result = compacted([user("Go."), *history, user("Well?")], compactor, force=True)
    [line] = done_in(result.summary)
    assert "refused by the bank" in line


def test_of_a_value_that_changed_the_newest_state_stands_with_the_one_before():
    history = deed("get_order", {"order": "W-88"}, '{"state": "open", "sum": 41}', "1")
    history += deed("get_order", {"order": "W-88"}, '{"state": "sent", "sum": 41}', "2")
    [line] = lines_of(history)
    assert "state=sent (was open)" in line


def test_looking_around_gives_way_before_any_deed_does():
    history: list[Message] = []
    for n in range(40):
        look = "\n".join(f"line {n}-{k} of a file" for k in range(30))
        history += deed("read_file", {"path": f"/app/part_{n}.py"}, look, f"l{n}")
        history += deed("send_mail", {"to": f"person-{n}@example.org"}, f"sent as S{n:03}", f"s{n}")
    compactor = engine(window=3_000, keep=("messages", 1))
    seen: list[Message] = []
    for n in range(0, len(history), 16):
        result = compacted(
            [*seen, *history[n : n + 16], user(f"Go on {n}.")], compactor, force=True
        )
        seen = [*result.messages, assistant("Yes.")]
    lines = done_in(result.summary)
    sent = [int(found[1]) for line in lines if (found := re.search(r"person-(\d+)@", line))]
    dropped = re.match(r"\((\d+) earlier steps", lines[0])
    assert dropped is not None, "not all of them fit"
    assert sent == sorted(sent)
    assert len(sent) + (int(dropped[1]) if dropped else 0) >= 40
    assert all(f"S{n:03}" in line for line in lines for n in sent if f"person-{n}@" in line)


def test_another_booking_is_no_change_of_the_one_before():
    history: list[Message] = []
    for booking in ("T-1", "T-2"):
        moved = json.dumps({"id": booking, "date": "2031-05-15", "fee": 0.0, "status": "moved"})
        history += deed("move_train", {"booking": booking, "card": "card-88"}, moved, booking)
    lines = lines_of(history)
    assert len(lines) == 2
    assert not any("(was " in line for line in lines)


def test_a_condensation_leaves_out_records_that_were_looked_up_before_any_deed():
    price = "price=120.0 seats=41 option=flex class=second"
    looks = [f"search_trains(day={n}) → id=R{n} {price} [m{n}]" for n in range(20)]
    deeds = [f"book_train(train=R{n}) → id=T{n} paid=120.0 [m{n}]" for n in range(20, 24)]
    [after] = condensed([{DONE: deeds[:2] + looks + deeds[2:]}], 160, lambda text: len(text) // 4)
    assert [line for line in after[DONE] if "book_train" in line] == deeds
    counted = re.match(
        r"\((\d+) earlier steps, one recall away: search_trains (\d+)\)", after[DONE][0]
    )
    assert counted is not None
    assert counted[1] == counted[2]
    kept = [line for line in after[DONE] if "search_trains" in line]
    assert len(kept) - 1 + int(counted[1]) == len(looks)


def test_answers_keep_a_share_of_the_room_where_deeds_can_still_be_made_shorter():
    deeds = [f"edit_file(path=part_{n}.py) → edited at line {n} [m{n}]" for n in range(60)]
    told = [
        f"Offer {n} is not allowed, as rule {n}.2 asks for two chargers. [m9{n}]" for n in range(9)
    ]
    room = 400
    [after] = condensed([{DONE: deeds, FOUND: told}], room, lambda text: len(text) // 4)
    stand = sum(len(line) // 4 for line in after[FOUND])
    assert stand >= room // 5
    assert set(after[FOUND]) <= set(told), "each whole"


@pytest.mark.parametrize(
    ("results", "stands"),
    [
        (
            [f"plan for s{n}: 2\nDRY RUN: nothing was applied" for n in range(3)],
            "nothing was applied",
        ),
        (
            [f"Transfer {n} of 90 EUR\nStatus: pending approval" for n in range(3)],
            "pending approval",
        ),
        ([f"Ran {n + 2} cases in 0.1s\n\nOK" for n in range(3)], "OK"),
        (
            [json.dumps({"id": f"B{n}", "status": "waitlisted"}, indent=2) for n in range(3)],
            "status=waitlisted",
        ),
        ([f"step {n} is done\nprogress: 50%" for n in range(3)], "50%"),
    ],
)
def test_the_end_of_an_outcome_stands_though_others_end_the_same(results, stands):
    deeds = [deed("apply_change", {"n": n}, text, f"e{n}") for n, text in enumerate(results)]
    steps = steps_of(read_messages([message for one in deeds for message in one]))
    told = [line for line, _ in journal.lines(steps, 1.0)]
    assert stands in told[0]
    assert all(step.result == text for step, text in zip(steps, results, strict=True))


@pytest.mark.parametrize(
    "asks",
    [
        "\n(Open file: n/a)\n(Current directory: /repo)\nbash-$",
        "\nroot@box:/app# ",
        "\n(venv) me@host:~/src$ ",
        "\nsh-5.1$ ",
        "\nPS C:\\work> ",
        "\n>>> ",
    ],
)
def test_the_prompt_of_a_shell_is_no_outcome(asks):
    deeds = [deed("apply_change", {"n": n}, f"made {n}{asks}", f"p{n}") for n in range(3)]
    steps = steps_of(read_messages([message for one in deeds for message in one]))
    assert [step.result for step in steps] == [f"made {n}" for n in range(3)]
