"""The table of the promises counts what was really run, and says so when it was too little."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import content

from scripts import ROOT, imported
from stateful.messages import BLOCKS
from stateful.summarizers import KINDS

TESTS = """
from hypothesis import given, settings, strategies as st

@settings(max_examples=30, database=None)
@given(st.integers())
def test_promise_holds(n):
    assert n == n

@settings(max_examples=30, database=None)
@given(st.integers())
def test_promise_breaks(n):
    assert n < 5

def test_without_examples():
    pass
"""


script = imported("properties")


def note(test: str, examples: int, outcome: str = "passed") -> dict[str, Any]:
    more = {"steps": 3, "through": "Compactor", "outcome": outcome}
    return {"test": f"tests/{test}.py::TestIt::runTest", "examples": examples, **more}


@pytest.mark.slow
def test_examples_are_counted_in_every_process_and_failures_are_told(tmp_path):
    (tmp_path / "test_promise_01_made_up.py").write_text(TESTS)
    notes = tmp_path / "notes.json"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "stateful.counting"]
    subprocess.run(
        [*command, "--properties-to", str(notes), str(tmp_path), "-c", os.devnull],
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    found = {one["test"].partition("::")[2]: one for one in json.loads(notes.read_text())}
    assert found.keys() == {"test_promise_holds", "test_promise_breaks"}
    assert found["test_promise_holds"]["examples"] == 30
    assert found["test_promise_holds"]["outcome"] == "passed"
    assert found["test_promise_breaks"]["outcome"] == "failed"


def test_rows_are_summed_by_promise_and_way_through(script):
    noted = [
        note("test_promise_01_stateful", 20),
        note("test_promise_01_nothing_unread_leaves", 5),
        note("test_secrets_stateful", 7),
        note("test_policy", 100),
    ]
    rows = script.rows_of(noted)
    found = [(row.promise, row.tests, row.examples, row.steps) for row in rows]
    assert found == [(1, 2, 25, 6), (7, 1, 7, 3)]


def test_too_few_examples_a_failure_and_a_missing_promise_are_each_told(script):
    every = [note(f"test_promise_{n:02}_stateful", 10_000) for n in range(1, 14)]
    assert script.judged(script.rows_of(every), 0, 100_000) == []
    assert "are promised" in str(script.judged(script.rows_of(every), 0, 200_000))
    assert "nothing was run of promise 13" in str(script.judged(script.rows_of(every[:-1]), 0, 1))
    broken = [*every, note("test_promise_03_stateful", 1, "failed")]
    assert "promise 3 failed" in str(script.judged(script.rows_of(broken), 1, 100_000))
    assert "pytest ended with 2" in str(script.judged(script.rows_of(every), 2, 100_000))


def test_every_kind_of_content_block_that_langchain_knows_is_drawn():
    assert set(BLOCKS) == set(content.KNOWN_BLOCK_TYPES)


def test_twelve_ways_of_a_summariser_to_behave_are_drawn():
    assert len(set(KINDS)) == 12


@pytest.mark.parametrize(
    ("only", "promises", "names"),
    [
        ("", set(), ""),
        ("3", {3}, ""),
        ("promise 3; 11", {3, 11}, ""),
        ("Valid sequences", {3}, ""),
        ("extractive", set(), "(extractive)"),
        ("hostile names; not extractive", set(), "(hostile and names) or (extractive)"),
    ],
)
def test_promises_or_words_of_names_choose_what_is_run(script, only, promises, names):
    assert script.chosen(only) == (promises, names)


@pytest.mark.parametrize(
    ("only", "said"), [("14", "there is no promise 14"), (" ; ", "names nothing")]
)
def test_what_chooses_nothing_is_refused_before_anything_runs(script, only, said):
    with pytest.raises(ValueError, match=said):
        script.chosen(only)


def test_promises_and_names_at_once_are_refused(script):
    with pytest.raises(ValueError, match="not both"):
        script.chosen("3; extractive")


def test_each_module_that_is_named_is_there(script):
    for module in script.ELSEWHERE:
        assert (Path(__file__).parent / f"{module}.py").is_file(), module
