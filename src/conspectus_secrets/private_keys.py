"""Private keys, whole or cut off: PEM, OpenSSH, PGP, PuTTY.

Their lines may be escaped, indented, numbered, or each in quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from conspectus_secrets.values import Secret

_KIND = r"(?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?\s?-----?"
_BEGIN = re.compile(rf"-----?\s?BEGIN {_KIND}|PuTTY-User-Key-File-\d:")
_END = re.compile(rf"-----?\s?END {_KIND}|Private-MAC: ?[a-f0-9]{{20,128}}")

_NUMBER = r"\n[ \t]{0,12}(?:[\w./-]{1,80}+:)?\d{1,6} {0,8}[\t:→|-][ \t]?"
"""The number of a line, as `cat -n` and `grep -n` write it."""

_JOINT = (
    r"(?<!\\)(?:\"[\s+,.]{0,80}\"|\\\"[\s+,.]{0,80}\\\")"
    r"(?=\s*+(?:[A-Za-z0-9+/=]{16,128}+(?!\\?\"\s{0,4}:)|-----))"
)
"""Between two lines in quotes, of source or in a list. Any other quote ends a JSON string."""

_GAP = rf"(?:{_NUMBER}|{_JOINT}|[\s'+,>|\\-])"
_LINES = re.compile(rf"(?:{_GAP}|[A-Za-z0-9+/=]{{16,}}+)*+")
"""The body of a key that is cut off."""

_TNIOJ = r"(?:\"[\s+,.]{0,80}\"|\"\\[\s+,.]{0,80}\"\\)(?!\\)"
_GAP_BACK = rf"(?:[\t:→|-] {{0,8}}\d{{1,6}}(?::[\w./-]{{1,80}}+)?(?=\s)|{_TNIOJ}|[\s'+,>|\\-])"
_LINES_BACK = re.compile(
    rf"{_GAP_BACK}*+(?:[A-Za-z0-9+/=]{{1,15}}+{_GAP_BACK}++){{0,2}}+(?:{_GAP_BACK}|[A-Za-z0-9+/=]{{16,}}+)*+"
    r"(?:[A-Za-z0-9+/=]{1,15}\Z)?+"
)
"""The same, read backwards from the end: its last lines may be short."""

LONGEST = 40_000  # Maximum characters of a private key; the longest have about 13,000
LEAST = 40  # Minimum characters of base64 in all


def private_keys(text: str) -> Iterator[Secret]:
    """Yield private keys, whole or cut off.

    Example:
        >>> list(private_keys("-----BEGIN PRIVATE KEY-----\\n...\\n-----END PRIVATE KEY-----"))
        []
    """
    if "PRIVATE KEY" not in text and "PuTTY-User-Key" not in text:
        return
    begins = [match.span() for match in _BEGIN.finditer(text)]
    ends = [match.span() for match in _END.finditer(text)]
    done = at = 0
    for number, (begin, body) in enumerate(begins):
        limit = begins[number + 1][0] if number + 1 < len(begins) else len(text)
        limit = min(limit, body + LONGEST)
        while at < len(ends) and ends[at][0] < body:
            yield from _headless(text, done, *ends[at])
            done, at = ends[at][1], at + 1
        stop = ends[at][1] if at < len(ends) else limit + 1
        if stop > limit or '"' in re.sub(_JOINT, "", text[body:stop]):
            lines = _LINES.match(text, body, limit)
            stop = lines.end() if lines else body
            stop = body + len(text[body:stop].rstrip())
        else:
            at += 1
        if _is_key(text[body:stop]):
            yield Secret(begin, stop, "private-key")
        done = stop
    for end in ends[at:]:
        yield from _headless(text, done, *end)
        done = end[1]


def _headless(text: str, least: int, begin: int, end: int) -> Iterator[Secret]:
    """Yield the key before a line that ends one, of which only the last lines were kept."""
    back = text[max(least, begin - LONGEST) : begin][::-1]
    lines = _LINES_BACK.match(back)
    body = back[: lines.end()].rstrip() if lines else ""
    if _is_key(body):
        yield Secret(begin - len(body), end, "private-key")


def _is_key(body: str) -> bool:
    return sum(map(len, re.findall(r"[A-Za-z0-9+/=]{12,}+", body))) >= LEAST
