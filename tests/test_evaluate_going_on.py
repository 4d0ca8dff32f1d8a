"""`conspectus eval --window`: what whoever goes on would miss, and where it is."""

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately

from cli_support import read_json, run
from conspectus.errors import InputError
from conspectus_lab.evaluate import Planted, asked_of, planted_of
from conspectus_lab.evaluate.conspectus_system import ConspectusSystem
from conspectus_lab.evaluate.going_on import holds, measure_going_on, plain, repeated, steps_of
from conspectus_lab.evaluate.transcripts import Transcript

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / "examples" / "data" / "demo-transcript.json"
STATEMENTS = ROOT / "examples" / "statements.json"


FEW = ("--summary-tokens", "512", "--beside", "none", "--minimum", "1000000")


def said(*arguments: object, code: int = 0) -> str:
    """What a measurement prints, on one line."""
    return " ".join(run("eval", *arguments, *FEW, code=code).output.split())


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return read_json("eval", DEMO, "--window", 16_000, "--statements", STATEMENTS, *FEW)


@pytest.mark.slow
def test_the_demo_can_be_gone_on_with(found):
    ours, tail = found["going_on"]
    assert (ours["name"], tail["name"]) == ("conspectus", "tail")
    assert ours["in_view"]["wanted"] == 12
    assert ours["in_view"]["held"] > tail["in_view"]["held"]
    assert ours["statements"] == {"held": 8, "wanted": 8}, "all but the one that was replaced"
    assert ours["stale"] == ours["over"] == 0
    assert ours["lasting"]["held"] == ours["lasting"]["wanted"] > 15
    assert ours["rounds"] > 5
    assert tail["statements"]["held"] < 3
    assert (tail["lasting"]["wanted"], tail["rounds"]) == (0, 0)
    assert 0.5 < ours["cached"] < 1
    assert ours["cost"] < tail["cost"]
    assert ours["fullest"] <= 1


def test_what_is_lost_is_named_with_where_it_is(tmp_path):
    talk = [{"role": "user", "content": "Keep the log.", "id": "u1"}]
    for n in range(40):
        talk.append({"role": "assistant", "content": f"Noted {n}: " + "all is well " * 40})
        talk.append({"role": "user", "content": f"And day {n}?"})
    (tmp_path / "a.json").write_text(json.dumps(talk))
    asked = [
        {"question": "What is to be kept?", "kind": "goal", "evidence": [["the log"]]},
        {"question": "Where is the moon?", "kind": "state", "evidence": [["behind the hill"]]},
    ]
    (tmp_path / "a.exam.json").write_text(json.dumps(asked))
    told = said(tmp_path, "--window", 2_000)
    assert "Not in view with conspectus: a.json: question (state) 'Where is the moon?'" in told
    assert "missing: behind the hill; not recalled by its own words" in told
    assert "view: share of the questions" in told, "words are explained before numbers"


@pytest.mark.parametrize(
    ("exam", "says"),
    [
        ("{}", "a JSON list"),
        ('[{"question": "Who?"}]', "0.evidence"),
        ('[{"question": "Who?", "evidence": "Ann"}]', "0.evidence"),
        ("[", "is no JSON"),
    ],
)
def test_a_broken_exam_says_where_and_how_it_is_written(tmp_path, exam, says):
    (tmp_path / "a.json").write_text(json.dumps([{"role": "user", "content": "word " * 3_000}]))
    (tmp_path / "a.exam.json").write_text(exam)
    assert says in said(tmp_path / "a.json", "--window", 2_000, code=2)


def test_statements_need_a_window_and_a_window_something_larger(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps([{"role": "user", "content": "hello"}]))
    assert "give --window" in said(DEMO, "--statements", STATEMENTS, code=2)
    assert "no transcript is larger" in said(tmp_path / "a.json", "--window", 2_000, code=2)


def test_a_run_in_a_window_keeps_as_much_as_the_system_asks_for():
    talk = [AIMessage(f"Day {n}: " + "all is well " * 30, id=f"m{n}") for n in range(40)]
    few, more = (
        measure_going_on(
            [Transcript("talk", (HumanMessage("Watch.", id="u"), *talk))],
            {},
            [],
            ConspectusSystem(keep=("messages", keep), sizes=(300,)),
            2_000,
            count_tokens_approximately,
        ).tokens
        for keep in (2, 6)
    )
    assert few < more


def test_evidence_is_found_however_it_is_written():
    text = plain('Booked: {"seat": "4A", "fare": 212}\\n**Flight** `HX17` at Ｎoon')
    assert holds(text, [["seat=4A"], ["HX17", "HX18"], ["noon"]])
    assert not holds(text, [["HX1"]])
    assert not holds(text, [["4A"], ["HX18"]])


def test_a_request_repeats_what_it_shares_with_the_one_before():
    count = count_tokens_approximately
    first = [HumanMessage("a" * 400), AIMessage("b" * 400)]
    assert repeated(first, [*first, HumanMessage("c")], count) == count(first)
    changed = [first[0], AIMessage("b" * 200 + "x" * 200)]
    assert count(first[:1]) < repeated(first, changed, count) < count(first)
    assert repeated(first, [HumanMessage("z")], count) < 10


def test_a_step_is_a_message_with_the_results_of_its_calls():
    call = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "c", "type": "tool_call"}])
    talk = [HumanMessage("a"), call, ToolMessage("b", tool_call_id="c"), AIMessage("d")]
    assert [len(step) for step in steps_of(talk)] == [1, 2, 1]
    assert list(steps_of([])) == []


def test_questions_and_statements_are_read_as_they_are_written():
    [asked] = asked_of([{"question": "Who?", "evidence": [["Ann", "A."]], "id": "q1"}], "a")
    assert asked.evidence == (("Ann", "A."),)
    assert planted_of(json.loads(STATEMENTS.read_text()), "b")[0] == Planted(
        "s1",
        "By the way, nobody may merge into release-4 before Lena has seen it.",
        (("release-4",), ("Lena",)),
        "rule",
    )
    with pytest.raises(InputError, match=r"b: 0\.text"):
        planted_of([{"id": "s", "evidence": []}], "b")
