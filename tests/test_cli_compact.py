"""`conspectus compact`: what it prints, what it writes, and what it leaves alone."""

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import messages_to_dict

from cli_support import error_line, read_json, run, write_json
from conspectus.messages import SUMMARY_LINE, read_messages
from conspectus.transcripts import read_history
from stateful.messages import answering, calling, speaking

report = partial(read_json, "compact")
SMALL = ["--trigger", "messages:10", "--keep", "messages:4", "--alternate-roles", "off"]

pytestmark = pytest.mark.usefixtures("own_data_folder")


def talk(form: str = "openai") -> list[Any]:
    """A conversation with a rule, tool calls and a fact in each turn."""
    rule = "Never touch the file /etc/payroll.conf. 你好 [bold]"
    messages = [] if form == "anthropic" else [speaking(form, "system", "You are a clerk.")]
    messages.append(speaking(form, "user", rule))
    for turn in range(12):
        order = f"ORD-{1000 + turn}"
        messages += [
            speaking(form, "user", f"Please check order {order} for me."),
            calling(form, "I do.", [(f"c{turn}", order)]),
            answering(form, f"c{turn}", f"shipped, {turn} parcels " * 9),
            speaking(form, "assistant", f"Order {order} has been shipped."),
        ]
    return messages


def anthropic_talk() -> dict[str, Any]:
    return {"model": "m", "system": "Be brief.", "max_tokens": 9, "messages": talk("anthropic")}


def responses_talk() -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for turn in range(10):
        call = {"type": "function_call", "call_id": f"c{turn}", "name": "ls", "arguments": "{}"}
        output = f"file-{turn}.py " * 9
        items += [
            {"role": "user", "content": f"Look at file-{turn}.py."},
            call,
            {"type": "function_call_output", "call_id": f"c{turn}", "output": output},
            {"role": "assistant", "content": f"It is file-{turn}.py, and it is fine."},
        ]
    return items


def session() -> list[dict[str, Any]]:
    rows = []
    for number, message in enumerate(anthropic_talk()["messages"]):
        role = message["role"]
        rows.append({"type": role, "uuid": f"u{number}", "timestamp": "2025", "message": message})
    return rows


def as_lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


LANGCHAIN = messages_to_dict(talk("langchain"))
HISTORIES: dict[str, tuple[str, str]] = {
    "openai": ("openai", json.dumps(talk(), indent=1)),
    "openai lines": ("openai", as_lines(talk())),
    "openai body": ("openai", json.dumps({"model": "m", "messages": talk(), "n": 1})),
    "responses body": ("openai", json.dumps({"model": "m", "input": responses_talk()})),
    "anthropic": ("anthropic", json.dumps(anthropic_talk()["messages"])),
    "anthropic body": ("anthropic", json.dumps(anthropic_talk())),
    "langchain": ("langchain", json.dumps(LANGCHAIN)),
    "langgraph state": ("langchain", json.dumps({"values": {"messages": LANGCHAIN}})),
    "claude code": ("claude-code", as_lines(session())),
}


