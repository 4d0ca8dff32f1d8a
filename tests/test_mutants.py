"""The defects of `make mutants` can be planted, and the command finds out what is not caught.

The defects themselves are planted by the command, which takes some minutes; here each is only held
against the package and the tests as they are now.
"""

import os
from dataclasses import replace

import pytest

from mutants import __main__ as command
from mutants.defects import LEAST, PACKAGE, TESTS, Defect, promises, read_defects, wrong_with
from mutants.page import HEADING, PAGE, RELIABILITY, listed, section, summed, with_section
from mutants.planting import Outcome, _Witness
from scripts import ran

DEFECTS = read_defects()
ONE = DEFECTS[0]


@pytest.mark.parametrize("promise", promises(), ids=lambda promise: str(promise.number))
def test_every_defect_can_be_planted_and_names_a_test_that_there_is(promise):
    mine = [one for one in DEFECTS if one.promise == promise.number]
    assert [line for line in wrong_with(mine) if not line.startswith("promise ")] == []


def test_there_are_thirteen_promises_and_at_least_ten_defects_for_each():
    assert [promise.number for promise in promises()] == list(range(1, 14))
    for promise in promises():
        assert sum(one.promise == promise.number for one in DEFECTS) >= LEAST == 10
    assert len({one.name for one in DEFECTS}) == len(DEFECTS)
    assert len({(one.file, one.old, one.new) for one in DEFECTS}) == len(DEFECTS)


def test_the_page_lists_just_these_and_the_sum_is_theirs():
    assert PAGE.read_text(encoding="utf-8") == listed(DEFECTS), "run `make mutants WRITE=1`"
    page = RELIABILITY.read_text(encoding="utf-8")
    assert with_section(page, section(DEFECTS)) == page, "run `make mutants WRITE=1`"


@pytest.mark.parametrize(
    ("spoilt", "says"),
    [
        ({"old": "this stands nowhere in it"}, "0 times, not once"),
        ({"old": "import"}, "times, not once"),
        ({"new": ONE.old}, "says the same as before"),
        ({"new": ONE.old + " if else"}, "no Python any more"),
        ({"file": "nowhere.py"}, "0 times, not once"),
        ({"test": "test_nowhere.py::test_it"}, "there is no test"),
        ({"test": ONE.test + "_not"}, "there is no test"),
    ],
)
def test_a_defect_that_cannot_be_planted_is_named(spoilt, says):
    wrong = wrong_with([replace(ONE, **spoilt)])
    assert [line for line in wrong if line.startswith(ONE.name) and says in line]


def test_two_of_one_name_and_a_promise_with_too_few_are_named():
    wrong = wrong_with([ONE, ONE])
    assert f"two defects are called {ONE.name!r}" in wrong
    assert f"two defects make one change: {ONE.old}" in wrong
    assert "promise 1 has 2 defects, not 10" in wrong


def test_the_sum_says_what_was_not_caught():
    caught = {one: one is not ONE for one in DEFECTS}
    count = sum(one.promise == 1 for one in DEFECTS)
    rows = summed(DEFECTS, caught).splitlines()
    assert rows[2].endswith(f"| {count} | {count - 1} |")
    assert rows[-1] == f"| all | {len(DEFECTS)} | {len(DEFECTS) - 1} |"


def test_only_its_own_section_of_a_page_is_written_anew():
    page = f"# A\n\n## B\n\nb\n\n{HEADING}\nold\n\n## C\n\nc\n"
    text = section(DEFECTS)
    assert with_section(page, text) == f"# A\n\n## B\n\nb\n\n{text}## C\n\nc\n"
    with pytest.raises(ValueError, match="no heading"):
        with_section("# A\n", text)


@pytest.mark.parametrize(
    ("verdict", "code", "says"),
    [("failed", 0, "caught by"), ("passed", 1, "NOT CAUGHT (passed)"), ("broke", 1, "(broke)")],
)
def test_the_command_fails_unless_the_test_fails_by_what_it_asserts(
    verdict, code, says, monkeypatch, capsys
):
    def run_all(jobs: list[tuple[Defect | None, list[str]]], *_: object, **__: object) -> object:
        found = []
        for place, (defect, _tests) in enumerate(jobs):
            found.append(Outcome("passed" if defect is None else verdict, 0.1, "why"))
            if _ and callable(_[-1]):
                _[-1](place, found[-1])
        return found

    monkeypatch.setattr(command, "import_others", lambda: None)
    monkeypatch.setattr(command, "wrong_with", lambda defects: [])
    monkeypatch.setattr(command, "run_all", run_all)
    monkeypatch.setattr(command, "write", lambda defects: pytest.fail("only all of them are kept"))
    assert command.main(["--promise", "1", "--write"]) == code
    assert says in capsys.readouterr().out


