"""The share of users' statements that stands where their words do not fit.

    make bench-facts        or: python benchmarks/gold_facts.py --errors

The statements are in `benchmarks/gold_facts`; the room is a share of the tokens of the talk.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

from conspectus.ledger import choose, statements

SET = Path(__file__).resolve().parent / "gold_facts" / "said.json"
ORDERS, ROOM, BATCH = 3, 0.35, 6
Data = dict[str, Any]


def talk(batch: list[Data], lookalikes: list[Data], rnd: random.Random) -> list[str]:
    """Put the statements, in their order, among all look-alikes."""
    said = [one["text"] for one in rnd.sample(lookalikes, len(lookalikes))]
    places = sorted(rnd.sample(range(len(said) + len(batch)), len(batch)))
    for place, one in zip(places, batch, strict=True):
        said.insert(place, one["text"])
    return said


def measure(data: Data, room: float = ROOM, orders: int = ORDERS) -> tuple[Data, list[str]]:
    """Measure the figures, and describe each statement that was lost."""
    later = {one["replaces"]: one for one in data["statements"] if "replaces" in one}
    kept: dict[str, list[bool]] = defaultdict(list)
    lost: list[str] = []
    for order in range(orders):
        rnd = random.Random(order)
        first = [one for one in data["statements"] if "replaces" not in one]
        rnd.shuffle(first)
        for start in range(0, len(first), BATCH):
            batch = first[start : start + BATCH]
            batch = batch + [later[one["id"]] for one in batch if one["id"] in later]
            said = talk(batch, data["lookalikes"], rnd)
            tokens = sum(len(text) // 4 + 4 for text in said)
            stands = choose(said, int(tokens * room), lambda text: len(text) // 4)
            text = "\n".join(one.text for one in stands)
            for one in batch:
                held = all(words in text for words in one["holds"])
                if (new := later.get(one["id"])) is not None:
                    there = all(words in text for words in new["holds"])
                    kept["stale"].append(new["stale"] in text and not there)
                    if kept["stale"][-1]:
                        lost.append(f"{one['id']} stale: {new['text']}")
                else:
                    for name in ("all", one["kind"], one["lang"]):
                        kept[name].append(held)
                    if not held:
                        lost.append(f"{one['id']} {one['kind']}: {one['text']}")
    read = [one.kind for like in data["lookalikes"] for one in statements(like["text"])]
    binding = ("rule", "preference", "decision")
    figures = {name: round(mean(values), 3) for name, values in sorted(kept.items())}
    return figures | {"look-alikes": round(mean(kind in binding for kind in read), 3)}, lost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--errors", action="store_true", help="name what was lost")
    parser.add_argument("--least", type=float, default=0.95, help="fail below this share")
    given = parser.parse_args()
    figures, lost = measure(json.loads(SET.read_text(encoding="utf-8")))
    for name, value in figures.items():
        print(f"{name:12} {value:.3f}")
    for line in sorted(set(lost)) if given.errors else ():
        print(line)
    if figures["all"] < given.least or figures["stale"] > 0:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