@pytest.fixture
def history(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "talk.json"
    path.write_text(HISTORIES["openai"][1], encoding="utf-8")
    content_before = path.read_bytes()
    yield path
    assert path.read_bytes() == content_before  # no command may change its input


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", HISTORIES)
def test_each_form_is_written_as_it_was_read(tmp_path, name):
    form, text = HISTORIES[name]
    path = tmp_path / "in.txt"
    out = tmp_path / "out.txt"
    path.write_text(text, encoding="utf-8")
    data = report(path, *SMALL, "-o", out)
    assert data["outcome"] == "compacted"
    assert data["format"] == form
    read_before = read_history(path)
    read_after = read_history(out)
    if form == "claude-code":
        read_before.messages[:] = [
            {key: message[key] for key in ("role", "content")} for message in read_before.messages
        ]  # type: ignore[index]
    expected = "anthropic" if form == "claude-code" else form
    assert read_after.format.name == expected
    assert bool(read_after.parsed.lines) == bool(read_before.parsed.lines and form != "claude-code")
    entries = read_messages(read_after.messages)
    summaries = [i for i, e in enumerate(entries) if e.text.startswith(SUMMARY_LINE)]
    assert len(summaries) == 1
    leading = read_after.messages[: summaries[0]]
    tail = read_after.messages[summaries[0] + 1 :]
    assert tail == read_before.messages[-len(tail) :]
    assert leading == read_before.messages[: len(leading)]
    assert len(tail) >= 4
    assert data["evicted"] == len(read_before.messages) - len(leading) - len(tail)
    if "body" in name:
        whole = json.loads(text)
        output = json.loads(out.read_text(encoding="utf-8"))
        field = "input" if "input" in whole else "messages"
        assert {**output, field: []} == {**whole, field: []}


def test_a_stuck_history_exits_with_1_and_the_numbers(history, tmp_path):
    out = tmp_path / "out.json"
    result = run("compact", history, "--window", "20", "--json", "-o", out, code=1)
    data = json.loads(result.stdout)
    assert (data["outcome"], data["budget"]) == ("stuck", 20)
    assert result.stderr.startswith("conspectus: error: ")
    assert result.stderr.count("\n") == 1
    *_, newest = json.loads(out.read_text(encoding="utf-8"))
    assert newest == talk()[-1]
    assert data["evicted"] > 0  # what may leave leaves all the same


def test_standard_streams_may_be_input_and_output():
    result = run("compact", "-", *SMALL, "-o", "-", input=json.dumps(talk(), ensure_ascii=False))
    assert json.loads(result.stdout)[-4:] == talk()[-4:]
    assert "compacted" in result.stderr


def test_the_history_itself_is_not_replaced(history, tmp_path):
    link = tmp_path / "link.json"
    link.symlink_to(history)
    for out in (history, link):
        assert "give -o another name" in error_line("compact", history, *SMALL, "-o", out)
        assert json.loads(history.read_text(encoding="utf-8")) == talk()
    out = tmp_path / "out.json"
    out.write_text("as it was")
    out.chmod(0o640)
    assert report(history, *SMALL, "-o", out)["evicted"]
    assert out.stat().st_mode & 0o777 == 0o640


def originals(archive: Path) -> str:
    """What an archive has of thread t, as it gives it back: its file is compressed."""
    result = run("archive", "export", "--archive", archive, "--thread", "t")
    return result.stdout


def test_redact_takes_secrets_out_of_the_archive_and_says_so(tmp_path):
    password = "tr0ub4dor" + "&3x"
    messages = talk()
    messages[2]["content"] += f" DB_PASSWORD={password}"
    messages[5]["content"] += f" I used {password}."
    path = write_json(tmp_path / "secret.json", messages)
    archive = tmp_path / "a.db"
    redacted_report = report(path, *SMALL, "--archive", archive, "--thread", "t", "--redact")
    assert redacted_report["redacted"] == {"password": 2}
    assert redacted_report["outcome"] == "compacted"
    assert password not in originals(archive)
    assert "parcels" in originals(archive)
    result = run("compact", path, *SMALL, "--thread", "u", "--redact")
    assert "Secrets taken out of what is kept, in places: password 2" in result.stdout
    plain_report = report(path, *SMALL, "--archive", tmp_path / "b.db", "--thread", "t")
    assert plain_report["redacted"] == {}
    assert password in originals(tmp_path / "b.db")


def test_the_report_says_what_left_and_how_to_find_it(history):
    result = run("compact", history, *SMALL, "--thread", "my talk")
    assert result.stderr == ""
    for part in ("compacted", "before", "after", "Summary", "- The user: ", "Originals:"):
        assert part in result.stdout
    assert "[bold]" in result.stdout  # words of the user, not markup
    assert "Next: conspectus recall --thread 'my talk'" in result.stdout


def test_below_the_trigger_the_report_says_how_to_compact(history, tmp_path):
    out = tmp_path / "out.json"
    data = report(history, "-o", out)
    assert data["outcome"] == "kept"
    assert data["record_id"] is None
    assert json.loads(out.read_text(encoding="utf-8")) == talk()
    [note] = data["notes"]
    assert f"it has {data['tokens_before']:,} tokens, and the trigger is at 170,000 tokens" in note
    assert "--force" in note
    assert report(history, "--force", "--keep", "messages:4")["outcome"] == "compacted"
    [window] = re.findall(r"--window (\d+)", note)
    assert report(history, "--window", window)["outcome"] == "compacted"


def test_a_second_run_says_what_an_earlier_one_has_done(history):
    first_report = report(history, "--window", "1k", "--thread", "t")
    second_output = run("compact", history, "--window", "1k", "--thread", "t").stdout
    assert f"before {first_report['messages_after']:>9} messages" in second_output
    assert "to compact it now, give --force" in second_output
    evicted = first_report["evicted"]
    file_line = (
        f"file   {first_report['messages_before']} messages, of which {evicted} were evicted before"
    )
    assert (
        second_output.index(file_line)
        < second_output.index("before ")
        < second_output.index("after ")
    )
    assert second_output.index("Note: ") < second_output.index("\nSummary\n")


def test_two_conversations_in_one_thread_are_not_passed_over(history, tmp_path):
    run("compact", history, *SMALL, "--thread", "t")
    other_talk = [{"role": "user", "content": f"Is berth {n} free?"} for n in range(30)]
    path = write_json(tmp_path / "other.json", other_talk)
    [note] = report(path, *SMALL, "--thread", "t")["notes"]
    assert "the thread t holds another conversation" in note
    out = tmp_path / "out.json"
    assert not report(path, *SMALL, "--thread", "t2", "-o", out)["notes"]
    assert not report(out, *SMALL, "--thread", "t2", "--force")["notes"]  # it goes on from there


def test_a_thread_whose_first_run_only_clipped_holds_no_other_conversation(tmp_path):
    messages = talk()
    messages[4] = answering("openai", "c0", "shipped, 5 parcels " * 9_000)
    path = write_json(tmp_path / "long.json", messages)
    settings = ["--trigger", "tokens:20000", "--thread", "t"]
    first_report = report(path, *settings)
    assert (first_report["outcome"], first_report["evicted"]) == ("compacted", 0)
    second_report = report(path, *settings)
    assert second_report["outcome"] == "kept"
    assert not any("holds another conversation" in note for note in second_report["notes"])
    other_path = write_json(tmp_path / "other.json", [{"role": "user", "content": "Is it free?"}])
    other_report = report(other_path, *settings)
    assert other_report["outcome"] == "kept"
    assert "the thread t holds another conversation" in other_report["notes"][0]


def test_the_model_of_the_file_gives_the_window(tmp_path, monkeypatch):
    monkeypatch.setattr("conspectus.model.windows.input_limit_in_profile", {"gpt-5": 900}.get)
    path = write_json(tmp_path / "body.json", {"model": "gpt-5", "messages": talk()})
    data = report(path)
    assert (data["model"], data["window"], data["outcome"]) == ("gpt-5", 900, "compacted")
    data = report(path, "--window", 9_000, "--no-archive")
    assert "85% of the window, 9,000 tokens" in data["notes"][0]
    assert read_json("tokens", path)["window"] == 900
    assert "of the window of gpt-5, 900 tokens" in run("tokens", path).stdout


BAD_USES: dict[str, tuple[list[str], str]] = {
    "trigger": (["--trigger", "tokens"], "--trigger cannot be 'tokens'"),
    "trigger kind": (["--trigger", "words:5"], "--trigger cannot be 'words:5'"),
    "trigger number": (["--trigger", "tokens:many"], "--trigger cannot be"),
    "trigger below 0": (["--trigger", "tokens:-5"], "write tokens:8000"),
    "fraction": (["--window", "900", "--trigger", "fraction:7"], "write tokens:8000"),
    "a share of nothing": (["--keep", "fraction:0.3", "--force"], "window="),
    "keep": (["--keep", "all"], "--keep cannot be 'all'"),
    "window": (["--window", "0"], "'0' is no number of tokens"),
    "window word": (["--window", "big"], "write it as 8000, 8k or 1M"),
    "reserve word": (["--reserve", "1e3"], "write it as 8000, 8k or 1M"),
    "reserve": (["--window", "100", "--reserve", "100"], "leaves nothing of the window"),
    "summary": (["--max-summary-tokens", "3"], "max_summary_tokens"),
    "summariser": (["--model", "magic"], "magic"),
    "model": (["--model", "nobody:gpt"], "could not be built"),
    "on failure": (["--on-failure", "shrug"], "on_failure must be one of"),
    "archives": (["--archive", "x.db", "--no-archive"], "exclude each other"),
    "archive empty": (["--archive", ""], "--archive is empty"),
    "archive form": (["--archive", "ftp://x"], "names no archive"),
    "two outputs": (["-o", "-", "--json"], "both want standard output"),
    "thread": (["--thread", ""], "--thread is empty"),
    "option": (["--colour"], "No such option"),
    "a loop of links": (["-o", "loop"], "leads back to itself"),
    "no folder": (["-o", "none/such/out.json"], "in a folder that exists"),
    "folder": (["-o", "."], "the name of a file"),
}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", BAD_USES)
def test_bad_use_is_one_line_and_exit_code_2(history, tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    args, expected = BAD_USES[name]
    Path("loop").symlink_to("loop")
    assert expected in error_line("compact", history, *args)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["loop", "talk.json"]


def test_an_archive_is_neither_the_output_nor_any_other_file(history, tmp_path):
    archive = tmp_path / "a.db"
    report(history, *SMALL, "--archive", archive)
    content_before = archive.read_bytes()
    assert "is only read" in error_line("compact", history, "--archive", archive, "-o", archive)
    assert archive.read_bytes() == content_before
    (tmp_path / "notes.db").write_text("dear diary, " * 50)
    for no_archive in (tmp_path / "notes.db", tmp_path, "postgresql://ann:secret@127.0.0.1:9/x"):
        assert "secret" not in error_line(
            "compact", history, *SMALL, "--archive", no_archive, code=3
        )
    assert (tmp_path / "notes.db").read_text() == "dear diary, " * 50


@pytest.mark.slow
@pytest.mark.parametrize("on_failure", [["--on-failure", "raise"], []], ids=["raise", "degrade"])
def test_a_model_that_cannot_be_reached_is_exit_code_4(history, tmp_path, on_failure, monkeypatch):
    pytest.importorskip("langchain_openai")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    out = tmp_path / "out.json"
    args = ["compact", history, "--force", "--keep", "messages:4", "-o", out]
    args += ["--model", "openai:gpt-4o-mini"]
    result = run(*args, *on_failure, code=4)
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("conspectus: error: ")
    if on_failure:
        assert not out.exists()
    else:  # there is room, so the history may stay as it is
        assert "kept" in result.stdout
        assert json.loads(out.read_text(encoding="utf-8")) == talk()


@pytest.mark.parametrize(
    ("model", "roles"), [("mistral-small", ["user"]), ("gpt-4o", ["user"] * 2)]
)
def test_the_model_of_a_file_decides_on_joining(tmp_path, model, roles):
    turns = [
        message
        for n in range(14)
        for message in (
            {"role": "user", "content": f"Question {n}: " + "why " * 40},
            {"role": "assistant", "content": f"Answer {n}: " + "so " * 40},
        )
    ]
    path = tmp_path / "in.json"
    out = tmp_path / "out.json"
    path.write_text(json.dumps({"model": model, "messages": turns[:-1]}))
    data = report(path, "--force", "--keep", "messages:1", "-o", out)
    assert data["outcome"] == "compacted"
    assert [
        written_message["role"] for written_message in json.loads(out.read_text())["messages"]
    ] == roles
