"""`conspectus recall`, `archive`, `tokens`; the program as a process: exit codes and endings."""

import asyncio
import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import typer
from typer.testing import CliRunner

from cli_support import error_line, read_json, run, write_json
from conspectus import Compactor
from conspectus.archive import Archive
from conspectus.cli.failures import Program
from conspectus.errors import NotFoundError, install_command
from conspectus.tokens.meter import PER_MESSAGE
from histories import assistant, tool_result, user
from scripts import ROOT, run_python


def talk() -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for turn in range(15):
        city = "Reykjavik" if turn == 3 else f"town {turn}"
        messages.append({"role": "user", "content": f"Book {city} for me.", "id": f"u{turn}"})
        answer = f"{city} is booked. \x1b]0;gotcha\x07 数据"
        messages.append({"role": "assistant", "content": answer, "id": f"a{turn}"})
    return messages


@pytest.fixture
def archive(tmp_path: Path, own_data_folder: None) -> str:
    """An archive with one thread, `trip`, of which all but the end has left the view."""
    path = write_json(tmp_path / "talk.json", talk())
    archive = str(tmp_path / "a.db")
    args = ["compact", path, "--force", "--keep", "messages:4", "--thread", "trip"]
    run(*args, "--archive", archive)
    return archive


def recall_report(archive: str, *args: str) -> dict[str, Any]:
    return read_json("recall", "--archive", archive, "--thread", "trip", *args)


def test_words_find_the_message_that_holds_them(archive):
    report = recall_report(archive, "Reykjavik")
    assert "u3" in [hit["id"] for hit in report["hits"]]
    assert "Reykjavik" in report["text"]
    assert 0 < report["tokens"] <= 1024
    report = recall_report(archive, "booked", "--tokens", "60")
    assert (report["tokens"] <= 60, report["truncated"]) == (True, True)
    assert [hit["text"] for hit in recall_report(archive, "--id", "u3")["hits"]] == [
        "Book Reykjavik for me."
    ]
    stretch = recall_report(archive, "--from", "u2", "--to", "a3")["hits"]
    assert [hit["id"] for hit in stretch] == ["u2", "a2", "u3", "a3"]


@pytest.mark.parametrize("command", ["list", "check"])
def test_reading_leaves_an_empty_file_as_it_is(tmp_path, command):
    file = tmp_path / "notes.txt"
    file.touch()
    assert "is empty" in error_line("archive", command, "--archive", file)
    assert file.read_bytes() == b""


def test_an_unknown_thread_is_an_error_with_the_known_ones(archive):
    compactor = Compactor(archive=archive)
    args = ["recall", "--archive", archive, "--thread", "trap", "Reykjavik"]
    for lookup in ({"query": "Reykjavik"}, {"id": "u3"}, {"range": ("u2", "u3")}):
        with pytest.raises(NotFoundError, match="keeps no thread 'trap' of 'local'"):
            compactor.recall(thread_id="trap", **lookup)
    assert "no thread 'trap' of 'local': nothing is archived" in error_line(*args)
    assert "check the archive and the tenant" in error_line(*args, "--tenant", "bob")
    assert "no thread ''" in error_line("archive", "forget", *args[1:3], "--thread=", "--yes")
    args[4] = "trip"
    line = error_line(*args, "--session", "mian")
    assert (
        "no session 'mian' of thread 'trip' of 'local'; pass a session that it has: 'main'" in line
    )
    with pytest.raises(NotFoundError, match="keeps no thread 'trap'"):
        asyncio.run(compactor.arecall("Reykjavik", thread_id="trap"))
    with pytest.raises(NotFoundError, match="keeps no thread 'trip' of 'bob'"):
        compactor.recall("Reykjavik", thread_id="trip", tenant="bob")
    assert compactor.recall("Reykjavik", thread_id="trip").hits


