"""Learn the layers of neighbours anew: which classes of characters tell where tokens begin.

    python benchmarks/learn_layers.py TEXTS.jsonl

The texts are those of `fit_tokens.py`, to which the weights must be fitted afterwards. For each
character, real tokenizers say how many tokens begin there. A layer puts each character of two to
four in a row into one of a few classes; its codes predict the mean of what begins there. One layer
is learned after another, each from what those before it left unexplained: of several divisions of
a byte into classes, the one that explains most is taken.

The layers in the package were learned by a search like this one that also tried layers which
explain the next character, and improved classes more often. Weights that are fitted to what this
script learns err a little more: two kinds that are held back are too low.
"""

from __future__ import annotations

import base64
import json
import string
import sys
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from fit_tokens import WEIGHTS, texts_to_fit, written
from vocabularies import token_starts

from conspectus.tokens import layers

MOST_POSITIONS = 2_000_000  # Characters that the layers are learned from
LEARNED_LAYERS = 10
DIVISIONS = ([5, 3], [3, 5], [4, 4], [3, 3, 2], [2, 2, 2, 2])
"""Bits of a code for the character itself, for the one before it, and so on."""

ROUNDS = 2  # How often the classes of each place are improved
SHRINK = 30  # Characters that a code must have before its mean counts for half


class Positions:
    """Characters of all texts in a row, as symbols, and what begins at each."""

    def __init__(self, rows: list[bytes], begins: list[Any]) -> None:
        self.symbol_of = symbols()
        self.symbols = int(self.symbol_of.max()) + 2
        nothing = self.symbols - 1  # What stands before a text
        characters = np.concatenate([np.frombuffer(row, np.uint8) for row in rows])
        self.begins = np.concatenate(begins)
        # Layers of their own count the characters beyond Latin-1.
        self.counted = (characters < layers.STAND_IN) | (characters >= layers.STAND_IN + 16)
        here = self.symbol_of[characters].astype(np.int32)
        starts = np.cumsum([0, *map(len, rows)])[:-1]
        self.before = [here]
        for distance in range(1, 4):
            moved = np.full(len(here), nothing, np.int32)
            moved[distance:] = here[:-distance]
            for place in range(distance):
                near_start = starts + place
                moved[near_start[near_start < len(here)]] = nothing
            self.before.append(moved)


def symbols() -> Any:
    """Number the bytes of a row: rare letters and signs share a number."""
    usual = "éáíóúüöäçñãèàâêôåøß"
    groups = [*string.printable[:95], "\n", "\t", "\r", *usual]
    groups.append("".join(letter for letter in layers.ACCENTED if letter not in usual))
    groups.append(layers.LATIN_SIGNS)
    groups += [chr(layers.STAND_IN + script) for script in range(16)]
    numbers = np.full(256, len(groups))
    for number, group in enumerate(groups):
        for letter in group:
            numbers[ord(letter)] = number
    return numbers


def row_of(text: str, scripts: bytes) -> bytes:
    """Return a byte for each character: itself in Latin-1, or what stands for its script."""
    if not scripts:
        return text.encode("latin-1")
    pairs = zip(text, scripts, strict=True)
    return bytes(
        layers.STAND_IN + script if script else ord(letter) & 0xFF for letter, script in pairs
    )


def learned_classes(positions: Positions, missing: Any, bits: list[int]) -> tuple[list[Any], float]:
    """Return the class of each symbol at each place, and how much of `missing` they explain."""
    classes = [first_classes(positions, missing, place, bits) for place in range(len(bits))]
    explained = 0.0
    for _ in range(ROUNDS):
        for place in range(len(bits)):
            explained = improve(positions, missing, classes, bits, place)
    return classes, explained


def first_classes(positions: Positions, missing: Any, place: int, bits: list[int]) -> Any:
    """Divide the symbols at a place by the mean that is missing there."""
    many = 1 << bits[place]
    symbol = positions.before[place]
    times = np.bincount(symbol, minlength=positions.symbols)
    total = np.bincount(symbol, missing, minlength=positions.symbols)
    order = np.argsort(total / (times + SHRINK))
    passed = np.cumsum(times[order]) / times.sum()
    classes = np.zeros(positions.symbols, int)
    classes[order] = np.minimum(many - 1, (passed * many).astype(int))
    return classes


