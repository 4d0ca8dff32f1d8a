"""Each defect in a copy of the package, and the test that must catch it run against the copy.

A process that has imported what others have written, and nothing of ours, is forked for each
defect: so one costs little more than its test.
"""

import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from mutants.defects import ROOT, SOURCE, TESTS, Defect

SECONDS = 60.0
"""How long the test of one defect may take; one that ends in no answer is not caught."""

FIRST = (
    "hypothesis",
    "hypothesis.strategies",
    "langchain.agents",
    "langchain.agents.middleware",
    "langchain.chat_models",
    "langgraph.checkpoint.memory",
    "langgraph.checkpoint.sqlite",
    "langgraph.graph.message",
    "langgraph.prebuilt",
    "langgraph.store.memory",
    "langgraph.store.sqlite",
)
"""What is imported before the first fork."""

ALSO = ("deepagents", "langmem.short_term")
"""The same where it is installed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one test came out.

    Attributes:
        verdict: `passed`, `failed` (what it asserts does not hold), `broke` (it came to an end in
            another way) or `took too long`.
        seconds: how long it took, the copy and the imports included.
        said: the last words of what went wrong.
    """

    verdict: str
    seconds: float
    said: str = ""


class _Witness:
    """Sees whether a test fails by what it asserts, and not by an error on the way."""

    def __init__(self, copy: Path) -> None:
        self.copy = copy
        self.passed = 0
        self.failed = 0
        self.broke: list[str] = []
        self.said = ""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
        report = yield
        if call.excinfo is None:
            self.passed += report.when == "call"
        elif report.when == "call" and self._is_promised(call.excinfo):
            self.failed += 1
            self.said = str(call.excinfo.exconly())[:400]
        elif not report.skipped:
            self.broke.append(f"{item.name}: {call.excinfo.exconly()}"[:400])
        return report

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.broke.append(str(report.longrepr)[-400:])

    def _is_promised(self, excinfo: Any) -> bool:
        """An assertion of the test, not one inside the package; `pytest.raises`; or a refusal of
        ours, which says that what was promised cannot be had."""
        error = excinfo.value
        if isinstance(error, pytest.fail.Exception):
            return True
        if isinstance(error, AssertionError):
            return not Path(str(excinfo.traceback[-1].path)).is_relative_to(self.copy)
        known = sys.modules.get("conspectus.errors")
        return known is not None and isinstance(error, known.ConspectusError)

    def verdict(self) -> tuple[str, str]:
        if self.broke:
            return "broke", self.broke[0]
        if self.failed:
            return "failed", self.said
        return ("passed", "") if self.passed else ("broke", "no test was run")


def import_others() -> None:
    """Import what the tests need of others, so that a fork has it."""
    for name in FIRST:
        import_module(name)
    for name in ALSO:
        try:
            import_module(name)
        except ImportError:
            continue
    ours = [name for name in sys.modules if name.partition(".")[0].startswith("conspectus")]
    assert not ours, "a fork must import the package from its own copy"


@dataclass(slots=True)
class _Running:
    place: int
    folder: Path
    began: float


def run_all(
    jobs: Sequence[tuple[Defect | None, Sequence[str]]],
    workers: int,
    told: Callable[[int, Outcome], None] = lambda place, outcome: None,
    seconds: float = SECONDS,
    *,
    fast: bool = False,
) -> list[Outcome]:
    """Run tests against the package with a defect in it, or as it is; several jobs at once.

    Args:
        jobs: a defect, or None, and the tests to run.
        workers: jobs at once.
        told: called with the place of each job that has ended, and how.
        seconds: how long one may take.
        fast: only what `make test` runs, with as few examples.
    """
    outcomes: dict[int, Outcome] = {}
    running: dict[int, _Running] = {}
    waiting = list(enumerate(jobs))[::-1]
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                place, (defect, tests) = waiting.pop()
                folder = Path(tempfile.mkdtemp(prefix="mutant-"))
                process = _forked(folder, defect, tests, fast)
                running[process] = _Running(place, folder, time.monotonic())
            for process, one in list(running.items()):
                took = time.monotonic() - one.began
                ended, _ = os.waitpid(process, os.WNOHANG)
                if not ended and took <= seconds:
                    continue
                if not ended:
                    os.killpg(process, signal.SIGKILL)
                    os.waitpid(process, 0)
                del running[process]
                outcomes[one.place] = _read(one.folder, took, bool(ended))
                shutil.rmtree(one.folder, ignore_errors=True)
                told(one.place, outcomes[one.place])
            time.sleep(0.02)
    finally:
        for process, one in running.items():
            os.killpg(process, signal.SIGKILL)
            os.waitpid(process, 0)
            shutil.rmtree(one.folder, ignore_errors=True)
    return [outcomes[place] for place in range(len(jobs))]


def _read(folder: Path, took: float, ended: bool) -> Outcome:
    if not ended:
        return Outcome("took too long", took)
    try:
        verdict, said = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        said = (folder / "output.txt").read_text(encoding="utf-8", errors="replace")[-400:]
        return Outcome("broke", took, said)
    return Outcome(verdict, took, said)


def _forked(folder: Path, defect: Defect | None, tests: Sequence[str], fast: bool) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        os.setsid()
        output = os.open(folder / "output.txt", os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        answer = _tested(folder, defect, tests, fast)
        (folder / "verdict.json").write_text(json.dumps(answer), encoding="utf-8")
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _tested(
    folder: Path, defect: Defect | None, tests: Sequence[str], fast: bool
) -> tuple[str, str]:
    """In the fork: the copy, the defect in it, and the tests."""
    copy = folder / "src"
    # Compiled files go along, so that only what is changed is compiled anew.
    shutil.copytree(SOURCE, copy)
    if defect is not None:
        path = copy / defect.path
        path.write_text(defect.planted(path.read_text(encoding="utf-8")), encoding="utf-8")
    sys.path.insert(0, str(copy))
    paths = [str(copy), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    os.environ["CONSPECTUS_PROFILE"] = f"{'fast' if fast else 'short'}, first failure"
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None
    os.chdir(ROOT)
    witness = _Witness(copy)
    named = [str(TESTS / test) for test in tests]
    options = ["-q", "-x", "-p", "no:cacheprovider", "--no-header", "--tb=short"]
    if defect is None:
        options.remove("-x")
    if fast:
        options += ["-m", "not slow"]
    pytest.main([*options, f"--basetemp={folder / 'made'}", *named], plugins=[witness])
    import conspectus

    assert Path(conspectus.__file__).is_relative_to(copy), "the tests ran against something else"
    return witness.verdict()
