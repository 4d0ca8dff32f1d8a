"""The defects: where each is planted, and which test must catch it.

One file a promise, `promise_01.toml` and so on. A defect is a change of behaviour that somebody
might make by mistake: an off-by-one, a skipped step, a swapped order, a forgotten case.
"""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TESTS = ROOT / "tests"
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "conspectus"

LEAST = 10
"""Defects that are planted for each promise at least."""


@dataclass(frozen=True, slots=True)
class Promise:
    """One of the promises in docs/architecture.md."""

    number: int
    title: str


@dataclass(frozen=True, slots=True)
class Defect:
    """One defect.

    Attributes:
        promise: number of the promise that it breaks.
        name: what is wrong, in plain words.
        file: below `src/conspectus`; of another package, below `src`: `conspectus_lab/...`.
        old: text that stands in the file exactly once.
        new: what stands there instead.
        test: the test that must catch it, as pytest names it, below `tests`.
    """

    promise: int
    name: str
    file: str
    old: str
    new: str
    test: str

    @property
    def path(self) -> Path:
        """The file, below `src`."""
        return Path(self.file if self.file.startswith("conspectus_") else f"conspectus/{self.file}")

    def planted(self, source: str) -> str:
        """The text of the file with the defect in it.

        Raises:
            ValueError: it cannot be planted; says why.
        """
        count = source.count(self.old)
        if count != 1:
            raise ValueError(f"{self.file} holds {self.old!r} {count} times, not once")
        changed = source.replace(self.old, self.new)
        if changed == source:
            raise ValueError(f"{self.file} says the same as before")
        try:
            ast.parse(changed, self.file)
        except SyntaxError as error:
            raise ValueError(f"{self.file} is no Python any more: {error}") from error
        return changed


def promises() -> tuple[Promise, ...]:
    """All promises, in order."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.partition("\n## Promises\n")[2].partition("\n## ")[0]
    found = re.findall(r"^(\d+)\. \*\*(.+?)\.?\*\*", section, re.MULTILINE)
    return tuple(Promise(int(number), title) for number, title in found)


def read_defects(folder: Path = HERE) -> tuple[Defect, ...]:
    """All defects, by promise.

    Raises:
        ValueError, TypeError: an entry lacks a part, or has one too many.
    """
    found = []
    for path in sorted(folder.glob("promise_*.toml")):
        number = int(path.stem.removeprefix("promise_"))
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["defect"]:
            found.append(Defect(number, **entry))
    return tuple(found)


def wrong_with(defects: Sequence[Defect]) -> list[str]:
    """What is wrong with the defects themselves, one line each; empty if nothing is."""
    wrong = []
    for one in defects:
        path = SOURCE / one.path
        try:
            one.planted(path.read_text(encoding="utf-8") if path.is_file() else "")
        except ValueError as error:
            wrong.append(f"{one.name}: {error}")
        if one.test not in _tests_of(one.test.partition("::")[0]):
            wrong.append(f"{one.name}: there is no test {one.test}")
    names = Counter(one.name for one in defects)
    changes = Counter((one.file, one.old, one.new) for one in defects)
    wrong += [f"two defects are called {name!r}" for name, count in names.items() if count > 1]
    wrong += [f"two defects make one change: {old}" for (_, old, _), n in changes.items() if n > 1]
    planted = Counter(one.promise for one in defects)
    for promise in promises():
        if planted[promise.number] < LEAST:
            wrong.append(
                f"promise {promise.number} has {planted[promise.number]} defects, not {LEAST}"
            )
    return wrong


@cache
def _tests_of(file: str) -> frozenset[str]:
    """The tests that are written in a file, as pytest names them."""
    path = TESTS / file
    parts = ast.parse(path.read_text(encoding="utf-8")).body if path.is_file() else []
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(f"{file}::{one.name}" for one in parts if isinstance(one, kinds))
