"""Import what other packages add, by their entry points.

conspectus.commands commands of the command line: for example `eval` conspectus.redactors the
redactor of `redact=True`: `default` conspectus.sections further sections that `config check`
checks: `serve`
"""

from __future__ import annotations

from typing import Any


def names(group: str) -> list[str]:
    """Return the names of a group's entry points, sorted."""
    from importlib.metadata import entry_points

    return sorted(entry_points(group=group).names)


def plugged(group: str, name: str) -> Any | None:
    """Import an entry point; return None if no package has it."""
    from importlib.metadata import entry_points

    return next((point.load() for point in entry_points(group=group, name=name)), None)
