"""The benchmarks run, count what they say they count, and end with 1 where a limit is broken."""

import importlib
import io
import json
import re
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from rich.console import Console

from conspectus.archive import Archive
from observe_support import without_other_listeners
from scripts import folder_of_scripts


def test_a_value_over_its_limit_ends_the_command_with_1(script, capsys):
    tables = script("tables")
    good = tables.Row("good", 1.0, 2.0)
    low = tables.Row("low", 1.0, 2.0, at_least=True)
    assert tables.end("T", [good, tables.Row("information", 9.0)], as_json=False) == 0
    assert tables.end("T", [good, low], as_json=False) == 1
    printed = capsys.readouterr()
    assert "1 of 2 limits hold." in printed.out
    assert printed.err == "over its limit: low\n"


def test_views_hold_more_than_the_tail(script, capsys):
    assert script("views").main(["booking", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows[0]["name"] == "booking: answers in view"
    assert rows[0]["value"] > rows[0]["asked"]


@pytest.mark.slow
def test_killed_workers_lose_nothing(script):
    rows = list(script("fault_kills").rows(4))
    assert len(rows) == 4
    assert [(row.value, row.detail[:7]) for row in rows] == [(0, "1 kills")] * 4, rows


@pytest.mark.slow
def test_archives_that_fail_lose_nothing(script):
    stores = script("fault_stores")
    for row in (stores.full_disks(2), stores.damaged(2), stores.taken_away()):
        assert row.holds, row


@pytest.mark.parametrize("command", ["speed", "faults", "views"])
def test_each_command_finds_what_it_imports(script, command):
    assert callable(script(command).main)


def test_rules_that_a_user_says_once_stand_at_the_end(script):
    rules = script("rules")
    said = rules.chosen(0)
    history = rules.planted(rules.chat(1, 1)[:240], "middle", said)

    counts = rules.run(history, 4_000, said)

    assert (counts.said, counts.in_view, counts.unsaid) == (15, 15, 0)


def test_labelled_answers_are_of_both_kinds(script):
    summaries = script("summaries")
    examples = list(summaries.read_examples())
    assert sum(example.is_summary for example in examples) >= 300
    assert sum(not example.is_summary for example in examples) >= 300
    assert all(example.text.strip() for example in examples)


def test_views_fit_by_odd_counters(script):
    assert all(row.holds for row in script("fault_counters").rows(6))


@pytest.mark.slow
def test_faults_over_http_and_a_soak(script):
    assert all(row.holds for row in script("fault_http").rows(quick=True))
    assert all(row.holds for row in script("fault_soak").rows(0.05))


FOLDER = Path(__file__).resolve().parents[1] / "examples" / "prometheus"

METRIC_NAME = re.compile(r"\bconspectus_[a-z_]+")


@pytest.fixture(scope="module")
def example() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch, without_other_listeners():
        patch.syspath_prepend(FOLDER)
        yield importlib.import_module("agent_metrics")


@pytest.fixture(scope="module")
def scrape(example: ModuleType) -> str:
    """What one scrape answers, after forty turns."""
    port, end = example.serve(0)
    try:
        example.work(example.build_agent(), 40, threading.Event())
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=300) as answer:
            return str(answer.read().decode())
    finally:
        end()


def expressions() -> list[str]:
    """Every query of the rules and of the dashboard."""
    rules = yaml.safe_load((FOLDER / "alerts.yml").read_text(encoding="utf-8"))
    queries = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    board = json.loads((FOLDER / "grafana" / "dashboard.json").read_text(encoding="utf-8"))
    return queries + [target["expr"] for panel in board["panels"] for target in panel["targets"]]


@pytest.mark.slow
def test_a_scrape_has_every_metric_that_is_asked_for(scrape):
    names = set(re.findall(r"^(conspectus_[a-z_]+)(?:\{| )", scrape, re.MULTILINE))
    names_in_queries = {name for query in expressions() for name in METRIC_NAME.findall(query)}
    assert len(names_in_queries) > 12
    assert names_in_queries <= names


def test_it_runs_as_a_program_and_ends(example, capsys):
    assert example.main(["--port", "0", "--turns", "3", "--once"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"http://127.0.0.1:\d+/metrics\n3 turns done\nconspectus_\w+{", printed)


@pytest.fixture
def demo_module() -> Iterator[ModuleType]:
    with folder_of_scripts("examples"):
        yield importlib.import_module("demo")


@pytest.mark.slow
def test_the_demo_notices_a_lost_original(demo_module, tmp_path):
    shown = io.StringIO()
    demo = demo_module.Demo(Console(file=shown, width=100, markup=False), str(tmp_path / "out"))
    assert demo.run() == 0, shown.getvalue()
    assert shown.getvalue().count("is recalled word for word") == 2

    demo.before[5]["content"] += " (changed)"
    with Archive.open(tmp_path / "out" / "archive.db") as archive:
        demo.verify(archive)
    assert any("originals are equal" in failure for failure in demo.failed)
