"""A text in sentences, in any script."""

from __future__ import annotations

import re
from collections.abc import Iterator

_BULLET = re.compile(
    r"^(?:[-*•+–]\s+|\d{1,2}[.)]\s+|[（(]?\d{1,2}[）)、]\s*|[①-⑳]\s*|・\s*)(?:\[[ xX]\]\s+)?"
)
_WHOLE = re.compile(r"[.!?][\"'”’»)\]]*(?=\s)|[。！？][」』”’）)\"]*|\n+")
_END = re.compile(rf"{_WHOLE.pattern}|;(?=\s)|；")
_SHORT_FORM = re.compile(
    r"(?:^|[\s(])(?:[A-Z]|e\.g|i\.e|z\.\s?B|d\.\s?h|u\.\s?a|p\.\s?ej|Dr|Mr|Mrs|Ms|Prof|Nr|No|St|Sr|Sra"
    r"|Dra|Ud|Uds|ca|bzw|usw|vgl|Abs|approx|vs|art|pág|Mme|Mlle|Hr|Fr|Str|Tel|Abb|inkl|max|min|ggf|evtl"
    r"|etw|bspw|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec|Okt|Dez|Inc|Ltd|Co|cf|env|etc)\.$"
)
_ORDINAL = re.compile(r"(?:^|[\s(])\d{1,2}\.$")


def sentences(text: str, whole: bool = False) -> Iterator[str]:
    """The sentences and lines of a text, in any script, without the marks of a list.

    Args:
        text: the text.
        whole: leave a sentence whole where it has a semicolon; else it is divided there.

    Example:
        >>> list(sentences("- Never on a Friday, e.g. the 3. Mai. Then?"))
        ['Never on a Friday, e.g. the 3. Mai.', 'Then?']
    """
    start = 0
    for end in (_WHOLE if whole else _END).finditer(text):
        piece = text[start : end.end()]
        if end[0][0] == "." and _goes_on(piece[-12:].rstrip("\"'”’»)]"), text, end.end()):
            continue
        start = end.end()
        if piece := _BULLET.sub("", piece.strip()):
            yield piece
    if piece := _BULLET.sub("", text[start:].strip()):
        yield piece


def _goes_on(before: str, text: str, end: int) -> bool:
    """Whether a full stop ends no sentence: a short form, or a number in order and then more."""
    after = text[end : end + 2].strip()
    if _ORDINAL.search(before):
        # "3. Mai" goes on; "at most 20. Then" does not, nor does the mark of a list.
        return _month(text[end : end + 12])
    return bool(_SHORT_FORM.search(before)) and after != ""


def _month(text: str) -> bool:
    return (
        re.match(r"\s+(?:Jan|Jän|Feb|März|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez|[a-zäöü])", text)
        is not None
    )
