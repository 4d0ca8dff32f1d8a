"""The formats of history files, a table: how a record is known, and who reads it.

Summaries that a program wrote are left out where the messages before them are in the file.
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
    knows: Callable[[Row], bool]  # whether a record, or the object around all, is of this format
    read: Callable[[Sequence[Any], Row], Reading]  # gets the records, and the object around them
    to_message: Callable[[Any], Any] = _as_it_is  # the message, from what was read
    is_session: bool = False  # a program wrote it for itself: what cannot be understood is skipped
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
"""All formats; the first one that knows a record is that of the file."""
