"""Find private keys, whole or cut off: PEM, OpenSSH, PGP, PuTTY.

They may be escaped, indented, or have numbered lines. A key that is cut off ends where it no
longer looks like one, and within its JSON string.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

_BEGIN = re.compile(
    r"-----?\s?BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?\s?-----?"
    r"|PuTTY-User-Key-File-\d:"
)
_END_MARK = re.compile(r"-----?\s?END (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?\s?-----?")
_MAC = re.compile(r"Private-MAC: ?[a-f0-9]{20,128}")
_BODY = re.compile(r"[A-Za-z0-9+/=]{40,}+")
_RUN = r"[A-Za-z0-9+/=]"
_LONG, _SHORT = rf"{_RUN}{{16,}}+", rf"{_RUN}{{1,15}}+"
_BETWEEN = r"[\s'+,>|\\-]"

_JOINT = (
    r"\\{0,4}\"[ \t]{0,8}[+,.\\]?[ \t]{0,8}"
    r"(?:\r?\n[ \t]{0,40})?\\{0,4}\""
)
"""Between two lines in quotes, of source or in a list. Any other quote ends a JSON string."""

_NUMBER = r"[ \t]{0,12}(?:[\w./-]{1,80}+:)?\d{1,6} {0,8}[\t:→|-][ \t]?"
"""The number of a line, as `cat -n` and `grep -n` write it."""

_CUT_OFF = re.compile(
    rf"(?:\n{_NUMBER}(?={_RUN}{{16}})|[ \t'+,>|-]|\\(?=\s)|\s|{_LONG}"
    rf"|{_JOINT}(?={_RUN}{{16,128}}+(?:\s|\\?\"(?!\s{{0,4}}:))))*+"
)

_TNIOJ = (
    r"\"\\{0,4}(?:[ \t]{0,40}\n\r?)?[ \t]{0,8}[+,.\\]?[ \t]{0,8}\"\\{0,4}"
    + rf"(?=\s{{0,8}}{_RUN}{{16}})"
)
_REBMUN = r"[ \t]?[\t:→|-] {0,8}\d{1,6}(?::[\w./-]{1,80}+)?[ \t]{0,12}(?=\n|\"|\Z)"
_GAPS = rf"(?:{_REBMUN}|{_TNIOJ}|{_BETWEEN})"
_HEAD_LOST = re.compile(
    rf"{_GAPS}*+(?:{_SHORT}{_GAPS}++){{0,2}}+(?:{_GAPS}|{_LONG})*+(?:{_SHORT}\Z)?+"
)
"""A key without its beginning, read backwards, as are a joint and a number: its last lines may be
short, and so may be the one at which the text was cut.
"""

_ESCAPED = re.compile(r"\\++(?:[nrt]|u2192)")
_MEANT = {"n": "\n", "r": "\r", "t": "\t", "2": "→"}
_JOINED = re.compile(r"\\{0,8}\"[\s+,.\\]{0,80}\"")

LONGEST = 40_000
"""Maximum characters of a private key; the longest have about 13,000."""

LEAST = 40
"""Minimum characters of base64 in a row."""


def private_keys(text: str) -> list[tuple[int, int, str]]:
    """List private keys, whole or cut off, by begin, end and kind.

    Example:
        >>> private_keys("-----BEGIN PRIVATE KEY-----\\n...\\n-----END PRIVATE KEY-----")
        []
    """
    if "PRIVATE KEY" not in text and "PuTTY-User-Key" not in text:
        return []
    if "\\" in text:
        text = _ESCAPED.sub(lambda m: _MEANT[m[0][-1]].rjust(len(m[0])), text)
    found = []
    begins = list(_BEGIN.finditer(text))
    ends = [(m.start(), m.end()) for m in (*_END_MARK.finditer(text), *_MAC.finditer(text))]
    ends.sort()
    at = 0
    for number, begin in enumerate(begins):
        limit = begins[number + 1].start() if number + 1 < len(begins) else len(text)
        limit = min(limit, begin.end() + LONGEST)
        while at < len(ends) and ends[at][0] < begin.end():
            at += 1
        if (
            at < len(ends)
            and ends[at][1] <= limit
            and '"' not in _JOINED.sub("", text[begin.end() : ends[at][0]])
        ):
            stop = ends[at][1]
        else:  # cut off: as far as it looks like one
            cut = _CUT_OFF.match(text, begin.end(), limit)
            stop = cut.end() if cut else begin.end()
        body = text[begin.end() : stop]
        if _BODY.search(body) or _lines_of_key(body):
            while stop > begin.end() and text[stop - 1].isspace():
                stop -= 1
            found.append((begin.start(), stop, "private-key"))
    return sorted([*found, *_without_beginning(text, found)])


def _without_beginning(
    text: str, found: Sequence[tuple[int, int, str]]
) -> Iterator[tuple[int, int, str]]:
    """Yield keys of which only the last lines were kept, as by `tail`."""
    stops = [stop for _, stop, _ in found]
    before = 0
    for end in _END_MARK.finditer(text):
        known = bisect_left(stops, end.end())
        if known < len(found) and found[known][0] <= end.start():
            before = end.end()
            continue
        head = text[max(before, end.start() - LONGEST) : end.start()]
        body = head[::-1]
        lost = _HEAD_LOST.match(body)
        body = body[: lost.end()].rstrip() if lost else ""
        if _BODY.search(body) or _lines_of_key(body):
            yield end.start() - len(body), end.end(), "private-key"
        before = end.end()


def _lines_of_key(body: str) -> bool:
    """Return whether short lines make up a key together."""
    return sum(map(len, re.findall(r"[A-Za-z0-9+/=]{12,}+", body))) >= LEAST
