"""`conspectus eval`: files and folders in, tables, JSON and a page out, and a code to fail on."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import cli_support
from cli_support import read_json, refused, write_json
from conspectus_lab.evaluate import Evaluation
from recorded_sessions import EXAM, agent

FEW = ("--keep", "messages:4", "--summary-tokens", "256", "--minimum", "500")


run = partial(cli_support.run, "eval")
data = partial(read_json, "eval")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of two sessions, one with questions, and what is no transcript."""
    root = tmp_path / "transcripts"
    write_json(root / "b" / "agent.json", agent())
    (root / "b" / "lines.jsonl").write_text("\n".join(json.dumps(row) for row in agent()))
    write_json(root / "told.json", agent(told=True))
    write_json(root / "told.exam.json", EXAM)
    write_json(root / "other.json", {"nothing": "here"})
    write_json(root / ".hidden" / "agent.json", agent())
    (root / "notes.txt").write_text("no transcript")
    return root


def test_a_folder_is_searched_and_everything_in_it_is_accounted_for(folder):
    found = data(folder, *FEW)
    noted = {one["name"]: one["skipped"] for one in found["transcripts"]}
    assert set(noted) == {"b/agent.json", "b/lines.jsonl", "told.json", "other.json"}
    assert noted["b/agent.json"] == noted["told.json"] == ""
    assert "cannot be read" in noted["other.json"]
    ours, theirs = found["results"]
    assert (ours["name"], ours["contexts"], ours["asked"]) == ("conspectus", 3 * 3 + 1, 2)
    assert (ours["in_view"], ours["read"], ours["recoverable"]) == (1.0, 1.0, 1.0)
    assert (theirs["name"], theirs["ours"]) == ("langchain", False)


def test_files_are_measured_once_and_equal_names_stay_apart(folder, tmp_path):
    file = folder / "b" / "agent.json"
    found = data(file, file, folder / "b", *FEW)
    assert [one["name"] for one in found["transcripts"]] == ["agent.json", "lines.jsonl"]
    other = write_json(tmp_path / "more" / "agent.json", agent())
    found = data(file, other, *FEW)
    assert [one["name"] for one in found["transcripts"]] == ["agent.json", other.as_posix()]


@pytest.mark.slow
def test_a_person_sees_the_numbers_of_the_data(folder):
    [ours] = data(folder, *FEW, "--no-langchain")["results"]
    shown = run(folder, *FEW, "--no-langchain").stdout
    row = next(line for line in shown.splitlines() if line.strip().startswith("conspectus, 256 "))
    assert f"{ours['tokens']:,}" in row.split()
    assert "langchain" not in shown
    assert "3 of 4 transcripts measured" in shown


@pytest.mark.slow
def test_configurations_and_sizes_are_compared(folder, tmp_path):
    (tmp_path / "short.toml").write_text('keep = "messages:2"\n')
    write_json(tmp_path / "long.json", {"keep": "messages:30"})
    named = ("--config", tmp_path / "short.toml", "--config", tmp_path / "long.json")
    found = data(folder, *FEW, *named, "--summary-tokens", "512", "--no-langchain")
    assert [(one["name"], one["summary_tokens"]) for one in found["results"]] == [
        ("short", 256), ("short", 512), ("long", 256), ("long", 512),
    ]  # fmt: skip
    assert found["results"][0]["tokens"] < found["results"][2]["tokens"]


def earlier(folder: Path, tmp_path: Path, **figures: Any) -> Path:
    """What was measured before, some figures of ours being others."""
    measured = data(folder, *FEW)
    measured["results"][0].update(figures)
    return write_json(tmp_path / "before.json", measured)


def test_the_same_again_is_no_worse_and_what_was_printed_can_be_the_next_baseline(folder, tmp_path):
    before = earlier(folder, tmp_path)
    shown = run(folder, *FEW, "--against", before)
    assert "Nothing got worse" in shown.stdout
    again = data(folder, *FEW, "--against", before)
    assert again["worse"] == []
    run(folder, *FEW, "--against", write_json(tmp_path / "next.json", again))


def test_worse_than_before_ends_with_5_and_writes_what_was_asked_for(folder, tmp_path):
    before = earlier(folder, tmp_path, tokens=1, broken=-1)
    out, page = tmp_path / "now.json", tmp_path / "page.html"
    done = run(folder, *FEW, "--against", before, "-o", out, "--report", page, code=5)
    assert "broken rose from -1 to 0" in done.stderr
    assert Evaluation.from_json(json.loads(out.read_text())).results
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("nowhere.json",), "does not exist"),
        (("{folder}/other.json",), "no messages"),
        (("{empty}",), "there are no transcripts in"),
        (("{folder}", "--keep", "fraction:0.5"), "--keep cannot be"),
        (("{folder}", "--config", "none.toml"), "cannot be read"),
        (("{folder}", "--against", "none.json"), "none.json cannot be read"),
        (("{folder}", "--against", "{folder}/told.json"), "no measurement"),
        (("{folder}", "--report", "{folder}"), "is a directory"),
        (("{folder}/b", "--minimum", "1000000"), "none of the 2 transcripts can be measured"),
        (("{folder}/b/agent.json", "--minimum", "1000000"), "give a lower --minimum"),
        (("{folder}", "--against", "{folder}/notes.txt"), "give the file that 'conspectus eval -o"),
        (("{folder}", "--summary-tokens", "5"), "max_summary_tokens"),
    ],
)
def test_what_cannot_be_done_is_one_line(folder, tmp_path, arguments, why):
    (tmp_path / "empty").mkdir()
    filled = [a.format(folder=folder, empty=tmp_path / "empty") for a in arguments]
    assert why in refused("eval", *filled)


def test_hostile_names_do_not_reach_the_terminal(tmp_path):
    (tmp_path / "x.toml").write_text('name = "\\u001b[31m[red]evil"')
    file = write_json(tmp_path / "a.json", agent())
    done = run(file, *FEW, "--config", tmp_path / "x.toml")
    assert "\x1b" not in done.stdout
    assert "[red]evil" in done.stdout
