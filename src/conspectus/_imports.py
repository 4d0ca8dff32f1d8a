"""Import the public names of a package at their first use, and what other packages add.

The entry points of other packages:

conspectus.commands    commands of the command line: as `eval`
conspectus.redactors   the redactor of `redact=True`: `default`
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMANDS = "conspectus.commands"
REDACTORS = "conspectus.redactors"


def places_of(modules: Mapping[str, str]) -> dict[str, str]:
    """Map each name to its module, given the names of each module in one text."""
    return {name: module for module, names in modules.items() for name in names.split()}


def lazily(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """Make the `__getattr__` of a package."""

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(places[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return get


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
