"""The program `conspectus`: it loads the command line, and runs it.

Loading takes about a second. Python loads the package `conspectus` before any module in it runs, so
only code outside of that package can answer an interruption (Ctrl-C) in this second.
"""

from __future__ import annotations

import sys

INTERRUPTED = 130
"""The exit code after Ctrl-C: 128 and the number of the signal, as shells say it."""


def main() -> None:
    """Run the command line, and exit with its code."""
    try:
        from conspectus.cli import main as run_command_line

        run_command_line()
    except KeyboardInterrupt:
        print("conspectus: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