def test_recall_is_asked_in_one_way(archive):
    command = ["recall", "--archive", archive, "--thread", "trip"]
    assert "ask by a query, by an id, or by a range" in error_line(*command)
    assert "holds none of these words" in error_line(*command, "x", "--id", "u1")
    assert "give both" in error_line(*command, "--from", "u1")
    assert "runs backwards" in error_line(*command, "--from", "a3", "--to", "u1")
    assert "--thread" in error_line("recall", "x")


def test_list_names_the_threads_of_one_tenant(archive):
    listed = read_json("archive", "list", "--archive", archive)
    [thread] = listed.pop("threads")
    assert listed == {"archive": archive, "tenant": "local"}
    assert thread["thread"] == "trip"
    assert (thread["messages"], thread["compactions"]) == (26, 1)
    assert thread["bytes"] > 0
    heading, row = run("archive", "list", "--archive", archive).stdout.splitlines()
    assert heading.split("\t") == list(thread)
    assert row.split("\t") == [str(value) for value in thread.values()]
    for command in ("list", "check", "export"):
        line = error_line("archive", command, "--archive", archive, "--tenant", "bob")
        assert "keeps nothing of 'bob'" in line


def test_show_tells_what_each_compaction_did(archive, tmp_path):
    grown = [*talk(), *({**message, "id": f"b{i}"} for i, message in enumerate(talk()))]
    args = ["compact", write_json(tmp_path / "grown.json", grown), "--force", "--thread", "trip"]
    run(*args, "--archive", archive)
    shown = run("archive", "show", "--archive", archive, "--thread", "trip").stdout
    heading, *rows = (line.split("\t") for line in shown.splitlines())
    first, second = (dict(zip(heading, row, strict=True)) for row in rows)
    assert (first["compaction"], first["cause"], first["evicted"]) == ("1", "forced", "26")
    assert int(second["evicted"]) == len(grown) - 20 - 26
    assert int(second["tokens before"]) > int(second["after"])
    assert "no thread 'other'" in error_line(
        "archive", "show", "--archive", archive, "--thread", "other"
    )


def test_what_is_sound_is_given_beside_what_is_damaged(archive):
    with sqlite3.connect(archive) as database:
        database.execute("UPDATE item SET body = x'00' WHERE name = 'u3'")
    database.close()
    hits = {hit["role"]: hit for hit in recall_report(archive, "Reykjavik")["hits"]}
    assert len(hits) > 1
    key = hits["damaged"]["cite"]
    text = hits["damaged"]["text"]
    assert re.search(rf"{key} is damaged .*; restore the archive from a backup", text)
    thread_options = ["--archive", archive, "--thread", "trip"]
    for command, sound_rows in (
        (["recall", *thread_options, "--id", "u3"], 0),
        (["archive", "export", *thread_options], 26),
    ):
        finished = run(*command, code=3)
        assert (len(finished.stdout.splitlines()), key in finished.stderr) == (sound_rows, True)
    assert run("archive", "show", *thread_options).stdout


def test_check_reads_all_and_ends_with_3_where_something_is_gone(archive):
    assert "all is sound" in run("archive", "check", "--archive", archive).stdout
    with sqlite3.connect(archive) as database:
        first = "SELECT min(key) FROM item WHERE kind = 0"
        database.execute(f"DELETE FROM item WHERE key = ({first})")
    database.close()
    finished = run("archive", "check", "--archive", archive, "--json", code=3)
    assert "is gone" in json.loads(finished.stdout)["wrong"][0]


def test_export_gives_the_originals_as_they_were(archive, tmp_path):
    out = tmp_path / "out.jsonl"
    args = ["archive", "export", "--archive", archive]
    result = run(*args)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    messages = [row["message"] for row in rows]
    assert messages == talk()[: len(messages)]
    assert len(messages) == len(talk()) - 4
    assert {row["thread"] for row in rows} == {"trip"}
    run(*args, "--thread", "trip", "-o", out)
    assert [json.loads(line) for line in out.read_text("utf-8").splitlines()] == rows
    assert "no thread" in error_line(*args, "--thread", "other")
    assert "in a folder that exists" in error_line(*args, "-o", tmp_path / "none" / "out.jsonl")


