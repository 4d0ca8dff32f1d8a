"""Archives in files that fail: what becomes of the originals, and what the errors say.

Each trouble begins when some compactions are archived. A compaction during it keeps the history, or
raises an error that names the remedy; after it every message is in the view or in the archive.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fault_thread import KEEP, THREAD, TRIGGER, TURNS, WINDOW, finished, forked, lost, said_in
from tables import Row

from conspectus import Compactor, ConspectusError

NOBODY = 65534
PROCESSES = 8
DISK = 600_000
"""Bytes of the disk that fills up."""

Trouble = Callable[[Path], "Callable[[], None] | None"]
"""Begins a trouble in a folder; returns the function that ends it."""


@dataclass
class Trial:
    """One thread whose archive gets into trouble after its first turns.

    Attributes:
        words: of the errors, and of the reasons for keeping the history.
        wrong: what broke a promise.
        may_be_damaged: an error that says so at the end breaks none.
        taken: the file was taken away, and with it the messages that had left the view before.
    """

    words: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    may_be_damaged: bool = False
    taken: bool = False

    def run(self, folder: Path, trouble: Trouble, reopened: bool = False) -> Trial:
        """Run the thread; `reopened` opens the archive anew within the trouble."""
        said: list[Any] = []
        compactor = self._opened(folder)
        end: Callable[[], None] | None = None
        view: list[Any] = []
        left = set[str]()
        for turn in range(TURNS):
            said += said_in(turn)
            if turn == TURNS // 2:
                left = {str(m.id) for m in said} - {m.id for m in [*view, *said_in(turn)]}
                end = trouble(folder)
                if reopened and compactor is not None:
                    compactor.close()
                    compactor = None
            if turn == TURNS - 1 and end is not None:
                end()
                compactor = None
            try:
                compactor = compactor or self._opened(folder)
                result = compactor.compact(said, thread_id=THREAD)
                view = list(result.messages)
                if result.outcome != "compacted" and turn >= TURNS // 2:
                    self.words.append(result.reason)
            except ConspectusError as error:
                self.words.append(str(error))
                view = said
            except Exception as error:
                self.wrong.append(f"{type(error).__name__}: {error}")
                view = said
        with suppress(ConspectusError):
            if compactor is not None:
                compactor.close()
        try:
            gone = left if self.taken else ()
            self.wrong += lost(folder, [str(m.text) for m in view], gone=gone)
        except RuntimeError as error:
            said_damaged = self.may_be_damaged and "damaged" in str(error)
            self.wrong += [] if said_damaged else [str(error).strip().splitlines()[-1]]
        return self

    def _opened(self, folder: Path) -> Compactor:
        path = folder / "archive.db"
        return Compactor(
            window=WINDOW, trigger=TRIGGER, keep=KEEP, archive=path, alternate_roles="off"
        )


@contextmanager
def _small_disk() -> Iterator[Path | None]:
    """Mount a small disk of its own; None where that is not allowed."""
    with tempfile.TemporaryDirectory() as name:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "none", name]
        own = shutil.which("mount") is not None and subprocess.run(
            mount, capture_output=True, check=False
        ).returncode == 0  # fmt: skip
        try:
            yield Path(name) if own else None
        finally:
            if own:
                subprocess.run(["umount", "-l", name], check=True)


def full_disks(count: int = 13) -> Row:
    """Fill a disk up to different numbers of free bytes."""
    wrong = list[str]()
    words = list[str]()
    for at in range(count):
        with _small_disk() as folder:
            if folder is None:
                return Row("full disks: not tried, no disk can be mounted here", 0, unit="")

            def fill(folder: Path, free: int = 4_096 * at) -> Callable[[], None]:
                filler = folder / "filler"
                with suppress(OSError), filler.open("wb", buffering=0) as file:
                    while True:
                        file.write(bytes(512))
                os.truncate(filler, max(0, filler.stat().st_size - free))
                return filler.unlink

            trial = Trial().run(folder, fill)
            wrong = wrong + trial.wrong
            words = words + trial.words
    return _row(f"{count} full disks", wrong, words)


def read_only() -> Row:
    """Take the right to write from a user who is not the administrator."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def protect(folder: Path) -> Callable[[], None]:
            paths = [*folder.glob("archive.db*")]
            for path in paths:
                path.chmod(0o400)
            return lambda: [path.chmod(0o600) for path in paths if path.exists()] and None

        def work() -> None:
            own = folder / "own"
            own.mkdir()
            trial = Trial().run(own, protect, reopened=True)
            print("\0".join(trial.wrong), "\0".join(trial.words), sep="\1")

        def as_nobody() -> None:
            if os.getuid() == 0:
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            work()

        folder.chmod(0o777)
        wrong, _, words = finished(as_nobody, folder).rstrip("\n").partition("\1")
    return _row("a read-only file", _split(wrong), _split(words))


def _split(text: str) -> list[str]:
    return [part for part in text.split("\0") if part]


