"""Fit the weights of the token estimate anew, to the real tokenizers.

    python benchmarks/fit_token_weights.py TEXTS.jsonl

Needs `numpy` and the vocabularies of `make bench-tokens`. Each line of the file is one text:
`{"class": "...", "text": "...", "weight": 1}`. The weights in the package were fitted to about
10,000 texts of 200 to 1,600 characters: package documentation, manual pages and licences;
catalogues of translations, and words drawn by their frequency, in seven languages; Python of the
standard library and of packages; JSON, ids, base64 and tables, found and generated; the output of
some fifty commands. Classes with few texts count more; prose had a weight of 5, found tables and
JSON one of 4. The texts of `token_texts` must not be among them.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np
from vocabularies import folder, load

from conspectus.tokens import KNOWN
from conspectus.tokens.estimate import CLAUDE
from conspectus.tokens.pieces import PIECES, traits

OUT = Path(__file__).resolve().parents[1] / "src/conspectus/tokens/weights.json"
SUPPORT = 100
"""Texts that must have a pair of characters, for it to get a weight."""

SUPPORT_KIND = 3
"""Texts that must have a trait that is a kind or a length."""

PENALTY, PENALTY_KIND = 0.6, 0.05
"""Ridge penalties of pairs, and of kinds and lengths."""

SMALL = 5
"""Hundredths of a token below which the weight of a pair is left out."""


def traits_of(text: str) -> Counter[str]:
    """Count the traits of a text."""
    found: Counter[str] = Counter()
    for piece, times in Counter(PIECES.findall(text)).items():
        for name, value in traits(piece):
            found[name] += value * times  # type: ignore[assignment]
    return found


def is_kind(name: str) -> bool:
    """Say whether a trait is a kind or a length of pieces."""
    return len(name) > 2 or name == "U"


def main(path: str) -> None:
    where = folder()
    if where is None:
        sys.exit("there are no vocabularies: make bench-tokens gets them")
    count = load(where)
    rows = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    # Claude's weights are kept unscaled, so that its scale stays one number.
    scale = {family: CLAUDE if family == "claude" else 1.0 for family in KNOWN}
    real = np.array([[count[f](row["text"]) / scale[f] for f in KNOWN] for row in rows])
    each = [traits_of(row["text"]) for row in rows]
    support = Counter(name for found in each for name in found)
    names = sorted(n for n, k in support.items() if k >= (SUPPORT_KIND if is_kind(n) else SUPPORT))
    place = {name: i for i, name in enumerate(names)}
    of_class = Counter(row["class"] for row in rows)
    gram = np.diag([PENALTY_KIND if is_kind(name) else PENALTY for name in names])
    right = np.zeros((len(names), len(KNOWN)))
    for row, found, counts in zip(rows, each, real, strict=True):
        share = (900 / of_class[row["class"]]) ** 0.5
        share *= row.get("weight", 1)
        weight = (30 * share) ** 2 / (counts[0] * counts.mean())  # errors relative to the size
        known = [(place[n], v) for n, v in found.items() if n in place]
        at, values = np.array([k[0] for k in known]), np.array([k[1] for k in known])
        gram[np.ix_(at, at)] += weight * np.outer(values, values)
        right[at] += weight * np.outer(values, counts)
    weights = np.round(100 * np.linalg.solve(gram, right)).astype(int)
    kept = {
        name: row.tolist()
        for name, row in zip(names, weights, strict=True)
        if is_kind(name) or abs(row).max() >= SMALL
    }
    lines = [f"{json.dumps(n)}: {json.dumps(v, separators=(',', ':'))}" for n, v in kept.items()]
    OUT.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
