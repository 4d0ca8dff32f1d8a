"""`conspectus config`: checked, described for editors, and tried on transcripts."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import cli_support
from cli_support import read_json
from config_support import fits, written
from recorded_sessions import agent

PRESETS = sorted((Path(__file__).parents[1] / "examples" / "config").glob("*.yaml"))


run = partial(cli_support.run, "config")


def checked(file: Path, *more: object) -> dict[str, Any]:
    return read_json("config", "check", file, *more)


def section(folder: Path, *lines: str) -> Path:
    return written(folder, "summarization:\n" + "".join(f"  {line}\n" for line in lines))


ON = ("enabled: true", "trigger: {type: tokens, value: 4000}")


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    file = tmp_path / "agent.json"
    file.write_text(json.dumps(agent(40)), encoding="utf-8")
    return file


# check


def test_check_shows_every_setting_and_the_window(tmp_path):
    file = section(
        tmp_path,
        "enabled: true",
        "window: 20000",
        "trigger: [{type: fraction, value: '0.8'}, {tokens: 9000, messages: 30}]",
        "subagents: {one: {keep: {type: messages, value: 7}}}",
    )
    found = checked(file)
    assert (found["valid"], found["enabled"], found["window"]) == (True, True, 20_000)
    settings = found["settings"]
    assert settings["trigger"][1] == {"tokens": 9000, "messages": 30}
    assert settings["subagents"] == {"one": {"keep": {"type": "messages", "value": 7}}}
    assert settings["keep"] == {"type": "messages", "value": 20}  # the default
    shown = run("check", file).stdout
    assert "valid" in shown
    assert "20,000 tokens, as 'window' says" in " ".join(shown.split())


def test_check_takes_the_window_from_the_option_the_models_or_a_profile(tmp_path):
    share = ("enabled: true", "trigger: {type: fraction, value: 0.8}")
    assert checked(section(tmp_path, *share), "--window", "10000")["window"] == 10_000
    file = written(tmp_path, """
        models: [{name: house, use: "langchain_openai:ChatOpenAI", model: x, context_window: 9000}]
        summarization: {enabled: true, trigger: {type: fraction, value: 0.5}}
        """)  # fmt: skip
    assert checked(file)["window"] == 9_000
    pytest.importorskip("langchain_openai")
    assert checked(section(tmp_path, *share, "model_name: gpt-4o-mini"))["window"] == 128_000
    assert checked(section(tmp_path, *ON, "model_name: a-model-of-ones-own"))["window"] is None


def test_check_opens_nothing_and_shows_no_secret(tmp_path, monkeypatch):
    monkeypatch.setenv("HIDDEN", "hunter2")
    where = tmp_path / "archive.db"
    assert checked(section(tmp_path, *ON, f"archive: sqlite:///{where}"))["valid"]
    assert not where.exists()
    file = section(tmp_path, *ON, "archive: postgresql://ann:hunter2@db/x", "model_name: $HIDDEN")
    for more in ((), ("--json",)):
        done = run("check", file, *more)
        assert "hunter2" not in done.output
        assert "postgresql://ann:***@db/x" in done.output
        assert "$HIDDEN" in done.output


def test_check_says_that_nothing_is_summarised(tmp_path):
    assert "no section" in checked(written(tmp_path, "models: []\n"))["notes"][0]
    assert not checked(section(tmp_path, "enabled: false"))["enabled"]


# schema


def test_schema_is_printed_and_written(tmp_path):
    printed = run("schema")
    out = tmp_path / "schema.json"
    run("schema", "-o", out)
    schema = json.loads(out.read_text())
    assert json.loads(printed.stdout) == schema
    good = {"summarization": {"enabled": True, "trigger": {"tokens": 5, "messages": "$LIMIT"}}}
    assert fits(good, schema)
    run("schema", "-o", tmp_path / "no" / "x.json", code=2)


# explain


def explained(file: Path, transcript: Path, *more: object) -> dict[str, Any]:
    [one] = read_json("config", "explain", file, "--transcript", transcript, *more)["transcripts"]
    return one


@pytest.mark.slow
def test_explain_says_when_it_would_have_fired_and_what_it_would_have_kept(tmp_path, transcript):
    file = section(
        tmp_path,
        "enabled: true",
        "trigger: {type: messages, value: 30}",
        "keep: {type: messages, value: 8}",
    )
    found = explained(file, transcript)
    first = found["compactions"][0]
    # 30 messages are there before the model's 16th answer: one of the user, 14 pairs, and a call.
    assert (first["request"], first["cause"]) == (16, "trigger: 30 messages")
    assert first["left"] + 8 >= 30
    assert 8 <= first["kept"] <= 10
    assert all(one["read"] == 1.0 for one in found["compactions"])
    assert first["up_to"].startswith("[")
    assert first["summary"].count("# Part 1") == 1  # the notes of the summariser are the summary
    assert f"It fires {len(found['compactions'])} times in 40 requests" in found["verdict"]
    shown = run("explain", file, "--transcript", transcript)
    assert "request 16 of 40: trigger: 30 messages" in shown.stdout
    assert "all read" in shown.stdout
    assert f"leaves up to {first['up_to'][:20]}" in shown.stdout
    assert "Here is a summary" not in shown.stdout
    whole = run("explain", file, "--transcript", transcript, "--full")
    assert "Here is a summary" in whole.stdout


def test_explain_says_what_is_shown_short_where_nothing_leaves(tmp_path):
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Read all modules."}]
    for n in range(12):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        text = f"module_{n}.py: " + "pass  # a line of it\n" * 120
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": text})
    messages.append({"role": "assistant", "content": "All read."})
    transcript = tmp_path / "read.json"
    transcript.write_text(json.dumps(messages), encoding="utf-8")
    short = "stale_results: {over: 300, newest: 1, least: 1000}"
    file = section(tmp_path, *ON, "keep: {type: messages, value: 4}", short, "window: 32000")
    found = explained(file, transcript)
    [first, *_] = found["compactions"]
    assert (first["left"], first["shortened"] > 0, first["up_to"]) == (0, True, "")
    shown = run("explain", file, "--transcript", transcript).stdout
    assert f"{first['shortened']} shown short" in shown
    assert "nothing leaves," in shown
    assert "leaves up to \n" not in shown


def test_explain_shows_the_notes_that_would_have_been_written(tmp_path):
    said = [
        {"role": "user", "content": "Never push to the branch release/7."},
        {"role": "assistant", "content": "I will not."},
    ]
    transcript = tmp_path / "said.json"
    transcript.write_text(json.dumps([*said, *agent(20)]), encoding="utf-8")
    few = ("trigger: {type: messages, value: 30}", "keep: {type: messages, value: 8}")
    file = section(tmp_path, "enabled: true", *few)
    summary = explained(file, transcript)["compactions"][0]["summary"]
    for part in ("Never push to the branch release/7.", "## Done", "## Found and decided"):
        assert part in summary


@pytest.mark.slow
def test_explain_says_why_it_never_fires(tmp_path, transcript):
    found = explained(section(tmp_path, ON[0], "trigger: {type: tokens, value: 90000}"), transcript)
    assert found["compactions"] == []
    assert found["verdict"].startswith("It never fires: the trigger is 90,000 tokens")
    assert "in 81 messages" in found["verdict"]


@pytest.mark.slow
def test_explain_needs_a_window_only_for_a_fraction(tmp_path, transcript):
    file = section(
        tmp_path,
        "enabled: true",
        "trigger: {type: fraction, value: 0.5}",
        "keep: {type: messages, value: 4}",
    )
    done = run("explain", file, "--transcript", transcript, code=2)
    assert "line 3" in done.stderr
    assert "window" in done.stderr
    found = explained(file, transcript, "--window", 4000)
    assert found["compactions"]
    assert found["peak"] <= 4_000
    assert found["over"] == 0


@pytest.mark.slow
def test_explain_advises_where_something_is_not_as_it_should_be(tmp_path, transcript):
    file = section(
        tmp_path,
        "enabled: true",
        "trigger: {type: messages, value: 8}",
        "keep: {type: messages, value: 7}",
    )
    advice = "\n".join(explained(file, transcript)["advice"])
    assert "more than one request in four: lower 'keep', or raise the trigger" in advice


def test_explain_ends_with_1_where_the_window_cannot_be_kept(tmp_path):
    file = section(tmp_path, *ON)
    said = [
        {"role": "system", "content": "You know all of this: " + "word " * 3_000},
        {"role": "user", "content": "what do you know?"},
        {"role": "assistant", "content": "all of it"},
    ]
    talk = tmp_path / "talk.json"
    talk.write_text(json.dumps(said), encoding="utf-8")
    done = run("explain", file, "--transcript", talk, "--window", 2_000, code=1)
    assert "1 requests do not fit the window of 2,000 tokens" in " ".join(done.stdout.split())
    run("explain", file, "--transcript", talk, "--window", 200_000)


# Presets


@pytest.fixture(autouse=True)
def _archive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHIVE_URL", "postgresql://ann:hunter2@db/conspectus")


def test_there_are_the_presets_that_the_page_names():
    assert [file.stem for file in PRESETS] == [
        "conservative",
        "minimal",
        "production",
        "several_models",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("file", PRESETS, ids=lambda file: file.stem)
def test_a_preset_is_valid_and_keeps_every_promise_on_a_transcript(file, tmp_path):
    assert checked(file)["enabled"]
    long = tmp_path / "long.json"
    long.write_text(json.dumps(_long()), encoding="utf-8")
    found = explained(file, long, "--window", 32_000)
    assert found["compactions"], found["verdict"]
    assert found["over"] == 0
    assert found["peak"] <= 32_000
    assert all(one["read"] == 1.0 for one in found["compactions"])
    assert "ended early" not in found["verdict"]
    assert all("Here is a summary" in one["summary"] for one in found["compactions"])


def _long() -> list[dict[str, Any]]:
    """Some 40,000 tokens in 400 messages."""
    made: list[dict[str, Any]] = []
    for n in range(200):
        asked = f"what does section {n} of report-{n}.txt say about the harbour? " * 6
        said = f"Section {n} says that berth {n} is free from {n % 28 + 1} May 2031 on. " * 6
        made.append({"role": "user", "content": asked})
        made.append({"role": "assistant", "content": said})
    return made