def test_export_writes_each_session_of_a_thread(archive):
    with Archive.open(archive) as opened:
        compactor = Compactor(archive=opened, keep=("messages", 2))
        compactor.compact(talk(), thread_id="trip", session="helper", force=True)
    args = ["archive", "export", "--archive", archive]
    rows = [json.loads(line) for line in run(*args).stdout.splitlines()]
    assert {row["session"] for row in rows} == {"main", "helper"}
    rows = [json.loads(line) for line in run(*args, "--session", "helper").stdout.splitlines()]
    assert {row["session"] for row in rows} == {"helper"}


def test_forget_deletes_one_thread_for_good(archive):
    args = ["archive", "forget", "--archive", archive]
    assert "give --yes" in error_line(*args, "--thread", "trip", input="y\n")
    assert "--all" in error_line(*args, "--yes")
    assert "--all" in error_line(*args, "--yes", "--all", "--thread", "trip")
    assert recall_report(archive, "--id", "u3")["hits"]
    args.append("--yes")
    assert "no thread" in error_line(*args, "--thread", "other")
    assert read_json(*args, "--thread", "trip")["deleted"] > len(talk()) - 4
    assert "no thread" in error_line(
        "recall", "--archive", archive, "--thread", "trip", "Reykjavik"
    )
    assert b"reykjavik" not in Path(archive).read_bytes().lower()  # nor in the index


def token_report(path: Path, messages: list[dict[str, Any]]) -> dict[str, Any]:
    return read_json("tokens", write_json(path, messages))


def test_broken_pairs_are_named_by_their_place(tmp_path):
    messages = [tool_result("c0", "a.py"), user("Go on."), assistant("", ("c1", "ls"))]
    data = token_report(tmp_path / "a.json", messages)
    assert data["results_without_call"] == [0]
    assert data["calls_without_result"] == [2]
    shown = run("tokens", tmp_path / "a.json")
    assert "Tool calls without a result: message 2" in shown.stdout
    assert "Tool results without a call: message 0" in shown.stdout


def test_a_model_chooses_the_tokenizer(tmp_path):
    messages = [{"role": "user", "content": "Пожалуйста, посмотрите ещё раз. " * 20}]
    data = token_report(tmp_path / "a.json", messages)
    assert data["family"] == "unknown"
    assert data["tokens"] >= 0.97 * max(data["by_family"].values())
    for model, family in (("gpt-4o", "o200k"), ("claude-sonnet-4-5", "claude")):
        counts_of_model = read_json("tokens", tmp_path / "a.json", "--model", model)
        assert counts_of_model["family"] == family
        assert (
            counts_of_model["tokens"]
            == data["by_family"][family]
            == counts_of_model["by_family"][family]
        )
    shown = run("tokens", tmp_path / "a.json")
    assert f"o200k {data['by_family']['o200k']:,}" in shown.stdout


def test_an_estimate_says_its_error_and_a_vocabulary_is_exact(tmp_path):
    path = write_json(tmp_path / "a.json", [{"role": "user", "content": "Hello there"}])
    words = {"Hello": 0, "there": 1, "[UNK]": 2}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    estimated = " ".join(run("tokens", path).stdout.split())
    assert "rarely more than 5% below what the model counts" in estimated
    assert "--counter" in estimated
    exact = ("tokens", path, "--counter", f"tokenizers:{tmp_path / 'tokenizer.json'}")
    data = read_json(*exact)
    assert (data["exact"], data["tokens"]) == (True, 2 + PER_MESSAGE)
    assert "5% below" not in " ".join(run(*exact).stdout.split())


def test_a_model_that_nobody_knows_is_said_with_names_that_are(tmp_path):
    data = token_report(tmp_path / "a.json", [{"role": "user", "content": "Hello there"}])
    finished = run("tokens", tmp_path / "a.json", "--model", "nobody", "--json")
    assert json.loads(finished.stdout) == {**data, "model": "nobody"}
    assert "'nobody' is not known here" in finished.stderr
    assert "such as gpt-4o" in " ".join(finished.stderr.split())
    assert finished.stderr.count("\n") == 1


