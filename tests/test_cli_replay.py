"""`conspectus replay`: a table, JSON, a page, and a code to fail on."""

import json
import re
from functools import partial
from pathlib import Path

import pytest

import cli_support
from cli_support import read_json, write_json
from conspectus_lab.commands.replay import in_words
from conspectus_lab.replay import Compaction, Original
from recorded_sessions import agent

WINDOW = ("--window", "2500", "--keep", "messages:6")


run = partial(cli_support.run, "replay")
data = partial(read_json, "replay")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_json(tmp_path / "agent.json", agent(30))


@pytest.mark.slow
def test_three_policies_are_compared_on_the_same_requests(file):
    found = data(file, *WINDOW)
    [one] = found["replays"]
    assert [row["policy"] for row in one["runs"]] == ["none", "langchain", "conspectus"]
    assert {len(row["steps"]) for row in one["runs"]} == {30}
    none, _, ours = (row["totals"] for row in one["runs"])
    assert none["peak_tokens"] > 2_500 >= ours["peak_tokens"]
    assert (ours["broken"], ours["over"], ours["missing"], ours["read_share"]) == (0, 0, 0, 1.0)
    assert (one["name"], one["window"], one["keep"]) == ("agent.json", 2_500, "6 messages")


@pytest.mark.slow
def test_a_person_sees_the_numbers_of_the_data(file):
    totals = data(file, *WINDOW)["totals"]
    shown = run(file, *WINDOW)
    for policy, title in (("none", "no compaction"), ("conspectus", "Conspectus")):
        row = next(line for line in shown.stdout.splitlines() if line.strip().startswith(title))
        figures = totals[policy]
        assert f"{figures['compactions']:,}" in row.split()
        assert f"{figures['peak_tokens']:,}" in row.split()
        assert f"{figures['sent_tokens']:,}" in row.split()
    assert "100%" in shown.stdout
    assert "trigger 0.85 of the window, keep 6 messages, summariser" in " ".join(
        shown.stdout.split()
    )


@pytest.mark.slow
def test_several_files_have_rows_of_their_own_and_a_sum(file, tmp_path):
    (tmp_path / "other").mkdir()
    other = write_json(tmp_path / "other" / "agent.json", agent(12))
    found = data(file, other, file, *WINDOW)
    assert [one["name"] for one in found["replays"]] == ["agent.json", str(other)]
    for place, policy in enumerate(("none", "langchain", "conspectus")):
        each = [one["runs"][place]["totals"] for one in found["replays"]]
        whole = found["totals"][policy]
        assert whole["requests"] == 42
        assert whole["sent_tokens"] == sum(one["sent_tokens"] for one in each)
        assert whole["peak_tokens"] == max(one["peak_tokens"] for one in each)
    shown = run(file, other, *WINDOW).stdout
    assert "all 2 transcripts" in shown
    assert len(re.findall(r"^ +Conspectus ", shown, re.MULTILINE)) == 4  # the last on the bill


@pytest.mark.slow
def test_standard_output_stays_pure_while_compactions_are_shown_live(file):
    shown = run(file, *WINDOW, "--live", "--json")
    found = json.loads(shown.stdout)
    count = found["totals"]["conspectus"]["compactions"]
    lines = shown.stderr.split("Conspectus: 30 requests")[1]
    assert lines.count(" tokens (") == count > 1
    assert run(file, *WINDOW, "--json").stderr == ""


@pytest.mark.slow
def test_the_figures_and_the_page_are_written(file, tmp_path):
    numbers, page = tmp_path / "now.json", tmp_path / "page.html"
    done = run(file, *WINDOW, "-o", numbers, "--report", page)
    found = json.loads(numbers.read_text())
    assert found["totals"]["conspectus"]["over"] == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "agent.json" in text
    assert f"Report: {page}" in done.stdout.replace("\n", "")


@pytest.mark.slow
def test_standard_input_is_read(file):
    done = run("-", *WINDOW, "--policy", "none", "--json", input=file.read_text())
    assert json.loads(done.stdout)["replays"][0]["name"] == "standard input"


