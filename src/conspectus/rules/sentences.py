"""Find where sentences, lines and items of lists end, in every script."""

from __future__ import annotations

import re
from collections.abc import Iterator

NEARBY_CHARACTERS = 40
"""Characters before and after a mark that are looked at to decide whether a sentence ends there."""

ANYWHERE = "。！？｡؟۔।॥։።፧፨។៕།༎᠃᠉꘎꛳"
"""Signs that end a sentence wherever they are."""

BEFORE_SPACE = ".!?…‼⁇⁈⁉｡"
"""Signs that end a sentence before a space or at the end of the text."""

_CLOSING = "\"'”’»›」』）)】］\\]》〉*_`"
_SOURCES = r"(?:[ \t]*[\[【][^\[\]【】\n]{1,200}[\]】][.。]?)*"
# A run of signs is tried once, from its beginning: a long one costs no more than its length.
_SENTENCE_END = re.compile(
    rf"(?:[{ANYWHERE}]++[{_CLOSING}]*+"
    rf"|(?<![{BEFORE_SPACE}])[{BEFORE_SPACE}]++[{_CLOSING}]*+(?=\s|\Z)){_SOURCES}"
)
_LINE_END = re.compile(r"\n\s*")
ITEM = re.compile(r"(?:[-*•+–—#|>]|\d{1,3}[.)]|[^\W\d_][.)])\s")
_LETTER = re.compile(r"(?:^|[\s(.])[^\W\d_]$")  # before the full stop of "z. B." and "J. S. Bach"
_TITLE = re.compile(
    r"(?:^|[\s(])(?:Mr|Mrs|Ms|Dr|Dra|Sr|Sra|Srta|Prof|St|Mme|Mlle|Hr|Fr|Nr|No|Art|Abs|bzw|vgl|ca|etc|vs)$"
)  # before the full stop of "Mr. Olsen"
_NUMBER = re.compile(r"(?:^|\n)[^\S\n]*\d{1,3}$")  # before the full stop of an item


def sentence_ends(text: str) -> Iterator[int]:
    """Yield the places behind sentences, and behind lines that are no part of a longer one.

    The places of sentences come first, then those of lines; each of the two in order.

    Example:
        >>> sorted(sentence_ends("Ship it. Wait\\n- for me"))
        [8, 13]
    """
    for end in _SENTENCE_END.finditer(text):
        if text[end.start()] != "." or _is_full_stop(text, end.start(), end.end()):
            yield end.end()
    for end in _LINE_END.finditer(text):
        following = text[end.end() : end.end() + NEARBY_CHARACTERS]
        is_indented = end[0].rpartition("\n")[2] != ""
        begins_block = bool(ITEM.match(following)) or end[0].count("\n") > 1 or not following
        if begins_block or not (is_indented or following[0].islower()):
            yield end.start()


def _is_full_stop(text: str, position: int, end: int) -> bool:
    """Tell whether a dot ends a sentence, and not an abbreviation, an item or half of a number."""
    preceding = text[max(0, position - NEARBY_CHARACTERS) : position]
    next_char = text[end : end + NEARBY_CHARACTERS].lstrip()[:1]
    if any(mark.search(preceding) for mark in (_LETTER, _NUMBER, _TITLE)) or next_char.islower():
        return False
    return end < len(text) or not preceding[-1:].isdigit()
