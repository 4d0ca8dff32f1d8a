"""The defects of `make mutants` can be planted, and the command tells how a test ends.

The defects themselves are planted by the command, which takes some minutes; here each is compared
with the package and the tests as they are now.
"""

import pytest

from mutants import LEAST, PROMISES, problems_of_defects, read_defects
from mutants.planting import planted

DEFECTS = read_defects()


def test_every_defect_can_be_planted_and_names_a_test_that_exists():
    assert problems_of_defects(DEFECTS) == []


@pytest.mark.parametrize("promise", PROMISES)
def test_each_promise_has_defects(promise):
    assert sum(defect.promise == promise for defect in DEFECTS) >= LEAST


def test_a_wrong_form_with_an_unknown_name_cannot_be_planted():
    module = "def one():\n    return 1\n"
    assert "return one_less" in planted(
        module, ["one"], "def one():\n    one_less = 0\n    return one_less"
    )
    with pytest.raises(ValueError, match="what the module does not have: \\['two'\\]"):
        planted(module, ["one"], "def one():\n    return two()")
