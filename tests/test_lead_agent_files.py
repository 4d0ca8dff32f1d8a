"""What the lead agent's tools refuse: every way out of the folder of their thread."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from lead_agent.errors import LeadAgentError
from lead_agent.files import ENTRIES, LARGEST, Files, Refusal
from lead_agent.sandbox import tools_of
from lead_agent.settings import SandboxSettings
from lead_agent.shell import run_command
from lead_agent.thread_data import PARTS, ThreadFolders, folder_name
from lead_agent_support import opened, results

HOSTILE = [
    "../../../etc",
    "..",
    ".",
    "/etc/passwd",
    "a/../../b",
    "a\0b",
    "..\\..\\windows",
    "C:\\x",
    "~root",
    "x" * 5_000,
    "CON",
    "línea\nnueva",
    "\ud800",
    "$(rm -rf .)",
    "-rf",
    " ",
    "",
]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """The files of one thread, with a secret beside its folder."""
    (tmp_path / "secret.txt").write_text("the secret")
    return Files(ThreadFolders(tmp_path / "data").of("t"))


@pytest.mark.parametrize("thread", HOSTILE, ids=ascii)
def test_a_hostile_thread_id_is_a_folder_right_below_the_base(tmp_path, thread):
    base = tmp_path / "data"
    folder = ThreadFolders(base).of(thread)
    assert folder.resolve().parent == (base / "threads").resolve()
    assert sorted(path.name for path in folder.iterdir()) == sorted(PARTS)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    assert len(folder.name) <= 60


def test_a_link_in_the_place_of_a_threads_folder_is_refused(tmp_path):
    folders = ThreadFolders(tmp_path / "data")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "data" / "threads").mkdir(parents=True)
    (tmp_path / "data" / "threads" / folder_name("t")).symlink_to(elsewhere)
    with pytest.raises(LeadAgentError, match="is a link"):
        folders.of("t")
    inner = folders.of("u") / "workspace"
    inner.rmdir()
    inner.symlink_to(elsewhere)
    with pytest.raises(LeadAgentError, match="is a link"):
        folders.of("u")


OUTSIDE = [
    "../secret.txt",
    "workspace/../../../secret.txt",
    "workspace/..",
    "/etc/passwd",
    "//etc/passwd",
    "~/secret.txt",
    "C:/secret.txt",
    "workspace\\..\\secret.txt",
    "workspace/a\0b",
    "workspace/a\nb",
    "workspace/" + "n" * 300,
    "",
    ".",
]


@pytest.mark.parametrize("path", OUTSIDE, ids=ascii)
def test_paths_that_leave_the_folder_are_refused(files, path):
    with pytest.raises(Refusal):
        files.read(path)
    with pytest.raises(Refusal):
        files.write(path, "x")
    if path not in ("", "."):
        with pytest.raises(Refusal):
            files.listed(path)


def test_no_link_is_followed_neither_at_the_end_nor_on_the_way(files, tmp_path):
    secret = tmp_path / "secret.txt"
    (files.root / "workspace" / "file").symlink_to(secret)
    (files.root / "workspace" / "folder").symlink_to(tmp_path)
    (files.root / "workspace" / "within").symlink_to(files.root / "outputs")
    other = tmp_path / "other.txt"
    other.write_text("the other secret")
    os.link(other, files.root / "workspace" / "hard")
    for path in ("file", "folder/secret.txt", "within/a.txt", "hard"):
        with pytest.raises(Refusal) as told:
            files.read(f"workspace/{path}")
        assert str(tmp_path) not in str(told.value)
        with pytest.raises(Refusal):
            files.write(f"workspace/{path}", "overwritten")
    for path in ("folder", "within"):
        with pytest.raises(Refusal):
            files.listed(f"workspace/{path}")
        with pytest.raises(Refusal):
            files.write(f"workspace/{path}/new.txt", "x")
    assert secret.read_text() == "the secret"
    assert other.read_text() == "the other secret"
    assert not list((files.root / "outputs").iterdir())
    assert sum("refused" in line for line in files.listed("workspace")) == 4


def test_a_folder_swapped_for_a_link_is_not_followed(files, tmp_path, monkeypatch):
    """The swap takes place after the folder was made sure of, and before the file is opened."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("outside")
    files.write("workspace/sub/a.txt", "inside")
    real, sub = os.open, files.root / "workspace" / "sub"

    def swapping(path: object, *args: object, **more: object) -> int:
        number = real(path, *args, **more)  # type: ignore[arg-type]
        if path == "sub":
            sub.rename(tmp_path / "moved")
            sub.symlink_to(outside)
        return number

    monkeypatch.setattr(os, "open", swapping)
    assert files.read("workspace/sub/a.txt") == "inside"
    with pytest.raises(Refusal):
        files.read("workspace/sub/a.txt")


