"""Cut a text after a whole sentence, line or item of a list."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable

from conspectus.model.chunks import split_text
from conspectus.rules.sentences import BEFORE_SPACE, sentence_ends

LOOP_COMPRESSION = 40
"""A text that can be compressed by this factor is a loop. Similar lines reach 20, prose 5."""

LEAST_SHARE_KEPT = 0.25
"""If the whole sentences are a smaller share of a text, it is cut at a word instead."""

_HEADING = re.compile(r"\s*(?:#.*|\*\*[^*\n]*\*\*:?|[-*•+–—]|\d{1,3}[.)])\s*")
_CLAUSES = "，、；,;:：،؛"


def shortened(text: str, limit: int, count: Callable[[str], int]) -> str:
    """Return the beginning of a text in `limit` tokens, up to its last whole sentence."""
    beginning = split_text(text, limit, count)[0]
    return text if len(beginning) == len(text) else whole_sentences(beginning)


def whole_sentences(text: str) -> str:
    """Return a text that was cut anywhere, up to its last whole sentence, line or item of a list.

    If that would leave little of it, it is cut at a word instead. A heading at the end is left
    out.

    Example:
        >>> whole_sentences("Ship on Friday. The budget is 3.5 million, and the tea")
        'Ship on Friday.'
    """
    text = text.rstrip(" \t")
    whole = _without_headings(text[: max(sentence_ends(text), default=0)])
    if len(whole) >= LEAST_SHARE_KEPT * len(text.strip()):
        return whole
    return _without_headings(_up_to_a_word(text)) or whole


def repeats_itself(text: str) -> bool:
    """Tell whether a text says the same again and again, as a model does that finds no end."""
    packed = zlib.compress(text.encode("utf-8", "replace"))
    return len(text) > LOOP_COMPRESSION * len(packed)


def _up_to_a_word(text: str) -> str:
    if text[-1:].isspace() or text[-1:] in BEFORE_SPACE:
        return text.rstrip()
    space = max(map(text.rfind, " \n\t"))
    if space >= LEAST_SHARE_KEPT * len(text):
        return text[:space].rstrip()
    clause = max(map(text.rfind, _CLAUSES))  # in a script without spaces
    return text[: clause + 1] if clause >= LEAST_SHARE_KEPT * len(text) else text


def _without_headings(text: str) -> str:
    lines = text.rstrip().splitlines()
    while lines and (not lines[-1].strip() or _HEADING.fullmatch(lines[-1])):
        lines.pop()
    return "\n".join(lines)
