"""The commands of docs/reliability.md: a bad option is one sentence, Ctrl-C ends them at once."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "benchmarks"
NOBODY = "postgresql://nobody@127.0.0.1:1/nothing"


@pytest.mark.parametrize(
    ("command", "given", "says"),
    [
        ("http_faults", ["--only", "nosuch"], "there are: none; context length"),
        ("http_faults", ["--jobs", "0"], "1 or more"),
        ("killed_workers", ["--workers", "nosuch"], "there are: agent, replace; agent, preserve"),
        ("killed_workers", ["--workers", ";"], "nothing is named; there are: agent, replace"),
        ("killed_workers", ["--only-postgres"], "give --postgres"),
        ("killed_workers", ["--postgres", NOBODY], "postgresql://user@host/database"),
        ("failing_stores", ["--only", "nosuch"], "there are: slow: 20 ms a call; hangs"),
        ("failing_stores", ["--postgres", NOBODY], "postgresql://user@host/database"),
        ("workers", ["--count", "0"], "of 1 or more, not '0'"),
        ("workers", ["--rounds", "0"], "of 1 or more, not '0'"),
        ("workers", ["--parts", "nosuch"], "'workers', 'processes', 'stops'"),
        ("workers", ["--parts", "processes"], "give POSTGRES="),
        ("workers", ["--postgres", NOBODY], "postgresql://user@host/database"),
        ("soak", ["--minutes", "-1"], "above 0, not '-1'"),
        ("soak", ["--minutes", "nan"], "above 0, not 'nan'"),
        ("soak", ["--postgres", NOBODY], "postgresql://user@host/database"),
        ("properties", ["--processes", "none"], "a whole number of 1 or more"),
    ],
)
def test_a_bad_option_is_one_sentence_that_says_what_there_is(script, capsys, command, given, says):
    with pytest.raises(SystemExit) as ended:
        script(command).main(given)
    assert ended.value.code == 2
    said = capsys.readouterr()
    [sentence] = said.err.splitlines()
    assert says in sentence
    assert said.out == ""


def test_a_folder_that_is_not_there_is_said(script, capsys):
    asked = script("redaction").asked
    assert asked([str(ROOT)]) == ROOT
    with pytest.raises(SystemExit) as ended:
        asked(["nosuch"])
    assert ended.value.code == 2
    assert "nosuch is no folder" in capsys.readouterr().err


def test_several_workers_are_named_at_once(script):
    options = script("command_line").Options()
    names = ("agent, replace", "agent, preserve", "Compactor")
    assert options.of_these("", ["agent, replace; Compactor"], names) == [names[0], names[2]]
    assert options.of_these("", list(names), names) == list(names)


def test_progress_is_told_on_stderr_only(script, capsys):
    lines = script("command_line")
    often, seldom = lines.Progress("often", 3, every=0), lines.Progress("seldom", 3)
    for one in (often, seldom):
        one.step("first")
        one.step(count=5)
    said = capsys.readouterr()
    assert said.out == ""
    first, second = said.err.splitlines()
    assert first.startswith("often: 1 of 3")
    assert first.endswith("; first")
    assert second.startswith("often: 3 of 3")


@pytest.mark.slow
def test_what_is_stopped_on_the_way_shows_what_there_is(script, monkeypatch, capsys):
    stores = script("failing_stores")
    went_through, tried = stores.went_through, []

    def second_time(case: object) -> object:
        if tried:
            raise KeyboardInterrupt
        tried.append(case)
        return went_through(case, every=60)

    monkeypatch.setattr(stores, "went_through", second_time)
    assert stores.main(["--only", "confirms"]) == 130
    said = capsys.readouterr()
    assert "confirms and forgets all" in said.out
    assert "every third" not in said.out
    assert "Stopped; the table holds" in said.err


def _second_fails(
    script: Callable[[str], ModuleType],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    error: BaseException,
) -> ModuleType:
    """The benchmark of many workers: of all that is stopped the second one raises."""
    workers = script("workers")
    seen = workers.Cancelled("first call", "cancelled", times=1, as_before=1)

    def second(call: str) -> object:
        raise error

    monkeypatch.setattr(workers, "cancelled_everywhere", lambda call, step: seen)
    monkeypatch.setattr(workers, "interrupted_everywhere", second)
    monkeypatch.setattr(script("command_line").tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(workers.logging, "disable", lambda level: None)
    return workers


def test_workers_that_are_stopped_show_the_rows_that_are_done(
    script, monkeypatch, tmp_path, capsys
):
    workers = _second_fails(script, monkeypatch, tmp_path, KeyboardInterrupt())
    assert workers.main(["--parts", "stops"]) == 130
    said = capsys.readouterr()
    assert said.out.count("first call") == 1
    assert "Stopped; the tables hold" in said.err
    assert workers.unshown == []


def test_a_part_that_fails_is_one_sentence_and_the_rows_that_are_done(
    script, monkeypatch, tmp_path, capsys
):
    workers = _second_fails(script, monkeypatch, tmp_path, OSError("the disk\nis full"))
    assert workers.main(["--parts", "stops"]) == 1
    said = capsys.readouterr()
    assert said.out.count("first call") == 1
    [file] = tmp_path.glob("conspectus_*.txt")
    assert said.err.splitlines()[1:] == [
        "stops: OSError: the disk is full; run it again with PARTS=stops; "
        f"the whole error is in {file}."
    ]
    assert "Traceback" in file.read_text()


WAITING = """
import sys, threading, time
sys.path.insert(0, sys.argv[1])
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from command_line import deaf, ended, tell

def main():
    kind = {"threads": ThreadPoolExecutor, "processes": ProcessPoolExecutor}[sys.argv[2]]
    begun = deaf if sys.argv[2] == "processes" else None
    with kind(1, initializer=begun) as pool:
        waiting = pool.submit(time.sleep, 600)
        tell("begun")
        waiting.result()

ended(main, lambda: "something may be left")
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_ctrl_c_ends_a_command_and_what_it_waits_for(kind):
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING, str(BENCHMARKS), kind],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stderr.readline() == "begun\n"
        time.sleep(0.3)
        os.killpg(process.pid, signal.SIGINT)
        out, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert out == ""
    assert "Stopped" in said
    assert "Traceback" not in said
