"""Find private keys, whole or with their end cut off: PEM, OpenSSH, PGP, PuTTY.

Their lines may be escaped, indented, numbered, or each in quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

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
"""The text between two lines in quotes, in source or in a list. Any other quote ends a JSON
string."""

_LINES = re.compile(rf"(?:{_NUMBER}|{_JOINT}|[\s'+,>|\\-]|[A-Za-z0-9+/=]{{16,}}+)*+")
"""The body of a key that is cut off."""

LONGEST_KEY = 40_000
"""The most characters of a private key. The longest keys have about 13,000."""

SHORTEST_KEY = 40
"""The fewest characters of base64 in a private key."""


def private_keys(text: str) -> Iterator[Secret]:
    """Yield private keys, whole or with their end cut off.

    Example:
        >>> lines = "-----BEGIN PRIVATE KEY-----", "MIIEvQIBADANBg" * 4, "-----END PRIVATE KEY-----"
        >>> [secret.kind for secret in private_keys("\\n".join(lines))]
        ['private-key']
    """
    if "PRIVATE KEY" not in text and "PuTTY-User-Key" not in text:
        return
    begins = [match.span() for match in _BEGIN.finditer(text)]
    for (begin, body), (following, _) in pairwise([*begins, (len(text), 0)]):
        limit = min(following, body + LONGEST_KEY)
        end = _END.search(text, body, limit)
        if end is None or '"' in re.sub(_JOINT, "", text[body : end.end()]):
            lines = _LINES.match(text, body, limit)
            stop = body + len(lines[0].rstrip() if lines else "")
        else:
            stop = end.end()
        base64 = re.findall(r"[A-Za-z0-9+/=]{12,}+", text[body:stop])
        if sum(map(len, base64)) >= SHORTEST_KEY:
            yield Secret(begin, stop, "private-key")
