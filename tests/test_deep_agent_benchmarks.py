"""A long deep agent, killed and resumed, and under faults: the benchmarks hold on small inputs."""

from collections.abc import Callable
from contextlib import ExitStack
from types import ModuleType
from typing import Any

import pytest

from postgres_support import postgres_schema

pytestmark = pytest.mark.slow


TURNS = 22


@pytest.fixture(scope="module")
def whole(script: Callable[[str], ModuleType], tmp_path_factory: Any) -> tuple[Any, Any]:
    """The outcome of a run that nobody killed, and what was seen of it."""
    long, folder = script("deep_agents"), tmp_path_factory.mktemp("whole")
    with long.sqlite_in(folder) as where:
        found, run, died = long.go(where, TURNS, [], folder)
    assert died == 0
    return found, run


def test_a_long_deep_agent_keeps_every_promise(script, whole):
    found, run = whole
    assert set(run.watch.sizes) == {"main", "reader", "counter"}
    assert max(run.watch.sizes.values()) <= script("deep_agent_run").WINDOW
    assert run.watch.torn == 0
    assert (found.unreachable, found.missing_files) == (0, 0)
    assert found.sessions >= 4
    assert found.summaries == sum(map(len, found.records)) > 10


@pytest.mark.parametrize("seed", [1, 2, pytest.param(3, marks=pytest.mark.postgres)])
def test_killed_anywhere_and_resumed_it_comes_out_the_same(script, whole, tmp_path, seed):
    long, (expected, run) = script("deep_agents"), whole
    kills = long.kills_for(run.watch.calls, seed)
    with ExitStack() as stack:
        if seed == 3:
            place = long.postgres_at(stack.enter_context(postgres_schema()))
        else:
            place = long.sqlite_in(tmp_path)
        found, again, died = long.go(stack.enter_context(place), TURNS, kills, tmp_path)
    assert died == len(kills) >= 10
    assert found == expected
    assert again.watch.torn == 0


@pytest.fixture(scope="module")
def trials(script: Callable[[str], ModuleType]) -> Callable[[str], tuple[Any, Any]]:
    """Ours and Deep Agents' own under one fault."""
    faults = script("deep_agent_faults")
    return lambda fault: (faults.trial(fault, True), faults.trial(fault, False))


def test_a_summariser_that_fails_fails_no_step(trials):
    ours, theirs = trials("the summariser fails")
    assert (ours.lost, ours.failed, ours.over, ours.torn) == (0, 0, 0, 0)
    assert ours.paid < theirs.paid
    assert theirs.failed > 0


def test_a_model_that_fails_after_a_summary_does_not_have_it_made_again(trials):
    ours, theirs = trials("the model fails after each summary")
    untroubled, _ = trials("none")
    assert ours.failed > 0  # the failures of the model itself
    assert ours.paid == untroubled.paid
    assert theirs.paid > ours.paid


@pytest.mark.parametrize(
    "fault", ["the store fails on write", "the store fails on read", "a huge tool result"]
)
def test_a_fault_loses_nothing_and_fails_no_step(trials, fault):
    ours, theirs = trials(fault)
    assert (ours.lost, ours.failed, ours.over, ours.torn) == (0, 0, 0, 0)
    if "store" in fault:
        assert theirs.lost > 0  # the measure finds losses where there are some


def test_checkpoints_grow_as_those_of_deep_agents_do(script):
    growth = script("checkpoint_growth")
    agents = growth.AGENTS
    ours = growth.grown(agents["Deep Agents, conspectus"], 80)
    theirs = growth.grown(agents["Deep Agents, its own"], 80)
    plain = growth.grown(agents['LangChain, history="preserve", plain channel'], 80)
    delta = growth.grown(agents['LangChain, history="preserve", PreservedState'], 80)
    assert len(ours) == len(growth.PARTS)
    assert ours[-1] <= 1.5 * theirs[-1]
    assert plain[-1] > 5 * delta[-1]
