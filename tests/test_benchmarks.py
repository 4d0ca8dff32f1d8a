"""The benchmarks run, count what they say they count, and end with 1 where a limit is broken."""

import json

import pytest


def test_a_value_over_its_limit_ends_the_command_with_1(script, capsys):
    tables = script("tables")
    good = tables.Row("good", 1.0, 2.0)
    low = tables.Row("low", 1.0, 2.0, at_least=True)
    assert tables.end("T", [good, tables.Row("information", 9.0)], as_json=False) == 0
    assert tables.end("T", [good, low], as_json=False) == 1
    said = capsys.readouterr()
    assert "1 of 2 limits hold." in said.out
    assert said.err == "over its limit: low\n"


def test_views_hold_more_than_the_tail(script, capsys):
    assert script("views").main(["booking", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows[0]["name"] == "booking: answers in view"
    assert rows[0]["value"] > rows[0]["asked"]


def test_recall_is_measured_on_talks_of_ones_own(script, capsys, monkeypatch, tmp_path):
    talk = [{"role": "user", "content": f"The word {n} is {n * 7919}.", "id": f"m{n}"}
            for n in range(40)]  # fmt: skip
    asked = [{"question": "What is the word 17?", "evidence": ["m17"]}]
    for name, data in (("a.json", talk), ("a.qa.json", asked)):
        (tmp_path / name).write_text(json.dumps(data))
    monkeypatch.setattr("sys.argv", ["recall.py", "--data", str(tmp_path), "--tokens", "100"])
    assert script("recall").main() == 0
    assert "1 of the gold, BM25 1; 1 questions" in capsys.readouterr().out


@pytest.mark.slow
def test_killed_workers_lose_nothing(script):
    rows = list(script("fault_kills").rows(4))
    assert len(rows) == 4
    assert [(row.value, row.detail[:7]) for row in rows] == [(0, "1 kills")] * 4, rows


@pytest.mark.slow
def test_archives_that_fail_lose_nothing(script):
    stores = script("fault_stores")
    for row in (stores.full_disks(2), stores.damaged(2), stores.taken_away()):
        assert row.holds, row


@pytest.mark.slow
def test_faults_over_http_and_a_soak(script):
    assert all(row.holds for row in script("fault_http").rows(quick=True))
    assert all(row.holds for row in script("fault_soak").rows(0.05))
