"""The agent's to-do list, as the arguments of a call hold it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from conspectus.notes.cutting import FIELD, one_line

_BETWEEN_FIELDS = " | "

DONE_STATES = frozenset(("completed", "complete", "done", "finished"))
"""Values that say that an item is done."""


def todo_items(args: str, argument: str, before: Sequence[str]) -> tuple[str, ...] | None:
    """Return the items of a to-do list, each with its fields; None if there is no list.

    A call may say with `merge` that its list has only the items that have changed, each with an
    `id`. Then they replace the items with the same ids in the list before.

    Args:
        args: the arguments of the call, as JSON.
        argument: the name of the argument that has the list.
        before: the items of the list before.

    Example:
        >>> todo_items('{"todos": [{"content": "paint", "status": "pending"}]}', "todos", ())
        ('paint | pending',)
    """
    try:
        values = json.loads(args)
        rows = values[argument]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if not isinstance(rows, list):
        return None
    items = tuple(_item(row) for row in rows)
    if values.get("merge") is not True:
        return items
    changed_ids = {cell for row in rows if isinstance(row, Mapping) for cell in _ids_in(row)}
    unchanged = (item for item in before if changed_ids.isdisjoint(_cells(item)))
    return (*unchanged, *items)


def todo_lines(items: Sequence[str]) -> list[str]:
    """Return a line for each open item, and one line for all that are done.

    Example:
        >>> todo_lines(["hull | completed", "paint | pending", "sail | completed"])
        ['paint | pending', 'done: hull; sail']
    """
    is_done = [not DONE_STATES.isdisjoint(item.casefold().split(_BETWEEN_FIELDS)) for item in items]
    lines = [item for item, done in zip(items, is_done, strict=True) if not done]
    done_items = [_without_state(item) for item, done in zip(items, is_done, strict=True) if done]
    return [*lines, f"done: {FIELD.join(done_items)}"] if done_items else lines


def _without_state(item: str) -> str:
    cells = item.split(_BETWEEN_FIELDS)
    return _BETWEEN_FIELDS.join(cell for cell in cells if cell.casefold() not in DONE_STATES)


def _item(row: Any) -> str:
    values = row.values() if isinstance(row, Mapping) else [row]
    return one_line(_BETWEEN_FIELDS.join(map(str, values)))


def _ids_in(row: Mapping[str, Any]) -> set[tuple[int, str]]:
    """Return the id of an item, with its place among the fields."""
    return {(place, str(value)) for place, (name, value) in enumerate(row.items()) if name == "id"}


def _cells(item: str) -> enumerate[str]:
    return enumerate(item.split(_BETWEEN_FIELDS))