def test_the_bill_is_shown_with_what_it_would_be_without_compaction(file, tmp_path):
    settings = (file, *WINDOW, "--policy", "conspectus", "--priced-as", "gpt-5.4")
    out = tmp_path / "figures.json"
    shown = run(*settings, "-o", out)
    found = json.loads(out.read_text(encoding="utf-8"))
    [bill] = found["totals"]["conspectus"]["bills"]
    [without] = found["without"]
    assert bill["model"] == without["model"] == "gpt-5.4"
    assert bill["requests"] == without["requests"] == 30
    assert found["replays"][0]["runs"][0]["bills"][0]["money"] == bill["money"] > 0
    lines = shown.stdout.splitlines()
    start = next(at for at, line in enumerate(lines) if "bill as gpt-5.4" in line)
    ours = next(line for line in lines[start:] if "Conspectus" in line).split()
    theirs = next(line for line in lines[start:] if "a window without end" in line).split()
    assert f"${bill['money']:.3f}" in ours
    assert f"{int(bill['cached_share'] * 1_000) / 10}%" in ours
    assert f"${without['money']:.3f}" in theirs


def test_prices_of_the_users_own_go_before_the_known_ones(file, tmp_path):
    own = write_json(
        tmp_path / "prices.json",
        {"ours": {"input": 1, "output": 0, "cached": 1}, "gpt-5.4": {"input": 0, "output": 0}},
    )
    named = [part for name in ("ours", "gpt-5.4", "gpt-5") for part in ("--priced-as", name)]
    done = run(file, *WINDOW, "--policy", "none", "--prices", own, *named, "--json")
    ours, free, known = json.loads(done.stdout)["without"]
    assert ours["money"] == pytest.approx(ours["input_tokens"] / 1_000_000)
    assert (free["money"], known["money"] > 0) == (0.0, True)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nothing", "is no JSON"),
        ("[]", "holds no prices by model"),
        ('{"m": 3}', "'m' takes input, output and"),
        ('{"m": {"input": 1}}', "'m' takes input, output and"),
        ('{"m": {"input": 1, "output": 2, "cache": 3}}', "cached, written, written_hour; write"),
        ('{"m": {"input": -1, "output": 2}}', "input must be a number of at least 0"),
        (None, "cannot be read: No such file"),
    ],
)
def test_a_file_of_prices_that_is_wrong_ends_with_2(file, tmp_path, text, told):
    prices = tmp_path / "prices.json"
    if text is not None:
        prices.write_text(text, encoding="utf-8")
    assert told in run(file, "--prices", prices, code=2).stderr


def test_lines_that_were_skipped_are_told(tmp_path):
    lines = [
        {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "hi"}},
        {"type": "progress", "uuid": "u2"},
        {"type": "assistant", "uuid": "u3", "message": {"role": "assistant", "content": "yes?"}},
    ]
    file = tmp_path / "session.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in lines))
    assert "session.jsonl: 1 line skipped: no part" in run(file).stdout


@pytest.mark.slow
def test_what_cannot_fit_ends_with_1_and_says_so(file):
    done = run(file, "--window", "600", code=1)
    assert "requests do not fit the window of 600 tokens" in done.stderr
    assert "Conspectus" in done.stdout
    assert "Note: the history does not fit" in done.stdout
    run(file, "--window", "600", "--policy", "none")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--policy", "best"), "there is no policy 'best'"),
        (("--window", "0"), "window must be"),
        (("--priced-as", "unheard-of"), "no price is known for 'unheard-of'"),
        (("--trigger", "pages:3"), "--trigger cannot be"),
        (("--keep", "all"), "--keep cannot be"),
        (("--summarizer", "gpt"), "--summarizer cannot be"),
        (("--report", "nowhere/page.html"), "does not exist"),
    ],
)
def test_wrong_options_end_with_2(file, arguments, told):
    assert told in run(file, *arguments, code=2).stderr


def test_files_that_cannot_be_replayed_end_with_2(tmp_path):
    file = write_json(tmp_path / "asked.json", [{"role": "user", "content": "hi"}])
    assert "asked.json: no assistant speaks" in run(file, code=2).stderr
    run(tmp_path / "nothing.json", code=2)


def test_a_compaction_is_told_in_one_line():
    left = (Original("m1", "m1", "user", "", "hi there", 4),)
    done = Compaction(
        step=3,
        cause="window",
        before=1_200,
        after=300,
        left=left,
        summary="",
        shortened=2,
    )
    assert in_words(done) == (
        "  request 3: 1,200 → 300 tokens (window); 1 message left; 2 shown short"
    )
