"""`conspectus replay` and `conspectus eval`: tables, JSON, a page, and a code to fail on."""

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import cli_support
from cli_support import read_json, write_json
from test_replay import EXAM, agent_transcript

WINDOW = ("--window", "2500", "--keep", "messages:6")

run = partial(cli_support.run, "replay")
data = partial(read_json, "replay")
measure = partial(cli_support.run, "eval")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_json(tmp_path / "agent.json", agent_transcript(30))


@pytest.mark.slow
def test_a_person_sees_the_figures_that_are_written(file, tmp_path):
    numbers = tmp_path / "now.json"
    page = tmp_path / "page.html"
    shown = run(file, *WINDOW, "--priced-as", "gpt-5.4", "-o", numbers, "--report", page)
    figures = json.loads(numbers.read_text())
    [replay] = figures["replays"]
    totals = figures["totals"]
    assert [row["policy"] for row in replay["runs"]] == ["none", "langchain", "conspectus"]
    assert {len(row["steps"]) for row in replay["runs"]} == {30}
    assert (replay["name"], replay["window"], replay["keep"]) == ("agent.json", 2_500, "6 messages")
    ours = totals["conspectus"]
    assert totals["none"]["peak_tokens"] > 2_500 >= ours["peak_tokens"]
    assert (ours["broken"], ours["over"], ours["missing"], ours["read_share"]) == (0, 0, 0, 1.0)
    lines = shown.stdout.splitlines()
    for policy, title in (("none", "no compaction"), ("conspectus", "Conspectus")):
        row = next(line for line in lines if line.strip().startswith(title)).split()
        for figure in ("compactions", "peak_tokens", "sent_tokens"):
            assert f"{totals[policy][figure]:,}" in row
    start = next(index for index, line in enumerate(lines) if "bill as gpt-5.4" in line)
    for title, bill in (("Conspectus", ours["bill"]), ("without end", figures["without"])):
        row = next(line for line in lines[start:] if title in line).split()
        assert {f"${bill['money']:.3f}", f"{int(bill['cached_share'] * 1_000) / 10}%"} <= set(row)
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_prices_of_the_users_own_go_before_the_known_ones(file, tmp_path):
    rows = {"ours": {"input": 1, "output": 0, "cached": 1}, "gpt-5.4": {"input": 0, "output": 0}}
    prices = write_json(tmp_path / "prices.json", rows)
    names = ("ours", "gpt-5.4", "gpt-5")
    arguments = (file, *WINDOW, "--policy", "none", "--prices", prices, "--priced-as")
    ours, free, known_price = (data(*arguments, name)["without"] for name in names)
    assert ours["money"] == pytest.approx(ours["input_tokens"] / 1_000_000)
    assert (free["money"], known_price["money"] > 0) == (0.0, True)


def test_a_file_of_settings_needs_no_archive(tmp_path):
    text = "enabled: true, trigger: {messages: 8}, keep: {type: messages, value: 4}, archive: $NO"
    (tmp_path / "own.yaml").write_text(f"summarization: {{{text}}}")
    finished = run(
        write_json(tmp_path / "a.json", agent_transcript(9)), "--config", tmp_path / "own.yaml"
    )
    assert "own.yaml has its own settings: trigger 8 messages, keep 4 messages" in finished.stdout


@pytest.mark.slow
def test_what_cannot_fit_ends_with_1_and_says_so(file):
    finished = run(file, "--window", "600", code=1)
    assert "requests do not fit the window of 600 tokens" in finished.stderr
    assert "Conspectus" in finished.stdout
    assert "Note: the history does not fit" in finished.stdout
    run(file, "--window", "600", "--policy", "none")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--policy", "best"), "there is no policy 'best'"),
        (("--window", "0"), "write it as 8000, 8k or 1M"),
        (("--priced-as", "unheard-of"), "no price is known for 'unheard-of'"),
        (("--trigger", "pages:3"), "--trigger cannot be"),
        (("--summarizer", "gpt"), "the model 'gpt' could not be built"),
        (("--report", "nowhere/page.html"), "in a folder that exists"),
        (("--prices", "nowhere.json"), "cannot be read: No such file"),
    ],
)
def test_wrong_options_end_with_2(file, arguments, problem):
    assert problem in run(file, *arguments, code=2).stderr


