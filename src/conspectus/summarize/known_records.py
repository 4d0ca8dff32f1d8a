"""Records that earlier segments of the notes show; of the same record again, only the news."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conspectus.summarize.compacting import CELLS, is_empty, is_plain, parsed, scalar
from conspectus.summarize.notes import apart

LEAST = 4
"""Characters of an argument with a digit from which it names a record."""

_PAIR = re.compile(r"(?<=\s)(?=\w[\w.]*=)")
_MORE = re.compile(r" \+\d+ more$| \((?:the rest )?as \w+\)$")
_ID = re.compile(r"(?:^|_)id$", re.IGNORECASE)
_NESTED = re.compile(r"(?<=\s)\w[\w.]*: (?=\w[\w.]*=)[^;]*;")
_WORD = re.compile(r"[\w-]+")


@dataclass(frozen=True, slots=True)
class Shown:
    """The pairs of a record that a line shows, by key, all that it shows, and the cited message."""

    pairs: Mapping[str, str]
    text: str
    cite: str


def shown_records(lines: Sequence[str]) -> dict[str, Shown]:
    """Return the record that was shown last for each id that a call was given.

    A key that a line has twice is in neither: text inside a value may look like a pair.

    Example:
        >>> shown_records(["get(id=A-17) → status=open owner=Ann +2 more [m4]"])["A-17"].pairs
        {'status': 'open', 'owner': 'Ann'}
    """
    found: dict[str, Shown] = {}
    for line in lines:
        text, cites = apart(line)
        call, _, came = text.partition(" → ")
        own = _NESTED.sub(" ", f" {_MORE.sub('', came)}")
        pairs = [pair.partition("=") for pair in _PAIR.split(own)[1:]]
        keys = Counter(key for key, _, _ in pairs)
        record = {key: value.strip() for key, _, value in pairs if keys[key] == 1}
        if record and cites:
            names = filter(_names, _WORD.findall(call))
            found.update(dict.fromkeys(names, Shown(record, came, cites[0])))
    return found


def news_of(
    result: str, args: Mapping[str, Any], shown: Mapping[str, Shown]
) -> tuple[dict[str, Any], str] | None:
    """Return the fields of a record that no line shows whole, and where the others are shown.

    None where no line shows this record, or none of its fields, or another one of its kind.

    Args:
        result: the record, as JSON.
        args: the arguments of the call, which name it.
        shown: the records that earlier lines show, by id.
    """
    before = next((shown[v] for v in args.values() if _names(v) and v in shown), None)
    record = parsed(result) if before is not None else None
    if before is None or not isinstance(record, Mapping):
        return None
    news = {k: v for k, v in record.items() if before.pairs.get(k) != _whole(v)}
    news |= {k: "none" for k, v in news.items() if is_empty(v) and f" {k}" in f" {before.text}"}
    own = next((str(value) for key, value in record.items() if _ID.search(key)), None)
    other = own is not None and own not in map(str, args.values())
    other |= any(_names(value) and key in before.pairs for key, value in news.items())
    gone = before.pairs.keys() - record.keys()
    if other or gone or len(news) == len(record):
        return None
    return news, f"the rest as {before.cite}"


def _names(value: Any) -> bool:
    return isinstance(value, str) and len(value) >= LEAST and any(map(str.isdigit, value))


def _whole(value: Any) -> str | None:
    """Return the text of a value where a line shows all of it; None for rows, shown by name."""
    if isinstance(value, Mapping) or (isinstance(value, list) and not all(map(is_plain, value))):
        return None
    parts = value if isinstance(value, list) else [value]
    text = ", ".join(scalar(one, CELLS[0]) for one in parts)
    return None if "…" in text else text