def test_a_bad_file_is_one_line_also_as_json(tmp_path):
    result = run("tokens", tmp_path / "none.json", "--json", code=2)
    error = json.loads(result.stdout)["error"]
    assert error["type"] == "InputError"
    assert error["exit_code"] == 2
    assert result.stderr == f"conspectus: error: {error['message']}\n"


PROGRAM = [sys.executable, "-m", "conspectus.cli"]
TALK = [
    {"role": role, "content": f"第{turn}条 message number {turn}: nothing new 😀"}
    for turn in range(20)
    for role in ("user", "assistant")
]


@pytest.fixture
def history(tmp_path: Path, own_data_folder: None) -> Path:
    return write_json(tmp_path / "talk.json", TALK)


def process(*args: object, **options: Any) -> subprocess.CompletedProcess[bytes]:
    finished = subprocess.run(
        [*PROGRAM, *map(str, args)], capture_output=True, check=False, **options
    )
    finished.stderr = without_progress(finished.stderr)
    return finished


def without_progress(stderr: bytes) -> bytes:
    """What a busy machine is told of its slowness is no error."""
    return re.sub(rb"conspectus: [^\n]* \(\d+ s\)\n", b"", stderr)


@pytest.mark.parametrize("count", [4, 20, 60])
def test_the_command_that_tokens_suggests_compacts(tmp_path, count):
    messages = [[user, assistant][n % 2](f"Part {n}: {'nothing new ' * 40}") for n in range(count)]
    file = write_json(tmp_path / "talk.json", messages)
    suggestion = run("tokens", file).stdout.splitlines()[-1].removeprefix("Next: conspectus ")
    assert read_json(*shlex.split(suggestion), "--no-archive")["outcome"] == "compacted"


@pytest.mark.parametrize("args", [[], ["archive"], ["nothing"], ["compact"], ["tokens", "a", "b"]])
def test_wrong_use_is_one_line_that_names_the_help(args):
    assert "--help'" in error_line(*args)


def test_the_help_names_every_exit_code():
    help_text = run("--help").stdout
    table = (Path(__file__).parents[1] / "docs" / "cli.md").read_text(encoding="utf-8")
    codes = re.findall(r"(?m)^\| (\d+) \|", table.partition("## Exit codes")[2])
    assert len(codes) > 8
    for code in codes:
        assert re.search(rf"\b{code}\s+[a-z]", help_text), code


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "command"),
    [
        ("starlette", ["serve", "--upstream", "http://127.0.0.1:9"]),
        ("uvicorn", ["serve", "--upstream", "http://127.0.0.1:9"]),
        ("mcp", ["mcp", "--tenant", "ann"]),
    ],
)
def test_a_command_without_its_extra_names_it(module, command):
    line = f"import sys; sys.modules[{module!r}] = None; from conspectus.cli import main"
    result = run_python("-c", f"{line}; main()", *command, text=False)
    assert result.returncode == 2
    assert result.stdout == b""
    assert install_command(command[0]) in result.stderr.decode()


def test_an_internal_error_is_one_line_without_debug(monkeypatch):
    broken = typer.Typer(cls=Program)

    @broken.command()
    def divide() -> None:
        print(1 // 0)

    @broken.command()
    def other() -> None:
        """A second command, so that the first one has a name."""

    result = CliRunner().invoke(broken, ["divide"])
    assert result.exit_code == 70
    assert "ZeroDivisionError" in result.stderr
    assert "CONSPECTUS_DEBUG=1" in result.stderr
    assert result.stderr.count("\n") == 1
    monkeypatch.setenv("CONSPECTUS_DEBUG", "1")
    result = CliRunner().invoke(broken, ["divide"])
    assert result.exit_code == 70
    assert "Traceback" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shell", "code", "words"),
    [
        ('"$@" tokens {file} >&-', 2, "standard output is closed"),
        ('"$@" tokens {file} >&- 2>&-', 2, ""),
        ('"$@" tokens {file} --json 2>&-', 0, ""),
        ('"$@" compact - <&-', 2, "standard input is empty"),
        ('"$@" archive forget --thread t <&-', 2, "give --yes"),
        ('"$@" tokens {file} >/dev/full', 2, "standard output cannot be used: No space left"),
    ],
)
def test_closed_and_full_streams_end_with_a_sentence(history, shell, code, words):
    line = shell.format(file=history)
    ended = subprocess.run(["sh", "-c", line, "sh", *PROGRAM], capture_output=True, check=False)
    error_text = without_progress(ended.stderr).decode()
    assert (ended.returncode, error_text.count("\n")) == (code, bool(words))
    assert words in error_text


