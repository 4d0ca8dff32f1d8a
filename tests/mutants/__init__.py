"""The tests, tested: defects planted one at a time, each of which a named test must notice.

One file a promise, `promise_01.toml` and so on. A defect is a change of behaviour that somebody
might make by mistake: an off-by-one, a skipped step, a swapped order, a forgotten case.
"""

import ast
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mutants.planting import planted, split_name

HERE = Path(__file__).parent
TESTS = HERE.parent
SOURCE = TESTS.parent / "src"
PROMISES = range(1, 15)
LEAST = 5
"""Defects that are planted against each promise at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """One defect: a wrong form of a function or a constant, or of some text of a file."""

    promise: int  # number of the promise that it breaks
    name: str  # what is wrong, in plain words
    test: str  # the test that must notice, as pytest names it, below `tests`
    changes: str = ""  # the function or the constant, such as `conspectus.core.growth.REARM`
    wrong: str = ""  # its wrong form, which may call `right`, the right one
    file: str = ""  # below `src/conspectus`; of another package, below `src`: `conspectus_lab/...`
    old: str = ""  # text that the file has exactly once
    new: str = ""  # the text in its place

    @property
    def path(self) -> Path:
        """The file, below `src`; a ValueError if there is none."""
        if self.changes:
            return split_name(self.changes, SOURCE)[0]
        return Path(self.file if self.file.startswith("conspectus_") else f"conspectus/{self.file}")

    def planted(self, source: str) -> str:
        """The text of the file with the defect in it; ValueError if it cannot be planted."""
        if self.changes:
            return planted(source, split_name(self.changes, SOURCE)[1], self.wrong)
        if (count := source.count(self.old)) != 1:
            raise ValueError(f"{self.file} has {self.old!r} {count} times, not once")
        if self.old == self.new:
            raise ValueError("nothing is changed")
        changed = source.replace(self.old, self.new)
        try:
            ast.parse(changed, self.file)
        except SyntaxError as error:
            raise ValueError(f"{self.file} is no Python any more: {error}") from error
        return changed


def read_defects() -> tuple[Defect, ...]:
    """All defects, by promise."""
    return tuple(
        Defect(promise=int(path.stem.removeprefix("promise_")), **entry)
        for path in sorted(HERE.glob("promise_*.toml"))
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["defect"]
    )


def problems_of_defects(defects: Sequence[Defect]) -> list[str]:
    """What is wrong with the defects themselves, one line each."""
    problems = []
    for defect in defects:
        try:
            path = SOURCE / defect.path
            defect.planted(path.read_text(encoding="utf-8") if path.is_file() else "")
        except ValueError as error:
            problems.append(f"{defect.name}: {error}")
        file, _, name = defect.test.partition("::")
        if name not in _tests_of(file):
            problems.append(f"{defect.name}: there is no test {defect.test}")
    names = Counter(defect.name for defect in defects)
    return problems + [f"two defects are called {name!r}" for name, n in names.items() if n > 1]


@cache
def _tests_of(file: str) -> frozenset[str]:
    path = TESTS / file
    parts = ast.parse(path.read_text(encoding="utf-8")).body if path.is_file() else []
    function_types = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(part.name for part in parts if isinstance(part, function_types))
