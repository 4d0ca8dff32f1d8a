"""Add commands of other packages, each imported on its first use."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from conspectus import _plugins
from conspectus.cli.failures import EXIT_CODES
from conspectus.errors import InputError

LAB = ("replay", "eval")
"""Commands of the lab, in the order of the help; without the lab, each has an error of its own."""

CLASS = "command_class"  # Attribute of a function with the class of its command, if it has its own


class Joined(TyperGroup):
    """A group of commands that other packages extend."""

    def list_commands(self, ctx: Any) -> list[str]:
        """List all commands in the order of the help: own, joined, then groups."""
        joined = self._joined(ctx)
        own = [name for name in super().list_commands(ctx) if name not in joined]
        return sorted(
            [*own, *joined], key=lambda name: isinstance(self.commands.get(name), TyperGroup)
        )

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by its name, or None; a missing one of the lab is an error."""
        if (found := super().get_command(ctx, cmd_name)) is not None:
            return found
        full = self._prefix(ctx) + cmd_name
        function = _plugins.plugged(_plugins.COMMANDS, full)
        if function is None and full in LAB:
            raise InputError(
                f"'conspectus {full.replace('.', ' ')}' needs the lab, the package conspectus_lab, "
                "which is not installed"
            )
        if function is None:
            for name in self._joined(ctx):  # so that the error can name the likely one
                if name not in self.commands:
                    self.get_command(ctx, name)
            return None
        alone = typer.Typer(
            add_completion=False, rich_markup_mode="markdown", pretty_exceptions_enable=False
        )
        alone.command(cmd_name, cls=getattr(function, CLASS, None), epilog=EXIT_CODES)(function)
        self.add_command(typer.main.get_command(alone), cmd_name)
        return self.commands[cmd_name]

    def _prefix(self, ctx: Any) -> str:
        return "" if ctx.parent is None else f"{self.name}."

    def _joined(self, ctx: Any) -> list[str]:
        """List commands of other packages, those of the lab first."""
        prefix = self._prefix(ctx)
        names = [name for name in _plugins.names(_plugins.COMMANDS) if name.startswith(prefix)]
        names.sort(key=lambda name: LAB.index(name) if name in LAB else len(LAB))
        return [short for name in names if "." not in (short := name.removeprefix(prefix))]
