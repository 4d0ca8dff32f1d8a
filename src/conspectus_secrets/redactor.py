"""Replace common secrets in texts by their kinds.

It recognises keys and tokens of providers by their form, private keys, values at the places of
passwords (addresses, headers, commands), and values after a name such as `password`. Its time is
linear in the length of a text: it searches a text again if one secret may have hidden another, at
most `MAX_ROUNDS` times.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from operator import itemgetter

from conspectus.redaction import Redacted
from conspectus.redaction.values import (
    MARK,
    MAX_LENGTH,
    is_distinctive,
    unescaped,
    without_distinctive_values,
)
from conspectus_secrets.assigned import kind_alone, named_secrets
from conspectus_secrets.forms import formed_secrets
from conspectus_secrets.private_keys import private_keys
from conspectus_secrets.values import Secret, without_marks

VERSION = 12
"""The version of the rules. Drafts of earlier versions are not used."""

MAX_ROUNDS = 16
"""The most searches of one text: one secret may hide the next, in a command up to twelve."""

_ESCAPED_BLANK = re.compile(r"(?<!\\)\\++(?:[nrt]|u2192)")
_MEANING = {ord("n"): "\n", ord("r"): "\n", ord("t"): "\t", ord("2"): "→"}
"""The signs that replace escaped line ends, tabs and arrows of JSON, by the last sign of each."""

_BEFORE_VALUE = {
    "authorization": "authorization: ",
    "proxy-authorization": "authorization: ",
    "cookie": "cookie: ",
    "set-cookie": "cookie: ",
    "-u": "curl -u ",
    "--user": "curl -u ",
}
"""The text before a value with a name, so that the value is read as in a text."""

_LONGEST_ESCAPE = 64  # most backslashes before a sign that are looked at
_BEGIN = itemgetter(0)
_END = itemgetter(1)


class SecretRedactor:
    """Replace common secrets: `[redacted: github-token]`, `[redacted: password]`.

    Example:
        >>> SecretRedactor().redact("export DB_PASSWORD=tr0ub4dor&3").text
        'export DB_PASSWORD=[redacted: password]'
        >>> SecretRedactor().redact("at most 4,096 tokens; password: str").counts
        {}
    """

    identity = f"conspectus.secrets {VERSION}"
    """A text that changes with the rules."""

    def redact(self, text: str, key: str | None = None) -> Redacted:
        """Return a text without its secrets, and their number by kind.

        Args:
            text: any text, of any length.
            key: the name of the text, such as that of a tool's argument; None if it has none.
        """
        if key is None:
            return _without_secrets(text)
        kind = kind_alone(key, text)
        if kind is not None:
            return _all_secret(text, kind)
        before = _BEFORE_VALUE.get(key.lower(), "")
        redacted = _without_secrets(before + text)
        rest = redacted.text.removeprefix(before)
        # The text next to a replacement may be a secret with this name.
        kind = kind_alone(key, rest) if rest != text else None
        if kind is None:
            return Redacted(rest, redacted.counts, redacted.values)
        return _all_secret(without_marks(rest), kind, redacted)


def _all_secret(value: str, kind: str, parts: Redacted | None = None) -> Redacted:
    """Return only the replacement, for a text that is a secret or that has several `parts`."""
    counts = Counter(parts.counts if parts else {})
    counts[kind] += 1
    values = dict(parts.values if parts else {})
    for form in _forms_elsewhere(value):
        values[form] = kind
    return Redacted(MARK.format(kind=kind), dict(counts), values)


def _without_secrets(text: str) -> Redacted:
    """Replace the secrets of a text in all places, until none is found."""
    counts: Counter[str] = Counter()
    values: dict[str, str] = {}
    for _ in range(MAX_ROUNDS):
        secrets = _secrets_in(text)
        if not secrets:
            break
        parts: list[str] = []
        found: dict[str, str] = {}
        copied_end = 0
        for begin, end, kind, quotes in secrets:
            value = text[begin:end]
            mark = MARK.format(kind=kind)
            # If there are two kinds, the last one counts, also for parts of the value.
            found.pop(value, None)
            found[value] = kind
            parts += (text[copied_end:begin], f"{quotes}{mark}{quotes}" if quotes else mark)
            counts[kind] += 1
            copied_end = end
        parts.append(text[copied_end:])
        for value, kind in found.items():
            for form in _forms_elsewhere(value):
                values[form] = kind
        text, replaced = without_distinctive_values("".join(parts), values)
        counts.update(replaced)
    return Redacted(text, dict(counts), values)


def _secrets_in(text: str) -> list[Secret]:
    """List the secrets of a text, in order and without overlaps."""
    plain, positions = unescaped(text)
    if "\\" in plain:
        plain = _ESCAPED_BLANK.sub(_blank_of_same_length, plain)
    lower = plain.lower()
    secrets = [
        *private_keys(plain),
        *formed_secrets(plain, lower),
        *named_secrets(plain, lower),
    ]
    if positions is not None:
        secrets = [
            Secret(positions[begin], positions[end], kind, quotes)
            for begin, end, kind, quotes in secrets
        ]
    # In the order of their beginnings, the longest first.
    secrets.sort(key=_END, reverse=True)
    secrets.sort(key=_BEGIN)
    if "\\" in text:
        secrets = [
            Secret(_outside_escape(text, begin), _outside_escape(text, end), kind, quotes)
            for begin, end, kind, quotes in secrets
        ]
    return _without_overlaps(secrets)


def _blank_of_same_length(escaped: re.Match[str]) -> str:
    return escaped[0][-1].translate(_MEANING).rjust(len(escaped[0]))


def _without_overlaps(secrets: list[Secret]) -> list[Secret]:
    """Join secrets that overlap, under the kind of the first."""
    distinct: list[Secret] = []
    last_end = 0
    for secret in secrets:
        begin, end, _, _ = secret
        if distinct and begin < last_end:
            if end > last_end:  # the part outside of the earlier one is replaced, too
                distinct[-1] = distinct[-1]._replace(end=end)
                last_end = end
        elif end > begin:
            distinct.append(secret)
            last_end = end
    return distinct


def _outside_escape(text: str, position: int) -> int:
    """Return a position, or that of a backslash before it, so that no escape is cut."""
    if text[position - 1 : position] != "\\":
        return position
    before = text[max(0, position - _LONGEST_ESCAPE) : position]
    backslashes = len(before) - len(before.rstrip("\\"))
    return position - backslashes % 2


def _forms_elsewhere(value: str) -> Sequence[str]:
    """Return the forms of a recognised value that are replaced in all other places."""
    if len(value) > 6 * MAX_LENGTH:  # each character may be an escape
        return ()
    if "\\" in value or not value.isascii():
        value = unescaped(value)[0]
    value = value.strip()
    without_end = value.rstrip(".,:;!?")
    forms = (value,) if without_end == value else (value, without_end)
    # A backslash could be half of an escape elsewhere.
    return [form for form in forms if is_distinctive(form) and form[0] != "\\"]
