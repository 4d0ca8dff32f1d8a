"""Archive a session of Claude Code before its compaction: `conspectus hook`, and its plugin.

A hook never stops the client: after any failure it ends with 0 and one line on standard error
(`conspectus.cli.failures` sees to that). It prints only the output that the client expects.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

import conspectus
from conspectus.archive import Scope
from conspectus.cli import options, output
from conspectus.cli.options import ArchiveOption
from conspectus.errors import InputError

END = {"role": "user", "content": "(Archived here.)"}  # so that the newest message may go, too
SUMMARY = 4_000
"""Maximum tokens of the notes on a session."""

LONGEST, STATEMENT = 9_000, 1_000
"""Maximum characters of a hook's output, of which Claude Code takes 10,000, and of a message."""

NAME = "conspectus"
ABOUT = "Archives a session before it is compacted, and lets the agent search what has left."


def hook(
    event: Annotated[str, typer.Argument(help="pre-compact or session-start.")],
    archive: ArchiveOption = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="Take secrets out of what is archived.")
    ] = False,
) -> None:
    """Answer a hook of Claude Code, whose JSON comes on standard input. Always exits with 0.

    `pre-compact` archives the session. `session-start` brings back what its user has stated, where
    it begins compacted or resumed.
    """
    data = None
    with suppress(ValueError, RecursionError):
        data = json.loads(sys.stdin.buffer.read())
    if not isinstance(data, dict):
        raise InputError("standard input holds no JSON object; is this called by a hook?")
    where = options.archive_of(archive)
    if event == "pre-compact":
        archive_session(data, where, redact=redact)
    elif event != "session-start":
        raise InputError(f"there is no hook {event!r}; write pre-compact or session-start")
    elif context := standing_context(data, where):
        answer = {"hookEventName": "SessionStart", "additionalContext": context}
        sys.stdout.write(json.dumps({"hookSpecificOutput": answer}) + "\n")


def archive_session(data: Mapping[str, Any], where: str, *, redact: bool = False) -> int:
    """Archive all of a session that is not archived yet, and return its number of messages.

    `data` is the client's input to the hook `PreCompact`, `where` the archive. Raises `InputError`
    where the session cannot be read, and `ArchiveError` where the archive cannot be written.
    """
    from conspectus.engine import Compactor
    from conspectus.transcripts import read_history

    scope, path = _scope(data), Path(_text(data, "transcript_path")).expanduser()
    messages = [*read_history(path).mended().messages, END]
    with options.opened(where) as kept:
        compactor = Compactor(
            archive=kept,
            keep=("messages", 1),
            stale_results=False,
            max_summary_tokens=SUMMARY,
            redact=redact,
        )
        result = compactor.compact(
            messages, thread_id=scope.thread, tenant=scope.tenant, force=True
        )
    if result.failed is not None or result.outcome == "stuck":
        raise InputError(f"the session {scope.thread} was not archived: {result.reason}")
    return result.evicted


def standing_context(data: Mapping[str, Any], where: str) -> str:
    """Return the statements of a session's user, newest first, word for word; empty for none.

    `data` is the client's input to the hook `SessionStart`; the errors are as above.
    """
    from conspectus.messages.framing import as_notes
    from conspectus.messages.recalled import recalled_text
    from conspectus.notes.segment import Segment
    from conspectus.notes.text import cut, one_line
    from conspectus.recall.layout import label
    from conspectus_mcp.grants import handle_of

    scope, file = _scope(data), options.file_of(where)
    new = data.get("source") not in ("compact", "resume")
    if new or (file is not None and not file.exists()):
        return ""
    with options.opened(where, existing=True) as kept:
        chain = kept.chain(scope)
    if not chain:
        return ""
    lines, left, room = [], 0, LONGEST
    noted = next((record.segment for record in reversed(chain) if record.segment), {})
    for one in reversed(Segment.from_json(noted).lines):
        if one.kind == "said":
            line = f"- {as_notes(cut(one_line(one.text), STATEMENT))} [{label(one.ids[0])}]"
            room -= len(line) + 1
            stands = room > 0 and not one.times
            lines += [line] * stands
            left += 0 if stands else one.times or 1
    lines += [f"({left:,} more are in the archive.)"] * bool(left)
    stated = recalled_text("\n".join(["Said by the user before, newest first:", *lines]))
    return (
        "Earlier messages of this session are archived word for word. The tools of the server "
        f"conspectus search and read them; the session's id there is {handle_of(scope)}.\n{stated}"
    )


def tenant_of(project: Path) -> str:
    """Return the tenant of a project's sessions: no other project's server sees them.

    Example:
        >>> tenant_of(Path("/srv/shop"))
        'claude-code:/srv/shop'
    """
    return f"claude-code:{project.expanduser().resolve()}"


def _scope(data: Mapping[str, Any]) -> Scope:
    project = os.environ.get("CLAUDE_PROJECT_DIR") or _text(data, "cwd")
    return Scope(tenant_of(Path(project)), _text(data, "session_id"))


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name)
    if not isinstance(value, str) or not value:
        raise InputError(f"the client's JSON has no {name!r}; is this called by its hook?")
    return value


def write_plugin(folder: Path, archive: str | None = None) -> list[Path]:
    """Write a plugin for Claude Code that runs this installation, and return its files.

    Args:
        folder: where it goes; made if it is missing.
        archive: a path or a URL of the archive. Default: the user's own.

    Raises:
        InputError: another plugin is there, or the folder cannot be written to.
    """
    manifest = folder / ".claude-plugin" / "plugin.json"
    if manifest.exists() and f'"name": "{NAME}"' not in manifest.read_text("utf-8", "replace"):
        raise InputError(f"{folder} holds another plugin; give --plugin another folder")
    if archive is not None and "://" not in archive:
        archive = str(Path(archive).expanduser().absolute())
    asked = [] if archive is None else ["--archive", archive]
    program = [sys.executable, "-m", "conspectus.cli"]
    server = [*program[1:], "mcp", "--project", "${CLAUDE_PROJECT_DIR:-.}", *asked]

    def entry(event: str, seconds: int, **more: str) -> list[dict[str, object]]:
        line = shlex.join([*program, "hook", event, *asked])
        return [{**more, "hooks": [{"type": "command", "command": line, "timeout": seconds}]}]

    hooks = {
        "PreCompact": entry("pre-compact", 120),
        "SessionStart": entry("session-start", 30, matcher="compact|resume"),
    }
    files = {
        manifest: {"name": NAME, "version": conspectus.__version__, "description": ABOUT},
        folder / "hooks" / "hooks.json": {"description": ABOUT, "hooks": hooks},
        folder / ".mcp.json": {"mcpServers": {NAME: {"command": program[0], "args": server}}},
    }
    for path, data in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{path.parent} cannot be made: {error.strerror}") from error
        output.write_file(path, json.dumps(data, indent=2) + "\n")
    return list(files)
