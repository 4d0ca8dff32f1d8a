"""One thread over several processes; one is killed, and the thread is spoken to instead of resumed.

Kills at random moments are in `benchmarks/fault_kills.py`.
"""

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from scripts import ran

PROCESS = Path(__file__).parent / "graph_process.py"


def process(
    folder: Path, what: str, argument: Any = None, *, loop: bool = False, **more: Any
) -> Any:
    """What one process says; None where it was killed."""
    environment = {**os.environ, "MIDDLEWARE": json.dumps(more), "LOOP": "1" if loop else ""}
    done = ran(PROCESS, str(folder), what, json.dumps(argument), timeout=120, env=environment)
    if done.returncode == -9:
        return None
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def noted(folder: Path, kind: str) -> list[str]:
    path = folder / f"{kind}.jsonl"
    return [json.loads(line) for line in path.open()] if path.exists() else []


def read(folder: Path) -> Counter[str]:
    """Modules whose results were read by summarisers, with the number of times."""
    found: Counter[str] = Counter()
    for text in noted(folder, "read"):
        found.update(re.findall(r"module (m\d+): pass", text))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("loop", [False, True])
def test_each_turn_in_a_process_of_its_own(tmp_path, loop):
    archived = [process(tmp_path, "say", f"Turn {n}", loop=loop)["archived"] for n in range(4)]
    assert archived == sorted(archived)
    assert archived[-1] > 60
    assert max(read(tmp_path).values()) == 1, "read twice"
    # Behind an arrow notes quote what a result began with.
    whole = [re.findall(r"(?<!→ )module m", text) for text in noted(tmp_path, "sent")]
    assert max(map(len, whole)) <= 5


@pytest.mark.slow
def test_killed_and_then_spoken_to_instead_of_resumed(tmp_path):
    assert process(tmp_path, "die", "Look at all.") is None
    after = process(tmp_path, "say", "Are you still there?")
    assert after["last"] == "Enough for now."
    assert after["archived"] > 0
    again = process(tmp_path, "say", "Go on.")
    assert again["archived"] > after["archived"]
    # The first plan was another one, so its summary may be made anew, once.
    assert max(read(tmp_path).values()) <= 2
