"""Words for what is wrong: what somebody may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like one that is not; None where none is like it.

    Example:
        >>> nearest("triger", ["enabled", "trigger"])
        'trigger'
    """
    choices = {one.lower(): one for one in known}
    folded = word.lower().replace("-", "_").replace(" ", "_")
    found = difflib.get_close_matches(folded, choices, n=1, cutoff=0.6)
    return choices[found[0]] if found else None


def meant(word: str, known: Iterable[str]) -> str:
    """The question whether a known word was meant, or the list of those there are."""
    choices = list(known)
    found = nearest(word, choices)
    return f"did you mean '{found}'?" if found else f"known are {', '.join(choices)}"
