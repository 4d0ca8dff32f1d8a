"""The program as a process: exit codes, quiet endings, files that are whole or not there."""

import json
import os
import re
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from cli_support import refused, run
from conspectus.cli.failures import Program
from conspectus.errors import install_command
from scripts import ran

PROGRAM = [sys.executable, "-m", "conspectus.cli"]
TALK = [
    {"role": role, "content": f"第{turn}条 message number {turn}: nothing new 😀"}
    for turn in range(20)
    for role in ("user", "assistant")
]


@pytest.fixture
def history(tmp_path: Path, own_data_folder: None) -> Path:
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(TALK, ensure_ascii=False), encoding="utf-8")
    return path


def process(*args: object, **more: Any) -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run([*PROGRAM, *map(str, args)], capture_output=True, check=False, **more)
    done.stderr = without_progress(done.stderr)
    return done


def without_progress(stderr: bytes) -> bytes:
    """What a busy machine is told of its slowness is no error."""
    return re.sub(rb"conspectus: [^\n]* \(\d+ s\)\n", b"", stderr)


@pytest.mark.slow
def test_the_version_is_that_of_the_package():
    result = process("--version")
    assert result.returncode == 0
    assert result.stdout.decode().split() == ["conspectus", version("conspectus")]
    assert result.stderr == b""


@pytest.mark.parametrize("args", [[], ["archive"], ["nothing"], ["compact"], ["tokens", "a", "b"]])
def test_wrong_use_is_one_line_that_names_the_help(args):
    assert "--help'" in refused(*args)


def test_the_help_names_every_exit_code():
    told = run("--help").stdout
    table = (Path(__file__).parents[1] / "docs" / "cli.md").read_text(encoding="utf-8")
    codes = re.findall(r"(?m)^\| (\d+) \|", table.partition("## Exit codes")[2])
    assert len(codes) > 8
    for code in codes:
        assert re.search(rf"\b{code}\s+[a-z]", told), code


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
    result = ran("-c", f"{line}; main()", *command, text=False)
    assert result.returncode == 2
    assert result.stdout == b""
    assert install_command(command[0]) in result.stderr.decode()


def test_an_error_inside_is_one_line_until_the_traceback_is_asked_for(monkeypatch):
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
    told = without_progress(ended.stderr).decode()
    assert (ended.returncode, told.count("\n")) == (code, bool(words))
    assert words in told


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


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_an_interruption_is_exit_code_130(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # A shell that runs the tests in the background has its children ignore SIGINT.
    heed = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)  # noqa: E731
    running = subprocess.Popen(
        [*PROGRAM, "tokens", str(pipe)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=heed,
    )
    with pipe.open("wb"):  # opens once the program reads
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
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
    for answer, left in ((b"n\n", b"\nt\t"), (b"y\n", b"keeps nothing")):
        ours, theirs = pty.openpty()
        try:
            os.write(ours, answer)
            result = process("archive", "forget", "--thread", "t", stdin=theirs)
        finally:
            os.close(ours)
            os.close(theirs)
        assert result.returncode == 0, result.stderr
        assert b"Delete the thread t of local" in result.stderr
        listed = process("archive", "list")
        assert left in listed.stdout
