"""Kinds of text by generators with seeds: what tools print, what people write, and odd scripts.

A kind is a name and a function that writes one text of about so many characters. A third of the
kinds, by a hash of their names, is held back from the fit of the weights. `unseen` has kinds that
were written without a look at the others, or at what the weights get wrong. Half of them have served
for a correction of the weights since then; the other half is still unseen. `forms` writes kinds without a name: random layouts of random parts, of which any number can be
drawn.
"""

from __future__ import annotations

import hashlib
from random import Random

from token_kinds import code, data, layouts, logs, scripts, unseen
from token_kinds.kind import Kind

ALL: dict[str, Kind] = {
    kind.name: kind for module in (layouts, logs, data, code, scripts) for kind in module.KINDS
}
HELD_SHARE = 3  # One kind in so many is held back


def is_held_back(name: str) -> bool:
    """Tell whether a kind is held back from the fit, by a hash of its name."""
    return hashlib.sha256(name.encode()).digest()[0] % HELD_SHARE == 0


def is_for_correction(name: str) -> bool:
    """Tell whether a kind of `unseen` has served for a correction, by a hash of its name."""
    return hashlib.sha256(f"half {name}".encode()).digest()[0] % 2 == 0


UNSEEN = [kind for kind in unseen.KINDS if not is_for_correction(kind.name)]
FOR_CORRECTION = [kind for kind in unseen.KINDS if is_for_correction(kind.name)]


def texts_of(kind: Kind, sizes: list[int]) -> list[str]:
    """Write texts of a kind, one for each size in characters; the same ones each time."""
    return [kind.write(Random(f"{kind.name} {number}"), size) for number, size in enumerate(sizes)]
