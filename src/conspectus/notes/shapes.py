"""What a tool was given and what it answered, as pieces, by the shape of the data.

JSON objects become fields, lists of like records a table with its columns named once, other texts
their lines. No tool, language or phrase is known here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from conspectus.notes.cutting import one_line

MOST_JSON = 2_000_000
"""Characters of a text that is tried as JSON."""

DEPTH = 4
"""Levels of nested data that become fields; what lies deeper stands as JSON."""

CODES = ("returncode", "return_code", "exit_code", "exitCode", "exit_status")
ERRORS = ("error", "errors", "error_code", "is_error", "isError")
STATES = ("status", "state", "success", "ok")
"""Fields that say how a call ended; they come first."""

HEAD = 4
"""First lines of a text of which one may say how the program ended, as in `Exit code: 1`."""

FAILED = ("error", "failed", "failure", "incomplete", "false")

NOTHING = ("", "0", "false", "none", "null", "[]", "{}")
"""Values of an error that say that there was none."""

_TAGS = re.compile(r"<(\w{1,40})>([^<\n]{0,200})</\1>\s*")
_OPEN = re.compile(r"<(\w{1,40})>\n?")


class Shape(NamedTuple):
    """A value taken apart: its pieces, whether they are fields, and whether it says it failed."""

    pieces: tuple[str, ...]
    fields: bool
    failed: bool


def shape_of(text: str) -> Shape:
    """Take a text apart.

    Example:
        >>> shape_of('{"id": 7, "beds": [{"n": 1, "kind": "twin"}, {"n": 2, "kind": "king"}]}')[0]
        ('id=7', 'beds (n | kind):', '1 | twin', '2 | king')
    """
    text = text.strip()
    data = _data(text)
    if isinstance(data, list) and len(data) == 1 and isinstance(data[0], Mapping):
        data = data[0]
    if isinstance(data, Mapping) and data:
        first = (*CODES, *ERRORS, *STATES)
        fields = dict(sorted(data.items(), key=lambda one: one[0] not in first))
        return Shape(tuple(_pieces("", fields)), True, _says_failed(fields))
    if isinstance(data, list) and data:
        return Shape(tuple(_pieces("", data)), True, False)
    # A frame of tags, as shells for agents print: short values, then what the program printed.
    fields, at = {}, 0
    while tag := _TAGS.match(text, at):
        fields[tag[1]] = one_line(tag[2])
        at = tag.end()
    rest = text[at:]
    if (tag := _OPEN.match(rest)) and rest.endswith(f"</{tag[1]}>"):
        rest = rest[tag.end() : -len(tag[1]) - 3]
    lines = [line for line in map(str.strip, rest.split("\n")) if line]
    pieces = [f"{name}={value}" for name, value in fields.items() if not lines or value != "0"]
    heads = (line.partition(":") for line in lines[:HEAD])
    codes = {name.strip().lower().replace(" ", "_"): value for name, _, value in heads}
    fields |= {name: codes[name] for name in CODES if name in codes}
    return Shape((*pieces, *lines), False, _says_failed(fields))


def arguments(args: str) -> list[tuple[str, str]]:
    """Return the arguments of a call, each a name and a value in one line; JSON stays JSON."""
    data = _data(args.strip())
    if not isinstance(data, Mapping):
        return [("", one_line(args))] if args.strip() else []
    return [(str(name), _plain(value)) for name, value in data.items()]


def _data(text: str) -> Any:
    if text[:1] not in ("{", "[") or text[-1:] not in ("}", "]") or len(text) > MOST_JSON:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, list) and not any(isinstance(one, (list, Mapping)) for one in value):
        return ", ".join(map(_plain, value)) if len(value) != 1 else f"[{_plain(value[0])}]"
    return one_line(json.dumps(value, ensure_ascii=False))


def _pieces(name: str, value: Any, depth: int = 0) -> Iterator[str]:
    """Yield a value as one piece, as its fields, or as a table."""
    if isinstance(value, Mapping) and value and depth <= DEPTH:
        for key, part in value.items():
            yield from _pieces(f"{name}.{key}" if name else str(key), part, depth + 1)
    elif isinstance(value, list) and (columns := _columns(value)):
        yield f"{name} ({' | '.join(columns)}):".strip()
        for row in value:
            yield " | ".join(_plain(row.get(column, "")) for column in columns)
    elif isinstance(value, list) and any(isinstance(one, (Mapping, list)) for one in value):
        for place, one in enumerate(value):
            yield from _pieces(f"{name}[{place}]", one, depth + 1)
    elif isinstance(value, list):
        yield f"{name}={', '.join(map(_plain, value)) or 'none'}".lstrip("=")
    else:
        yield f"{name}={_plain(value)}".lstrip("=")


def _columns(rows: list[Any]) -> list[str]:
    """Return the columns of a list of two or more like records; empty where they are not alike."""
    if len(rows) < 2 or not all(isinstance(row, Mapping) and row for row in rows):
        return []
    columns = list(dict.fromkeys(str(name) for row in rows for name in row))
    filled = sum(len(row) for row in rows)
    return columns if filled * 2 >= len(columns) * len(rows) else []


def _says_failed(fields: Mapping[str, Any]) -> bool:
    said = {name: str(value).strip().lower() for name, value in fields.items()}
    error = any(name in ERRORS and value not in NOTHING for name, value in said.items())
    inside = (part for part in fields.values() if isinstance(part, Mapping))
    said |= {name: str(part[name]).strip() for part in inside for name in CODES if name in part}
    codes = (value.partition(" ")[0] for name, value in said.items() if name in CODES)
    error = error or any(code.lstrip("-").isdecimal() and code.strip("-0") for code in codes)
    return error or any(name in STATES and value in FAILED for name, value in said.items())
