"""Guess the intention behind a mistyped word."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the most similar known word, or None."""
    choices = {one.lower(): one for one in known}
    folded = word.lower().replace("-", "_").replace(" ", "_")
    found = difflib.get_close_matches(folded, choices, n=1, cutoff=0.6)
    return choices[found[0]] if found else None


def lookalikes(word: str) -> str:
    """Name letters of a word that only look right; empty where there are none."""
    odd = dict.fromkeys(f"U+{ord(letter):04X}" for letter in word if not letter.isascii())
    return f" It has {', '.join(odd)} in it, which only looks right" if odd else ""


def meant(word: str, known: Iterable[str]) -> str:
    """Ask whether a known word was meant, or list all of them."""
    choices = list(known)
    found = nearest(word, choices)
    return (
        f"did you mean '{found}'?{lookalikes(word)}" if found else f"known are {', '.join(choices)}"
    )