@pytest.mark.parametrize("noticed", [1, 2, 0])
def test_of_each_promise_one_defect_must_be_noticed_by_the_fast_tests(noticed, monkeypatch, capsys):
    """The first that is; none is a failure, and one whose test is left out is not noticed."""
    mine = [one for one in DEFECTS if one.promise == 1]

    def run_all(jobs: list[tuple[Defect | None, list[str]]], workers: int, *, fast: bool) -> object:
        assert fast
        at = [mine.index(one) + 1 if one else None for one, _ in jobs]
        verdicts = {noticed: "failed", None: "passed"}
        return [Outcome(verdicts.get(number, "broke"), 0.1, "no test was run") for number in at]

    monkeypatch.setattr(command, "import_others", lambda: None)
    monkeypatch.setattr(command, "wrong_with", lambda defects: [])
    monkeypatch.setattr(command, "run_all", run_all)
    assert command.main(["--fast", "--promise", "1"]) == (0 if noticed else 1)
    said = capsys.readouterr().out
    assert (mine[noticed - 1].name if noticed else "NOTHING IS NOTICED") in said


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--name", "no such defect"], "docs/mutants.md lists them"),
        (["--promise", "3", "--name", "no such"], "of promise 3"),
        (["--promise", "14"], "13)"),
        (["--promise", "x"], "13)"),
        (["--workers", "0"], "1 or more"),
    ],
)
def test_a_choice_that_leaves_nothing_says_what_there_is(given, says, monkeypatch, capsys):
    monkeypatch.setattr(command, "wrong_with", lambda defects: [])
    with pytest.raises(SystemExit) as ended:
        command.main(given)
    assert ended.value.code == 2
    [sentence] = capsys.readouterr().err.splitlines()
    assert says in sentence


def test_stopped_on_the_way_it_sums_up_what_was_tried(monkeypatch, capsys):
    def run_all(jobs: list[tuple[Defect | None, list[str]]], *more: object, **_: object) -> object:
        if jobs[0][0] is not None:
            more[1](0, Outcome("failed", 0.1, ""))  # type: ignore[operator]
            raise KeyboardInterrupt
        return []

    monkeypatch.setattr(command, "import_others", lambda: None)
    monkeypatch.setattr(command, "wrong_with", lambda defects: [])
    monkeypatch.setattr(command, "run_all", run_all)
    assert command.main(["--promise", "1"]) == 130
    assert "| all | 1 | 1 |" in capsys.readouterr().out


def test_a_test_that_fails_without_any_defect_proves_nothing(monkeypatch, capsys):
    monkeypatch.setattr(command, "import_others", lambda: None)
    monkeypatch.setattr(command, "wrong_with", lambda defects: [])
    monkeypatch.setattr(command, "run_all", lambda *_, **__: [Outcome("failed", 0.1, "why")])
    assert command.main(["--promise", "1"]) == 1
    assert "without any defect a test failed: why" in capsys.readouterr().out


PLANTED = """
from mutants.defects import Defect
from mutants.planting import import_others, run_all

def defect(old, new):
    return Defect(4, "x", "core/items.py", old, new, TEST)

TEST = "test_plan.py::test_below_the_trigger_everything_is_kept"
size = "Size(sum(item.tokens for item in items),"
found = Defect(4, "x", "core/plan.py", size, size.replace("(sum", "(2 * sum"), TEST)
import_others()
jobs = [
    (None, [TEST]),
    (defect("return self.limit - self.reserved", "return self.limit"), [TEST]),
    (found, [TEST]),
    (defect("role: Role\\n    tokens: int", "role: Role\\n    tokenz: int"), [TEST]),
]
print([one.verdict for one in run_all(jobs, 2)])
print([one.verdict for one in run_all(jobs[:1], 1, seconds=0.01)])
"""


@pytest.mark.slow
def test_defects_are_planted_in_a_copy_and_told_apart_by_how_their_test_ends():
    """As it is, harmless to this test, noticed by it, and so broken that nothing runs."""
    before = {path: path.read_bytes() for path in (PACKAGE / "core").glob("*.py")}
    done = ran("-c", PLANTED, check=True, env={**os.environ, "PYTHONPATH": str(TESTS)})
    assert done.stdout.splitlines() == [
        "['passed', 'passed', 'failed', 'broke']",
        "['took too long']",
    ]
    assert before == {path: path.read_bytes() for path in before}


def test_what_fails_inside_the_package_is_no_proof(tmp_path):
    """An assertion of a test counts, `pytest.raises` does; one of the package does not, nor any
    other error."""
    inside = tmp_path / "inside.py"
    inside.write_text("def check():\n    assert False\n")
    names: dict[str, object] = {}
    exec(compile(inside.read_text(), str(inside), "exec"), names)
    witness = _Witness(tmp_path)

    def promised(call: object) -> bool:
        try:
            call()  # type: ignore[operator]
        except BaseException:
            return witness._is_promised(pytest.ExceptionInfo.from_current())
        raise AssertionError("it raised nothing")

    def asserts() -> None:
        assert not DEFECTS

    def raises() -> None:
        with pytest.raises(ValueError, match="x"):
            pass

    assert promised(asserts)
    assert promised(raises)
    assert not promised(names["check"])
    assert not promised(lambda: {}["key"])
