"""Archive a session of Claude Code before its compaction: `conspectus hook`.

A hook never stops the client: after any failure it ends with 0 and one line on standard error.
It prints only the output that the client expects.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from conspectus.cli import options
from conspectus.cli.failures import complain
from conspectus.cli.joined import CLASS
from conspectus.cli.options import ArchiveOption
from conspectus.errors import InputError

PROJECT = "CLAUDE_PROJECT_DIR"
"""The variable in which Claude Code names the project's folder to its hooks."""

BACK = ("compact", "resume")
"""Sources of a session that begins with something left out."""

END = "(Archived here.)"
"""Stands behind the last message, so that the user's newest one may be archived too."""

SUMMARY = 4_000
"""Maximum tokens of the notes on a session."""

LONGEST = 9_000
"""Maximum characters of a hook's output; Claude Code takes 10,000."""


def hook(
    event: Annotated[str, typer.Argument(help="pre-compact or session-start.")],
    archive: ArchiveOption = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="Take secrets out of what is archived.")
    ] = False,
) -> None:
    """Answer a hook of Claude Code, whose JSON comes on standard input. Always exits with 0.

    `pre-compact` archives the session. `session-start` brings back what its user has stated and
    still holds, where it begins compacted or resumed.
    """
    try:
        data = _given(sys.stdin.buffer.read())
        where = options.archive_of(archive)
        match event:
            case "pre-compact":
                archive_session(data, where, redact=redact)
            case "session-start":
                if context := standing_context(data, where):
                    said = {"hookEventName": "SessionStart", "additionalContext": context}
                    sys.stdout.write(json.dumps({"hookSpecificOutput": said}) + "\n")
            case _:
                raise InputError(
                    f"there is no hook {event!r}; write conspectus hook pre-compact, or "
                    "session-start"
                )
    except Exception as error:
        _tell(str(error))


class Unfailing(TyperCommand):
    """End with 0 after wrong arguments too, as 2 would stop the client."""

    def make_context(self, *args: Any, **more: Any) -> Any:
        """Parse the arguments."""
        try:
            return super().make_context(*args, **more)
        except Exception as error:
            if not hasattr(error, "format_message"):  # Typer's own, of a wrong option
                raise
            _tell(error.format_message())
            raise typer.Exit(0) from None


setattr(hook, CLASS, Unfailing)


def _tell(text: str) -> None:
    with suppress(OSError, ValueError):  # nobody need listen
        complain(text)


def archive_session(data: Mapping[str, Any], where: str, *, redact: bool = False) -> int:
    """Archive all of a session that is not archived yet, and return its number of messages.

    Args:
        data: the client's input to the hook `PreCompact`.
        where: the archive, a path or a URL.
        redact: remove secrets.

    Raises:
        InputError: the session cannot be read.
        ArchiveError: the archive cannot be written.
    """
    from conspectus.compactor import Compactor
    from conspectus.transcripts import read_history

    session, path = _text(data, "session_id"), _text(data, "transcript_path")
    given = read_history(Path(path).expanduser()).mended()
    with options.opened(where) as kept:
        compactor = Compactor(
            archive=kept,
            keep=("messages", 1),
            clip_over=None,
            max_summary_tokens=SUMMARY,
            redact=redact,
        )
        result = compactor.compact(
            [*given.messages, {"role": "user", "content": END}],
            thread_id=session,
            tenant=tenant_of(_project(data)),
            force=True,
        )
    if result.failed is not None or result.outcome == "stuck":
        raise InputError(f"the session {session} was not archived: {result.reason}")
    return result.evicted


def standing_context(data: Mapping[str, Any], where: str) -> str:
    """Return the standing statements of a session's user, word for word; empty for none.

    Args:
        data: the client's input to the hook `SessionStart`.
        where: the archive, a path or a URL.

    Raises:
        InputError: the input cannot be understood.
        ArchiveError: the archive cannot be read.
    """
    from conspectus.archive import Scope
    from conspectus.messages.recalled import recalled_text
    from conspectus_mcp.looking import handle_of, user_lines

    if data.get("source") not in BACK:
        return ""
    session, file = _text(data, "session_id"), options.file_of(where)
    if file is not None and not file.exists():
        return ""
    place = Scope(tenant_of(_project(data)), session)
    with options.opened(where, existing=True) as kept:
        chain = kept.chain(place)
    if not chain:
        return ""
    lines: list[str] = []
    used = 0
    every = list(user_lines(chain))
    for line in every:
        used += len(line) + 1
        if used > LONGEST:
            lines.append(f"({len(every) - len(lines):,} more are in the archive.)")
            break
        lines.append(line)
    about = (
        f"Earlier messages of this session are archived word for word. The tools of the server "
        f"conspectus search and read them; the session's id there is {handle_of(place)}."
    )
    if not lines:
        return about
    said = recalled_text("Said by the user before, newest first:\n" + "\n".join(lines))
    return f"{about}\n{said}"


def tenant_of(project: Path) -> str:
    """Return the tenant of a project's sessions: no other project's server sees them.

    Example:
        >>> tenant_of(Path("/srv/shop"))
        'claude-code:/srv/shop'
    """
    return f"claude-code:{project.expanduser().resolve()}"


def _project(data: Mapping[str, Any]) -> Path:
    return Path(os.environ.get(PROJECT) or _text(data, "cwd"))


def _given(raw: bytes) -> Mapping[str, Any]:
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise InputError(
            "standard input holds no JSON of a hook; is this called by one?"
        ) from error
    if not isinstance(data, dict):
        raise InputError(f"a hook is given a JSON object, not {type(data).__name__}")
    return data


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name)
    if not isinstance(value, str) or not value:
        raise InputError(f"the client's JSON has no {name!r}; is this called by its hook?")
    return value
