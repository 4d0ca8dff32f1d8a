"""Turn errors into one line and an exit code."""

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

from conspectus.errors import ArchiveError, ConspectusError, StuckError, SummaryError

DONE, STUCK, BAD_INPUT, ARCHIVE_FAILED, NO_SUMMARY, WORSE = 0, 1, 2, 3, 4, 5
INTERNAL, INTERRUPTED, CLOSED = 70, 130, 141

MEANINGS = {
    DONE: "done",
    STUCK: "stuck, the history cannot be made to fit, or a replay broke a promise",
    BAD_INPUT: "bad input or usage",
    ARCHIVE_FAILED: "the archive failed",
    NO_SUMMARY: "no summary could be made, or the model could not be reached",
    WORSE: "a measurement got worse",
    INTERNAL: "an error inside Conspectus",
    INTERRUPTED: "interrupted",
    CLOSED: "the reader of the output went away",
}
EXIT_CODES = f"Exit codes: {'; '.join(f'{code} {text}' for code, text in MEANINGS.items())}."
DEBUG = "CONSPECTUS_DEBUG"  # Environment variable that asks for tracebacks


class Program(TyperGroup):
    """The top of the command line; every error ends as one line."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run, and exit with one of the codes in `EXIT_CODES`."""
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):  # a terminal without the letters is no failure
                stream.reconfigure(errors="backslashreplace")
        as_json = "--json" in (sys.argv[1:] if args is None else args)
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
            sys.stdout.flush()
        except BrokenPipeError:
            code = _closed()
        except SystemExit as end:  # Typer and Rich leave this way when a pipe is closed
            if not isinstance(end.__context__, BrokenPipeError):
                raise
            code = _closed()
        except (KeyboardInterrupt, typer.Abort):
            code = INTERRUPTED
        except Exception as error:
            code = _tell(error, as_json)
        if code == INTERRUPTED:
            print("conspectus: interrupted", file=sys.stderr)
        if standalone_mode:
            sys.exit(code if isinstance(code, int) else DONE)
        return code


def code_of(error: Exception) -> int:
    """Return the exit code of an error that Conspectus raises on purpose."""
    if isinstance(error, StuckError):
        return STUCK
    if isinstance(error, ArchiveError):
        return ARCHIVE_FAILED
    if isinstance(error, SummaryError):
        return NO_SUMMARY
    return BAD_INPUT


def one_line(text: str) -> str:
    """Replace line breaks and characters that a terminal would act on by spaces."""
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))


def complain(text: str) -> None:
    """Print an error on one line."""
    print(f"conspectus: error: {one_line(text)}", file=sys.stderr)


def _tell(error: Exception, as_json: bool) -> int:
    """Print an error as one line, and as JSON if asked; return the exit code."""
    kind, code, text = type(error).__name__, BAD_INPUT, str(error)
    if isinstance(error, ConspectusError):
        code = code_of(error)
    elif hasattr(error, "format_message"):  # Typer's own: a wrong option or a missing argument
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "conspectus"
        kind = "UsageError"
        text = f"{error.format_message().rstrip('.')}. See '{command} --help'."
    else:
        code = INTERNAL
        text = f"{kind}: {text} (this is a bug; set {DEBUG}=1 for the traceback)"
    text = one_line(text)
    if os.environ.get(DEBUG, "0") not in ("", "0"):
        traceback.print_exception(error)
    if as_json:
        print(json.dumps({"error": {"type": kind, "message": text, "exit_code": code}}))
    complain(text)
    return code


def _closed() -> int:
    """Exit quietly: Python would complain when it flushes a closed pipe at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return CLOSED
