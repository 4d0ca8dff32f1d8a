"""The promises as properties: examples tried of each, and the outcome.

    make properties [SEED=1]      or: python benchmarks/properties.py --profile short --least 0

Runs the property tests of the suite with Hypothesis, the long profile in two processes, and prints
one row for each promise and each way through: how many examples were really run, counted by
Hypothesis itself in every process, how many steps the state machines took, and the outcome. The
exit code is 1 if a test failed, or if fewer examples ran than promised; 2 if an option makes no
sense.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import printed
from command_line import Options, at_least, ended, tell, whole
from rich.console import Console

ROOT = Path(__file__).resolve().parents[1]
LEAST = 100_000
NO_TESTS = 5
"""How pytest ends where nothing was chosen."""

PROMISES = {
    1: "Nothing unread leaves",
    2: "Commit rule",
    3: "Valid sequences",
    4: "The budget holds",
    5: "What is kept is untouched",
    6: "Facts survive rounds",
    7: "Walls",
    8: "A summary has no authority",
    9: "Sync and async are the same",
    10: "Same input, same plan",
    11: "Rewind is lossless",
    12: "The user's words stand",
    13: "Calls are told truly",
}

ELSEWHERE = {
    "test_model_chunks": 1,
    "test_messages": 2,
    "test_tokens": 4,
    "test_tally": 4,
    "test_secrets_stateful": 7,
    "test_plan": 10,
    "test_short_term_plan": 10,
}
"""Modules with property tests of the parts that a promise rests on."""


@dataclass(frozen=True)
class Row:
    """The runs of one promise through one way."""

    promise: int
    through: str
    tests: int
    examples: int
    steps: int
    failed: int


def promise_of(test: str) -> int | None:
    """Give the promise that a test belongs to; None for none."""
    module = Path(test.partition("::")[0]).stem
    numbered = re.match(r"test_promise_(\d\d)_", module)
    return int(numbered[1]) if numbered else ELSEWHERE.get(module)


def rows_of(noted: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Sum up the plugin's notes by promise and way through."""
    found: dict[tuple[int, str], list[Mapping[str, Any]]] = {}
    for note in noted:
        promise = promise_of(note["test"])
        if promise is not None:
            found.setdefault((promise, note["through"]), []).append(note)
    return [
        Row(
            promise,
            through,
            len(notes),
            sum(note["examples"] for note in notes),
            sum(note["steps"] for note in notes),
            sum(note["outcome"] != "passed" for note in notes),
        )
        for (promise, through), notes in sorted(found.items())
    ]


def chosen(only: str) -> tuple[set[int], str]:
    """Read the choice: some promises, or an expression for the names of tests.

    Args:
        only: promises by number or by words of their names, or words that a test's name must
            hold; several with semicolons between them.

    Raises:
        ValueError: both are asked for, or a promise that there is not, or nothing.
    """
    promises, names = set[int](), []
    texts = [text for part in only.split(";") if (text := part.strip())]
    if only and not texts:
        raise ValueError("it names nothing; leave it out for all of them")
    for text in texts:
        number = re.fullmatch(r"(?:promise[ _]?)?(\d{1,2})", text)
        if number:
            of = {int(number[1])}
            if not of <= PROMISES.keys():
                raise ValueError(f"there is no promise {number[1]}; there are 1 to {len(PROMISES)}")
        else:
            of = {n for n, name in PROMISES.items() if text.lower() in name.lower()}
        words = [word for word in re.findall(r"\w+", text) if word not in ("and", "or", "not")]
        promises |= of
        names += [] if of else [f"({' and '.join(words)})"] if words else []
    if promises and names:
        raise ValueError("give promises or words of tests' names, not both")
    return promises, " or ".join(names)


def run(profile: str, processes: int, only: str, seed: int = 0) -> tuple[int, list[dict[str, Any]]]:
    """Run the tests; give pytest's exit code, and the notes on each property test."""
    promises, names = chosen(only)
    tests = [f"tests/{name}.py" for name in sorted(ELSEWHERE)]
    tests += sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("tests/test_promise_*.py"))
    if promises:
        tests = [test for test in tests if promise_of(test) in promises]
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes.json"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "stateful.counting"]
        command += ["--properties-to", str(notes), f"--hypothesis-seed={seed}"]
        command += ["-n", str(processes), "--dist", "worksteal"] if processes > 1 else []
        command += ["-k", names] if names else []
        path = os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
        env = {**os.environ, "CONSPECTUS_PROFILE": profile, "PYTHONPATH": path}
        env["CONSPECTUS_SEED"] = str(seed)
        code = _ended_with_us([*command, *tests], env)
        found: list[dict[str, Any]] = json.loads(notes.read_text()) if notes.exists() else []
    return code, found


def _ended_with_us(command: Sequence[str], env: Mapping[str, str]) -> int:
    """Run a command; kill it and its processes if this one is stopped."""
    process = subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=sys.stderr, start_new_session=True
    )
    try:
        return process.wait()
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def show(rows: Sequence[Row], screen: Console) -> None:
    """Print the table."""
    columns = ("promise", "through", "outcome", "tests", "examples", "steps")
    table = printed.table("", columns, 3)
    for row in rows:
        outcome = f"{row.failed} failed" if row.failed else "held"
        counts = [f"{n:,}" if n else "" for n in (row.tests, row.examples, row.steps)]
        name = f"{row.promise}. {PROMISES[row.promise]}"
        table.add_row(name, row.through or "?", outcome, *counts)
    screen.print(table)


def judged(rows: Sequence[Row], code: int, least: int) -> list[str]:
    """List the faults of a run; none if all is well."""
    wrong = [f"promise {row.promise} failed through {row.through}" for row in rows if row.failed]
    if code and not wrong:
        wrong.append(f"pytest ended with {code}")
    total = sum(row.examples for row in rows)
    if total < least:
        wrong.append(f"{total:,} examples ran, and {least:,} are promised")
    missing = [str(n) for n in PROMISES if least and n not in {row.promise for row in rows}]
    if missing:
        wrong.append(f"nothing was run of promise {', '.join(missing)}")
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, judge."""
    parser = Options(description=__doc__)
    parser.add_argument("--profile", choices=("short", "long"), default="long")
    parser.add_argument("--processes", type=at_least(1), default=2, help="of pytest-xdist")
    parser.add_argument("--least", type=at_least(0), default=LEAST, help="examples to run")
    parser.add_argument(
        "--only", default="", help="promises by number or name, or words that tests' names hold"
    )
    parser.add_argument("--seed", type=whole, default=0, help="of all chance in the long profile")
    asked = parser.parse_args(arguments)
    if asked.profile == "long" and not asked.only:
        tell("All properties take some 50 minutes on two cores; progress is told as tests end.")
    try:
        code, noted = run(asked.profile, asked.processes, asked.only, asked.seed)
    except ValueError as error:
        parser.error(f"ONLY= or --only: {error}")
    rows = rows_of(noted)
    if asked.only and not rows and code in (0, NO_TESTS):
        said = f"{asked.only!r} is in no name of a property test"
        names = "; ".join(f"{number}. {name}" for number, name in PROMISES.items())
        parser.error(f"ONLY= or --only: {said}, and there are these promises: {names}")
    show(rows, printed.screen(110))
    total, steps = sum(row.examples for row in rows), sum(row.steps for row in rows)
    print(f"{total:,} examples of {sum(r.tests for r in rows)} property tests, {steps:,} steps.")
    wrong = judged(rows, code, asked.least)
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    ended(main)
