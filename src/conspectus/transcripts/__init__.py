"""Histories in files: chat messages, and the sessions of Claude Code, Codex and others."""

from conspectus.transcripts.files import HistoryFile, read_history, write_history
from conspectus.transcripts.formats import FORMATS
from conspectus.transcripts.pairs import mend

__all__ = ["FORMATS", "HistoryFile", "mend", "read_history", "write_history"]
