"""Behind the endpoint a fault is what it is; a client that breaks off leaves nothing behind."""

import inspect
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from conspectus_lab.testing.fault_server import faults
from scripts import imported

MOMENTS = range(5)


bench = imported("serve_faults")


@pytest.fixture(scope="module")
def staged(bench: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with bench.stage(tmp_path_factory.mktemp("faults")) as made:
        yield made


def test_the_table_has_every_fault(bench):
    made = inspect.getmembers(faults, inspect.isfunction)
    public = {name for name, one in made if one.__module__ == faults.__name__ and name[0] != "_"}
    assert set(bench.FAULTS) == {"none"} | public


FAULTS = sorted(
    name
    for name, one in inspect.getmembers(faults, inspect.isfunction)
    if one.__module__ == faults.__name__ and name[0] != "_"
)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["none", "hangs", *FAULTS])
def test_a_fault_comes_through_as_it_is(bench, staged, fault):
    for protocol in bench.PROTOCOLS:
        for stream in (False, True):
            for turns in (bench.FITS, bench.LONG):
                scene = bench.play(*staged, fault, protocol, stream, turns)
                assert scene.wrong == ()


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_client_that_breaks_off_leaves_nothing_behind(bench, tmp_path, moment):
    protocol = list(bench.PROTOCOLS)[moment % 3]
    path = bench.PROTOCOLS[protocol][0]
    left = bench.left_behind(tmp_path, bench.MOMENTS[moment], protocol, path)
    assert left.wrong == ()


def test_another_answer_is_not_the_same(bench):
    got = bench.Received(200, (("content-type", "a"),), b"data", True)
    other: dict[str, Any]
    for other in ({"status": 500}, {"headers": ()}, {"body": b"dat"}, {"whole": False}):
        assert not got.same_as(replace(got, **other))
    assert got.same_as(replace(got, ours=(("x-conspectus-thread", "t"),)))
