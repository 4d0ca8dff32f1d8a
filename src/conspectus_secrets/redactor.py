"""Replace common secrets in texts by their kinds.

It knows keys and tokens of providers by their form, private keys, values at the places of
passwords (addresses, headers, commands), and values behind a telling name. Its time grows with the
length of a text and with nothing else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from conspectus.redaction import Redacted
from conspectus.redaction.values import MARK, MOST, telling, unescaped, without_telling
from conspectus_secrets.assigned import named_secrets, value_kind
from conspectus_secrets.forms import formed_secrets
from conspectus_secrets.private_keys import private_keys
from conspectus_secrets.values import Secret

VERSION = 11
"""Rises whenever it finds something else, so that earlier drafts are not used."""

ROUNDS = 16
"""Maximum searches of a text: one secret may hide the next, in a command up to twelve."""

_LINE_END = re.compile(r"(?<!\\)\\++(?:[nrt]|u2192)")
_MEANT = {ord("n"): "\n", ord("r"): "\n", ord("t"): "\t", ord("2"): "→"}
"""Escaped line ends and tabs of JSON, which are read as such."""

_BEFORE = {
    **dict.fromkeys(("authorization", "proxy-authorization"), "authorization: "),
    **dict.fromkeys(("cookie", "set-cookie"), "cookie: "),
    **dict.fromkeys(("-u", "--user"), "curl -u "),
}
"""Text before the values of these names, headers and arguments, that identifies a secret."""


class SecretRedactor:
    """Replace common secrets: `[redacted: github-token]`, `[redacted: password]`.

    Example:
        >>> SecretRedactor().redact("export DB_PASSWORD=tr0ub4dor&3").text
        'export DB_PASSWORD=[redacted: password]'
        >>> SecretRedactor().redact("at most 4,096 tokens; password: str").counts
        {}
    """

    identity = f"conspectus.secrets {VERSION}"
    """Changes if it finds something else."""

    def redact(self, text: str, key: str | None = None) -> Redacted:
        """Return a text without its secrets, and their number by kind.

        Args:
            text: any text, of any length.
            key: the name of the text, as in tool arguments; None for none.
        """
        if key is not None and (kind := value_kind(key, text)) is not None:
            return Redacted(MARK.format(kind=kind), {kind: 1}, dict(_spreading(text, kind)))
        before = _BEFORE.get(key.lower(), "") if key is not None else ""
        if before:
            done = self.redact(before + text)
            return Redacted(done.text[len(before) :], done.counts, done.values)
        counts: Counter[str] = Counter()
        values: dict[str, str] = {}
        for _ in range(ROUNDS):
            secrets = _secrets(text)
            if not secrets:
                break
            parts: list[str] = []
            at = 0
            found: dict[str, str] = {}
            for begin, end, kind, quotes in secrets:
                value = text[begin:end]
                found.pop(value, None)  # of two kinds the last one counts, also for parts of it
                found[value] = kind
                parts += (text[at:begin], f"{quotes}{MARK.format(kind=kind)}{quotes}")
                counts[kind] += 1
                at = end
            for value, kind in found.items():
                values.update(_spreading(value, kind))
            text, more = without_telling("".join([*parts, text[at:]]), values)
            counts.update(more)
        return Redacted(text, dict(counts), values)


def _secrets(text: str) -> list[Secret]:
    """List the secrets of a text, in order and without overlaps."""
    plain, places = unescaped(text)
    if "\\" in plain:
        plain = _LINE_END.sub(lambda m: m[0][-1].translate(_MEANT).rjust(len(m[0])), plain)
    lower = plain.lower()
    every = [*private_keys(plain), *formed_secrets(plain, lower), *named_secrets(plain, lower)]
    if places is not None:
        every = [
            secret._replace(begin=places[secret.begin], end=places[secret.end]) for secret in every
        ]
    every.sort(key=lambda secret: (secret.begin, -secret.end))
    if "\\" in text:
        every = [
            secret._replace(
                begin=secret.begin - _cuts_escape(text, secret.begin),
                end=secret.end - _cuts_escape(text, secret.end),
            )
            for secret in every
        ]
    best: list[Secret] = []
    for secret in every:
        if best and secret.begin < best[-1].end:
            if secret.end > best[-1].end:  # what sticks out of the one before goes with it
                best[-1] = best[-1]._replace(end=secret.end)
        elif secret.end > secret.begin:
            best.append(secret)
    return best


def _cuts_escape(text: str, at: int) -> bool:
    """Return whether this place lies behind the backslash of an escape."""
    if text[at - 1 : at] != "\\":
        return False
    before = text[max(0, at - 64) : at]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _spreading(value: str, kind: str) -> Iterator[tuple[str, str]]:
    """Yield the forms of a recognised value that are to go wherever else they stand."""
    if len(value) > 6 * MOST:  # each character may be an escape
        return
    if "\\" in value or not value.isascii():
        value = unescaped(value)[0]
    value = value.strip()
    shorter = value.rstrip(".,:;!?")
    for secret in (value, shorter) if shorter != value else (value,):
        if telling(secret) and secret[0] != "\\":  # which could be half of an escape elsewhere
            yield secret, kind
