"""The table of formats of history files: how to recognise a record, and what reads it.

A summary that a program wrote is left out if the messages before it are in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from conspectus.transcripts import chat, claude_code, codex, gemini_cli, opencode
from conspectus.transcripts.reading import Reading, Row


def _as_it_is(message: Any) -> Any:
    return message


class FileFormat(NamedTuple):
    """A format of history files."""

    name: str
    knows: Callable[[Row], bool]  # whether a record, or the object around them, has this format
    read: Callable[[Sequence[Any], Row], Reading]  # takes the records, and the object around them
    to_message: Callable[[Any], Any] = _as_it_is  # makes the message
    is_session: bool = False  # written by a program for itself: unknown records are skipped
    added_keys: tuple[str, ...] = ()  # keys that `read` adds, and that no request may have


STAMP = ("id", "timestamp")

FORMATS = (
    FileFormat(
        "claude-code",
        claude_code.is_record,
        claude_code.read_session,
        is_session=True,
        added_keys=STAMP,
    ),
    FileFormat(
        "codex", codex.is_line, codex.read_session, is_session=True, added_keys=("timestamp",)
    ),
    FileFormat(
        "gemini-cli",
        gemini_cli.is_record,
        gemini_cli.read_session,
        is_session=True,
        added_keys=STAMP,
    ),
    FileFormat(
        "opencode", opencode.is_record, opencode.read_session, is_session=True, added_keys=STAMP
    ),
    FileFormat("langchain", chat.is_langchain, chat.read_langchain, chat.langchain_message),
    FileFormat("anthropic", chat.is_anthropic, chat.read_dicts),
    FileFormat("openai", lambda row: True, chat.read_dicts),
)
"""All formats. The first that recognises a record is the format of the file."""
