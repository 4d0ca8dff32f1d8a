"""The program as a whole: errors as one line and an exit code, and commands of other packages."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from conspectus import _imports
from conspectus.cli.output import ESCAPED
from conspectus.errors import ArchiveError, ConspectusError, InputError, StuckError, SummaryError

DONE, STUCK, BAD_INPUT, ARCHIVE_FAILED, NO_SUMMARY, WORSE, CANNOT_LISTEN = range(7)
INTERNAL = 70
"""The exit code of an error inside, EX_SOFTWARE of BSD."""

INTERRUPTED = 130
"""The exit code as a shell says it: 128 and the signal."""

CLOSED = 141
MEANINGS = {
    DONE: "done",
    STUCK: "stuck, the history cannot be made to fit, or a replay broke a promise",
    BAD_INPUT: "bad input or usage",
    ARCHIVE_FAILED: "the archive failed",
    NO_SUMMARY: "no summary could be made, or the model could not be reached",
    WORSE: "a measurement is worse than that of --against",
    CANNOT_LISTEN: "the port of serve is in use",
    INTERNAL: "an error inside Conspectus",
    INTERRUPTED: "interrupted",
    CLOSED: "the output was closed before its end",
}
EXIT_CODES = f"Exit codes: {'; '.join(f'{code} {text}' for code, text in MEANINGS.items())}."
CODES = (
    (StuckError, STUCK),
    (ArchiveError, ARCHIVE_FAILED),
    (SummaryError, NO_SUMMARY),
    (ConspectusError, BAD_INPUT),
    (OSError, BAD_INPUT),  # of the caller's files and streams
    (Exception, INTERNAL),
)
COMMANDS = "conspectus.commands"
"""Entry points of other packages."""

DEBUG = "CONSPECTUS_DEBUG"
"""Environment variable that asks for tracebacks."""

HARMLESS = ["hook"]
"""Commands that always end with 0, because another code would stop their callers."""


class Program(TyperGroup):
    """The program: every error ends as one line, and other packages add commands.

    A command of another package is imported when it is first used.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """List all commands: our own, then those of other packages."""
        return list(dict.fromkeys([*super().list_commands(ctx), *_imports.names(COMMANDS)]))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by its name, or None."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            return command
        function = _imports.plugged(COMMANDS, cmd_name)
        if function is None:
            return None
        alone = typer.Typer(
            add_completion=False, rich_markup_mode="markdown", pretty_exceptions_enable=False
        )
        alone.command(cmd_name, epilog=EXIT_CODES)(function)
        self.add_command(typer.main.get_command(alone), cmd_name)
        return self.commands[cmd_name]

    def main(self, args: Sequence[str] | None = None, **settings: Any) -> Any:  # type: ignore[override]
        """Run, and exit with one of the codes in `EXIT_CODES`."""
        words = sys.argv[1:] if args is None else list(args)
        settings["standalone_mode"] = False  # errors are reported here
        try:
            _check_streams()
            code = super().main(args, **settings)
            sys.stdout.flush()
        except BrokenPipeError:
            code = _discard_output()
        except SystemExit as end:  # Typer and Rich leave this way when a pipe is closed
            if not isinstance(end.__context__, BrokenPipeError):
                raise
            code = _discard_output()
        except (KeyboardInterrupt, typer.Abort):
            code = INTERRUPTED
        except Exception as error:
            code = _report(error, "--json" in words)
            code = DONE if words[:1] == HARMLESS else code
        if code == INTERRUPTED:
            print("conspectus: interrupted", file=sys.stderr)
        sys.exit(code if isinstance(code, int) else DONE)


def _check_streams() -> None:
    """Open closed streams as the null device; raise `InputError` if the output was closed."""
    closed = [name for name in ("stdin", "stdout", "stderr") if getattr(sys, name) is None]
    for name in closed:  # the lowest free numbers are those of the streams
        number = os.open(os.devnull, os.O_RDWR)
        setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w"))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # letters that a terminal lacks are no failure
            stream.reconfigure(errors=ESCAPED)
    if "stdout" in closed:
        raise InputError("standard output is closed; send it to a file, or to /dev/null")


def complain(text: str) -> None:
    """Print an error on one line, without characters that a terminal would act on."""
    line = "".join(c if c.isprintable() else " " for c in " ".join(text.split()))
    with contextlib.suppress(OSError, ValueError):  # the stream may be closed
        print(f"conspectus: error: {line}", file=sys.stderr)


def _report(error: Exception, as_json: bool) -> int:
    """Print an error as one line, and as JSON if asked; return the exit code."""
    kind = type(error).__name__
    text = str(error)
    code = next(code for errors, code in CODES if isinstance(error, errors))
    # Typer's own error: a wrong option or a missing argument. Typer has a copy of click, or uses
    # the installed one, so such an error cannot be recognised by its class.
    told_by_typer = getattr(error, "format_message", None)
    if told_by_typer is not None:
        kind = "UsageError"
        code = BAD_INPUT
        command = getattr(getattr(error, "ctx", None), "command_path", "conspectus")
        problem = told_by_typer().rstrip(".")
        if not problem.endswith("?"):
            problem += "."
        text = f"{problem} See '{command} --help'."
    elif isinstance(error, OSError):
        name = error.filename or "standard output"
        text = f"{name} cannot be used: {error.strerror or error}"
        _discard_output()
    elif code == INTERNAL:
        text = f"{kind}: {text} (this is a bug; set {DEBUG}=1 for the traceback)"
    if os.environ.get(DEBUG, "0") not in ("", "0"):
        traceback.print_exception(error)
    if as_json:
        data = {"type": kind, "message": " ".join(text.split()), "exit_code": code}
        print(json.dumps({"error": data}))
    complain(text)
    return code


def _discard_output() -> int:
    """Send the output to the null device: at its end, Python would fail to flush a broken one."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return CLOSED