@pytest.mark.slow
def test_json_is_whole_whatever_the_terminal_can_show(history):
    ascii = {**os.environ, "PYTHONIOENCODING": "ascii"}
    compact = ["compact", history, "--force", "--keep", "messages:4", "--thread", "t"]
    view = json.loads(process(*compact, "-o", "-", env=ascii).stdout)
    assert view[-3:] == TALK[-3:]
    exported = process("archive", "export", "--thread", "t", env=ascii).stdout
    rows = [json.loads(line) for line in exported.splitlines()]
    assert [row["message"] for row in rows] == TALK[: len(rows)]
    assert json.loads(process("tokens", history, "--json", env=ascii).stdout)["messages"] == 40


@pytest.mark.slow
def test_a_closed_pipe_ends_it_quietly(history):
    for args in (["tokens", history], ["compact", history, "--json"], ["--help"]):
        reader, writer = os.pipe()
        os.close(reader)
        try:
            ended = subprocess.run(
                [*PROGRAM, *args], stdout=writer, stderr=subprocess.PIPE, check=False
            )
        finally:
            os.close(writer)
        assert ended.returncode == 141
        assert without_progress(ended.stderr) == b""


@pytest.mark.parametrize("loading", ["conspectus", "typer"])
def test_an_interruption_while_modules_load_shows_no_traceback(loading):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, function = project["scripts"]["conspectus"].partition(":")
    program = f"""
import sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {loading!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
import {module}
{module}.{function}()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (130, b"conspectus: interrupted\n")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_an_interruption_is_exit_code_130(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # A shell that runs the tests in the background has its children ignore SIGINT.
    heed_interrupts = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)  # noqa: E731
    streams: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    running = subprocess.Popen(
        [*PROGRAM, "tokens", str(pipe)], preexec_fn=heed_interrupts, **streams
    )
    with pipe.open("wb"):  # opens once the program reads
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=600)
    assert running.returncode == 130
    assert out == b""
    assert err.endswith(b"conspectus: interrupted\n")


@pytest.mark.slow
def test_a_full_disk_leaves_the_old_output_and_nothing_half_written(history, tmp_path):
    resource = pytest.importorskip("resource")
    out = tmp_path / "out.json"
    out.write_text("as it was")
    args = ["compact", history, "--no-archive", "-o", out]
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))  # noqa: E731
    result = process(*args, preexec_fn=limit)
    assert result.returncode == 2
    assert b"cannot be written" in result.stderr
    assert result.stderr.count(b"\n") == 1
    assert out.read_text() == "as it was"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.json", "talk.json"]


@pytest.mark.slow
def test_forget_asks_whoever_sits_there(history):
    pty = pytest.importorskip("pty")
    compact = ["compact", history, "--force", "--keep", "messages:4", "--thread", "t"]
    run(*compact)
    for answer, listed_after in ((b"n\n", b"\nt\t"), (b"y\n", b"keeps nothing")):
        our_end, their_end = pty.openpty()
        try:
            os.write(our_end, answer)
            result = process("archive", "forget", "--thread", "t", stdin=their_end)
        finally:
            os.close(our_end)
            os.close(their_end)
        assert result.returncode == 0, result.stderr
        assert b"Delete the thread t of local" in result.stderr
        listed = process("archive", "list")
        assert listed_after in listed.stdout
