"""Cut a text behind a whole sentence, line or item of a list."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator

from conspectus.model.chunks import split_text

NEARBY = 40
"""Characters on either side of a mark that tell whether a sentence ends there."""

LOOP = 40
"""Factor from which on a compressed text is a loop. Lists of like lines reach 20, prose 5."""

LEAST_PART = 0.25
"""Share of a text that its whole sentences must make up. Below it the text is cut at a word."""

# Signs that end a sentence wherever they stand, and those that do so before a space or at the end.
_ANYWHERE = "。！？｡؟۔।॥։።፧፨။។៕།༎᠃᠉꘎꛳"
_BEFORE_SPACE = ".!?…‼⁇⁈⁉｡"
_CLOSING = "\"'”’»›」』）)】］\\]》〉*_`"
_SOURCES = r"(?:[ \t]*[\[【][^\[\]【】\n]{1,200}[\]】][.。]?)*"
# A run of signs is tried once, from its beginning: a long one costs no more than its length.
_SENTENCE_END = re.compile(
    rf"(?:[{_ANYWHERE}]++[{_CLOSING}]*+"
    rf"|(?<![{_BEFORE_SPACE}])[{_BEFORE_SPACE}]++[{_CLOSING}]*+(?=\s|\Z)){_SOURCES}"
)
_LINE_END = re.compile(r"\n\s*")
_ITEM = re.compile(r"(?:[-*•+–—#|>]|\d{1,3}[.)]|[^\W\d_][.)])\s")
_HEADING = re.compile(r"\s*(?:#.*|\*\*[^*\n]*\*\*:?|[-*•+–—]|\d{1,3}[.)])\s*")
_LETTER = re.compile(r"(?:^|[\s(.])[^\W\d_]$")  # before the full stop of "z. B." and "J. S. Bach"
_NUMBER = re.compile(r"(?:^|\n)[^\S\n]*\d{1,3}$")  # before the full stop of an item
_CLAUSES = "，、；,;:：،؛"


def shortened(text: str, limit: int, count: Callable[[str], int]) -> str:
    """Return the beginning of a text in `limit` tokens, up to its last whole sentence."""
    beginning = split_text(text, limit, count)[0]
    return text if len(beginning) == len(text) else whole_sentences(beginning)


def whole_sentences(text: str) -> str:
    """Return a text that was cut anywhere up to its last whole sentence, line or item of a list.

    Where its sentences are only a small part of it, it is cut at a word. A heading that heads
    nothing any more is left out.

    Example:
        >>> whole_sentences("Ship on Friday. The budget is 3.5 million, and the tea")
        'Ship on Friday.'
    """
    text = text.rstrip(" \t")
    whole = _without_headings(text[: max(_ends(text), default=0)])
    if len(whole) >= LEAST_PART * len(text.strip()):
        return whole
    return _without_headings(_at_a_word(text)) or whole


def repeats_itself(text: str) -> bool:
    """Tell whether a text says the same over and over, as a model does that finds no end."""
    packed = zlib.compress(text.encode("utf-8", "replace"))
    return len(text) > LOOP * len(packed)


def _ends(text: str) -> Iterator[int]:
    """Yield the places behind sentences, and behind lines that are no part of a longer one."""
    for end in _SENTENCE_END.finditer(text):
        if text[end.start()] != "." or _is_full_stop(text, end.start(), end.end()):
            yield end.end()
    for end in _LINE_END.finditer(text):
        following = text[end.end() : end.end() + NEARBY]
        is_indented = end[0].rpartition("\n")[2] != ""
        begins_block = bool(_ITEM.match(following)) or end[0].count("\n") > 1 or not following
        if begins_block or not (is_indented or following[0].islower()):
            yield end.start()


def _is_full_stop(text: str, position: int, end: int) -> bool:
    """Tell a full stop from that of an abbreviation, of an item, or of a number that was cut."""
    preceding = text[max(0, position - NEARBY) : position]
    next_char = text[end : end + NEARBY].lstrip()[:1]
    if _LETTER.search(preceding) or _NUMBER.search(preceding) or next_char.islower():
        return False
    return end < len(text) or not preceding[-1:].isdigit()


def _at_a_word(text: str) -> str:
    if text[-1:].isspace() or text[-1:] in _BEFORE_SPACE:
        return text.rstrip()
    space = max(map(text.rfind, " \n\t"))
    if space >= LEAST_PART * len(text):
        return text[:space].rstrip()
    clause = max(map(text.rfind, _CLAUSES))  # of a script without spaces
    return text[: clause + 1] if clause >= LEAST_PART * len(text) else text


def _without_headings(text: str) -> str:
    lines = text.rstrip().splitlines()
    while lines and (not lines[-1].strip() or _HEADING.fullmatch(lines[-1])):
        lines.pop()
    return "\n".join(lines)
