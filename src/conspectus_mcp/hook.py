"""Archive a session of Claude Code before its compaction: `conspectus hook`, and its plugin.

A hook never stops the client: after any failure it ends with 0 and one line on standard error
(`conspectus.cli.failures` sees to that). Standard output has only what the client expects; what was
archived before a compaction is said on standard error.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

import conspectus
from conspectus.archive import Scope, without_password
from conspectus.cli import options, output
from conspectus.cli.options import ArchiveOption
from conspectus.errors import InputError

FIELDS = ("session_id", "cwd")  # of the client's JSON
END = {"role": "user", "content": "(Archived here.)"}  # so that the newest message may go, too
LONGEST = 9_000  # Characters of the user's words; Claude Code takes 10,000 of a hook

NAME = "conspectus"
ABOUT = "Archives a session before it is compacted, and lets the agent search what has left."
EVENTS: dict[str, dict[str, Any]] = {
    "pre-compact": {"name": "PreCompact", "seconds": 120, "matcher": ""},
    "session-start": {"name": "SessionStart", "seconds": 30, "matcher": "compact|resume"},
}


def hook(
    event: Annotated[str, typer.Argument(help="pre-compact or session-start.")],
    archive: ArchiveOption = None,
    redact: Annotated[bool, typer.Option(help="Take secrets out of what is archived.")] = False,
) -> None:
    """Answer a hook of Claude Code, whose JSON comes on standard input. Always exits with 0.

    `pre-compact` archives the session. `session-start` brings back what its user has stated, where
    it begins compacted or resumed.
    """
    data: Any = None
    with suppress(ValueError, RecursionError):
        data = json.loads(sys.stdin.buffer.read())
    texts = [data.get(name) for name in FIELDS] if isinstance(data, dict) else [None]
    if not all(isinstance(text, str) and text for text in texts):
        raise InputError(f"standard input holds no JSON with {', '.join(FIELDS)}; is this a hook?")
    where = options.archive_of(archive)
    if event == "pre-compact":
        # What stands on standard output would become an order to whoever summarises.
        sys.stderr.write(archive_session(data, where, redact=redact) + "\n")
    elif event != "session-start":
        raise InputError(f"there is no hook {event!r}; write pre-compact or session-start")
    elif context := standing_context(data, where):
        answer = {"hookEventName": "SessionStart", "additionalContext": context}
        sys.stdout.write(json.dumps({"hookSpecificOutput": answer}) + "\n")


def archive_session(data: Mapping[str, Any], where: str, *, redact: bool = False) -> str:
    """Archive all of a session that is not archived yet, and say in a sentence what that was.

    `data` is the client's input, `where` the archive. Raises `InputError` where the session cannot
    be read, and `ArchiveError` where the archive cannot be written.
    """
    from conspectus.engine import Compactor
    from conspectus.transcripts import mend, read_history

    scope, home = _scope(data), os.environ.get("CLAUDE_CONFIG_DIR") or "~/.claude"
    project = re.sub("[^A-Za-z0-9]", "-", scope.tenant.partition(":")[2])
    beside = f"{home}/projects/{project}/{Path(scope.thread).name}.jsonl"
    path = str(data.get("transcript_path") or beside)  # some versions do not say where
    messages = [*mend(read_history(Path(path).expanduser()).messages).messages, END]
    settings: Any = {"keep": ("messages", 1), "max_summary_tokens": 4_000, "stale_results": False}
    more: Any = {"thread_id": scope.thread, "tenant": scope.tenant, "force": True}
    with options.opened(where) as kept:
        result = Compactor(archive=kept, redact=redact, **settings).compact(messages, **more)
    if result.failed is not None or result.outcome == "stuck":
        raise InputError(f"the session {scope.thread} was not archived: {result.reason}")
    new = output.many(result.evicted, "message")
    whole = len(messages) - 1
    name = without_password(where)
    return (
        f"Conspectus archived {new} of this session before its compaction ({whole:,} in all) in "
        f"{name}; the tools search and read of its MCP server find each word for word."
    )


def standing_context(data: Mapping[str, Any], where: str) -> str:
    """Return what a session's user said, word for word while there is room; empty for nothing."""
    from conspectus.messages.framing import as_notes, recalled_text
    from conspectus.notes.rendering import Notes
    from conspectus.notes.segment import Segment
    from conspectus_mcp.grants import handle_of

    scope, file = _scope(data), options.file_of(where)
    if data.get("source") not in ("compact", "resume") or (file and not file.exists()):
        return ""
    with options.opened(where, existing=True) as kept:
        noted = [record.segment for record in kept.chain(scope) if record.segment]
    if not noted:
        return ""
    lines = (line for line in Segment.from_json(noted[-1]).lines if line.kind == "said")
    said = recalled_text(as_notes(Notes([Segment(tuple(lines))]).render(LONGEST, len)))
    return (
        "Earlier messages of this session are archived word for word. The tools of the server "
        f"conspectus search and read them; the session's id there is {handle_of(scope)}.\n{said}"
    )


def tenant_of(project: Path) -> str:
    """Return the tenant of a project's sessions: no other project's server sees them.

    Example:
        >>> tenant_of(Path("/srv/shop"))
        'claude-code:/srv/shop'
    """
    return f"claude-code:{project.expanduser().resolve()}"


def _scope(data: Mapping[str, Any]) -> Scope:
    project = os.environ.get("CLAUDE_PROJECT_DIR") or data["cwd"]
    return Scope(tenant_of(Path(project)), data["session_id"])


def write_plugin(folder: Path, archive: str | None = None) -> list[Path]:
    """Write a plugin for Claude Code that runs this installation, and return its files.

    `archive` is a path or a URL; by default the user's own. Raises `InputError` where another
    plugin is in the folder, or nothing can be written.
    """
    manifest = folder / ".claude-plugin" / "plugin.json"
    if manifest.exists() and f'"name": "{NAME}"' not in manifest.read_text("utf-8", "replace"):
        raise InputError(f"{folder} holds another plugin; give --plugin another folder")
    if archive is not None and "://" not in archive:
        archive = str(Path(archive).expanduser().absolute())
    asked = [] if archive is None else ["--archive", archive]
    program, *args = sys.executable, "-m", "conspectus.cli"
    hooks: dict[str, Any] = {}
    for event, known in EVENTS.items():
        line = shlex.join([program, *args, "hook", event, *asked])
        run = {"type": "command", "command": line, "timeout": known["seconds"]}
        hooks[known["name"]] = [{"matcher": known["matcher"], "hooks": [run]}]
    args += ["mcp", "--project", "${CLAUDE_PROJECT_DIR:-.}", *asked]
    files = {
        manifest: {"name": NAME, "version": conspectus.__version__, "description": ABOUT},
        folder / "hooks" / "hooks.json": {"description": ABOUT, "hooks": hooks},
        folder / ".mcp.json": {"mcpServers": {NAME: {"command": program, "args": args}}},
    }
    for path, data in files.items():
        with suppress(OSError):  # what is written then says why it cannot be
            path.parent.mkdir(parents=True, exist_ok=True)
        output.write_file(path, json.dumps(data, indent=2) + "\n")
    return list(files)
