"""An archive whose files are deleted, replaced, cut or moved while a process has them open.

Real processes are damaged so, and killed; what they said was archived is looked for by a new one.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from conspectus.archive import Archive, Scope

CHILD = """
import json, sys
from conspectus import Compactor
from conspectus.archive import Archive
from conspectus.messages import is_summary_message

history = []
archive = Archive.open(sys.argv[1])
compactor = Compactor(archive=archive, window=2_000)
for line in sys.stdin:
    begin, end = json.loads(line)
    for n in range(begin, end):
        history.append({"role": "user", "content": f"word-{n}-only. " + "Lorem ipsum. " * 20})
        history.append({"role": "assistant", "content": f"said-{n}-only. " + "Dolor sit. " * 20})
    history.append({"role": "user", "content": f"question-{end}"})
    result = compactor.compact(history, thread_id="t", force=True)
    view = [one["content"] for one in result.messages if not is_summary_message(one)]
    print(json.dumps([result.outcome, result.archived, view, result.reason]), flush=True)
"""


@contextmanager
def compacting_process(path: Path) -> Iterator[Callable[[int, int], list[Any]]]:
    """Start a process that compacts what it is given, and kill it at the end."""
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(path)], **pipes)

    def compact(begin: int, end: int) -> list[Any]:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(json.dumps([begin, end]) + "\n")
        child.stdin.flush()
        return list(json.loads(child.stdout.readline()))

    try:
        yield compact
    finally:
        child.kill()
        child.wait()


def archived_in(path: Path) -> str:
    """Return all that a new process finds."""
    with Archive.open(path) as archive:
        return json.dumps([row["message"] for row in archive.export(Scope("local", "t"))])


def missing_in(texts: list[str], numbers: range) -> list[int]:
    whole = "".join(texts)
    return [n for n in numbers if not (f"word-{n}-only" in whole and f"said-{n}-only" in whole)]


def delete(path: Path, copy: Path) -> None:
    path.unlink()


def delete_all(path: Path, copy: Path) -> None:
    for file in path.parent.glob("a.db*"):
        file.unlink()


def replace_by_another(path: Path, copy: Path) -> None:
    other_archive = path.with_name("other.db")
    Archive.open(other_archive).close()
    other_archive.replace(path)


def replace_by_an_older_copy(path: Path, copy: Path) -> None:
    copy.replace(path)


def cut_to_nothing(path: Path, copy: Path) -> None:
    os.truncate(path, 0)


def cut_the_log_to_nothing(path: Path, copy: Path) -> None:
    os.truncate(f"{path}-wal", 0)


def cut_the_log(path: Path, copy: Path) -> None:
    os.truncate(f"{path}-wal", 5_000)


def write_zeros_over_the_log(path: Path, copy: Path) -> None:
    log = Path(f"{path}-wal")
    log.write_bytes(bytes(log.stat().st_size))


def move_the_folder(path: Path, copy: Path) -> None:
    path.parent.rename(path.parent.with_name("moved"))
    path.parent.mkdir()


def copy_another_over_it(path: Path, copy: Path) -> None:
    other_archive = path.with_name("other.db")
    with Archive.open(other_archive) as archive:
        archive.write_remarks("someone", "kind", {"name": {"value": 1}})
    shutil.copyfile(other_archive, path)


def copy_an_older_one_over_it(path: Path, copy: Path) -> None:
    with Archive.open(path) as archive:
        archive.forget("nobody")  # which brings the log to the database
    shutil.copyfile(copy, path)


def write_text_over_it(path: Path, copy: Path) -> None:
    path.write_text("no database " * 1_000)


TAKEN_AWAY = [
    delete,
    delete_all,
    replace_by_another,
    replace_by_an_older_copy,
    cut_to_nothing,
    cut_the_log_to_nothing,
    cut_the_log,
    write_zeros_over_the_log,
    move_the_folder,
    copy_another_over_it,
    copy_an_older_one_over_it,
    write_text_over_it,
]


HARMLESS = (copy_another_over_it, write_text_over_it)
"""Damage that leaves all that there is, if it stands in the write-ahead log."""


@pytest.mark.parametrize("damage", TAKEN_AWAY)
def test_nothing_counts_as_archived_in_files_that_were_taken_away(tmp_path, damage):
    path = tmp_path / "folder" / "a.db"
    copy = tmp_path / "copy.db"
    path.parent.mkdir()
    Archive.open(path).close()
    shutil.copyfile(path, copy)
    with compacting_process(path) as compact:
        assert compact(0, 8)[:2] == ["compacted", True]
        damage(path, copy)
        outcome, archived, view, reason = compact(8, 16)
    if archived and damage in HARMLESS:
        assert missing_in([archived_in(path), *view], range(16)) == []
        return
    assert (outcome == "compacted", archived) == (False, False)
    assert missing_in(view, range(8, 16)) == []
    assert str(path) in reason
    assert "open it again" in reason


def delete_the_log(path: Path) -> None:
    Path(f"{path}-wal").unlink()


def delete_the_index(path: Path) -> None:
    Path(f"{path}-shm").unlink()


def delete_log_and_index(path: Path) -> None:
    delete_the_log(path)
    delete_the_index(path)


def take_all_rights(path: Path) -> None:
    for file in path.parent.glob("a.db*"):
        file.chmod(0)


@pytest.mark.parametrize(
    "damage", [delete_the_log, delete_the_index, delete_log_and_index, take_all_rights]
)
def test_originals_survive_a_deleted_log_and_a_kill(tmp_path, damage):
    path = tmp_path / "a.db"
    with compacting_process(path) as compact:
        assert compact(0, 8)[:2] == ["compacted", True]
        damage(path)
        view = compact(8, 16)[2]
    for file in tmp_path.glob("a.db*"):
        file.chmod(0o600)
    assert missing_in([archived_in(path), *view], range(16)) == []


def test_an_archive_that_others_write_and_forget_in_goes_on(tmp_path):
    path = tmp_path / "a.db"
    with compacting_process(path) as compact, Archive.open(path) as opened_here:
        assert compact(0, 8)[:2] == ["compacted", True]
        opened_here.write_remarks(
            "someone", "kind", {f"{n}": {"value": "x" * 5_000} for n in range(900)}
        )
        opened_here.forget("someone")  # which brings the log to the database, and cuts it
        assert compact(8, 16)[:2] == ["compacted", True]
        opened_here.forget("local", "t")
        assert compact(16, 24)[:2] == ["compacted", True]
    assert "word-17-only" in archived_in(path)
