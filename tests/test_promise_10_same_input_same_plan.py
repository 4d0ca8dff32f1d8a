"""Promise 10: the core is pure: no clock, I/O, randomness or logging; the rest is repeatable."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import conspectus._core
from engine import compacted, engine
from histories import agent

CORE = Path(conspectus._core.__file__).parent
ALLOWED = {
    "__future__", "bisect", "collections", "collections.abc", "conspectus", "dataclasses",
    "hashlib", "itertools", "json", "math", "typing",
}  # fmt: skip


def test_the_core_imports_nothing_that_could_see_the_world() -> None:
    for path in CORE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                inner = name.startswith(("conspectus._core", "conspectus.errors"))
                assert inner or name in ALLOWED - {"conspectus"}, f"{path.name} imports {name}"


def test_the_same_history_gives_the_same_record_in_every_process() -> None:
    code = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "from engine import *; from histories import agent\n"
        "r = compacted(agent(60), engine(window=4000)); print(r.record_id, r.tokens_after)"
    )
    root = Path(__file__).parent.parent
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=root,
            env={"PYTHONHASHSEED": seed, "PATH": ""},
        ).stdout
        for seed in ("1", "2")
    }
    result = compacted(agent(60), engine(window=4_000))
    assert runs == {f"{result.record_id} {result.tokens_after}\n"}
