"""Import what other packages add, by their entry points.

conspectus.commands    commands of the command line: as `eval`
conspectus.redactors   the redactor of `redact=True`: `default`
conspectus.sections    sections beside `summarization:` that `config check` checks: as `serve`
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def points(group: str, **chosen: Any) -> Iterator[EntryPoint]:
    """Yield a group's entry points whose modules exist: some outlive their package."""
    from importlib.metadata import entry_points

    for point in entry_points(group=group, **chosen):
        with suppress(ModuleNotFoundError):  # of a package around the module
            if find_spec(point.module) is not None:
                yield point


def plugged(group: str, name: str) -> Any | None:
    """Import an entry point; return None if no package has it."""
    return next((point.load() for point in points(group, name=name)), None)
