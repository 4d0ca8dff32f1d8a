"""`make mutants`: plants every defect, or some, and prints which test caught it."""

import argparse
import sys
import time
from collections.abc import Sequence
from typing import NoReturn

from mutants.defects import Defect, promises, read_defects, wrong_with
from mutants.page import summed, write
from mutants.planting import Outcome, import_others, run_all


class _Options(argparse.ArgumentParser):
    """What is wrong with an option is one sentence, without the usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{message}\n")


def _number(text: str) -> int | str:
    """What is no number is no choice either, and is told so."""
    return int(text) if text.isdecimal() else text


def _one_or_more(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"give a whole number of 1 or more, not {text!r}")
    return int(text)


def main(given: Sequence[str] | None = None) -> int:
    """Run what is asked for; 1 if a defect was not caught."""
    parser = _Options(prog="make mutants", description=__doc__)
    numbers = [one.number for one in promises()]
    parser.add_argument(
        "--promise", type=_number, choices=numbers, help="the defects of one promise only"
    )
    parser.add_argument("--name", default="", help="those whose name holds this text only")
    parser.add_argument("--write", action="store_true", help="write docs/mutants.md anew")
    parser.add_argument(
        "--workers", type=_one_or_more, default=2, help="how many at once; default: 2"
    )
    parser.add_argument(
        "--fast", action="store_true", help="of each promise one that `make test` notices"
    )
    asked = parser.parse_args(given)
    every = read_defects()
    if wrong := wrong_with(every):
        print(*wrong, sep="\n")
        return 1
    chosen = [
        one
        for one in every
        if asked.promise in (None, one.promise) and asked.name.lower() in one.name.lower()
    ]
    if not chosen:
        whose = f"of promise {asked.promise} " if asked.promise else ""
        parser.error(f"no defect {whose}has {asked.name!r} in its name; docs/mutants.md lists them")
    if asked.fast:
        return _noticed_fast(chosen, asked.workers)
    rest = "some" if len(chosen) < len(every) else "all: some minutes on two cores"
    print(f"{len(chosen)} defects ({rest}); first their tests without any", file=sys.stderr)
    return _planted(chosen, asked.workers, asked.write and len(chosen) == len(every))


def _planted(defects: Sequence[Defect], workers: int, keep: bool) -> int:
    began = time.monotonic()
    import_others()
    # Without a defect each test passes, or it would prove nothing when it fails.
    tests = sorted({one.test for one in defects})
    parts = [part for n in range(workers) if (part := tests[n::workers])]
    sound = run_all([(None, part) for part in parts], workers, seconds=600)
    for one in sound:
        if one.verdict != "passed":
            print(f"without any defect a test {one.verdict}: {one.said}")
            return 1

    caught: dict[Defect, bool] = {}

    def told(place: int, outcome: Outcome) -> None:
        defect = defects[place]
        caught[defect] = outcome.verdict == "failed"
        verdict = "caught by" if caught[defect] else f"NOT CAUGHT ({outcome.verdict}) by"
        print(
            f"{defect.promise:>2}  {defect.name}\n    {defect.file}: {verdict} {defect.test}"
            f"  {outcome.seconds:.1f} s",
            flush=True,
        )
        if not caught[defect] and outcome.said:
            print(f"    {' '.join(outcome.said.split())}")

    whole = True
    try:
        run_all([(one, [one.test]) for one in defects], workers, told)
    except KeyboardInterrupt:
        whole = False
    tried = [one for one in defects if one in caught]
    print(f"\n{summed(tried, caught)}\n\n{time.monotonic() - began:.0f} seconds")
    if not whole:
        print("Stopped; the table holds what was tried until then.", file=sys.stderr)
        return 130
    if not all(caught.values()):
        return 1
    if keep:
        write(defects)
    return 0


def _noticed_fast(defects: Sequence[Defect], workers: int) -> int:
    """Of each promise the first defect that the tests of `make test` notice; 1 if one has none."""
    import_others()
    waiting: dict[int, list[Defect]] = {}
    for one in defects:
        waiting.setdefault(one.promise, []).append(one)
    noticed: dict[int, Defect] = {}
    while tried := [left.pop(0) for n, left in waiting.items() if left and n not in noticed]:
        outcomes = run_all([(one, [one.test]) for one in tried], workers, fast=True)
        for one, outcome in zip(tried, outcomes, strict=True):
            if outcome.verdict == "failed":
                noticed[one.promise] = one
    sound = run_all([(None, [one.test]) for one in noticed.values()], workers, fast=True)
    whole = True
    for number in sorted(waiting):
        found = noticed.get(number)
        print(f"{number:>2}  {found.name if found else 'NOTHING IS NOTICED by make test'}")
        whole = whole and found is not None
        if found:
            print(f"    {found.file}: {found.test}")
    for one, outcome in zip(noticed.values(), sound, strict=True):
        if outcome.verdict != "passed":
            whole = False
            print(f"without any defect {one.test} {outcome.verdict}: {outcome.said}")
    return 0 if whole else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        sys.exit(130)
