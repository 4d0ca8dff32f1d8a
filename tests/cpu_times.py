"""What each test costs in CPU seconds, its threads and finished children included:

    python -m pytest -n 2 --cpu-times FILE

writes a line for each test (setup, call, teardown), most expensive first, then what each process
took in all. A module's or session's fixture counts for the first test that asks for it, and is
named."""

import os
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

OPTION = "--cpu-times"


def cpu_seconds() -> float:
    """Of this process, and of its children that it has waited for."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


class CpuTimes:
    """In a worker it measures; where reports arrive it adds up and writes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.spent: defaultdict[str, dict[str, float]] = defaultdict(dict)
        self.processes: list[tuple[str, float]] = []
        self.shared: list[tuple[str, float]] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        self.last = cpu_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: Any, request: Any
    ) -> Generator[None, object, object]:
        start = cpu_seconds()
        value = yield
        if fixturedef.scope != "function":
            self.shared.append((fixturedef.argname, cpu_seconds() - start))
        return value

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now = cpu_seconds()
        report.cpu_seconds = now - self.last  # type: ignore[attr-defined]
        report.cpu_shared = self.shared  # type: ignore[attr-defined]
        self.last, self.shared = now, []
        return report

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.spent[report.nodeid][report.when] = report.cpu_seconds
        for name, seconds in report.cpu_shared:
            if seconds >= 0.05:
                self.spent[report.nodeid][f"fixture {name}"] = seconds

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["cpu_seconds"] = cpu_seconds()
            return
        own = time.process_time() if self.processes else cpu_seconds()
        self.processes.append(("this process", own))

        def total(parts: dict[str, float]) -> float:
            return sum(parts.get(when, 0.0) for when in ("setup", "call", "teardown"))

        lines = [
            f"{total(parts):9.3f}  {name}"
            + "".join(f"  [{part} {cost:.2f}]" for part, cost in parts.items() if "fixture" in part)
            for name, parts in sorted(self.spent.items(), key=lambda item: -total(item[1]))
        ]
        tests = sum(total(parts) for parts in self.spent.values())
        lines.append(f"{tests:9.3f}  = all {len(self.spent)} tests")
        lines += [f"{seconds:9.3f}  = {name} in all" for name, seconds in self.processes]
        self.path.write_text("\n".join(lines) + "\n")

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        spent = getattr(node, "workeroutput", {}).get("cpu_seconds", 0.0)
        self.processes.append((f"worker {node.gateway.id}", spent))
