"""`conspectus eval`: files and folders in, tables, JSON and a page out, and a code to fail on."""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import cli_support
from cli_support import read_json, refused, write_json
from conspectus_lab.evaluate import Evaluation
from made_transcripts import QUESTIONS, TALK, agent

FEW = ("--keep", "messages:4", "--summary-tokens", "256", "--minimum", "500")


run = partial(cli_support.run, "eval")
data = partial(read_json, "eval")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of an agent, a talk with questions, and what is no transcript."""
    root = tmp_path / "transcripts"
    write_json(root / "b" / "agent.json", agent())
    (root / "b" / "lines.jsonl").write_text("\n".join(json.dumps(row) for row in agent()))
    write_json(root / "talk.json", TALK)
    write_json(root / "talk.qa.json", QUESTIONS)
    write_json(root / "other.json", {"nothing": "here"})
    write_json(root / ".hidden" / "agent.json", agent())
    (root / "notes.txt").write_text("no transcript")
    return root


def test_a_folder_is_searched_and_everything_in_it_is_accounted_for(folder):
    found = data(folder, *FEW)
    noted = {one["name"]: one for one in found["transcripts"]}
    assert set(noted) == {"b/agent.json", "b/lines.jsonl", "talk.json", "other.json"}
    assert noted["b/agent.json"]["cuts"] == noted["b/lines.jsonl"]["cuts"] == 3
    assert noted["talk.json"]["questions"] == 3
    assert "cannot be read" in noted["other.json"]["skipped"]
    assert Evaluation.from_json(found).system("conspectus", 256).answers is not None


def test_files_are_measured_once_however_they_are_named(folder):
    file = folder / "b" / "agent.json"
    found = data(file, file, folder / "b", *FEW)
    assert [one["name"] for one in found["transcripts"]] == ["agent.json", "lines.jsonl"]


def test_equal_names_in_two_folders_stay_apart(folder, tmp_path):
    other = write_json(tmp_path / "more" / "agent.json", agent())
    found = data(folder / "b" / "agent.json", other, *FEW)
    assert [one["name"] for one in found["transcripts"]] == ["agent.json", other.as_posix()]


@pytest.mark.slow
def test_a_person_sees_the_numbers_of_the_data(folder):
    found = Evaluation.from_json(data(folder, *FEW, "--recall-tokens", "64"))
    shown = run(folder, *FEW, "--recall-tokens", "64")
    lines = [line.split() for line in shown.stdout.splitlines()]
    use = found.system("conspectus", 256).future_use
    row = next(line for line in lines if line[:2] == ["conspectus", "256"])
    assert row[2] == f"{use.quoted.value:.3f}"
    assert "1 left out: it cannot be read" in shown.stdout
    assert "3 of 4 transcripts measured" in shown.stdout


def test_langchain_stands_beside_it_unless_it_is_not_wanted(folder):
    file = folder / "b" / "agent.json"
    names = lambda *more: [one["name"] for one in data(file, *FEW, *more)["systems"]]  # noqa: E731
    assert names() == ["conspectus", "langchain"]
    assert names("--beside", "none") == ["conspectus"]
    assert names("--beside", "tail", "--beside", "langchain") == ["conspectus", "tail", "langchain"]


def test_configurations_are_compared(folder, tmp_path):
    (tmp_path / "small.toml").write_text("summary_tokens = 128")
    write_json(tmp_path / "large.json", {"name": "big", "summary_tokens": [400, 800]})
    configs = ("--config", tmp_path / "small.toml", "--config", tmp_path / "large.json")
    found = data(folder / "b" / "agent.json", *FEW, *configs)
    labels = [(one["name"], one["summary_tokens"]) for one in found["systems"]]
    assert labels == [("small", 128), ("big", 400), ("big", 800), ("langchain", 256)]
    assert [one["keep"] for one in found["systems"]] == ["messages:4"] * 4


@pytest.mark.slow
def test_sizes_rounds_and_counter_are_passed_on(folder):
    more = ("--summary-tokens", "128", "--rounds", "2", "--counter", "estimate", "--seed", "7")
    found = data(folder / "b" / "agent.json", *FEW, *more)
    assert [one["summary_tokens"] for one in found["systems"]] == [256, 128, 256, 128]
    assert found["settings"]["counter"] == "estimate"
    assert found["settings"]["seed"] == 7
    assert found["systems"][0]["rounds"]["rounds"] == 2


def test_the_report_and_the_data_are_written_beside_the_table(folder, tmp_path):
    page, numbers = tmp_path / "report.html", tmp_path / "now.json"
    done = run(folder, *FEW, "--report", page, "-o", numbers)
    assert "Future use" in done.stdout
    found = Evaluation.from_json(json.loads(numbers.read_text()))
    use = found.system("conspectus", 256).future_use
    assert f"<td>{use.quoted.value:.3f}</td>" in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_figures_do_not_depend_on_the_hashes_of_the_process(folder):
    command = [sys.executable, "-m", "conspectus.cli", "eval", str(folder), *FEW, "--json"]
    command += ["--rounds", "2", "--recall-tokens", "64"]
    said = []
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(command, capture_output=True, check=True, env=env, encoding="utf-8")
        lines = done.stdout.splitlines()
        said.append([line for line in lines if '"seconds"' not in line])
    assert said[0] == said[1]
    assert len(said[0]) > 100


# Against an earlier measurement


def earlier(folder: Path, tmp_path: Path, by: float) -> Path:
    """A measurement in which our system was better by so much."""
    found = data(folder, *FEW, "--beside", "none")
    found["systems"][0]["future_use"]["quoted"]["value"] += by
    return write_json(tmp_path / "before.json", found)


@pytest.mark.slow
def test_the_same_again_is_no_worse(folder, tmp_path):
    before = earlier(folder, tmp_path, 0.0)
    done = run(folder, *FEW, "--against", before)
    assert "got worse by more than 0.01" in done.stdout


@pytest.mark.slow
def test_worse_than_before_ends_with_5_and_says_what(folder, tmp_path):
    before = earlier(folder, tmp_path, 0.05)
    done = run(folder, *FEW, "--against", before, code=5)
    assert "Got worse:" in done.stdout
    line = next(line for line in done.stdout.splitlines() if " quoted " in line and "-0.05" in line)
    assert line.split()[:3] == ["conspectus", "256", "quoted"]
    assert done.stderr == f"conspectus: error: 1 figure got worse than {before}\n"
    run(folder, *FEW, "--against", before, "--tolerance", "0.05")


@pytest.mark.slow
def test_data_and_page_are_written_although_it_got_worse(folder, tmp_path):
    before = earlier(folder, tmp_path, 0.05)
    now = tmp_path / "now.json"
    done = run(folder, *FEW, "--against", before, "--json", "-o", now, code=5)
    assert [one["measure"] for one in json.loads(done.stdout)["against"]["worse"]] == ["quoted"]
    assert Evaluation.from_json(json.loads(now.read_text())).systems


@pytest.mark.slow
def test_what_was_printed_can_be_the_baseline_of_the_next(folder, tmp_path):
    before = earlier(folder, tmp_path, 0.0)
    printed = data(folder, *FEW, "--against", before)
    run(folder, *FEW, "--against", write_json(tmp_path / "next.json", printed))


# What cannot be done


NONE_OF_TWO = (
    "none of the 2 transcripts can be measured: 2 because each has fewer than 1,000,000 tokens; "
    "give a lower --minimum, as the longest of those has "
)
ONE_TOO_SMALL = "agent.json cannot be measured, because it has fewer than 1,000,000 tokens; give a"


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("nowhere.json",), "does not exist"),
        (("{folder}/other.json",), "no messages"),
        (("{empty}",), "there are no transcripts in"),
        (("{folder}", "--keep", "fraction:0.5"), "--keep cannot be"),
        (("{folder}", "--beside", "nothing"), "no system 'nothing'"),
        (("{folder}", "--counter", "guess"), "--counter cannot be 'guess'"),
        (("{folder}", "--config", "none.toml"), "cannot be read"),
        (("{folder}", "--against", "none.json"), "none.json cannot be read"),
        (("{folder}", "--against", "{folder}/talk.json"), "no measurement"),
        (("{folder}", "--report", "{folder}"), "is a directory"),
        (("{folder}", "--minimum", "1000000", "--beside", "none"), None),
        (("{folder}/b", "--minimum", "1000000"), NONE_OF_TWO),
        (("{folder}/b", "--keep", "messages:900", "--minimum", "1"), "give a smaller --keep"),
        (("{folder}/b/agent.json", "--minimum", "1000000"), ONE_TOO_SMALL),
        (("{folder}/b", "--minimum", "1000000"), "give a lower --minimum"),
        (("{folder}", "--against", "{folder}/notes.txt"), "give the file that 'conspectus eval -o"),
        (("{folder}", "--summary-tokens", "5"), "max_summary_tokens"),
        (("{folder}", "--tolerance", "2"), "tolerance"),
    ],
)
def test_what_cannot_be_done_is_one_line(folder, tmp_path, arguments, why):
    (tmp_path / "empty").mkdir()
    filled = [a.format(folder=folder, empty=tmp_path / "empty") for a in arguments]
    if "--tolerance" in arguments:
        filled += ["--against", str(earlier(folder, tmp_path, 0.0)), *FEW]
    if why is None:  # the questions can still be asked
        run(*filled)
    else:
        assert why in refused("eval", *filled)


def test_questions_that_are_none_name_their_file(folder):
    write_json(folder / "b" / "agent.qa.json", [{"question": 1}])
    done = run(folder / "b" / "agent.json", *FEW, code=2)
    assert "agent.qa.json: question 0" in done.stderr


def test_hostile_names_do_not_reach_the_terminal(tmp_path):
    (tmp_path / "x.toml").write_text('name = "\\u001b[31m[red]evil"')
    file = write_json(tmp_path / "a.json", agent())
    done = run(file, *FEW, "--config", tmp_path / "x.toml")
    assert "\x1b" not in done.stdout
    assert "[red]evil" in done.stdout


def test_the_figures_are_what_the_summary_holds(folder):
    """What a tool showed stands where there is room; both are asked for at every cut."""
    sizes = (*FEW, "--summary-tokens", "2048")
    found = Evaluation.from_json(data(folder / "b" / "agent.json", *sizes))
    use = found.system("conspectus", 2048).future_use
    assert use.quoted.value == 1.0
    assert found.system("conspectus", 256).future_use.quoted.value < 1.0
    shares = use.by_kind.values()
    assert (sum(one.held for one in shares), sum(one.wanted for one in shares)) == (3 * 2, 3 * 2)
