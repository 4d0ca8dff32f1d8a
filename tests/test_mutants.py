"""The defects of `make mutants` can be planted, and the command tells how a test ends.

The defects themselves are planted by the command, which takes some minutes; here each is compared
with the package and the tests as they are now.
"""

import pytest

from mutants import LEAST, PROMISES, problems_of_defects, read_defects

DEFECTS = read_defects()


def test_every_defect_can_be_planted_and_names_a_test_that_exists():
    assert problems_of_defects(DEFECTS) == []


@pytest.mark.parametrize("promise", PROMISES)
def test_each_promise_has_defects(promise):
    assert sum(defect.promise == promise for defect in DEFECTS) >= LEAST
