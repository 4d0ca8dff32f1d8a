"""The table of all defects as it is kept: docs/mutants.md, and its sum in docs/evidence.md."""

from collections import Counter
from collections.abc import Mapping, Sequence

from mutants.defects import ROOT, Defect, promises

PAGE = ROOT / "docs" / "mutants.md"
RELIABILITY = ROOT / "docs" / "reliability.md"
HEADING = "## The tests, tested\n"

INTRODUCTION = """\
# The tests, tested

A test that cannot fail proves nothing. So defects are planted in a copy of the package, one at a
time: changes that somebody might make by mistake, such as an off-by-one in a cut, a read-back that
is skipped, or two steps in the wrong order. For each, the test that is named here must fail, by
what it asserts and not by an error on the way; without the defect it must pass.

```console
$ make mutants
$ make mutants PROMISE=3
$ make mutants NAME="read back"
$ make mutants WORKERS=4
$ make mutants WRITE=1
```

The command plants two at once, or `WORKERS`, and takes a quarter of an hour. It fails if one defect
goes unnoticed; with `WRITE=1` it writes this page. The defects are data in `tests/mutants`, one
file a promise. Files are below `src/conspectus`, those of another package below `src`, tests below
`tests`.
"""


def listed(defects: Sequence[Defect]) -> str:
    """The page that lists all defects, each caught."""
    lines = [INTRODUCTION]
    for promise in promises():
        own = [one for one in defects if one.promise == promise.number]
        lines += [
            f"## {promise.number}. {promise.title}",
            "",
            "| defect | file | caught by |",
            "|---|---|---|",
            *(_row(one) for one in own),
            "",
        ]
    return "\n".join(lines)


def _row(defect: Defect) -> str:
    file, _, name = defect.test.partition("::")
    return f"| {defect.name} | `{defect.file}` | `{file}`: `{name}` |".replace("\\", "\\\\")


def summed(defects: Sequence[Defect], caught: Mapping[Defect, bool]) -> str:
    """The sum per promise, as a table."""
    planted = Counter(one.promise for one in defects)
    found = Counter(one.promise for one in defects if caught[one])
    rows = ["| promise | planted | caught |", "|---|---|---|"]
    for promise in promises():
        if count := planted[promise.number]:
            name = f"{promise.number}. {promise.title}"
            rows.append(f"| {name} | {count} | {found[promise.number]} |")
    rows.append(f"| all | {len(defects)} | {sum(found.values())} |")
    return "\n".join(rows)


def section(defects: Sequence[Defect]) -> str:
    """What stands in docs/evidence.md: the sum, where all are caught."""
    table = summed(defects, dict.fromkeys(defects, True))
    return (
        f"{HEADING}\n"
        "`make mutants` plants defects in a copy of the package, one at a time, and runs the test\n"
        "that must catch each: it has to fail by what it asserts, and to pass without the defect.\n"
        "[mutants.md](mutants.md) lists them all. `make mutants-fast` shows for each promise one\n"
        "that the tests of `make test` notice.\n\n"
        "```console\n$ make mutants\n$ make mutants-fast\n```\n\n"
        f"{table}\n\n"
    )


def with_section(page: str, text: str) -> str:
    """The page with its section on the tests written anew."""
    before, heading, after = page.partition(HEADING)
    if not heading:
        raise ValueError(f"{RELIABILITY} has no heading {HEADING!r}")
    at = after.find("\n## ")
    return before + text + ("" if at < 0 else after[at + 1 :])


def write(defects: Sequence[Defect]) -> None:
    """Keep both."""
    PAGE.write_text(listed(defects), encoding="utf-8")
    page = RELIABILITY.read_text(encoding="utf-8")
    RELIABILITY.write_text(with_section(page, section(defects)), encoding="utf-8")
