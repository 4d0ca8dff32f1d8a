"""What the lead agent's tools refuse: every way out of the folder of their thread."""

import os
from pathlib import Path

import pytest

from lead_agent.files import Files, Refusal
from lead_agent.thread_data import ThreadFolders


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """The files of one thread, with a secret beside its folder."""
    (tmp_path / "secret.txt").write_text("the secret")
    return Files(ThreadFolders(tmp_path / "data").of("t"))


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
