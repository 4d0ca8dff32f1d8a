"""Fit the weights of the estimate of tokens anew, to real tokenizers.

    python benchmarks/fit_tokens.py TEXTS.jsonl [OPEN_MODELS]

Needs `scipy` beside what development needs; takes some minutes. The weights are fitted to

- the kinds of `token_kinds` that are not held back or unseen, and some thousand forms;
- the texts of the file, a line each: `{"text": "...", "weight": 1.0, "aim": 1.0}`. For the weights
  in the package these were a random quarter of some 20,000 texts of 50 to 2,000 characters: the
  declaration of human rights in four hundred languages, catalogues of translations and words drawn
  by their frequency, where languages that few people write weigh a third and the rest twice; manual
  pages, documentation and fortunes in thirty languages; docstrings and source in many languages
  from installed packages; and the output of some eighty commands. The aim is 0.95 for prose in
  Latin letters (0.93 for that beside English in o200k), 1.03 for Thai and Korean (1.0 in o200k and
  1.07 in deepseek for Korean), 1.0 for Japanese (1.1 in deepseek), 1.06 for Chinese (0.98 in
  deepseek), and 0.97 for the rest (0.85 for Hindi in o200k); Chinese and Japanese weigh three
  times as much;
- texts of the file with `"safe": true`, which must not be too low, whatever they add to others:
  words of each language of the declaration, a few by turns; and words in Ethiopic letters, whose
  weight is 15 and whose aim 1.3 (1.2 in deepseek).

An estimate below the real count weighs 150 times as much as one a little above it; one far above it
weighs more. What no text has keeps a weight from before the fit, which is high: so a character in a
place where none was seen counts too much rather than too little.

`OPEN_MODELS` is a folder with `NAME.json` of further tokenizers; for the weights in the package,
those of Gemma 3, Llama 3, Mistral's Tekken and Qwen. The family `unknown` is fitted to the one that
takes most of each text. The layers are learned before, by `learn_layers.py`.

The weights in the package were corrected after this fit: what was too low in the kinds for
correction, and in words of random characters of each block and script of Unicode, was raised.
Weights moved as little as possible, subject to two conditions. The other kinds of the fit do not
become too low. Catalogues of translations, words drawn by their frequency, docstrings and
documentation keep the estimates that they had, on average of each language. Weights of characters
in Latin-1 rose by a twentieth of a token at most.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from token_kinds import ALL, FOR_CORRECTION, forms, is_held_back, texts_of
from token_kinds.kind import Writer
from vocabularies import CLAUDE, Counter, families, open_models

from conspectus.tokens.estimate import STEP_TOKENS, rare_characters
from conspectus.tokens.layers import COMMON_LAYERS, coded

WEIGHTS = Path(__file__).parents[1] / "src" / "conspectus" / "tokens" / "weights.json"
# Characters of the texts of a kind.
KIND_SIZES = [25, 60, 120, 300, 600, 900, 1_200, 1_200, 1_600, 2_500]

CODES, RARE = 256, 4
PIECES = 1  # The layer of pieces, among those of every text
WIDE_LAYERS = 6  # Layers of characters beyond Latin-1; the first is that of blocks
SCRIPT_LAYERS = range(1, 5)  # Those of them whose low four bits are the script
BLOCKS = COMMON_LAYERS * CODES  # The first column of the layer of blocks
COLUMNS = (COMMON_LAYERS + WIDE_LAYERS) * CODES + RARE


@dataclass(frozen=True)
class Source:
    """How texts of one source are fitted: what an error weighs, and how high the estimate aims."""

    weight: float
    below: float  # What an error below the aim weighs
    above: float
    aim: float  # Estimate over real count
    aims: dict[str, float] = field(default_factory=dict)  # Of families that have one of their own


KIND = Source(weight=1.0, below=6.0, above=0.04, aim=1.13)
PROSE = Source(weight=1.0, below=2.5, above=0.04, aim=1.10)
NAMES = Source(weight=1.0, below=5.0, above=0.04, aim=1.13)
FOUND = Source(weight=3.3, below=1.5, above=1.0, aim=1.0)
SAFE = Source(weight=0.15, below=6.0, above=0.04, aim=1.13)

PROSE_KINDS = ("prose, random", "prose, sent", "prose, titles")
"""Kinds that are near prose: found texts show better how much that takes."""

SHORT_WORDS = ("pass", "end", "null", "else")
# In the layer of pieces: a letter behind two spaces, a new line with a space, or one with a tab.
INDENTED = {" " * 4: [76], " " * 8: [76], "  ": [76, 140], "\t": [156]}

MARGINS = {"o200k": 1.005}  # Times each weight, where kinds are at the edge of too low
FAR = 0.25  # Share above the aim from which on an error weighs more
FAR_ABOVE = 0.5
LEAST_SIZE = 5  # Tokens added to a count, so that a line of two tokens does not lead the fit
PULL = 0.01  # How strongly weights are held where they were before the fit
PIECE = 0.9  # Tokens of a piece at least: a little is left to its letters
LARGEST = 250  # Steps of a weight, which is a byte
ITERATIONS = 150


def weighing(weight: float, aim: float = KIND.aim) -> Source:
    """Return a source that is fitted as a kind is, but for its weight, or its aim too."""
    return replace(KIND, weight=weight, aim=aim)


@dataclass(frozen=True)
class Forms:
    """Forms without a name that are drawn for the fit."""

    writer_of: Callable[[int], Writer]
    source: Source
    many: int
    sizes: tuple[int, ...]


FORMS = (
    Forms(forms.form, weighing(0.35), many=800, sizes=(80, 500, 1_200)),
    Forms(forms.short_lines, weighing(1.5), many=400, sizes=(50, 400)),
    Forms(forms.phrases, weighing(1.5), many=300, sizes=(60, 400)),
    Forms(forms.pictures, weighing(0.9, aim=1.06), many=120, sizes=(60, 400)),
    Forms(forms.garbled, weighing(0.5, aim=1.06), many=80, sizes=(60, 400)),
    Forms(forms.rare_letters, weighing(4.0, aim=1.11), many=160, sizes=(60, 400)),
    Forms(forms.odd_spaces, weighing(0.9, aim=1.06), many=80, sizes=(60, 400)),
    Forms(forms.random_words, weighing(3.0), many=160, sizes=(60, 400)),
    Forms(forms.signs_among_words, weighing(0.5, aim=1.06), many=220, sizes=(60, 400)),
    Forms(forms.escapes, weighing(0.6), many=80, sizes=(60, 400)),
    Forms(forms.diagrams, weighing(1.0), many=120, sizes=(60, 400)),
    Forms(forms.grids, weighing(2.0), many=180, sizes=(60, 400)),
)


def main(found: Path, models: Path | None) -> None:
    """Fit the weights of all families, and write them into the package."""
    rows = [(source, text) for source, text in texts_to_fit(found) if text]
    sources = [source for source, _ in rows]
    texts = [text for _, text in rows]
    counters = families()
    counts = {name: np.array([count(text) for text in texts]) for name, count in counters.items()}
    others = open_models(models) if models else {}
    more = [np.array([count(text) for text in texts]) for count in others.values()]
    # For open models, what the estimate adds to be safe is left out.
    reserve = np.array([max(1.0, source.aim) for source in sources])
    counts["unknown"] = np.max([*counts.values(), *(real / reserve for real in more)], axis=0)
    codes = features(texts)
    stored: dict[str, Any] = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    stored["families"] = {}
    weights = None
    for family, real in counts.items():
        scale = CLAUDE if family in ("claude", "unknown") else 1.0
        aims = np.array([source.aims.get(family, source.aim) for source in sources])
        weights = fitted(codes, real, sources, aims, scale, weights)
        measured = [*counters.values(), *others.values()]
        raised = with_indented_raised(
            weights, [counters[family]] if family in counters else measured
        )
        stored["families"][family] = as_stored(raised * MARGINS.get(family, 1.0))
        print(family, "is fitted", flush=True)
    WEIGHTS.write_text(written(stored), encoding="utf-8")


def texts_to_fit(found: Path) -> Iterator[tuple[Source, str]]:
    """Give the texts of all sources."""
    for name, kind in ALL.items():
        if not is_held_back(name):
            source = PROSE if name.startswith(PROSE_KINDS) else KIND
            source = NAMES if name.startswith("names in ") else source
            for text in texts_of(kind, KIND_SIZES):
                yield source, text
    for kind in FOR_CORRECTION:
        for text in texts_of(kind, KIND_SIZES):
            yield KIND, text
    for drawn in FORMS:
        for number in range(drawn.many):
            write = drawn.writer_of(number)
            for place, size in enumerate(drawn.sizes):
                yield drawn.source, write(Random(f"{number} {place}"), size)[: 2 * size + 1_600]
    for line in found.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        source = SAFE if row.get("safe") else FOUND
        weight = source.weight * row.get("weight", 1.0)
        aim, aims = row.get("aim", source.aim), row.get("aims", {})
        yield replace(source, weight=weight, aim=aim, aims=aims), row["text"]


def features(texts: list[str]) -> Any:
    """Count the codes of each text in each layer: a row for each text."""
    table = sparse.lil_matrix((len(texts), COLUMNS), dtype=np.float32)
    for place, text in enumerate(texts):
        layers, scripts = coded(text)
        for layer, row in enumerate(layers):
            counts = np.bincount(np.frombuffer(row, np.uint8), minlength=CODES)
            table[place, layer * CODES : (layer + 1) * CODES] = counts
        if scripts:
            table[place, -RARE:] = rare_characters(text, scripts)
    return table.tocsr()


def with_indented_raised(weights: Any, counters: list[Counter]) -> Any:
    """Raise what an indented letter weighs, until short words that stand alone are not too low.

    The letters of such words weigh little in prose, where they are parts of longer ones.
    """
    raised = weights.copy()
    for indent, codes in INDENTED.items():
        texts = [f"{indent}{word}\n" * 60 for word in SHORT_WORDS]
        rows = features(texts)
        real = np.array([max(count(text) for count in counters) for text in texts])
        columns = [PIECES * CODES + code for code in codes]
        times = np.asarray(rows[:, columns].sum(axis=1)).ravel()
        missing = (0.98 * real - rows @ raised) / np.maximum(times, 1)
        raised[columns] += max(0.0, float(missing[times > 0].max(initial=0.0)))
    return raised


def begins_a_piece(code: int) -> bool:
    """Tell whether a code of the layer of pieces is that of a character which begins a piece.

    Tokenizers divide a text into words, numbers, runs of signs and of whitespace before they join
    characters: no token is longer than such a piece. So each takes about a token at least, whatever
    texts the weights are fitted to. A control character is a piece of its own.
    """
    control, space, line, tab, letter, digit, sign = range(7)
    here, before, before_that = code & 7, code >> 3 & 7, code >> 6
    if here == control:
        return code != 0
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
    least = np.zeros(COLUMNS)
    most = np.full(COLUMNS, 1.9)  # so that many can be added up at once
    before = np.full(COLUMNS, 0.12)
    pieces = slice(PIECES * CODES, (PIECES + 1) * CODES)
    least[pieces] = [PIECE * scale * begins_a_piece(code) for code in range(CODES)]
    most[pieces] = 2.2
    most[BLOCKS : BLOCKS + 2 * CODES] = most[-RARE:] = 2.5
    before[BLOCKS : BLOCKS + CODES] = 1.0
    before[BLOCKS + CODES :] = 0.2
    before[-RARE:] = 0.3
    # A character of Latin-1 weighs nothing in the layers of the others.
    most[BLOCKS : BLOCKS + 2] = 0
    for layer in SCRIPT_LAYERS:
        first = BLOCKS + layer * CODES
        most[first : first + CODES : 16] = 0
    most[BLOCKS + (WIDE_LAYERS - 1) * CODES] = 0
    return least, most, np.clip(before, least, most)


def fitted(
    codes: Any, counts: Any, sources: list[Source], aims: Any, scale: float, start: Any
) -> Any:
    """Fit the weights of one family; `scale` is as for `bounds`.

    `start` are the weights of another family, from which fewer steps lead to those of this one.
    """
    size = counts + LEAST_SIZE
    aim = counts * aims / size
    below = np.array([source.below * source.weight for source in sources])
    above = np.array([source.above * source.weight for source in sources])
    far_above = FAR_ABOVE * np.minimum(below, 1.0)
    least, most, before = bounds(scale)
    shares = sparse.diags((1 / size).astype(np.float32)) @ codes
    # Weights are measured in units in which each bends the loss alike: that takes fewer steps.
    bend = np.asarray(shares.multiply(shares).T @ ((below + above) / 8)).ravel() + PULL
    unit = 1 / np.sqrt(bend)
    scaled = (shares @ sparse.diags(unit.astype(np.float32))).tocsr()
    turned = scaled.T.tocsr()

    def loss(point: Any) -> tuple[float, Any]:
        error = scaled @ point.astype(np.float32) - aim
        cost = np.where(error < 0, below, above)
        far = np.maximum(0, error - FAR)
        pull = point * unit - before
        value = (cost * error**2).sum() + (far_above * far**2).sum() + PULL * (pull**2).sum()
        slope = 2 * (cost * error + far_above * far)
        return float(value), turned @ slope.astype(np.float32) + 2 * PULL * pull * unit

    limits = list(zip(least / unit, most / unit, strict=True))
    first = (before if start is None else np.clip(start, least, most)) / unit
    options = {"maxiter": ITERATIONS, "maxfun": 2 * ITERATIONS, "maxcor": 20}
    found = minimize(loss, first, jac=True, method="L-BFGS-B", bounds=limits, options=options)
    return found.x * unit


def as_stored(weights: Any) -> dict[str, Any]:
    """Return the weights of a family in hundredths of a token, as the package has them."""
    steps = np.minimum(np.round(weights / STEP_TOKENS), LARGEST).astype(int).tolist()
    layers = [steps[at : at + CODES] for at in range(0, COLUMNS - RARE, CODES)]
    return {"rare": steps[-RARE:], "layers": layers}


def written(stored: dict[str, Any]) -> str:
    """Write what was learned and fitted as JSON, a list or a family a line."""

    def line(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    common = ",\n".join(map(line, stored["common"]))
    neighbours = ",\n".join(map(line, stored["neighbours"]))
    weights = ",\n".join(f'"{name}": {line(row)}' for name, row in stored["families"].items())
    return (
        f'{{\n"common": [\n{common}\n],\n"neighbours": [\n{neighbours}\n],\n'
        f'"families": {{\n{weights}\n}}\n}}\n'
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
