"""JSON as text for the notes: its fields, its tables, its values in one line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

from conspectus.notes.cutting import FIELD, one_line

LARGEST_JSON = 2_000_000
"""Characters of a text that is tried as JSON."""

DEEPEST_FIELDS = 4
"""Levels of nested data that become fields. What lies deeper stands as JSON."""

_BRACKETS = (("{", "}"), ("[", "]"))


def read_json(text: str) -> Any:
    """Return the object or the list that a text holds as JSON; None if it is something else.

    Numbers that Python would write in another way are returned as their digits.

    Example:
        >>> read_json('{"price": 2.50}')
        {'price': '2.50'}
    """
    if text[:1] not in ("{", "[") or text[-1:] not in ("}", "]") or len(text) > LARGEST_JSON:
        return None
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def _number_as_written(digits: str) -> float | str:
    number = float(digits)
    return number if repr(number) == digits else digits


_DECODER = json.JSONDecoder(parse_float=_number_as_written)
_ENCODER = json.JSONEncoder(ensure_ascii=False)


def value_text(value: Any) -> str:
    """Return a value in one line. What is nested stays JSON.

    Example:
        >>> value_text(["a", 1])
        'a, 1'
    """
    if isinstance(value, str):
        return one_line(value)
    if type(value) is int:
        return int.__repr__(value)
    if type(value) is float and isfinite(value):
        return float.__repr__(value)
    if value == {}:
        return "{}"
    if isinstance(value, list) and not any(isinstance(part, (list, dict)) for part in value):
        return ", ".join(map(value_text, value)) if len(value) != 1 else f"[{value_text(value[0])}]"
    return one_line(_ENCODER.encode(value))


def data_text(data: Any) -> str:
    """Return data in one line: an object as its fields, a list of like records as a table.

    Example:
        >>> data_text({"id": 7, "beds": [{"n": 1, "kind": "twin"}, {"n": 2, "kind": "king"}]})
        'id=7; beds (n | kind): 1 | twin; 2 | king'
    """
    return FIELD.join(_fields("", data)).replace(f":{FIELD}", ": ")


def _fields(name: str, value: Any, depth: int = 0) -> list[str]:
    """Return a value as one field, as the fields in it, or as a table."""
    if isinstance(value, dict) and value and depth <= DEEPEST_FIELDS:
        parts = ((f"{name}.{key}" if name else str(key), part) for key, part in value.items())
        return _fields_of_parts(parts, depth)
    if isinstance(value, list) and (columns := _columns(value)):
        return _table(name, columns, value)
    if isinstance(value, list) and any(isinstance(part, (dict, list)) for part in value):
        parts = ((f"{name}[{position}]", part) for position, part in enumerate(value))
        return _fields_of_parts(parts, depth)
    if isinstance(value, list):
        return [_field(name, ", ".join(map(value_text, value)) or "none")]
    return [_field(name, value_text(value))]


def _field(name: str, text: str) -> str:
    return f"{name}={text}".lstrip("=")


def _fields_of_parts(parts: Iterable[tuple[str, Any]], depth: int) -> list[str]:
    fields: list[str] = []
    for name, part in parts:
        part_depth = depth + 1
        while _holds_one_part(part):
            name += "[0]"
            part = part[0]
            part_depth += 1
        if part == []:
            fields.append(_field(name, "none"))
        elif part and isinstance(part, (dict, list)):
            fields += _fields(name, part, part_depth)
        else:
            fields.append(_field(name, value_text(part)))
    return fields


def _holds_one_part(value: Any) -> bool:
    """Tell whether a value is a list of one list or record: its only field is what that one is."""
    return type(value) is list and len(value) == 1 and isinstance(value[0], (dict, list))


def _table(name: str, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    head = f"{name} ({' | '.join(columns)}):".strip()
    body = [" | ".join(value_text(row.get(column, "")) for column in columns) for row in rows]
    return [head, *body]


def _columns(rows: Sequence[Any]) -> list[str]:
    """Return the columns of a list of two or more like records; empty if they are not alike."""
    if len(rows) < 2 or not all(isinstance(row, dict) and row for row in rows):
        return []
    columns = list(dict.fromkeys(str(name) for row in rows for name in row))
    filled_cells = sum(len(row) for row in rows)
    return columns if filled_cells * 2 >= len(columns) * len(rows) else []
