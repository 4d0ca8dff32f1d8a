"""The lead agent over many turns, restarted: a shorter run of `make bench-lead-agent`."""

from contextlib import nullcontext
from types import ModuleType
from typing import Any

import pytest

from postgres_support import postgres_schema
from scripts import imported

pytestmark = pytest.mark.slow


TURNS = 24


script = imported("lead_agent_turns")


@pytest.fixture(scope="module")
def wanted(script: ModuleType, tmp_path_factory: Any) -> Any:
    """What the conversation comes to without summarisation."""
    folder = tmp_path_factory.mktemp("measure")
    run = script.Run(folder, "memory:", "measure", TURNS, enabled=False)
    found = run.go(restarts=False)
    assert run.watch.largest > script.WINDOW
    assert [answer for _, answer in found.asked] == ["small", "large"]
    assert found.titles == {found.title} == {"Turn 1: write note 1: its"}
    assert found.files.startswith("21:")
    assert found.last.startswith("The code is")
    return found


SQLITE = "sqlite:///data/checkpoints.sqlite"
POSTGRES = pytest.param("postgres", True, marks=pytest.mark.postgres)


@pytest.mark.parametrize(("where", "restarts"), [(SQLITE, False), (SQLITE, True), POSTGRES])
def test_it_comes_out_the_same_and_never_over_the_window(script, wanted, tmp_path, where, restarts):
    schema = postgres_schema() if where == "postgres" else nullcontext(where)
    with schema as address:
        run = script.Run(tmp_path / "run", address, "t", TURNS)
        assert run.go(restarts=restarts) == wanted
    assert 0 < run.watch.largest <= script.WINDOW
    assert (run.watch.over, run.watch.torn) == (0, 0)
    assert run.shown
    assert run.watch.summaries > 0
    assert run.starts == (4 if restarts else 1)


def test_what_is_over_the_window_or_other_than_it_was_is_told(script, tmp_path, monkeypatch):
    table, good = script.runs(TURNS, None, tmp_path / "good")
    assert good
    assert table.row_count == 3
    monkeypatch.setattr(script, "CONFIG", script.CONFIG.replace("{enabled}", "false"))
    _, good = script.runs(TURNS, None, tmp_path / "bad")
    assert not good
