"""Workers killed by SIGKILL: others go on from what the databases hold, and it ends the same.

`make kills` does this a thousand times and more; here a sample of the boundaries is taken.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from postgres_support import postgres_schema
from scripts import ran

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
LONG = os.environ.get("CONSPECTUS_PROFILE") == "long"


def killed(*arguments: str) -> str:
    """What the command prints, in a process of its own, as it forks."""
    done = ran(BENCHMARKS / "killed_workers.py", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="workers are forked")
def test_killed_anywhere_a_thread_goes_on_and_ends_as_one_that_was_not():
    few = () if LONG else ("--effects", "3", "--sample", "1", "--twice", "1")
    workers = () if LONG else ("agent, preserve", "Compactor", "Compactor, background")
    printed = killed(*few, *(("--workers", *workers) if workers else ()))
    assert "SQLite" in printed


@pytest.mark.slow
@pytest.mark.postgres
def test_killed_anywhere_it_ends_the_same_on_postgres():
    few = () if LONG else ("--effects", "2", "--sample", "1", "--twice", "0")
    with postgres_schema() as address:
        where = ("--only-postgres", "--postgres", address.partition("options=")[0].rstrip("?&"))
        workers = ("agent on a loop, replace", "agent, background")
        assert "PostgreSQL" in killed(*few, *where, "--workers", *workers)


def whole_end(script: Callable[[str], ModuleType]) -> dict[str, Any]:
    process, thread = script("killed_process"), script("scripted_thread")
    said = [process._plain(message) for message in thread.ever_said()]
    nothing = {"shown_short": {}, "channel": None, "recalled": True}
    return {**nothing, "left": said[:9], "here": said[9:]}


def test_what_is_missing_doubled_or_out_of_order_is_seen(script):
    judged, end = script("killed_process").judged, whole_end(script)
    assert judged(end) == ([], [])
    assert judged({**end, "left": end["left"][1:]}) == (["turn-0"], [])
    assert judged({**end, "here": [end["left"][-1], *end["here"]]}) == ([], ["result-1.2"])
    assert judged({**end, "left": end["left"][::-1]})[1] == ["they are out of order"]
    shorter = [[*end["here"][0][:2], "short", []], *end["here"][1:]]
    assert judged({**end, "here": shorter})[0] == [shorter[0][1]]
    clipped = {shorter[0][1]: end["here"][0]}
    assert judged({**end, "here": shorter, "shown_short": clipped}) == ([], [])
    assert judged({**end, "recalled": False})[0]
    assert judged({**end, "channel": end["left"]})[0]


@pytest.mark.parametrize(
    ("paid", "starts", "twice"),
    [
        ("ab", [[1, ["a"]]], 0),  # killed after the draft was stored, and it was used
        ("aab", [[1, []]], 0),  # killed before it was stored: nobody can know of it
        ("aabb", [[1, []], [3, ["a"]]], 0),  # twice so
        ("aab", [[1, ["a"]]], 1),  # it was there, and was paid for again
        ("abab", [[2, []]], 1),  # more than one for one death
    ],
)
def test_a_summary_that_is_paid_for_twice_is_seen(script, tmp_path, paid, starts, twice):
    workers, process = script("killed_workers"), script("killed_process")
    end = {**whole_end(script), "summaries": [], "records": [], "shown": []}
    place = process.Place("Compactor", tmp_path, tmp_path, "t")
    place.note("paid").write_text("".join(f"{one}\n" for one in paid))
    place.note("starts").write_text("".join(f"{json.dumps(one)}\n" for one in starts))
    course = workers.Course("Compactor", tmp_path, end, ["a", "b"])
    assert course._judged(place, end, len(starts))["paid twice"] == twice
