"""`make mutants`: plant every defect, or some, and print whether its test noticed.

A process that has imported what others have written, and nothing of ours, is forked for each
defect, so that one costs little more than its test. The fork has a copy of the package.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from mutants import PROMISES, SOURCE, TESTS, Defect, problems_of_defects, read_defects

SECONDS = 60.0
"""How long one test may take; one that does not end has noticed nothing."""

OTHERS = (
    "hypothesis",
    "langchain.agents",
    "langchain.chat_models",
    "langgraph.checkpoint.sqlite",
    "langgraph.prebuilt",
    "langgraph.store.sqlite",
    "deepagents",
    "langmem.short_term",
)


class Witness:
    """Sees whether a test fails by what it asserts, and not by an error on the way."""

    def __init__(self, copy: Path) -> None:
        self.copy = copy
        self.verdict = ["broke", "no test was run"]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
        report = yield
        if call.excinfo is not None and not report.skipped:
            verdict = "failed" if self.is_promised(call.excinfo) else "broke"
            self.verdict = [verdict, str(call.excinfo.exconly())[:400]]
        elif report.when == "call" and self.verdict[1] == "no test was run":
            self.verdict = ["passed", ""]
        return report

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.verdict = ["broke", str(report.longrepr)[-400:]]

    def is_promised(self, excinfo: Any) -> bool:
        """Whether it is an assertion of the test, `pytest.raises`, or a refusal of ours."""
        error = excinfo.value
        if isinstance(error, AssertionError):
            return not Path(str(excinfo.traceback[-1].path)).is_relative_to(self.copy)
        ours = sys.modules.get("conspectus.errors")
        refusal = ours is not None and isinstance(error, ours.ConspectusError)
        return refusal or isinstance(error, pytest.fail.Exception)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; 1 if a defect was not noticed."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--promise", type=int, choices=PROMISES, help="those of one promise only")
    parser.add_argument("--name", default="", help="those whose name holds this text only")
    parser.add_argument("--workers", type=int, default=2, help="how many at once; default: 2")
    options = parser.parse_args(arguments)
    if wrong := problems_of_defects(read_defects()):
        print(*wrong, sep="\n")
        return 1
    chosen = [
        chosen_defect
        for chosen_defect in read_defects()
        if options.promise in (None, chosen_defect.promise)
        and options.name.lower() in chosen_defect.name.lower()
    ]
    if not chosen:
        parser.error(f"no defect has {options.name!r} in its name; tests/mutants has them")
    import_others()
    # Without a defect each test passes, or it would prove nothing when it fails.
    tests = sorted({chosen_defect.test for chosen_defect in chosen})
    jobs = [(None, test) for test in tests] + [
        (chosen_defect, chosen_defect.test) for chosen_defect in chosen
    ]
    planted = Counter[int]()
    noticed = Counter[int]()
    unsound = 0
    for defect, test, verdict, message in run_all(jobs, max(1, options.workers)):
        if defect is None:
            if verdict != "passed":
                unsound += 1
                print(f"without any defect {test} {verdict}: {message}", flush=True)
            continue
        planted[defect.promise] += 1
        noticed[defect.promise] += verdict == "failed"
        mark = "noticed by" if verdict == "failed" else f"NOT NOTICED ({verdict} {message}) by"
        changed = defect.changes or defect.file
        print(f"{defect.promise:>2}  {defect.name}\n    {changed}: {mark} {test}", flush=True)
    for promise in sorted(planted):
        print(f"promise {promise}: {noticed[promise]} of {planted[promise]} noticed")
    return 1 if unsound or planted != noticed else 0


def import_others() -> None:
    """Import what the tests need of others, so that a fork has it."""
    for name in OTHERS:
        try:
            import_module(name)
        except ImportError:
            continue
    ours = [name for name in sys.modules if name.partition(".")[0].startswith("conspectus")]
    assert not ours, "a fork must import the package from its own copy"


def run_all(
    jobs: Sequence[tuple[Defect | None, str]], workers: int
) -> Iterator[tuple[Defect | None, str, str, str]]:
    """Run tests against the package with a defect in it, or as it is; several at once."""
    waiting = list(jobs)[::-1]
    running = dict[int, tuple[Defect | None, str, Path, float]]()
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                defect, test = waiting.pop()
                folder = Path(tempfile.mkdtemp(prefix="mutant-"))
                running[_forked(folder, defect, test)] = (defect, test, folder, time.monotonic())
            for process, (defect, test, folder, began) in list(running.items()):
                ended, _ = os.waitpid(process, os.WNOHANG)
                if not ended and time.monotonic() - began <= SECONDS:
                    continue
                if not ended:
                    os.killpg(process, signal.SIGKILL)
                    os.waitpid(process, 0)
                del running[process]
                verdict, message = _read(folder) if ended else ("took too long", "")
                shutil.rmtree(folder, ignore_errors=True)
                yield defect, test, verdict, message
            time.sleep(0.02)
    finally:
        for process, (_, _, folder, _) in running.items():
            os.killpg(process, signal.SIGKILL)
            shutil.rmtree(folder, ignore_errors=True)


def _read(folder: Path) -> tuple[str, str]:
    try:
        verdict, message = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "broke", (folder / "output.txt").read_text(errors="replace")[-400:]
    return verdict, message


def _forked(folder: Path, defect: Defect | None, test: str) -> int:
    sys.stdout.flush()
    process = os.fork()
    if process:
        return process
    try:
        os.setsid()
        output = os.open(folder / "output.txt", os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        answer = _tested(folder, defect, test)
        (folder / "verdict.json").write_text(json.dumps(answer), encoding="utf-8")
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(0)


def _tested(folder: Path, defect: Defect | None, test: str) -> list[str]:
    """In the fork: the copy, the defect in it, and the test."""
    copy = folder / "src"
    shutil.copytree(SOURCE, copy)
    if defect is not None:
        path = copy / defect.path
        path.write_text(defect.planted(path.read_text(encoding="utf-8")), encoding="utf-8")
    sys.path.insert(0, str(copy))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(copy), os.environ.get("PYTHONPATH", "")])
    os.environ["CONSPECTUS_PROFILE"] = "short, first failure"
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None
    os.chdir(TESTS.parent)
    witness = Witness(copy)
    options = ["-q", "-x", "-p", "no:cacheprovider", "--no-header", "--tb=short"]
    pytest.main([*options, f"--basetemp={folder / 'made'}", str(TESTS / test)], plugins=[witness])
    import conspectus

    assert Path(conspectus.__file__).is_relative_to(copy), "the test ran against something else"
    return witness.verdict


if __name__ == "__main__":
    sys.exit(main())
