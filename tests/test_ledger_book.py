"""The ledger as a whole: read in parts or at once, merged, bounded, stored; work open and done."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, ToolMessage

from conspectus import Fact, InputError, Ledger
from conspectus.ledger import facts_of
from conspectus.ledger.book import LIMIT
from conspectus.ledger.merging import Merging
from conspectus.ledger.priority import STATEMENTS
from conspectus.messages import read_messages
from histories import assistant, user

SAID = [
    "Never push to main.",
    "The cap must be 500 EUR.",
    "Raise the cap: it must be 900 EUR.",
    "The notes are in docs/notes.md.",
    "The notes have moved to docs/old/notes.md.",
    "TODO: call the landlord about the heating.",
    "I prefer tables over prose.",
    "We decided to use Redis for the cache because it is there.",
    "Change of plan: use Memcached for the cache instead of Redis.",
    "Version 3.2.1 is out, see https://example.com/v3#notes.",
    "报告最多10页。",
    "从现在起报告最多改为20页。",
    "Nothing much happened.",
    "The demo on 3 May 2026 has been postponed to 10 May 2026.",
]
DONE = "Done: the landlord has been called about the heating."


def call(name: str, args: dict[str, Any], call_id: str = "c1") -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(args)}
    tool_calls = [{"id": call_id, "type": "function", "function": function}]
    return {"role": "assistant", "content": "", "tool_calls": tool_calls}


def result(text: str, call_id: str = "c1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def book(*messages: dict[str, Any]) -> Ledger:
    return Ledger().updated(read_messages(messages))


def work(ledger: Ledger) -> dict[str, str]:
    return {f.value: f.state for f in ledger.facts if f.kind in ("task", "delegation")}


TURNS = st.lists(
    st.sampled_from(
        [user(text) for text in SAID]
        + [assistant(DONE), assistant("The notes say 3.2.1."), user("")]
        + [call("task", {"description": "Look for the owner"}), result("The owner is Ann.")]
        + [call("bash", {"command": "pytest -q tests/test_a.py"}, "c2"), result("ok", "c2")]
    ),
    max_size=14,
)


@given(TURNS, st.integers(0, 14), st.integers(0, 14))
@settings(deadline=None, max_examples=60)
def test_a_thread_read_in_parts_gives_the_ledger_of_the_whole(
    turns: list[dict[str, Any]], one: int, other: int
) -> None:
    entries = read_messages(turns)
    first, second = sorted((one, other))
    parts = (entries[:first], entries[first:second], entries[second:])
    ledger = Ledger()
    for part in parts:
        ledger = Ledger.from_json(json.loads(json.dumps(ledger.to_json()))).updated(part)
    assert ledger == Ledger().updated(entries)


@given(st.lists(st.sampled_from(SAID[:1] + SAID[3:4] + SAID[5:7] + SAID[12:13]), max_size=8))
@settings(deadline=None, max_examples=30)
def test_ledgers_of_parts_merge_to_the_facts_of_the_whole(texts: list[str]) -> None:
    entries = read_messages([user(text) for text in texts])
    half = len(entries) // 2
    merged = Ledger().updated(entries[:half]).merged(Ledger().updated(entries[half:]))
    whole = Ledger().updated(entries)
    assert {(f.kind, f.value) for f in merged.facts} == {(f.kind, f.value) for f in whole.facts}
    assert merged.seen == whole.seen


def test_a_later_ledger_put_on_top_replaces_what_it_changes() -> None:
    entries = read_messages([user(SAID[1]), user(SAID[2])])
    merged = Ledger().updated(entries[:1]).merged(Ledger().updated(entries[1:]))
    assert {f.value for f in merged.standing()} == {SAID[2]}


@given(st.lists(st.text(max_size=300), max_size=5), st.sampled_from(["user", "system"]))
@settings(deadline=None, max_examples=80)
def test_any_text_is_read_and_every_fact_is_quoted_from_its_message(
    texts: list[str], role: str
) -> None:
    for entry in read_messages([{"role": role, "content": text} for text in texts]):
        for fact in facts_of(entry):
            assert fact.value
            assert fact.quote in entry.text
            assert fact.value in fact.quote


def test_statements_outlive_values_and_leave_them_room() -> None:
    rules = [user(f"The {n} of part{n}x must never be touched by {n}y.") for n in range(LIMIT)]
    lines = "\n".join(f"/srv/data/part_{n}/file_{n}.csv" for n in range(3 * LIMIT))
    ledger = book(*rules, result(lines))
    assert len(ledger.facts) == LIMIT
    assert sum(f.kind == "rule" for f in ledger.facts) == STATEMENTS


def test_rules_outlive_all_other_statements_of_their_speaker() -> None:
    rule = "Never push to main."
    decided = [
        user(f"We decided to use engine{n} for part{n} because it is there.") for n in range(LIMIT)
    ]
    ledger = book(user(rule), *decided)
    assert sum(f.kind == "decision" for f in ledger.facts) > 100
    assert rule in {f.value for f in ledger.facts}


def test_of_values_those_stay_that_the_user_said_then_those_that_the_agent_used() -> None:
    files = [f"/srv/data/file_{n}.csv" for n in range(2 * LIMIT)]
    printed = [result("\n".join(files[n : n + 50])) for n in range(0, len(files), 50)]
    used = call("read_file", {"path": "/srv/data/file_3.csv"}, "c2")
    ledger = book(user("See /srv/mine.csv, please."), *printed, used, result("...", "c2"))
    values = {f.value for f in ledger.facts}
    assert {"/srv/mine.csv", "/srv/data/file_3.csv"} <= values
    assert len(values) == LIMIT


def test_work_handed_over_is_open_until_its_result_is_there() -> None:
    ask = call("task", {"description": "Find the owner of the cron job", "subagent_type": "r"})
    assert work(book(ask)) == {"Find the owner of the cron job": "open"}
    ledger = book(ask, result("Ann owns it. She has been asked."))
    assert work(ledger) == {"Find the owner of the cron job": "done"}
    assert work(Ledger.from_json(ledger.to_json())) == work(ledger)
    assert ledger.facts[0].result == "Ann owns it. She has been asked."
    assert not ledger.open_work()


def test_what_came_back_is_what_it_says_and_not_how_it_is_headed() -> None:
    ask = call("task", {"description": "Price of Acme", "subagent_type": "r"})
    found = "# Findings\n\n**Price:**\n\n41 USD per seat; 10 % less for a year.\n" + "More. " * 90
    [fact] = [f for f in book(ask, result(found)).facts if f.kind == "delegation"]
    assert fact.state == "done"
    assert fact.result.startswith("41 USD per seat; 10 % less for a year.")
    assert len(fact.result) <= 200
    reported = '{"status": "success", "result": "41 USD per seat."}'
    [fact] = [f for f in book(ask, result(reported)).facts if f.kind == "delegation"]
    assert (fact.state, fact.result) == ("done", "41 USD per seat.")


@pytest.mark.parametrize(
    "text",
    [
        "Error: the agent ran out of steps",
        "GraphRecursionError: limit of 25 reached",
        "The subagent failed. Try again.",
        "Failed to start the agent",
        '{"error": "no such agent"}',
        "任务执行失败：超时",
        "La tarea ha fallado.",
    ],
)
def test_work_that_failed_is_still_to_be_done(text: str) -> None:
    ask = call("task", {"description": "Price of Acme"})
    ledger = book(ask, result(text))
    [fact] = ledger.open_work()
    assert fact.result
    again = ledger.updated(read_messages([call("task", {"description": "Price of Acme"}, "c9")]))
    done = again.updated(read_messages([result("41 USD per seat.", "c9")]))
    assert work(done) == {"Price of Acme": "done"}
    assert done.delegations()[0].result == "41 USD per seat."


@pytest.mark.parametrize(
    "text",
    ["The error comes from line 3.", "Found 3 errors in the log.", "ValueError is raised in a.py."],
)
def test_work_whose_result_is_about_an_error_is_done(text: str) -> None:
    assert work(book(call("task", {"description": "Find the cause"}), result(text))) == {
        "Find the cause": "done"
    }


def test_a_result_that_says_of_itself_that_it_is_an_error_leaves_its_work_open() -> None:
    ask = AIMessage("", tool_calls=[{"name": "task", "args": {"prompt": "Look it up"}, "id": "a"}])
    back = ToolMessage("No answer in time.", tool_call_id="a", status="error")
    assert work(Ledger().updated(read_messages([ask, back]))) == {"Look it up": "open"}


def test_each_of_several_delegations_at_once_gets_its_own_result() -> None:
    calls = [
        {"name": "task", "args": {"description": f"Vendor {n}"}, "id": f"v{n}"} for n in range(5)
    ]
    answers = [
        ToolMessage(f"Vendor {n} asks for {n}00 USD.", tool_call_id=f"v{n}") for n in (3, 0, 4, 1)
    ]
    ledger = Ledger().updated(read_messages([AIMessage("", tool_calls=calls), *answers]))
    found = {f.value: (f.state, f.result) for f in ledger.delegations()}
    for n in (0, 1, 3, 4):
        assert found[f"Vendor {n}"] == ("done", f"Vendor {n} asks for {n}00 USD.")
    assert found["Vendor 2"] == ("open", "")


@pytest.mark.parametrize(
    "text",
    [
        "The task was started in the background and is still running.",
        "Die Aufgabe läuft noch.",
        "任务已启动，正在后台运行。",
        "タスクを開始しました。",
        "작업을 시작했습니다.",
        "La tarea sigue en curso.",
        "La tâche est en cours.",
    ],
)
def test_a_result_that_says_it_is_still_running_leaves_the_work_open(text: str) -> None:
    ledger = book(call("delegate_to_agent", {"task": "Compare the prices"}), result(text))
    assert work(ledger) == {"Compare the prices": "open"}
    assert [f.value for f in ledger.open_work()] == ["Compare the prices"]


def test_a_to_do_list_is_what_it_was_last() -> None:
    def todos(*items: tuple[str, str]) -> dict[str, Any]:
        return call("write_todos", {"todos": [{"content": c, "status": s} for c, s in items]})

    first = todos(("read the code", "in_progress"), ("fix the bug", "pending"), ("rest", "pending"))
    ledger = book(first, result("ok"))
    assert work(ledger) == dict.fromkeys(("read the code", "fix the bug", "rest"), "open")
    then = todos(("read the code", "completed"), ("fix the bug", "in_progress"))
    ledger = book(first, result("ok"), then, result("ok"))
    assert work(ledger) == {"read the code": "done", "fix the bug": "open"}


@pytest.mark.parametrize(
    ("task", "report"),
    [
        ("TODO: call the landlord about the heating.", DONE),
        ("Noch zu tun: das Skript für die Tabellen.", "Das Skript für die Tabellen ist fertig."),
        ("À faire : appeler la mairie.", "C'est fait, la mairie a été appelée."),
        ("Pendiente: convertir el fichero del banco.", "Hecho: el fichero del banco convertido."),
        ("待办：通知仓库补发灯罩。", "仓库已经通知了，灯罩补发完成。"),
        ("やること：湿度の列を取り除く。", "湿度の列の削除は完了しました。"),
        ("할 일: 변환 코드를 고치기.", "변환 코드 수정을 완료했습니다."),
    ],
)
def test_a_task_is_done_when_it_is_reported_done(task: str, report: str) -> None:
    other = "TODO: water the plants in the kitchen."
    assert work(book(user(other), user(task), assistant(report))) == {other: "open", task: "done"}


def test_an_old_record_is_read_and_a_new_one_is_short() -> None:
    old = {
        "kind": "rule", "value": "Never push.", "quote": "Never push.", "source": "m1",
        "role": "user", "used": 0, "order": 3,
    }  # fmt: skip
    ledger = Ledger.from_json({"facts": [old], "gone": []})
    assert ledger.facts == (Fact("rule", "Never push.", "Never push.", "m1", "user", order=3),)
    assert ledger.seen == 4
    short = {"kind": "rule", "value": "Never push.", "source": "m1", "role": "user", "order": 3}
    assert ledger.to_json()["facts"] == [short]


def test_what_is_still_in_view_takes_from_the_ledger_what_it_has_replaced() -> None:
    ledger = book(user(SAID[1])).without_superseded(read_messages([user(SAID[2])]))
    assert not ledger.facts
    assert ledger.seen == 1


@pytest.mark.parametrize(
    "text", ["a." * 20_000, "1," * 20_000, '"' * 40_000, "never must " * 4_000]
)
def test_hostile_lines_are_read_to_an_end(text: str) -> None:
    assert len(book(user(text), result(text)).facts) <= LIMIT


class Counted(Merging):
    """A ledger in the making that is set up once only."""

    made = 0

    def __init__(self, *given: Any) -> None:
        self.made += 1
        super().__init__(*given)


def test_a_crowded_ledger_lets_the_lesser_half_go_and_works_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("conspectus.ledger.merging.CROWDED", 1)
    paths = [Fact("path", f"src/{n}.py", "", "m", "tool", order=n) for n in range(LIMIT)]
    rule = Fact("rule", "Retries: at most 3.", "", "m", "user", order=LIMIT)
    book = Counted([*paths, rule], ["Retries: at most 2."])
    book.trim()
    assert len(book.facts()) == LIMIT // 2
    assert rule in book.facts()
    book.take(Fact("rule", "Retries: at most 5.", "", "n", "user", order=LIMIT + 1))
    assert [fact.value for fact in book.facts() if fact.kind == "rule"] == ["Retries: at most 5."]
    assert book.gone() == ("Retries: at most 2.", "Retries: at most 3.")
    assert book.made == 1


GOOD = {"kind": "rule", "value": "Never push.", "source": "m", "role": "user", "order": 2}


@pytest.mark.parametrize(
    ("odd", "why"),
    [
        (None, "must be an object"),
        ({"facts": 3}, "'facts' of a ledger must be a list"),
        ({"gone": {"a": 1}}, "'gone' of a ledger must be a list"),
        ({"gone": [1]}, "'gone' of a ledger must be a list of texts"),
        ({"seen": "2"}, "'seen' of a ledger must be a whole number"),
        ({"facts": [7]}, "fact 0 of the ledger: a fact must be an object"),
        ({"facts": [{"kind": "rule", "source": "m", "role": "user"}]}, "no 'value'"),
        ({"facts": [GOOD, {**GOOD, "value": None}]}, "fact 1 of the ledger: 'value'"),
        ({"facts": [{**GOOD, "order": "1"}]}, "'order' of a fact must be a whole number"),
        ({"facts": [{**GOOD, "kind": "rumour"}]}, "'kind' of a fact cannot be 'rumour'"),
        ({"facts": [{**GOOD, "kind": []}]}, "'kind' of a fact must be text"),
        ({"facts": [{**GOOD, "state": "late"}]}, "'state' of a fact cannot be 'late'"),
    ],
)
def test_what_is_no_ledger_is_refused_with_its_place(odd: Any, why: str) -> None:
    with pytest.raises(InputError, match=why):
        Ledger.from_json(odd)


def test_of_a_damaged_ledger_all_that_can_be_read_is_recovered() -> None:
    odd = {"facts": [GOOD, 7, {**GOOD, "role": 1}], "gone": ["x", 3], "seen": None, "more": 1}
    book, wrong = Ledger.recovered(odd)
    assert book == Ledger((Fact.from_json(GOOD),), ("x",), 3)
    assert len(wrong) == 4
    whole = Ledger.recovered({"facts": [GOOD], "gone": [], "seen": 4})
    assert whole == (Ledger((Fact.from_json(GOOD),), (), 4), ())


LAUNCHED = "Launched async subagent. task_id: 1f0c-77"


def test_work_started_in_the_background_is_open_until_a_check_brings_its_result() -> None:
    start = [
        call("start_async_task", {"description": "Price of Acme", "subagent_type": "buyer"}, "s"),
        result(LAUNCHED, "s"),
        call("start_async_task", {"description": "Price of Bolt", "subagent_type": "buyer"}, "t"),
        result("Launched async subagent. task_id: 2a-88", "t"),
    ]
    check = call("check_async_task", {"task_id": "1f0c-77"}, "k")
    running = result(json.dumps({"status": "running", "thread_id": "1f0c-77"}), "k")
    assert work(book(*start)) == {"Price of Acme": "open", "Price of Bolt": "open"}
    assert work(book(*start, check, running)) == {"Price of Acme": "open", "Price of Bolt": "open"}
    again = call("check_async_task", {"task_id": "1f0c-77"}, "m")
    answer = {"status": "success", "thread_id": "1f0c-77", "result": "41 USD per seat."}
    done = book(*start, check, running, again, result(json.dumps(answer), "m"))
    assert work(done) == {"Price of Acme": "done", "Price of Bolt": "open"}
    assert {f.value: f.result for f in done.delegations()}["Price of Acme"] == "41 USD per seat."


def test_a_check_that_fails_leaves_its_work_open_and_says_why() -> None:
    ledger = book(
        call("start_async_task", {"description": "Price of Acme"}, "s"),
        result(LAUNCHED, "s"),
        call("check_async_task", {"task_id": "1f0c-77"}, "k"),
        result(json.dumps({"status": "error", "thread_id": "1f0c-77", "error": "No key."}), "k"),
    )
    assert work(ledger) == {"Price of Acme": "open"}
    assert "No key." in ledger.delegations()[0].result


@pytest.mark.parametrize("rounds", [1, 4])
def test_background_work_is_known_again_when_it_is_read_in_parts(rounds: int) -> None:
    messages = [
        call("start_async_task", {"description": "Price of Acme"}, "s"),
        result(LAUNCHED, "s"),
        call("check_async_task", {"task_id": "1f0c-77"}, "k"),
        result(json.dumps({"status": "success", "result": "41 USD."}), "k"),
    ]
    ledger = Ledger()
    size = len(messages) // rounds
    for start in range(0, len(messages), size):
        ledger = ledger.updated(read_messages(messages[start : start + size]))
    assert work(ledger) == {"Price of Acme": "done"}


def test_background_work_that_is_cancelled_is_no_longer_open() -> None:
    ledger = book(
        call("start_async_task", {"description": "Price of Acme"}, "s"),
        result(LAUNCHED, "s"),
        call("cancel_async_task", {"task_id": "1f0c-77"}, "k"),
        result("Cancelled async subagent task: 1f0c-77", "k"),
    )
    assert work(ledger) == {}
