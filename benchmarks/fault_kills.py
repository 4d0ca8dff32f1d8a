"""Kill workers at random moments over four surfaces; others go on from what is in the files."""

from __future__ import annotations

import json
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fault_thread import SURFACES, TURNS, finished, forked, lost, strings
from tables import Row

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""A process that is killed takes nothing from a file, so that no disk is needed."""


def _work(run: Callable[[Path], list[Any]], folder: Path) -> None:
    """Run a surface to its end, and note its last view."""
    os.setpgid(0, 0)
    view = run(folder)
    plain = [m if isinstance(m, dict) else m.model_dump(mode="json") for m in view]
    (folder / "view.tmp").write_text(json.dumps(plain, default=str))
    (folder / "view.tmp").rename(folder / "view")


def _killed(run: Callable[[Path], list[Any]], folder: Path, after: float) -> bool:
    """Start the surface and kill it, with all its processes, after so many seconds.

    Returns:
        Whether it was killed; it may have ended before.

    Raises:
        RuntimeError: it failed by itself.
    """
    child = forked(lambda: _work(run, folder), folder)
    until = time.monotonic() + after
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            if status:
                raise RuntimeError((folder / "err").read_text()[-1500:])
            return False
        time.sleep(0.002)
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:  # it has no group yet
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def rows(count: int) -> Iterator[Row]:
    """Kill so many times in all; count the kills, and the threads with something missing."""

    for name, run in SURFACES.items():
        draw = random.Random(name)
        kills = 0
        threads = 0
        wrong = list[str]()
        wanted = max(1, count // len(SURFACES))
        took = _seconds(run)
        while kills < wanted:
            threads += 1
            with tempfile.TemporaryDirectory(dir=MEMORY) as made:
                folder = Path(made)
                try:
                    # One that ended may be killed as it leaves; started once more, it would go
                    # back to the first turn, and the archive would export that turn's branch.
                    while kills < wanted and not (folder / "view").exists():
                        if not _killed(run, folder, draw.uniform(0, took)):
                            break
                        kills += 1
                    wrong += _judged(name, run, folder)
                except RuntimeError as error:
                    wrong.append(str(error).strip().splitlines()[-1])
            if len(wrong) > 5:
                break
        detail = f"{kills:,} kills of {threads:,} threads{'; ' * bool(wrong)}{'; '.join(wrong[:2])}"
        yield Row(f"killed, {name}: threads that lost or broke", len(wrong), 0, "", detail)


def _seconds(run: Callable[[Path], list[Any]]) -> float:
    """Return the seconds of a thread that nobody kills."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as made:
        began = time.monotonic()
        finished(lambda: _work(run, Path(made)), Path(made))
        return time.monotonic() - began


def _judged(name: str, run: Callable[[Path], list[Any]], folder: Path) -> list[str]:
    """Let the thread come to its end; list what is wrong with it."""
    if not (folder / "view").exists():
        finished(lambda: _work(run, folder), folder)
    view = json.loads((folder / "view").read_text())
    if len(view) > 5 * TURNS:
        return ["nothing was compacted, so that nothing was tried"]
    missing = lost(folder, strings(view))
    return [f"missing: {', '.join(missing)}"] if missing else []
