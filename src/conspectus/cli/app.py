"""The commands, the version, and the completion of the program."""

from __future__ import annotations

from typing import Annotated

import typer

from conspectus import __version__
from conspectus.cli import archive, compact, config, look, rules, tokens
from conspectus.cli.failures import EXIT_CODES, Program

app = typer.Typer(
    name="conspectus",
    cls=Program,
    help="Keep an agent's conversation inside its model's context window, and lose nothing.",
    epilog=EXIT_CODES,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
app.command("compact", epilog=EXIT_CODES)(compact.compact)
# A query may begin with a dash: agents often look for options of commands.
DASHES = {"ignore_unknown_options": True}
app.command("recall", epilog=EXIT_CODES, context_settings=DASHES)(archive.recall)
app.command("rules", epilog=EXIT_CODES)(rules.rules)
app.command("undo", epilog=EXIT_CODES)(look.undo)
app.command("show", epilog=EXIT_CODES)(look.show)
app.command("blame", epilog=EXIT_CODES, context_settings=DASHES)(look.blame_line)
app.command("tokens", epilog=EXIT_CODES)(tokens.tokens)
app.add_typer(archive.app, name="archive")
app.add_typer(config.app, name="config")


def _version(is_asked_for: bool) -> None:
    if is_asked_for:
        typer.echo(f"conspectus {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which version.")
    ] = False,
) -> None:
    """Take the program's own options; Typer takes the help from `app`."""


def main() -> None:
    """Run the command line, and exit with its code; `conspectus_command` calls it."""
    app(prog_name="conspectus")
