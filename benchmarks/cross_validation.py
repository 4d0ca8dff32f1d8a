"""Whether constants of the notes were fitted to the sessions that they are measured on.

    python -m benchmarks.cross_validation SCRIPT

SCRIPT is an outside measure with exams of sessions (`resumption.py`; its data stands beside it).
Each constant is tried at other values. Five folds over the sessions: the value that does best on
the others of a fold answers for the sessions of that fold. Printed are the share of questions
whose evidence stands in view with the constants as they are, at best on all sessions, and on folds
that did not choose.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from types import ModuleType
from typing import Any

from benchmarks.resumption_policy import make

from conspectus.ledger import choosing
from conspectus.summarize import condensing, findings, journal, writing

FOLDS = 5
TRIED: Mapping[tuple[ModuleType, str], tuple[Any, ...]] = {
    (findings, "TOLD"): (300, 600),
    (findings, "THOUGHT"): (240, 480),
    (findings, "ANSWER"): (100, 240),
    (findings, "WHOLE"): (180, 340),
    (condensing, "REASONS"): (0.25, 0.55),
    (condensing, "EDITS"): (2, 6),
    (condensing, "AT_WORK"): (1, 5),
    (condensing, "DEED"): (1, 3),
    (condensing, "WORDY"): (40, 90),
    (findings, "AGAIN"): (0.6, 0.85),
    (choosing, "OPENING"): (600, 2_400),
    (choosing, "TASK_SHARE"): (0.4, 0.6),
    (choosing, "ADVICE_SHARE"): (0.6, 0.9),
    (choosing, "HEADED"): (0.0, 0.4),
    (journal, "OUTCOME"): (100, 220),
    (journal, "LEAST_RECORD"): (240, 400),
    (journal, "LEAST_DEED"): (240, 400),
    (writing, "RATIO"): (8, 14),
    (writing, "ROOMY"): (1, 3),
}
"""Constants, and the values at which each is tried beside its own."""


@contextmanager
def changed(module: ModuleType, name: str, value: Any) -> Iterator[None]:
    """Give a constant another value for a while."""
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def seen(script: Any, folder: Path) -> dict[str, list[bool]]:
    """Return for each session which questions have their evidence in view."""
    found: dict[str, list[bool]] = {}
    for cut in json.loads((folder / "resume" / "cuts.json").read_text(encoding="utf-8")):
        session = json.loads((folder / "agent" / f"{cut['name']}.json").read_text("utf-8"))
        messages = [m | {"id": f"m{n}"} for n, m in enumerate(session[: cut["cut"]])]
        exam = json.loads((folder / "resume" / f"{cut['name']}.json").read_text("utf-8"))
        _, view, _ = script.run(make, messages, cut["window"])
        text = script.plain(script.text_of(view))
        found[cut["name"]] = [script.holds(text, asked["evidence"]) for asked in exam]
    return found


def share(found: Mapping[str, list[bool]], names: list[str]) -> float:
    """Return the share of questions of some sessions that are answered."""
    return mean(one for name in names for one in found[name])


def main() -> int:
    """Run it as a command; give the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("script", type=Path, help="an outside measure; its data stands beside it")
    path = parser.parse_args().script
    spec = importlib.util.spec_from_file_location("outside", path)
    if spec is None or spec.loader is None:
        print(f"{path} is no script", file=sys.stderr)
        return 2
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    own = seen(script, path.parent / "data")
    tried = {"as it is": own}
    for (module, name), values in TRIED.items():
        for value in values:
            with changed(module, name, value):
                tried[f"{name}={value}"] = seen(script, path.parent / "data")
    names = sorted(own)
    random.Random(5).shuffle(names)
    answered: list[bool] = []
    for fold in range(FOLDS):
        held_out = names[fold::FOLDS]
        rest = [name for name in names if name not in held_out]
        best = max(tried.values(), key=lambda found: share(found, rest))
        answered += [one for name in held_out for one in best[name]]
    for name, found in tried.items():
        print(f"{name:<18}{share(found, names):.3f}")
    print(f"best on all       {max(share(found, names) for found in tried.values()):.3f}")
    print(f"on folds unseen   {mean(answered):.3f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
