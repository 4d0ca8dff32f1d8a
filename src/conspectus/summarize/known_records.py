"""Records that earlier segments of the notes show; of the same record again, only the news."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conspectus.summarize.compacting import CELLS, names_of, parsed, scalar
from conspectus.summarize.notes import apart

LEAST = 4
"""Characters of an argument with a digit from which it names a record."""

_PAIR = re.compile(r"(?<=\s)(?=\w[\w.]*=)")
_MORE = re.compile(r" \+\d+ more$| \((?:the rest )?as \w+\)$")
_WORD = re.compile(r"[\w-]+")


@dataclass(frozen=True, slots=True)
class Shown:
    """The pairs of a record that a line shows, by key, and the message that it cites."""

    pairs: Mapping[str, str]
    cite: str


def shown_records(lines: Sequence[str]) -> dict[str, Shown]:
    """Return the record that was shown last for each id that a call was given.

    Example:
        >>> shown_records(["get(id=A-17) → status=open owner=Ann +2 more [m4]"])["A-17"].pairs
        {'status': 'open', 'owner': 'Ann'}
    """
    found: dict[str, Shown] = {}
    for line in lines:
        text, cites = apart(line)
        call, _, came = text.partition(" → ")
        pairs = [pair.partition("=") for pair in _PAIR.split(" " + _MORE.sub("", came))[1:]]
        if not pairs or not cites:
            continue
        record = Shown({key: value.strip() for key, _, value in pairs}, cites[0])
        for word in _WORD.findall(call):
            if _names(word):
                found[word] = record
    return found


def news_of(
    result: str, args: Mapping[str, Any], shown: Mapping[str, Shown]
) -> tuple[dict[str, Any], str] | None:
    """Return the fields of a record that are not shown yet, and where the others are.

    None where no line shows this record, or where that would save little.

    Args:
        result: the record, as JSON.
        args: the arguments of the call, which name it.
        shown: what `shown_records` found.
    """
    before = next((shown[v] for v in args.values() if _names(v) and v in shown), None)
    record = parsed(result) if before is not None else None
    if before is None or not isinstance(record, Mapping):
        return None
    news = {k: v for k, v in record.items() if before.pairs.get(k) not in _forms(v)}
    if any(key in before.pairs for key in news if isinstance(news[key], str) and _names(news[key])):
        return None  # another thing of the same kind
    if 2 * (len(record) - len(news)) < len(record.keys() & before.pairs.keys()) or len(news) == len(
        record
    ):
        return None
    return news, f"the rest as {before.cite}"


def _names(value: Any) -> bool:
    return isinstance(value, str) and len(value) >= LEAST and any(map(str.isdigit, value))


def _forms(value: Any) -> set[str]:
    """The texts that may stand for a value in a line."""
    if isinstance(value, Mapping):
        return set()
    if isinstance(value, list):
        names = names_of(value)
        return {", ".join(scalar(one, CELLS[0]) for one in names)}
    return {scalar(value, cell) for cell in CELLS}
