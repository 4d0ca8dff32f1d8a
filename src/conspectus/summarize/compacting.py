"""Values, commands and outputs in few characters, by structure: nothing is cut inside a record."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from conspectus.summarize.columns import HEADS, told_once
from conspectus.summarize.cutting import cut, one_line

CELLS = (2_000, 400, 160, 80, 48, 32)
"""Characters of one value, tried from the largest until the whole fits."""

DEPTH = 8
"""Levels of nesting that are shown; what lies deeper is counted."""

LINKS = 2
"""Addresses of a record that stand; of more only one does."""

SHORT_VALUE = 32
"""Characters of values, on average, up to which data is dense."""

TELLING = 16
"""Characters of values that stand beside the key of a row whose fields are not shown."""

FEW = 3
"""Values of a part of a record that stand without their names: a person's, a sum with its id."""

LONG = 25
"""Characters from which a line of output that came before says nothing new."""

_VALUES = re.compile(r":\s*(\"(?:[^\"\\]|\\.)*\"|[\w.+-]+)")
_PAIR = re.compile(r"[^\s=\[]+=")
_NEXT = re.compile(r"[\s,]+")
_ID = re.compile(r"(?=\S*\d)(?=\S*[^\W\d])\S+")
_NAME = re.compile(r"(?=\S*\d)(?=\S*[^\W\d]|\d{4}-)[\w.:/-]+")
_OWN_ID = re.compile(r"(?:\w+_)?id=", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?!\d)")
_LINK = re.compile(r"https?://(?:www\.)?([^/\s]+)\S*$")


def parsed(text: str) -> Any:
    """Return the JSON object or list that a text is, else None."""
    start = text.lstrip()[:1]
    if start not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _rows_before_the_cut(text) if start == "[" else None


def _rows_before_the_cut(text: str) -> list[Any] | None:
    """Return the whole rows of a list that a tool has cut off."""
    decoder, rows, at = json.JSONDecoder(), list[Any](), text.index("[") + 1
    while True:
        found = _NEXT.match(text, at)
        try:
            row, at = decoder.raw_decode(text, found.end() if found else at)
        except (ValueError, RecursionError):
            return rows or None
        rows.append(row)


def dense(text: str) -> bool:
    """Return whether data holds short values, such as ids, numbers and names, and not prose."""
    values = _VALUES.findall(text[:4_000])
    return not values or sum(map(len, values)) / len(values) <= SHORT_VALUE


def compact(
    value: Any, room: int, known: Collection[str] = (), schemas: Mapping[str, str] | None = None
) -> str:
    """Return plain JSON data as `key=value` pairs and rows under their columns.

    Args:
        value: the data.
        room: the most characters.
        known: values that the reader has already, such as the arguments of the call.
        schemas: names of columns that lines before tell, each with the message that they cite.

    Example:
        >>> legs = [{"from": "JFK", "to": "ATL"}, {"from": "ATL", "to": "LAX"}]
        >>> compact({"id": "A1", "legs": legs}, 80)
        'id=A1 legs[from to]: JFK ATL; ATL LAX'
    """

    def fitted(value: Any) -> list[str]:
        atoms: list[str] = []
        for cell in CELLS:
            atoms = list(_atoms(value, min(cell, room), frozenset(known), 0))
            atoms = told_once(atoms, schemas or {})
            if _width(atoms) <= room:
                break
        return atoms

    if isinstance(value, Mapping):
        value = {key: _together(part) for key, part in value.items()}
    atoms = fitted(value)
    while _width(atoms) > room and (shorter := _briefer(value)) is not None:
        value, atoms = shorter, fitted(shorter)
    # The names of columns take no room from the rows below them.
    room += sum(len(head) for atom in atoms for head in HEADS.findall(atom))
    if _width(atoms) <= room:
        return " ".join(atoms).rstrip(";")
    if isinstance(value, Mapping) and all(map(_PAIR.match, atoms)):
        return pairs_within(atoms, room)
    kept, size = 0, 0
    for atom in atoms:
        if size + len(atom) + 1 > room - 8 and kept:
            break
        size, kept = size + len(atom) + 1, kept + 1
    more = len(atoms) - kept
    return cut(" ".join(atoms[:kept]), room) + (f" +{more} more" if more else "")


