"""Replace common secrets in texts by their kinds.

It knows the keys and tokens of some seventy providers by their form, private keys, and values
at the places of passwords and tokens: after a name, in an address, a header, a cookie, a
command. Its time grows with the length of a text and with nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from conspectus.redaction.redactor import Redacted
from conspectus.redaction.values import MARK, MOST, telling, unescaped, without_values
from conspectus_secrets.ends import Found
from conspectus_secrets.formats import FORMATS
from conspectus_secrets.in_json import within_strings
from conspectus_secrets.keys import private_keys
from conspectus_secrets.labels import labelled_secrets
from conspectus_secrets.names import named_secrets
from conspectus_secrets.pairs import paired_secrets
from conspectus_secrets.places import placed_secrets
from conspectus_secrets.scripts import heads
from conspectus_secrets.words import value_kind

VERSION = 6
"""Rises whenever it finds something else, so that earlier drafts are not used."""

ROUNDS = 4
"""Maximum searches of a text: one secret may hide another."""


_SAYING = {
    "authorization": "authorization: ",
    "proxy-authorization": "authorization: ",
    "cookie": "cookie: ",
    "set-cookie": "cookie: ",
    "-u": "curl -u ",
    "--user": "curl -u ",
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
            return Redacted(MARK.format(kind=kind), {kind: 1}, dict(spreading(text, kind)))
        saying = _SAYING.get(key.lower(), "") if key is not None else ""
        if saying:
            done = self.redact(saying + text)
            return Redacted(done.text[len(saying) :], done.counts, done.values)
        counts: Counter[str] = Counter()
        values: dict[str, str] = {}
        for _ in range(ROUNDS):
            found = _found(text)
            if not found:
                break
            parts, at = [], 0
            for begin, end, kind, quotes in found:
                values.update(spreading(text[begin:end], kind))
                parts += [text[at:begin], quotes, MARK.format(kind=kind), quotes]
                counts[kind] += 1
                at = end
            text, more = without_values("".join([*parts, text[at:]]), values)
            counts.update(more)
        return Redacted(text, dict(counts), values)


def _found(text: str) -> list[Found]:
    """List the places of secrets, in order and without overlaps."""
    plain, places = unescaped(text)
    found = list(_all(plain, _lower(plain)))
    if places is not None:
        found = [(places[begin], places[end], kind, quotes) for begin, end, kind, quotes in found]
    found = within_strings(text, found)
    best: list[Found] = []
    for begin, end, kind, quotes in sorted(found, key=lambda one: (one[0], -one[1])):
        if end <= begin or (best and begin < best[-1][1]):
            if best and end > best[-1][1]:  # what sticks out of the one before goes with it
                best[-1] = (best[-1][0], end, *best[-1][2:])
            continue
        best.append((begin, end, kind, quotes))
    return best


def _lower(text: str) -> str:
    """Convert to lower case, each character in its place."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join([one if len(one := char.lower()) == 1 else char for char in text])


def _all(text: str, lower: str) -> Iterator[Found]:
    for begin, end, kind in private_keys(text):
        yield begin, end, kind, ""
    for form in FORMATS:
        for _, begin, end in form.found(text, lower):
            yield begin, end, form.kind, ""
    yield from placed_secrets(text, lower)
    yield from named_secrets(text, lower)
    yield from labelled_secrets(text)
    yield from paired_secrets(text)


def spreading(value: str, kind: str) -> Iterator[tuple[str, str]]:
    """Yield a recognised value in the forms to replace elsewhere, each with its kind.

    Example:
        >>> list(spreading("tr0ub4dor&3.", "password"))
        [('tr0ub4dor&3.', 'password'), ('tr0ub4dor&3', 'password')]
        >>> list(spreading("postgres", "password"))
        []
    """
    if len(value) > 6 * MOST:  # each character may be an escape
        return
    value = unescaped(value)[0].strip()
    for one in dict.fromkeys((value, value.rstrip(".,:;!?"), value.lstrip("*"), *heads(value))):
        if telling(one) and one[0] != "\\":  # which could be half of an escape elsewhere
            yield one, kind
