"""Import what other packages add, by their entry points.

conspectus.commands    commands of the command line: as `eval`
conspectus.redactors   the redactor of `redact=True`: `default`
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMANDS = "conspectus.commands"
REDACTORS = "conspectus.redactors"


def names(group: str) -> list[str]:
    """List the names in a group of entry points, each once."""
    return list(dict.fromkeys(point.name for point in _points(group)))


def plugged(group: str, name: str) -> Any | None:
    """Import an entry point; return None if no package has it."""
    return next((point.load() for point in _points(group) if point.name == name), None)


def _points(group: str) -> Iterator[EntryPoint]:
    """Yield the entry points whose modules exist: some outlive their package."""
    from importlib.metadata import entry_points
    from importlib.util import find_spec

    for point in entry_points(group=group):
        with suppress(ModuleNotFoundError):  # of a package around the module
            if find_spec(point.module) is not None:
                yield point