def test_what_is_in_a_file_and_cannot_be_replayed_is_told(tmp_path):
    file = write_json(tmp_path / "asked.json", [{"role": "user", "content": "hi"}])
    assert "asked.json: no assistant speaks" in run(file, code=2).stderr
    run(tmp_path / "nothing.json", code=2)
    lines = [
        {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "hi"}},
        {"type": "progress", "uuid": "u2"},
        {"type": "assistant", "uuid": "u3", "message": {"role": "assistant", "content": "yes?"}},
    ]
    file = tmp_path / "session.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in lines))
    assert "session.jsonl: 1 line skipped: no part" in run(file).stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of two sessions, one with questions, and what is no transcript."""
    root = tmp_path / "transcripts"
    write_json(root / "b" / "agent.json", agent_transcript())
    write_json(root / "told.json", agent_transcript(user_tells=True))
    write_json(root / "told.exam.json", EXAM)
    write_json(root / "other.json", {"nothing": "here"})
    write_json(root / ".hidden" / "agent.json", agent_transcript())
    (root / "notes.txt").write_text("no transcript")
    return root


@pytest.mark.slow
def test_a_folder_is_searched_and_a_measurement_can_be_failed_on(folder, tmp_path):
    baseline = tmp_path / "baseline.json"
    shown = measure(folder, *WINDOW, "-o", baseline).stdout
    assert "other.json is left out" in shown
    measured = json.loads(baseline.read_text())
    assert [replay["name"] for replay in measured["replays"]] == ["b/agent.json", "told.json"]
    ours = measured["totals"]["conspectus"]
    langchains = measured["totals"]["langchain"]
    assert (ours["asked"], ours["in_view_share"], ours["missing"]) == (2, 1.0, 0)
    assert langchains["missing"] > 0
    assert "with recall" in shown
    second_output = measure(folder, *WINDOW, "--policy", "conspectus", "--against", baseline).stdout
    assert "Nothing got worse" in second_output
    measured["totals"]["conspectus"]["read_share"] = 2.0
    write_json(baseline, measured)
    finished = measure(
        folder, *WINDOW, "--policy", "conspectus", "--against", baseline, "--json", code=5
    )
    assert json.loads(finished.stdout)["worse"][0] in finished.stderr
    assert "read_share fell from 2.000 to 1.000" in finished.stderr
    assert "other transcripts" in measure(folder, "--against", baseline, code=2).stderr


def test_without_questions_the_command_says_what_to_write(file):
    form = '[{"question": "...", "evidence": [["text", "or this"]]}]'
    shown = measure(file, *WINDOW, "--policy", "conspectus").stdout
    assert "Note: without questions, 'in view' and 'with recall' are empty" in shown
    assert f"NAME.exam.json beside NAME.json, as {form}" in shown.replace("\n", " ")
    finished = measure(file, "--window", 100_000, "--policy", "conspectus", code=2)
    assert "nothing to measure: nothing is compacted in a window of 100,000" in finished.stderr
    assert form in finished.stderr
    assert finished.stdout == ""


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.yaml", "summarization: {}", "switches nothing on"),
        ("a.exam.json", '[{"question": "Who?"}]', r"0\.evidence.*write \[\{"),
    ],
)
def test_files_of_settings_and_questions_say_what_is_wrong(tmp_path: Path, name, text, problem):
    transcript = write_json(tmp_path / "a.json", agent_transcript(3)) if "exam" in name else None
    file = tmp_path / name
    file.write_text(text)
    arguments: Any = [transcript] if transcript else [tmp_path, "--config", file]
    assert re.search(problem, measure(*arguments, code=2).stderr.replace("\n", " "))
