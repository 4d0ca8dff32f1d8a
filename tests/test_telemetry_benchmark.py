"""The benchmark of telemetry runs, compares like with like, and finds what is wrong."""

import io
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from rich.console import Console

from conspectus.events import hub
from scripts import imported

script = imported("telemetry")


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    with hub.alone():
        yield


@pytest.mark.slow
def test_every_kind_is_measured_and_the_results_are_the_same(script):
    logger = logging.getLogger("conspectus.events")
    before = logger.level, logger.propagate, list(logger.handlers)
    found = script.measure(messages=40, runs=1, calls=10)
    assert found["wrong"] == []
    assert found["events"] > 5
    assert found["rows"][0]["telemetry"] == "off"
    assert len(found["rows"]) == 4
    assert (logger.level, logger.propagate, list(logger.handlers)) == before
    screen = Console(file=io.StringIO(), width=100)
    script.show({**found, "wrong": ["something"]}, screen)
    assert isinstance(screen.file, io.StringIO)
    assert "WRONG: something" in screen.file.getvalue()


@pytest.mark.slow
def test_a_listener_that_is_told_though_all_is_off_is_found_out(script, monkeypatch):
    made: list[Any] = []
    plain = script.Counted

    def counted() -> Any:
        made.append(plain())
        hub.add(made[-1])
        return made[-1]

    monkeypatch.setattr(script, "Counted", counted)
    found = script.measure(messages=40, runs=1, calls=10)
    assert "off, somebody was told something" in found["wrong"]
