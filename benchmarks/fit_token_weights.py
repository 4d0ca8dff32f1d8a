"""Fit the weights of the token estimate anew, to the real tokenizers.

    python benchmarks/fit_token_weights.py TEXTS.jsonl

Needs `numpy` and the vocabularies of `make bench-tokens`. Each line of the file is one text:
`{"class": "...", "text": "...", "weight": 1}`. The weights in the package were fitted to about
17,000 texts of 150 to 1,600 characters: documentation, manual pages and licences; catalogues and
pages of translations in some twenty languages, and words drawn by their frequency; source in ten
languages; JSON, ids, base64 and tables, found and generated; logs of sixteen systems, and the
output of some forty commands. Classes with few texts count more; prose and what tools return had a
weight of 3 or 4, words drawn by frequency in Japanese, which has no spaces, one of 0.2. The texts
of `token_texts` must not be among them.

The fit is least squares of relative errors, with weights from 0 to a byte and a small penalty, by
coordinate descent.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from string import ascii_lowercase as LOWER  # noqa: N812
from string import ascii_uppercase as UPPER  # noqa: N812
from string import digits as DIGITS  # noqa: N812
from typing import Any

import numpy as np
import numpy.typing as npt
from vocabularies import CLAUDE, folder, load

from conspectus.tokens import FAMILIES, KNOWN
from conspectus.tokens.estimate import UNIT, coded

COMMON = Path(__file__).with_name("token_texts") / "common_characters.json"
OUT = Path(__file__).resolve().parents[1] / "src/conspectus/tokens/weights.json"
MARKED = "".join(map(chr, range(0xC0, 0x100)))
ODD = "".join(map(chr, (*range(9), 11, 12, *range(14, 32), *range(127, 0xC0))))
KINDS = [" ", "aeiou", "tnrsl", "dcmhpg", "bfwvyk", "jqxz", MARKED + ODD, UPPER, DIGITS]
KINDS += ["\n\r", "\t", ".,", "\"'`", "()[]{}<>;:", "-=*#~_+", "/\\|&@$%^!?"]
GROUPS: dict[str, Sequence[str]] = {
    "kind": KINDS,
    "shape": ["", LOWER + MARKED, UPPER, DIGITS],
    "letter": ["", *LOWER, UPPER, DIGITS, MARKED],
    "left0": ["", *"abcdefg"],
    "left1": ["", *"hijklmn"],
    "left2": ["", *"opqrstu"],
    "left3": ["", *"vwxyz", " \n\t", "_-./"],
}
"""Classes of Latin-1. `left` and `letter` give each pair of small letters a code of its own."""

SCRIPTS = ["", "0102 1e", "03 1f", "04", "05", "0607 fbfe", "09", "0e", "0a0d 0f1d", "20"]
SCRIPTS += ["212f ff", "30", "349f f9fa", "acd7", "d8db", "3133 a0ab d8 e0f8"]
"""Scripts by the high byte of UTF-16, as ranges: none (Latin, or the second half of a pair), Latin
with rarer marks, Greek, Cyrillic, Hebrew, Arabic, Devanagari, Thai, other letters, punctuation,
symbols, kana, Han, Hangul, emoji and others of pairs, all others."""

HAN, HANGUL = 12, 13

SPAN = 256  # Weights of a view
VIEWS, RARE = 8, 4

PENALTIES = (0.3, 1.0, 3.0, 3.0, 3.0, 3.0, 0.3, 0.3)
"""Ridge penalty by view: pairs of letters are many, and small beside the kinds that they are of."""

SAFETY = 1.03  # For an unknown model, the estimate is so far above the largest of the known ones
LARGEST = 2.5  # Tokens of the largest weight
SWEEPS = 120
PER_CLASS, FEWEST = 400, 30  # Texts of a class that counts as it is, and the least it is taken for

Array = npt.NDArray[np.float64]


def classes() -> dict[str, str]:
    """Give the class of each byte as a digit of base 36, by name."""
    rows = {}
    for name, groups in GROUPS.items():
        places = {ord(char): place for place, some in enumerate(groups) for char in some}
        rows[name] = [places.get(byte, 0) for byte in range(256)]
    rows["column"] = [byte >> 4 for byte in range(256)]
    rows["script"] = [0] * 256
    for place, ranges in enumerate(SCRIPTS):
        for pair in ranges.split():
            for byte in range(int(pair[:2], 16), int(pair[-2:], 16) + 1):
                rows["script"][byte] = place
    return {name: "".join(map(np.base_repr, row, [36] * 256)) for name, row in rows.items()}


def common() -> list[tuple[int, str]]:
    """Give Han and Hangul characters that are one token in most families, then in some, too."""
    sets = json.loads(COMMON.read_text(encoding="utf-8"))
    return [
        (script, sets[f"common_{name}"] + more)
        for script, name in ((HAN, "han"), (HANGUL, "hangul"))
        for more in ("", sets[f"known_{name}"])
    ]


def written(data: dict[str, Any]) -> str:
    """Write data with a line for each entry of an entry."""
    parts = []
    for name, value in data.items():
        items = value.items() if isinstance(value, dict) else ((None, one) for one in value)
        rows = [
            (f"{json.dumps(key)}: " if key else "")
            + json.dumps(one, ensure_ascii=False, separators=(",", ":"))
            for key, one in items
        ]
        ends = "{}" if isinstance(value, dict) else "[]"
        parts.append(f"{json.dumps(name)}: {ends[0]}\n" + ",\n".join(rows) + f"\n{ends[1]}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def counts_of(text: str) -> Array:
    """Count the codes of a text in each view, and its rare characters."""
    views, rare = coded(text)
    found = np.zeros(VIEWS * SPAN + RARE)
    for place, view in enumerate(views):
        row = np.bincount(np.frombuffer(view, np.uint8), minlength=SPAN)
        if place >= 2:
            row[: 32 if place < 6 else 16] = 0
        found[place * SPAN : (place + 1) * SPAN] = row
    found[VIEWS * SPAN : VIEWS * SPAN + len(rare)] = rare
    return found


def fitted(gram: Array, right: Array, largest: Array) -> Array:
    """Minimise the squares within bounds, one weight after the other."""
    solution = np.zeros_like(right)
    slope = -right
    used = np.nonzero(np.diag(gram) > 0)[0]
    for _ in range(SWEEPS):
        for place in used:
            before = solution[place].copy()
            solution[place] = np.clip(before - slope[place] / gram[place, place], 0, largest)
            change = solution[place] - before
            if np.abs(change).max() > 1e-7:
                slope += np.outer(gram[place], change)
    return solution


def main(path: str) -> None:
    where = folder()
    if where is None:
        sys.exit("there are no vocabularies: make bench-tokens gets them")
    count = load(where)
    rows = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    # Claude's counts are fitted unscaled, so that its errors count like those of the others.
    scale = np.array([CLAUDE if family in ("claude", "unknown") else 1.0 for family in FAMILIES])
    counts = np.array([[count[family](row["text"]) for family in KNOWN] for row in rows])
    real = np.column_stack([counts, counts.max(axis=1) * SAFETY]) / scale
    data: dict[str, Any] = {"classes": classes(), "common": common(), "families": {}}
    OUT.write_text(written(data), encoding="utf-8")  # the estimate's views read it
    found = np.array([counts_of(row["text"]) for row in rows])
    of_class = Counter(row["class"] for row in rows)
    shares = [
        row.get("weight", 1) * (PER_CLASS / max(of_class[row["class"]], FEWEST)) ** 0.5
        for row in rows
    ]
    size = real.mean(axis=1)
    importance = np.array(shares) * 900 / (size * np.maximum(size, 40))
    weighted = found * importance[:, None]
    penalty = np.append(np.repeat(PENALTIES, SPAN), np.full(RARE, PENALTIES[0]))
    gram = weighted.T @ found
    unused = np.diag(gram) == 0
    gram[np.diag_indices_from(gram)] += penalty
    gram[:, unused] = gram[unused] = 0
    solution = fitted(gram, weighted.T @ real, LARGEST / scale)
    steps = np.round(solution * scale / UNIT).astype(int)
    families = {
        family: {
            "rare": steps[VIEWS * SPAN :, place].tolist(),
            "views": steps[: VIEWS * SPAN, place].reshape(VIEWS, SPAN).tolist(),
        }
        for place, family in enumerate(FAMILIES)
    }
    data["families"] = families
    OUT.write_text(written(data), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
