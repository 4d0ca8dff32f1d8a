"""Undo escapes and invisible signs that may hide a secret."""

from __future__ import annotations

import re

_ESCAPES = re.compile(
    r"\\u00([2-7][0-9a-fA-F])|\\x([2-7][0-9a-fA-F])|\\(/)"
    r"|\\{1,8}u((?:0[1-9a-fA-F]|[1-9a-cefA-CEF][0-9a-fA-F]|[dD][0-7])[0-9a-fA-F]{2}"
    r"|00[a-fA-F][0-9a-fA-F])"
)
_HIDDEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
"""Invisible signs, which can take a secret apart."""


def unescaped(text: str) -> tuple[str, list[int] | None]:
    """Return the text without escapes and invisible signs, and its positions.

    Positions map each character to the original text; None if the text is the same.

    Example:
        >>> unescaped("a\\\\u0062c")
        ('abc', [0, 1, 7, 8])
    """
    if "\\" in text:
        hidden = _HIDDEN.search(text) or _ESCAPES.search(text)
    else:
        hidden = _HIDDEN.search(text) if not text.isascii() else None
    if hidden is None:
        return text, None
    parts: list[str] = []
    places: list[int] = []
    at = 0
    for match in re.finditer(f"{_ESCAPES.pattern}|{_HIDDEN.pattern}", text):
        parts.append(text[at : match.start()])
        places.extend(range(at, match.start()))
        code = match[1] or match[2] or match[4]
        char = chr(int(code, 16)) if code else match[3] or ""
        char = "" if _HIDDEN.match(char) else char
        if char and char in "\"'\\\n":  # it would end a text that goes on
            char = match.group()
            places.extend(range(match.start(), match.end()))
        elif char:
            places.append(match.start())
        parts.append(char)
        at = match.end()
    parts.append(text[at:])
    places.extend(range(at, len(text) + 1))
    return "".join(parts), places