def test_pipes_and_folders_are_no_files_and_nobody_waits_for_them(files):
    os.mkfifo(files.root / "workspace" / "pipe")
    for path in ("workspace/pipe", "workspace"):
        with pytest.raises(Refusal):
            files.read(path)
    for path in ("workspace/pipe", "outputs/../workspace"):
        with pytest.raises(Refusal):
            files.write(path, "x")


def test_only_workspace_and_outputs_are_written_to(files):
    assert files.write("outputs/reports/q1.md", "fine") == 4
    for path in ("uploads/a.txt", "a.txt", "other/a.txt", "workspace"):
        with pytest.raises(Refusal):
            files.write(path, "x")
    assert sorted(path.name for path in files.root.iterdir()) == sorted(PARTS)


def test_a_file_is_written_whole_or_stays_as_it_was(files, monkeypatch):
    files.write("workspace/a.txt", "before")

    def failing(*args: object, **more: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(Refusal, match="No space left"):
        files.write("workspace/a.txt", "after")
    assert files.read("workspace/a.txt") == "before"
    assert files.listed("workspace") == ["a.txt (6 bytes)"]


def test_sizes_are_limited(files):
    with pytest.raises(Refusal, match="write at most"):
        files.write("workspace/a.txt", "x" * (LARGEST + 1))
    (files.root / "uploads" / "big").write_bytes(b"x" * (LARGEST + 1))
    with pytest.raises(Refusal, match="too many"):
        files.read("uploads/big")
    for n in range(ENTRIES + 3):
        (files.root / "uploads" / f"f{n:04}").touch()
    assert files.listed("uploads")[-1] == "... and 4 more"


def test_a_refusal_is_an_answer_to_the_model_and_the_run_goes_on(tmp_path):
    (tmp_path / "secret.txt").write_text("the secret")
    with opened(tmp_path) as agent:
        assert "'..' is refused" in agent.turn("t", "read ../secret.txt")["answer"]
        assert "Wrote 5 bytes" in agent.turn("t", "write workspace/a.txt: hello")["answer"]
        assert agent.turn("t", "read workspace/a.txt")["answer"] == "hello"
        assert "a.txt" not in agent.turn("u", "list workspace")["answer"]
        assert "the secret" not in "".join(results(agent))


def test_there_is_no_shell_unless_it_is_switched_on(tmp_path):
    folders = ThreadFolders(tmp_path)
    for allowed in (False, True):
        names = {one.name for one in tools_of(folders, SandboxSettings(shell=allowed))}
        assert ("shell" in names) == allowed
    assert SandboxSettings().shell is False
    with opened(tmp_path, shell="true") as agent:
        answer = agent.turn("t", "run echo hello > workspace/a.txt && cat workspace/a.txt")
        assert answer["answer"] == "hello\n\n[exit code 0]"


def test_a_command_is_stopped_with_all_it_has_started(tmp_path):
    command = "sleep 300 & echo $! > pid; echo begun; sleep 300"
    said = run_command(command, tmp_path, seconds=1, output=500)
    assert said == "begun\n\n[stopped after 1 seconds]"
    assert _gone(int((tmp_path / "pid").read_text()))
    said = run_command("sleep 300 & echo $! > pid; echo done", tmp_path, seconds=60, output=500)
    assert said == "done\n\n[exit code 0]"
    assert _gone(int((tmp_path / "pid").read_text()))


def _gone(pid: int) -> bool:
    for _ in range(200):
        state = subprocess.run(
            ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
        ).stdout.strip()
        if not state or state.startswith("Z"):  # nobody may be there to fetch its exit code
            return True
        time.sleep(0.05)
    return False


def test_a_command_sees_no_key_of_this_process_and_reads_no_terminal(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    said = run_command("env; pwd; cat; exit 3", tmp_path, seconds=60, output=5_000)
    assert "sk-secret" not in said
    assert str(tmp_path) in said
    assert said.endswith("[exit code 3]")
    assert "refused" in run_command("echo a\0b", tmp_path, seconds=60, output=500)
    assert "exit code" in run_command("exec >&- 2>&-; exit 4", tmp_path, seconds=60, output=500)
