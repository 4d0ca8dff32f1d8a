"""The Prometheus example serves the metrics that its alerts and its dashboard ask for."""

import importlib
import json
import re
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from observe_support import alone

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "prometheus"

ASKED = re.compile(r"\bconspectus_[a-z_]+")


@pytest.fixture(scope="module")
def example() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch, alone():
        patch.syspath_prepend(FOLDER)
        yield importlib.import_module("agent_metrics")


@pytest.fixture(scope="module")
def served(example: ModuleType) -> str:
    """What one scrape answers, after forty turns."""
    port, end = example.serve(0)
    try:
        example.work(example.build_agent(), 40, threading.Event())
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            return str(answer.read().decode())
    finally:
        end()


def expressions() -> list[str]:
    """Every query of the rules and of the dashboard."""
    rules = yaml.safe_load((FOLDER / "alerts.yml").read_text(encoding="utf-8"))
    found = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    board = json.loads((FOLDER / "grafana" / "dashboard.json").read_text(encoding="utf-8"))
    return found + [one["expr"] for panel in board["panels"] for one in panel["targets"]]


@pytest.mark.slow
def test_a_scrape_has_every_metric_that_is_asked_for(served):
    names = set(re.findall(r"^(conspectus_[a-z_]+)(?:\{| )", served, re.MULTILINE))
    asked = {name for one in expressions() for name in ASKED.findall(one)}
    assert len(asked) > 12
    assert asked <= names


def test_it_runs_as_a_program_and_ends(example, capsys):
    assert example.main(["--port", "0", "--turns", "3", "--once"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"http://127.0.0.1:\d+/metrics\n3 turns done\nconspectus_\w+{", said)
