"""Notes on what left the view: lines as data, written by the same code whoever summarises."""

from conspectus.notes.tools import Tool

__all__ = ["Tool"]
