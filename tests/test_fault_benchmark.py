"""The table of faults over HTTP holds on a few of its rows, and finds what is wrong elsewhere."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from scripts import imported

http_faults = imported("http_faults")


@pytest.fixture(scope="module")
def bench(http_faults: Any) -> Iterator[Any]:
    yield http_faults
    for server in http_faults._servers.values():
        server.__exit__(None, None, None)
    http_faults._servers.clear()


def case_of(bench: Any, name: str) -> Any:
    return next(one for one in bench.CASES if one.name == name)


@pytest.mark.slow
def test_a_stream_that_ends_early_is_a_summary_for_others_only(bench):
    case = case_of(bench, "stream ends early")
    found = {kind.name: bench.trial(case, "sums", "openai", kind) for kind in bench.SYSTEMS}
    assert bench.wrong(case, "sums", found["Conspectus"]) == []
    assert found["LangChain"].bad == found["LangMem"].bad == found["Deep Agents"].bad == 1
    assert found["LangChain"].lost > 0
    assert found["Deep Agents"].lost == 0  # they are in its files


@pytest.mark.slow
def test_a_window_smaller_than_it_was_said_to_be(bench):
    case = case_of(bench, "context length")
    kinds = {kind.name: kind for kind in bench.SYSTEMS}
    ours = bench.trial(case, "answers", "anthropic", kinds["Conspectus"])
    theirs = bench.trial(case, "answers", "anthropic", kinds["LangChain"])
    assert bench.wrong(case, "answers", ours) == []
    assert ours.over == 1
    assert theirs.failed == theirs.over > 1


@pytest.mark.slow
def test_a_failing_answer_fails_one_step_each_time_and_costs_no_summary(bench):
    case, ours = case_of(bench, "server error (500)"), bench.SYSTEMS[0]
    found = bench.trial(case, "answers", "openai", ours)
    calm = bench.trial(case_of(bench, "none"), "sums", "openai", ours)
    assert bench.wrong(case, "answers", found) == []
    assert found.failed == len(bench.FAULTY)
    assert found.paid == calm.paid


@pytest.mark.parametrize("what", ["failed", "lost", "bad", "torn", "over"])
def test_a_promise_that_is_broken_is_said(bench, what):
    case = case_of(bench, "length")
    assert bench.wrong(case, "sums", bench.Trial()) == []
    (said,) = bench.wrong(case, "sums", replace(bench.Trial(), **{what: 1}))
    assert what in said or "over the window" in said
