"""Fit the weights of the estimate of tokens anew, to real tokenizers.

    python benchmarks/fit_tokens.py TEXTS.jsonl [OPEN_MODELS]

Needs `scipy` beside what development needs; takes some minutes. The weights are fitted to

- the kinds of `token_kinds` that are not held back, and some thousand forms;
- the texts of the file, a line each: `{"text": "...", "weight": 1.0, "aim": 1.0}`. For the weights
  in the package these were 15,000 of 50 to 2,000 characters: manual pages, help pages and fortunes
  in forty languages; catalogues of translations and words drawn by their frequency, which weigh a
  third, but those of English three times as much as others; docstrings, documentation, and source
  in many languages from installed packages; and the output of some fifty commands.

An estimate below the real count weighs 150 times as much as one above it. What no text
has keeps a weight from before the fit, which is high: so a character in a place where none was
seen counts too much rather than too little. `OPEN_MODELS` is a folder with `NAME.json` of further
tokenizers; the family `unknown` is fitted to the one that takes most of each text.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from token_kinds import ALL, forms, is_held_back, texts_of
from vocabularies import CLAUDE, Counter, families, open_models

from conspectus.tokens.estimate import UNIT, coded, rare_characters

OUT = Path(__file__).resolve().parents[1] / "src" / "conspectus" / "tokens" / "weights.json"
SIZES = [25, 60, 120, 300, 600, 900, 1_200, 1_200, 1_600, 2_500]  # Characters of a kind's texts
FORMS, FORM_SIZES = 1_500, (80, 500, 1_200)
SHORT, SHORT_SIZES = 400, (50, 400)
PHRASES, PHRASE_SIZES = 300, (60, 400)

LATIN_VIEWS, WIDE_VIEWS, CODES, RARE = 12, 5, 256, 4
COLUMNS = (LATIN_VIEWS + WIDE_VIEWS) * CODES + RARE
BLOCKS = LATIN_VIEWS * CODES  # The first column of the view of blocks of Unicode


@dataclass(frozen=True)
class Source:
    """How texts of one source are fitted: what an error weighs, and how high the estimate aims."""

    weight: float
    below: float  # What an error below the aim weighs
    above: float
    aim: float  # Estimate over real count


KIND = Source(weight=1.0, below=6.0, above=0.04, aim=1.07)
PROSE = Source(weight=1.0, below=1.2, above=0.04, aim=1.07)
FORM = Source(weight=0.35, below=6.0, above=0.04, aim=1.07)
SHORT_LINES = Source(weight=1.5, below=6.0, above=0.04, aim=1.07)
FOUND = Source(weight=1.2, below=1.5, above=1.0, aim=1.01)

PROSE_KINDS = ("prose, random", "prose, sent", "prose, titles", "names in ")
"""Kinds that are near prose: found texts show better how much that takes."""

SHORT_WORDS = ("pass", "end", "null", "else")
# In the view of whitespace: a letter behind two spaces, a new line with a space, or one with a tab.
INDENTED = {" " * 4: [76], " " * 8: [76], "  ": [76, 140], "\t": [156]}
LAST_LATIN_VIEW = (LATIN_VIEWS - 1) * CODES
UNKNOWN = 1.025  # Added to the family `unknown`, as nobody knows which tokenizer it will be
PIECE = 0.9  # Tokens of a piece at least: a little is left to its letters
LARGEST = 250  # Steps of a weight, which is a byte

LEAST_SIZE = 5  # Tokens added to a count, so that a line of two tokens does not lead the fit
PULL = 0.01  # How strongly weights are held where they were before the fit


def main(found: Path, models: Path | None) -> None:
    """Fit the weights of all families, and write them into the package."""
    rows: list[tuple[Source, str]] = []
    for name in ALL:
        if not is_held_back(name):
            source = PROSE if name.startswith(PROSE_KINDS) else KIND
            rows += [(source, text) for text in texts_of(name, SIZES)]
    for number in range(FORMS):
        write = forms.form(number)
        for place, size in enumerate(FORM_SIZES):
            rows.append((FORM, write(Random(f"{number} {place}"), size)[:4_000]))
    for number in range(SHORT):
        write = forms.short_lines(number)
        for place, size in enumerate(SHORT_SIZES):
            rows.append((SHORT_LINES, write(Random(f"{number} {place}"), size)[:2_000]))
    for number in range(PHRASES):
        write = forms.phrases(number)
        for place, size in enumerate(PHRASE_SIZES):
            rows.append((SHORT_LINES, write(Random(f"{number} {place}"), size)[:2_000]))
    for line in found.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        weight, aim = row.get("weight", 1.0), row.get("aim", 1.0)
        source = replace(FOUND, weight=FOUND.weight * weight, aim=FOUND.aim * aim)
        rows.append((source, row["text"]))
    rows = [(source, text) for source, text in rows if text]
    sources, texts = [source for source, _ in rows], [text for _, text in rows]
    counters = families()
    real = {name: np.array([float(count(t)) for t in texts]) for name, count in counters.items()}
    others = open_models(models) if models else {}
    more = [np.array([float(count(text)) for text in texts]) for count in others.values()]
    real["unknown"] = np.max([*real.values(), *more], axis=0)
    codes = features(texts)
    stored: dict[str, Any] = json.loads(OUT.read_text(encoding="utf-8"))
    stored["families"] = {}
    for family, counts in real.items():
        scale = CLAUDE if family in ("claude", "unknown") else 1.0
        weights = fitted(codes, counts, sources, scale)
        measured = [*counters.values(), *others.values()]
        raise_indented(weights, [counters[family]] if family in counters else measured)
        if family == "unknown":
            weights *= UNKNOWN
        steps = np.minimum(np.round(weights / UNIT), LARGEST).astype(int).tolist()
        views = [steps[at : at + CODES] for at in range(0, COLUMNS - RARE, CODES)]
        stored["families"][family] = {"rare": steps[-RARE:], "views": views}
        print(family, "is fitted", flush=True)
    OUT.write_text(written(stored), encoding="utf-8")


def features(texts: list[str]) -> Any:
    """Count the codes of each text in each view: a row for each text."""
    table = sparse.lil_matrix((len(texts), COLUMNS), dtype=np.float32)
    for place, text in enumerate(texts):
        views, scripts = coded(text)
        for view, row in enumerate(views):
            counts = np.bincount(np.frombuffer(row, np.uint8), minlength=CODES)
            table[place, view * CODES : (view + 1) * CODES] = counts
        if scripts:
            table[place, -RARE:] = rare_characters(text, scripts)
    return table.tocsr()


def raise_indented(weights: Any, counters: list[Counter]) -> None:
    """Raise what an indented letter weighs, until short words that stand alone are not too low.

    The letters of such words weigh little in prose, where they are parts of longer ones.
    """
    for indent, codes in INDENTED.items():
        texts = [f"{indent}{word}\n" * 60 for word in SHORT_WORDS]
        rows = features(texts)
        real = np.array([max(count(text) for count in counters) for text in texts])
        columns = [LAST_LATIN_VIEW + code for code in codes]
        times = np.asarray(rows[:, columns].sum(axis=1)).ravel()
        missing = (0.98 * real - rows @ weights) / np.maximum(times, 1)
        weights[columns] += max(0.0, float(missing[times > 0].max(initial=0.0)))


def begins_a_piece(code: int) -> bool:
    """Tell whether a code of the view of whitespace is that of a character which begins a piece.

    Tokenizers divide a text into words, numbers, runs of signs and of whitespace before they join
    characters: no token is longer than such a piece. So each takes about a token at least, whatever
    texts the weights are fitted to.
    """
    space, line, tab, letter, digit, sign = 1, 2, 3, 4, 5, 6
    here, before, before_that = code & 7, code >> 3 & 7, code >> 6
    if here == letter:
        quoted = before == sign and before_that == space
        return quoted or before in (space, line, tab, digit)
    if here == digit:
        return before not in (0, digit)
    if here == sign:
        return before in (space, line, tab, letter, digit)
    if here == line:
        return before in (letter, digit)
    return here == space and before == space and before_that != space


def bounds(scale: float) -> tuple[Any, Any, Any]:
    """Return the least and the largest weight of each code, and the one that it has before the fit.

    `scale` is what a piece takes at least, in tokens.
    """
    most = np.full(COLUMNS, 1.27)  # so that many can be added up at once
    most[:CODES] = most[BLOCKS : BLOCKS + 2 * CODES] = most[-RARE:] = 2.5
    most[LAST_LATIN_VIEW:BLOCKS] = 1.7
    least = np.zeros(COLUMNS)
    least[LAST_LATIN_VIEW:BLOCKS] = [PIECE * scale * begins_a_piece(c) for c in range(CODES)]
    before = np.full(COLUMNS, 0.12)
    before[:CODES] = before[-RARE:] = 0.3
    before[BLOCKS : BLOCKS + CODES] = 1.0
    before[BLOCKS + CODES : -RARE] = 0.2
    # A character of Latin-1 weighs nothing in the views of the others.
    most[BLOCKS : BLOCKS + 2] = 0
    for view in range(1, WIDE_VIEWS):
        first = BLOCKS + view * CODES
        most[first : first + CODES : 16] = 0
    return least, most, np.clip(before, least, most)


def fitted(codes: Any, counts: Any, sources: list[Source], scale: float) -> Any:
    """Fit the weights of one family; `scale` is as for `bounds`."""
    aim = counts * np.array([source.aim for source in sources])
    size = counts + LEAST_SIZE
    below = np.array([source.below * source.weight for source in sources])
    above = np.array([source.above * source.weight for source in sources])
    least, most, before = bounds(scale)
    turned = codes.T.tocsr()

    def loss(weights: Any) -> tuple[float, Any]:
        error = (codes @ weights - aim) / size
        cost = np.where(error < 0, below, above)
        pull = weights - before
        value = float((cost * error**2).sum() + PULL * (pull**2).sum())
        return value, turned @ (2 * cost * error / size) + 2 * PULL * pull

    limits = list(zip(least, most, strict=True))
    options = {"maxiter": 900, "maxfun": 1_800, "maxcor": 25}
    return minimize(loss, before, jac=True, method="L-BFGS-B", bounds=limits, options=options).x


def written(stored: dict[str, Any]) -> str:
    """Write the weights as JSON, a family a line."""
    compact: Any = {"ensure_ascii": False, "separators": (",", ":")}
    common = ",\n".join(json.dumps(row, **compact) for row in stored["common"])
    lines = [f'"{name}": {json.dumps(f, **compact)}' for name, f in stored["families"].items()]
    return f'{{\n"common": [\n{common}\n],\n"families": {{\n' + ",\n".join(lines) + "\n}\n}\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
