"""Histories in files: chat messages, and the sessions of Claude Code, Codex and others."""

from conspectus.transcripts.files import HistoryFile, read_history, write_history
from conspectus.transcripts.forms import FORMS
from conspectus.transcripts.pairs import mend

__all__ = ["FORMS", "HistoryFile", "mend", "read_history", "write_history"]
