"""Add commands of other packages, each imported on its first use."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from conspectus import _plugins
from conspectus.cli.failures import EXIT_CODES
from conspectus.errors import InputError

LAB = ("replay", "eval", "config.explain")
"""Commands of the lab, in the order of the help; without the lab, each has an error of its own."""

CLASS = "command_class"  # Attribute of a function with the class of its command, if it has its own


class Joined(TyperGroup):
    """A group of commands that other packages extend."""

    def list_commands(self, ctx: Any) -> list[str]:
        """List all commands in the order of the help: own, joined, then groups."""
        joined = _names(_prefix(self, ctx))
        own = [name for name in super().list_commands(ctx) if name not in joined]
        groups = [name for name in own if isinstance(self.commands[name], TyperGroup)]
        return [*(name for name in own if name not in groups), *joined, *groups]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by its name, or None; a missing one of the lab is an error."""
        found = super().get_command(ctx, cmd_name)
        if found is not None:
            return found
        prefix = _prefix(self, ctx)
        found = _command(prefix, cmd_name)
        if found is not None:
            self.add_command(found, cmd_name)
            return found
        for name in _names(prefix):  # so that the error for a mistyped name can name the likely one
            self.get_command(ctx, name)
        return None


def _prefix(group: TyperGroup, ctx: Any) -> str:
    return "" if ctx.parent is None else f"{group.name}."


def _names(prefix: str) -> list[str]:
    """List commands of other packages in one group, those of the lab first."""
    names = [name for name in _plugins.names(_plugins.COMMANDS) if name.startswith(prefix)]
    names.sort(key=lambda name: LAB.index(name) if name in LAB else len(LAB))
    names = [name.removeprefix(prefix) for name in names]
    return [name for name in names if "." not in name]


def _command(prefix: str, name: str) -> Any:
    function = _plugins.plugged(_plugins.COMMANDS, prefix + name)
    if function is None:
        if prefix + name not in LAB:
            return None
        command = f"{prefix}{name}".replace(".", " ")
        raise InputError(
            f"'conspectus {command}' needs the lab, the package conspectus_lab, which is not "
            "installed"
        )
    alone = typer.Typer(
        add_completion=False, rich_markup_mode="markdown", pretty_exceptions_enable=False
    )
    alone.command(name, cls=getattr(function, CLASS, None), epilog=EXIT_CODES)(function)
    return typer.main.get_command(alone)
