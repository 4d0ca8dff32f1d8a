"""The command line; `failures.MEANINGS` has its exit codes."""

from conspectus.cli.app import main

__all__ = ["main"]
