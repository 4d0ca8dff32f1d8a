"""How many examples and steps the property tests really ran, test by test.

A pytest plugin: `-p stateful.counting --properties-to FILE` writes what was run as JSON. Each
worker of pytest-xdist notes its own tests in their reports, so that nothing is counted twice.
"""

import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass
class Steps:
    """Steps of state machines in this process."""

    count: int = 0


STEPS = Steps()
"""Counted by the worlds."""

EVERY = 30.0
"""Seconds between two lines that say how far it is."""

NOTE = "property"
RAN = ("valid", "interesting")
"""Examples that ran to their end, or to a failure; others were drawn and thrown away."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--properties-to", default=None, help="write what property tests ran, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--properties-to") and not hasattr(config, "workerinput"):
        notes = Notes(Path(config.getoption("--properties-to")), config.pluginmanager)
        config.pluginmanager.register(notes)


@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    from hypothesis.statistics import collector

    outer = collector.value
    ran: Counter[str] = Counter()

    def note(statistics: dict[str, Any]) -> None:
        for phase in ("reuse", "generate"):
            cases = statistics.get(f"{phase}-phase", {}).get("test-cases", ())
            ran.update(case["status"] for case in cases)
        if outer is not None:
            outer(statistics)

    steps = STEPS.count
    with collector.with_value(note):
        yield
    if ran:
        examples = sum(ran[status] for status in RAN)
        through = getattr(getattr(item, "cls", None), "through", "functions")
        what = {"examples": examples, "steps": STEPS.count - steps, "through": through}
        item.user_properties.append((NOTE, json.dumps(what)))


class Notes:
    """Gathers the notes of all workers where the reports come together, and tells of them."""

    def __init__(self, path: Path, plugins: pytest.PytestPluginManager) -> None:
        self.path, self.rows = path, []  # type: ignore[var-annotated]
        self.plugins = plugins
        self.began = self.told = time.monotonic()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        noted = [json.loads(str(value)) for name, value in report.user_properties if name == NOTE]
        if report.when == "call" and noted:
            self.rows.append({"test": report.nodeid, "outcome": report.outcome, **noted[0]})
            self._tell_now_and_then()
        elif report.failed:
            what = {"examples": 0, "steps": 0, "through": ""}
            self.rows.append({"test": report.nodeid, "outcome": "failed", **what})

    def _tell_now_and_then(self) -> None:
        now = time.monotonic()
        if now - self.told >= EVERY:
            self.told = now
            examples = sum(row["examples"] for row in self.rows)
            said = f"{len(self.rows)} tests, {examples:,} examples, {now - self.began:.0f} s"
            if screen := self.plugins.get_plugin("terminalreporter"):
                screen.write_line(f"\n{said}")

    def pytest_sessionfinish(self) -> None:
        self.path.write_text(json.dumps(self.rows, indent=1))
