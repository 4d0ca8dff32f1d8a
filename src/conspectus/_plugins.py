"""Commands and redactors of other packages, found by entry points when asked for.

conspectus.commands    commands of the command line: `eval`, and `config.explain` in a group
conspectus.redactors   the redactor of `redact=True`: `default`
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMANDS = "conspectus.commands"
REDACTORS = "conspectus.redactors"


def names(group: str) -> list[str]:
    """List the names in a group of entry points, each once."""
    return list(dict.fromkeys(one.name for one in _found(group)))


def plugged(group: str, name: str) -> Any | None:
    """Import an entry point; None where no package has it."""
    return next((one.load() for one in _found(group) if one.name == name), None)


def _found(group: str) -> Iterator[EntryPoint]:
    """Yield entry points whose modules exist: one may outlive its package."""
    from importlib.metadata import entry_points

    return (one for one in entry_points(group=group) if _is_there(one.module))


def _is_there(module: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a package around it
        return False
