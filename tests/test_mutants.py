"""The defects of `make mutants` can be planted, and the command tells how a test ends.

The defects themselves are planted by the command, which takes some minutes; here each is compared
with the package and the tests as they are now.
"""

import os
from dataclasses import replace

import pytest

from mutants import LEAST, PROMISES, TESTS, read_defects, wrong_with
from scripts import ran

DEFECTS = read_defects()
ONE = DEFECTS[0]


def test_every_defect_can_be_planted_and_names_a_test_that_exists():
    assert wrong_with(DEFECTS) == []


@pytest.mark.parametrize("promise", PROMISES)
def test_each_promise_has_defects(promise):
    assert sum(one.promise == promise for one in DEFECTS) >= LEAST


@pytest.mark.parametrize(
    ("spoilt", "says"),
    [
        ({"old": "this is nowhere in it"}, "0 times, not once"),
        ({"new": ONE.old}, "nothing is changed"),
        ({"new": ONE.old + " if else"}, "no Python any more"),
        ({"test": ONE.test + "_not"}, "there is no test"),
    ],
)
def test_a_defect_that_cannot_be_planted_is_named(spoilt, says):
    wrong = wrong_with([replace(ONE, **spoilt)])
    assert [line for line in wrong if line.startswith(ONE.name) and says in line]


PLANTED = """
from mutants import Defect
from mutants.__main__ import import_others, run_all

TEST = "test_mutants.py::test_each_promise_has_defects"
line = "class ConspectusError(Exception):"
harmless = Defect(1, "x", "errors.py", line, line + "  # harmless", TEST)
import_others()
print(sorted(one[2] for one in run_all([(None, TEST), (harmless, TEST)], 2)))
broken = Defect(1, "x", "errors.py", line, "raise SystemExit(3)\\n" + line, TEST)
print([one[2] for one in run_all([(broken, TEST)], 1)])
"""


@pytest.mark.slow
def test_defects_are_planted_in_a_copy():
    source = TESTS.parent / "src" / "conspectus" / "errors.py"
    before = source.read_bytes()
    done = ran("-c", PLANTED, check=True, env={**os.environ, "PYTHONPATH": str(TESTS)})
    assert done.stdout.splitlines() == ["['passed', 'passed']", "['broke']"]
    assert source.read_bytes() == before
