"""Histories in files: chat messages, and the sessions of Claude Code, Codex and others."""

from conspectus.transcripts.files import FORMS, HistoryFile, read_history, write_history

__all__ = ["FORMS", "HistoryFile", "read_history", "write_history"]