def pairs_within(pairs: Sequence[str], room: int, more: int = 0) -> str:
    """Return the pairs of a record that fit, in order: ids, then dates and names, then short ones.

    A pair takes half of the room at most. `more` pairs were left out before.

    Example:
        >>> pairs_within(["street=Long Lane, York", "id=A1", "legs=HAT1, HAT2, HAT3", "n=4"], 40)
        'id=A1 legs=HAT1, HAT2… n=4 +1 more'
    """
    kept, left = dict[int, str](), room - TELLING // 2
    named = [any(map(_NAME.fullmatch, re.split(r"[=,\s]+", pair)[1:])) for pair in pairs]
    ids = [bool(_OWN_ID.match(pair)) for pair in pairs]

    def take(places: Iterable[int], least: int) -> int:
        rest = left
        for n in places:
            pair = cut(pairs[n], room // 2)
            if n not in kept and len(pair) <= rest - least:
                kept[n], rest = pair, rest - len(pair) - 1
        return rest

    every = range(len(pairs))
    shortest = sorted(every, key=lambda n: len(pairs[n]))
    left = take((n for n in every if ids[n]), 0)
    left = take((n for n in shortest if len(pairs[n]) <= TELLING), left * 2 // 3)
    left = take((n for n in every if named[n]), 0)
    left = take(shortest, 0)
    more += len(pairs) - len(kept)
    return " ".join(kept[n] for n in sorted(kept)) + (f" +{more} more" if more else "")


def _together(part: Any) -> Any:
    """Return the values of a small part of a record as one text; any other part as it is.

    Example:
        >>> _together([{"first": "Ann", "last": "Li"}]), _together({"width": 3, "height": 4})
        ('Ann Li', {'width': 3, 'height': 4})
    """
    [row] = part if isinstance(part, list) and len(part) == 1 else [part]
    if not isinstance(row, Mapping) or not 0 < len(row) <= FEW:
        return part
    named = [one for one in row.values() if isinstance(one, str) and 0 < len(one) <= SHORT_VALUE]
    small = all(map(is_plain, row.values())) and len(named) >= max(1, len(row) - 1)
    return " ".join(map(str, row.values())) if small else part


def _width(atoms: Sequence[str]) -> int:
    return sum(map(len, atoms)) + len(atoms) - 1


def _briefer(value: Any) -> Mapping[str, Any] | None:
    """Return a record with the names alone of its largest part; None if it has none.

    So that each of its fields is named before the insides of any are.
    """
    if not isinstance(value, Mapping):
        return None
    inner = {k: part for k, part in value.items() if not is_plain(part) and _names(part) != part}
    if not inner:
        return None
    largest = max(
        inner,
        key=lambda k: (not isinstance(inner[k], _Telling), len(json.dumps(inner[k], default=str))),
    )
    return {k: _names(part) if k == largest else part for k, part in value.items()}


def _names(part: Any) -> Any:
    """Return the names of a part of a record.

    They are keys of its rows, the first id of each, or values.
    """
    if isinstance(part, _Telling):
        return part.keys
    if isinstance(part, Mapping):
        if part and all(isinstance(row, Mapping) for row in part.values()):
            return _Telling(part)
        return " ".join(str(one) for one in part.values() if is_plain(one) and not is_empty(one))
    rows = [row for row in part if isinstance(row, Mapping)]
    if not rows:
        return part
    return [_name(row) for row in rows]


class _Telling(list[str]):
    """Keys of rows, each with the first values of its row that it does not say, if they are short.

    Attributes:
        keys: the keys alone.
    """

    def __init__(self, rows: Mapping[str, Mapping[str, Any]]) -> None:
        self.keys = list(rows)
        for key, row in rows.items():
            told = [str(one) for one in row.values() if is_plain(one) and not is_empty(one)]
            told = [one for one in told if one not in key][:2]
            super().append(" ".join([key, *told] if sum(map(len, told)) <= TELLING else [key]))


def _name(row: Mapping[str, Any]) -> str:
    """Return the id of a row, its date and amount; else two values.

    An id has letters and digits.
    """
    plain = [str(one) for one in row.values() if is_plain(one) and not is_empty(one)]
    found = next(((n, one) for n, one in enumerate(plain) if _ID.fullmatch(one)), None)
    if found is None:
        return " ".join(plain[:2])
    dates = [one for n, one in enumerate(plain) if n != found[0] and _DATE.match(one)]
    amounts = [str(one) for one in row.values() if type(one) in (int, float)]
    return " ".join([found[1], *dates[:1], *amounts[:1]])


def brief(value: Any, room: int) -> str:
    """Return data as `compact` does; of rows that do not all fit, the id of each.

    Example:
        >>> brief([{"flight": "HAT1", "seat": "4A"}, {"flight": "HAT2", "seat": "7C"}], 12)
        'HAT1, HAT2'
    """
    if isinstance(value, list) and any(isinstance(row, Mapping) for row in value):
        whole = compact(value, len(json.dumps(value)) + LONG)
        return whole if len(whole) <= room else cut(", ".join(map(str, _names(value))), room)
    return compact(value, room)


def scalar(value: Any, cell: int) -> str:
    if isinstance(value, str):
        if len(value) > cell and (link := _LINK.match(value)):
            return cut(f"{link[1]}/…", max(cell, len(link[1]) + 2))  # half an address leads nowhere
        return cut(one_line(value), cell)
    return json.dumps(value, ensure_ascii=False)


def is_plain(value: Any) -> bool:
    return not isinstance(value, (Mapping, list))


def is_empty(value: Any) -> bool:
    """Return whether a value says nothing."""
    return value is None or value == "" or value == [] or value == {}


def _atoms(value: Any, cell: int, known: frozenset[str], depth: int) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = _without_links(value)
    if is_plain(value):
        yield scalar(value, cell)
    elif depth > DEPTH:
        yield f"({len(value)} more)"
    elif isinstance(value, list):
        yield from _rows([(None, row) for row in value], cell, known, depth)
    else:
        for key, part in value.items():
            if is_empty(part) or (is_plain(part) and str(part) in known):
                continue
            if is_plain(part):
                yield f"{key}={scalar(part, cell)}"
            elif isinstance(part, list) and all(map(is_plain, part)):
                yield f"{key}={', '.join(scalar(one, cell) for one in part)}"
            elif isinstance(part, list):
                yield from _named(key, [(None, row) for row in part], cell, known, depth)
            elif all(isinstance(row, Mapping) for row in part.values()):
                yield from _named(key, list(part.items()), cell, known, depth)
            else:
                inner = list(_atoms(part, cell, known, depth + 1))
                if inner:
                    yield f"{key}: {inner[0]}"
                    yield from inner[1:-1]
                    if len(inner) > 1:
                        yield f"{inner[-1]};"


def _named(
    key: str, rows: list[tuple[str | None, Any]], cell: int, known: frozenset[str], depth: int
) -> Iterator[str]:
    inner = list(_rows(rows, cell, known, depth))
    if inner:
        joint = "" if inner[0].startswith("[") else ": "
        yield f"{key}{joint}{inner[0]}"
        yield from inner[1:]


def _rows(
    rows: list[tuple[str | None, Any]], cell: int, known: frozenset[str], depth: int
) -> Iterator[str]:
    """Rows of one shape under the names of their columns; all others one after the other."""
    flat = [_flat(row) if isinstance(row, Mapping) else None for _, row in rows]
    shapes = {tuple(row) for row in flat if row is not None}
    if len(rows) > 1 and None not in flat and len(shapes) == 1 and next(iter(shapes)):
        columns = next(iter(shapes))
        same = {c for c in columns if len({scalar(row[c], cell) for row in flat if row}) == 1}
        same = same if len(same) < len(columns) else set()
        names = [c for c in columns if c not in same]
        first = flat[0] or {}
        shared = [
            f"{c}={scalar(first[c], cell)}"
            for c in columns
            if c in same and not is_empty(first[c]) and str(first[c]) not in known
        ]
        alike = f" (all {' '.join(shared)})" if shared else ""
        yield f"[{' '.join(_joint(names))}]{alike}:"
        for (key, _), row in zip(rows, flat, strict=True):
            assert row is not None
            cells = [scalar(row[c], cell) if not is_empty(row[c]) else "-" for c in names]
            cells = [one for one in cells if one != key]
            yield " ".join([key, *cells] if key else cells) + ";"
        return
    for key, row in rows:
        inner = list(_atoms(row, cell, known, depth + 1))
        if key is not None:
            inner = [one for one in inner if one.partition("=")[2] != key]
            inner.insert(0, key)
        if inner:
            yield from inner[:-1]
            yield f"{inner[-1]};"


def _joint(names: list[str]) -> list[str]:
    """Names of columns; those below one key stand together, under it."""
    found: list[str] = []
    for name in names:
        key, dot, rest = name.partition(".")
        if dot and found and found[-1].startswith(f"{key}(") and found[-1].endswith(")"):
            found[-1] = f"{found[-1][:-1]} {rest})"
        else:
            found.append(f"{key}({rest})" if dot else name)
    return found


def _without_links(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a record with one of its addresses, where it has many."""
    links = [k for k, v in record.items() if isinstance(v, str) and _LINK.match(v)]
    if len(links) <= LINKS:
        return record
    stays = next((key for key in ("html_url", "url", "link") if key in links), links[0])
    return {k: v for k, v in record.items() if k not in links or k == stays}


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with the columns of what is nested one level deep."""
    found: dict[str, Any] = {}
    for key, part in _without_links(row).items():
        if isinstance(part, Mapping) and part and all(map(is_plain, part.values())):
            found |= {f"{key}.{name}": one for name, one in part.items()}
        elif isinstance(part, list) and all(map(is_plain, part)):
            found[key] = ", ".join(str(one) for one in part)
        elif is_plain(part):
            found[key] = part
        else:
            return {}
    return found
