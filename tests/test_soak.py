"""The soak, small: it runs, counts, and would find what is lost, over the window, or leaking."""

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.store.base import BaseStore

from conspectus.bridge import run


@pytest.fixture(scope="module")
def small(script: Callable[[str], ModuleType]) -> Any:
    """Ten agents of all kinds, with and without a loop, for some seconds; more where it is slow."""
    for seconds in (6, 30, 120):
        found = script("soak").Soak(agents=10, seconds=seconds, wait=0.05, seed=7, renew=6).run()
        if found.counts.turns > 20:
            break
    return found


@pytest.mark.slow
def test_agents_with_faults_lose_nothing_and_stay_in_their_windows(small):
    counts = small.counts
    assert not small.broken
    assert (counts.missing, counts.over) == (0, 0), counts.said
    assert counts.verified > 0
    assert counts.turns > 20
    assert counts.failures


def test_nothing_is_looked_at_while_agents_are_still_being_built(script):
    one = script("soak").Soak(agents=2)
    one.driven = [object()]
    one._sample()  # no gate is there yet, and none is asked
    assert one.memory == []


@pytest.mark.slow
def test_the_tables_say_what_was_counted(small):
    main, faults, late = small.tables()
    assert f"{small.counts.steps:,}" in main.columns[1]._cells
    assert faults.row_count == len(small.counts.failures)
    assert late.row_count == len(small.counts.latencies) > 0


def agents_alone(script: Callable[[str], ModuleType], folder: Path) -> Iterator[tuple[Any, Any]]:
    """An agent of each kind, driven without a loop, and the counts."""
    soak, agents, places = script("soak"), script("soak_agents"), script("worker_places")
    with places.place("memory", folder) as (saver, store):
        for kind, _ in soak.KINDS:
            one = soak.Soak(seed=3)
            one.settings = agents.Settings(one.counts, folder, renew=50, faults=0.0)
            number = 2 * [name for name, _ in soak.KINDS].index(kind)
            made = one._agent(number, saver, store)
            made.writer.share = 0.0
            yield made, one.counts


def held(store: BaseStore) -> list[Any]:
    """Up to three originals of each thread."""
    spaces = [one for one in store.list_namespaces() if one[-1] == "messages"]
    return [item for space in spaces for item in store.search(space, limit=3)]


@pytest.mark.slow
def test_each_kind_compacts_and_a_message_that_is_gone_would_be_missed(script, tmp_path):
    for agent, counts in agents_alone(script, tmp_path):
        for _ in range(14 if "deep" not in agent.kind else 8):
            run(agent.step())
        run(agent.verify())
        assert counts.missing == 0, (agent.kind, counts.said)
        assert counts.compactions > 0 or "deep" in agent.kind, agent.kind
        agent.ever["nobody"] = "said this"
        run(agent.verify())
        assert counts.missing == 1, agent.kind


@pytest.mark.slow
def test_what_the_archive_has_lost_would_be_missed_by_each_kind(script, tmp_path):
    """Also where a channel keeps every message: the model is not shown those that left."""
    for agent, counts in agents_alone(script, tmp_path):
        while not (lost := held(agent.store)) and counts.steps < 200:
            run(agent.step())
        assert lost, agent.kind
        for item in lost:
            agent.store.delete(item.namespace, item.key)
        run(agent.verify())
        assert counts.missing == len(lost), agent.kind
        run(agent.renew())  # nothing of it is left for the next one to find


def test_what_langgraph_shows_but_no_checkpoint_holds_is_not_expected_back(script, tmp_path):
    """What a task has written whose step was stopped is shown; new input discards it."""
    agent, counts = next(agents_alone(script, tmp_path))
    run(agent.step())
    config = agent.graph.update_state(agent.config, {"messages": []}, as_node="tools")
    task = agent.graph.get_state(agent.config).tasks[0]
    agent.saver.put_writes(config, [("messages", [AIMessage("Half done.", id="half")])], task.id)
    shown = agent.graph.get_state(agent.config).values["messages"]
    assert "half" in {message.id for message in shown}
    assert "half" not in {message.id for message in run(agent._state()).values["messages"]}
    run(agent.verify())
    run(agent.step())
    run(agent.verify())
    assert "half" not in agent.ever
    assert counts.missing == 0, counts.said


@pytest.mark.slow
def test_the_soak_holds_marks_of_what_was_said_and_not_the_texts(script, tmp_path):
    for agent, _ in agents_alone(script, tmp_path):
        for _ in range(3):
            run(agent.step())
        run(agent.verify())
        assert agent.ever
        assert {len(mark) for mark in agent.ever.values()} == {16}
        known = (agent.ever, *vars(agent).get("known", ()))
        assert agent.held < 1_000 * len(known) + 300 * sum(map(len, known))


def test_a_request_over_the_window_would_be_counted(script, tmp_path):
    agent, counts = next(agents_alone(script, tmp_path))
    agent.window = 10
    run(agent.step())
    assert counts.over > 0


def test_no_error_is_raised_twice_as_it_would_keep_what_was_under_way_each_time(script):
    errors = []
    for case in script("fault_cases").CASES:
        for _ in range(5):
            answer = case.script()([HumanMessage("Sum it up. " * 3_000)])
            errors += [answer] if isinstance(answer, BaseException) else []
    assert len({*map(id, errors)}) == len(errors) >= 10


@pytest.mark.parametrize(("growth", "found"), [(0.0, False), (300.0, True)])
def test_memory_that_grows_is_told_from_memory_that_does_not(script, growth, found):
    """Noise that stays for a while, as memory's does, is no growth."""
    measures, module = script("soak_measures"), script("soak")
    soak = module.Soak()
    chance, noise = random.Random(5), 0.0
    for n in range(400):
        noise = 0.9 * noise + chance.gauss(0, 200_000)
        steps = 100.0 * n
        soak.memory.append(module.Look(float(n), steps, 1e8 + growth * steps + noise, 2e8))
    line = soak.growth
    assert line.low <= growth <= line.high
    assert ("memory grows" in soak.wrong) is found
    assert measures.slope([(1.0, 2.0), (2.0, 3.0)]) is None


@pytest.mark.slow
def test_memory_in_use_is_what_was_asked_for_and_not_given_back(script):
    measures = script("soak_measures")
    measures.settle()
    before = measures.in_use()
    held = [bytes(100_000) for _ in range(300)]
    grown = measures.in_use() - before
    del held
    measures.settle()
    assert grown > 20_000_000
    assert measures.in_use() - before < grown / 2


def test_percentiles_are_latencies_that_were_measured(script):
    measures = script("soak_measures")
    found = measures.percentiles([float(n) for n in range(1, 1_001)])
    assert found == [500.0, 900.0, 990.0, 999.0, 1_000.0]
    assert measures.percentiles([0.5]) == [0.5] * 5


def test_a_kind_that_never_compacts_and_memory_that_nobody_looked_at_fail(script):
    module = script("soak")
    soak = module.Soak()
    soak.counts.add(verified=1, steps=3 * module.LEAST)
    for kind, _ in module.KINDS:
        for _ in range(module.MANY):
            soak.counts.turn_of(kind)
        if kind != "Compactor":
            soak.counts.compacted_by(kind)
    [never, seldom] = soak.wrong
    assert "kind Compactor" in never
    assert "too seldom" in seldom


def test_a_run_that_says_nothing_fails(script):
    soak = script("soak").Soak()
    soak.memory.append(script("soak").Look(0.0, 0.0, 1, 1))
    assert re.search("too short", " ".join(soak.wrong))