def damaged(count: int = 12) -> Row:
    """Overwrite a page of the file, another one each time; messages that were read are said again.

    What was in that page is gone. So the view of the whole history, sent again, must hold what the
    archive does not, or an error must say that the file is damaged.
    """
    wrong = list[str]()
    words = list[str]()
    for seed in range(count):
        with tempfile.TemporaryDirectory() as name:

            def overwrite(folder: Path, seed: int = seed) -> None:
                path = folder / "archive.db"
                with sqlite3.connect(path) as connection:
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                draw = random.Random(seed)
                page = draw.randrange(path.stat().st_size // 4096)
                with path.open("r+b") as file:
                    file.seek(4096 * page)
                    file.write(draw.randbytes(4096))

            trial = Trial(may_be_damaged=True).run(Path(name), overwrite, reopened=True)
            wrong = wrong + trial.wrong
            words = words + trial.words
    return _row(f"{count} damaged pages", wrong, words)


def taken_away() -> Row:
    """Delete the file under an open archive, and put an older copy in its place."""
    wrong = list[str]()
    words = list[str]()
    for restores in (False, True):
        with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as other:

            def replace(folder: Path, old: Path = Path(other), restores: bool = restores) -> None:
                for path in folder.glob("archive.db*"):
                    path.unlink()
                if restores:
                    Trial()._opened(old).compact(said_in(0), thread_id=THREAD, force=True)
                    for path in old.glob("archive.db*"):
                        shutil.copy(path, folder / path.name)

            trial = Trial(taken=True).run(Path(name), replace)
            wrong = wrong + trial.wrong
            words = words + trial.words
    return _row("the file deleted, or replaced by a backup", wrong, words)


def _cut_database(folder: Path) -> None:
    os.truncate(folder / "archive.db", 0)


def _cut_log(folder: Path) -> None:
    os.truncate(folder / "archive.db-wal", 0)


def _delete_log(folder: Path) -> None:
    (folder / "archive.db-wal").unlink()


def _delete_index(folder: Path) -> None:
    (folder / "archive.db-shm").unlink()


def _write_over(folder: Path) -> None:
    (folder / "archive.db").write_bytes(random.Random(0).randbytes(50_000))


LOSES = {_cut_database: True, _cut_log: True, _write_over: True, _delete_log: False}
LOSES |= {_delete_index: False}
"""Troubles under an open archive, and whether they take with them what was archived before."""


def cut_or_written_over() -> Row:
    """Cut, delete or write over the files of an open archive; the last turn opens what is left."""
    wrong = list[str]()
    words = list[str]()
    for trouble, loses in LOSES.items():
        with tempfile.TemporaryDirectory() as name:

            def harm(
                folder: Path, trouble: Callable[[Path], None] = trouble, loses: bool = loses
            ) -> Callable[[], None]:
                trouble(folder)

                def end() -> None:
                    for path in folder.glob("archive.db*") if loses else ():
                        path.unlink()

                return end

            trial = Trial(taken=loses).run(Path(name), harm)
            wrong += [f"{trouble.__name__.strip('_')}: {one}" for one in trial.wrong]
            words += trial.words
    return _row("files cut, deleted or written over", wrong, words)


LOCK = """import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
"""


def locked() -> Row:
    """Hold the file from another process."""

    def hold(folder: Path) -> Callable[[], None]:
        line = [sys.executable, "-c", LOCK, str(folder / "archive.db")]
        other = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert other.stdout is not None
        other.stdout.readline()
        return lambda: other.communicate() and None

    with tempfile.TemporaryDirectory() as name:
        trial = Trial().run(Path(name), hold)
    return _row("a file that another process holds", trial.wrong, trial.words)


def many(rounds: int = 3) -> Row:
    """Have eight processes compact one thread at once, each the whole history turn by turn."""
    wrong = list[str]()
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            children = list[int]()
            for at in range(PROCESSES):
                own = folder / str(at)
                own.mkdir()
                children.append(forked(lambda own=own: _alone(own), own))  # type: ignore[misc]
            bad = sum(bool(os.waitpid(child, 0)[1]) for child in children)
            wrong += [f"{bad} processes failed"] * bool(bad)
            wrong += lost(folder, [t for f in folder.glob("*/view") for t in _split(f.read_text())])
    return _row(f"{PROCESSES} processes on one thread, {rounds} times", wrong, [])


def _alone(own: Path) -> None:
    """Compact the thread beside others, in their archive; note the view."""
    compactor = Trial()._opened(own.parent)
    said = list[Any]()
    view: list[Any] = []
    for turn in range(TURNS):
        said += said_in(turn)
        view = list(compactor.compact(said, thread_id=THREAD).messages)
    (own / "view").write_text("\0".join(str(m.text) for m in view))


def _row(name: str, wrong: list[str], words: list[str]) -> Row:
    """Make a row: what broke, and the first and the last of the words."""
    different = list(dict.fromkeys(word.splitlines()[0] for word in words if word))
    detail = "; ".join([*wrong[:3], *(f"“{word[:150]}”" for word in different[:2])])
    return Row(f"{name}: promises broken", len(wrong), 0, "", detail)


def rows() -> Iterator[Row]:
    """Try all of them."""
    for trouble in (
        full_disks,
        read_only,
        damaged,
        taken_away,
        cut_or_written_over,
        locked,
        many,
    ):
        yield trouble()