def improve(
    positions: Positions, missing: Any, classes: list[Any], bits: list[int], place: int
) -> float:
    """Move symbols at a place to the classes where the layer explains most, and return how much."""
    others = np.zeros(len(missing), np.int32)
    shift = 0
    for other, width in enumerate(bits):
        if other != place:
            others |= classes[other][positions.before[other]].astype(np.int32) << shift
            shift += width
    cells = 1 << shift
    key = positions.before[place] * cells + others
    shape = (positions.symbols, cells)
    times = np.bincount(key, minlength=positions.symbols * cells).reshape(shape).astype(float)
    total = np.bincount(key, missing, minlength=positions.symbols * cells).reshape(shape)
    class_total = np.zeros((1 << bits[place], cells))
    class_times = np.zeros_like(class_total)
    np.add.at(class_total, classes[place], total)
    np.add.at(class_times, classes[place], times)
    for symbol in np.argsort(-times.sum(axis=1)):
        here = classes[place][symbol]
        class_total[here] -= total[symbol]
        class_times[here] -= times[symbol]
        with_it = (class_total + total[symbol]) ** 2 / (class_times + times[symbol] + SHRINK)
        without = class_total**2 / (class_times + SHRINK)
        best = int((with_it - without).sum(axis=1).argmax())
        classes[place][symbol] = best
        class_total[best] += total[symbol]
        class_times[best] += times[symbol]
    return float((class_total**2 / (class_times + SHRINK)).sum())


def codes_of(positions: Positions, classes: list[Any], bits: list[int]) -> Any:
    """Return the code of each character in a layer."""
    codes = np.zeros(len(positions.begins), np.int64)
    shift = 0
    for place, width in enumerate(bits):
        codes |= classes[place][positions.before[place]].astype(np.int64) << shift
        shift += width
    return codes


def explained_by(codes: Any, missing: Any) -> Any:
    """Return what a layer predicts for each character, of what is missing."""
    times = np.bincount(codes, minlength=256)
    total = np.bincount(codes, missing, minlength=256)
    return (total / (times + SHRINK))[codes]


def byte_classes(positions: Positions, classes: list[Any], bits: list[int]) -> bytes:
    """Pack the classes of each byte at all places, as `layers.Neighbours` has them."""
    packed = np.zeros(256, int)
    shift = 0
    for place, width in enumerate(bits):
        packed |= classes[place][positions.symbol_of] << shift
        shift += width
    return bytes(packed.tolist())


def main(found: Path) -> None:
    """Learn the layers, and write them into the package."""
    texts = [text.encode("utf-8", "replace").decode() for _, text in texts_to_fit(found) if text]
    Random(1).shuffle(texts)
    rows: list[bytes] = []
    fixed: list[Any] = []  # Codes of runs and pieces
    begins: list[Any] = []
    counters = token_starts()
    positions_left = MOST_POSITIONS
    for text in texts:
        coded = layers.coded(text)
        rows.append(row_of(text, coded.scripts))
        fixed.append(np.stack([np.frombuffer(layer, np.uint8) for layer in coded.layers[:2]]))
        begins.append(np.mean([count(text) for count in counters], axis=0))
        positions_left -= len(text)
        if positions_left < 0:
            break
    positions = Positions(rows, begins)
    codes = list(np.concatenate(fixed, axis=1).astype(np.int64))
    predicted = [np.zeros(len(positions.begins)) for _ in codes]
    stored: dict[str, Any] = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    stored["neighbours"] = []
    for _ in range(LEARNED_LAYERS):
        for layer, code in enumerate(codes):
            predicted[layer] = 0
            predicted[layer] = explained_by(code, left(positions, predicted))
        missing = left(positions, predicted)
        tried = [(bits, *learned_classes(positions, missing, bits)) for bits in DIVISIONS]
        bits, classes, explained = max(tried, key=lambda one: one[2])
        codes.append(codes_of(positions, classes, bits))
        predicted.append(explained_by(codes[-1], missing))
        packed = base64.b64encode(byte_classes(positions, classes, bits)).decode()
        stored["neighbours"].append({"bits": bits, "classes": packed})
        print(bits, f"explains {explained:,.0f}", flush=True)
    WEIGHTS.write_text(written(stored), encoding="utf-8")


def left(positions: Positions, predicted: list[Any]) -> Any:
    """Return what no layer explains of what begins at each character."""
    return np.where(positions.counted, positions.begins - sum(predicted), 0.0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
