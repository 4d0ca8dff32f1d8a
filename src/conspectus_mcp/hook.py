"""Archive a session of Claude Code before its compaction: `conspectus hook`, and its plugin.

A hook never stops the client: after any failure it ends with 0 and one line on standard error
(`conspectus.cli.failures` sees to that). Standard output has only what the client expects; standard
error says what was archived.
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
from typing import Annotated, Any, NamedTuple

import typer

import conspectus
from conspectus.archive import Scope, without_password
from conspectus.cli import options, output
from conspectus.cli.options import ArchiveOption
from conspectus.errors import InputError

INPUT_FIELDS = ("session_id", "cwd")
"""Fields of the client's JSON that every hook needs."""

END = {
    "role": "user",
    "content": "(Archived here.)",
}  # then the newest one may be evicted, too
LONGEST_CONTEXT = 9_000
"""The most characters of the user's words; Claude Code accepts 10,000 of a hook."""

SUMMARY_TOKENS = 4_000
"""The most tokens of the notes of a session."""

PLUGIN_NAME = "conspectus"
PLUGIN_DESCRIPTION = (
    "Archives a session before it is compacted, and lets the agent search what has left."
)


class HookEvent(NamedTuple):
    """An event of Claude Code at which a hook runs."""

    name: str  # Claude Code's name for it
    seconds: int  # seconds that the hook may take
    matcher: str  # when it runs; empty for always


EVENTS = {
    "pre-compact": HookEvent("PreCompact", 120, ""),
    "session-start": HookEvent("SessionStart", 30, "compact|resume"),
}
"""By the argument of `conspectus hook`."""


def hook(
    event: Annotated[str, typer.Argument(help="pre-compact or session-start.")],
    archive: ArchiveOption = None,
    redact: Annotated[bool, typer.Option(help="Remove secrets from what is archived.")] = False,
) -> None:
    """Run as a hook of Claude Code. It reads the hook's JSON from standard input.

    `pre-compact` archives the session. `session-start` prints what the user has stated, if the
    session begins after a compaction or is resumed. The exit code is always 0.
    """
    data: Any = None
    with suppress(ValueError, RecursionError):
        data = json.loads(sys.stdin.buffer.read())
    texts = [data.get(name) for name in INPUT_FIELDS] if isinstance(data, dict) else [None]
    if not all(isinstance(text, str) and text for text in texts):
        fields = ", ".join(INPUT_FIELDS)
        raise InputError(f"standard input holds no JSON with {fields}; is this a hook?")
    address = options.archive_of(archive)
    if event == "pre-compact":
        # Text on standard output would become an instruction to the summariser.
        sys.stderr.write(archive_session(data, address, redact=redact) + "\n")
    elif event != "session-start":
        raise InputError(f"there is no hook {event!r}; write pre-compact or session-start")
    else:
        context = standing_context(data, address)
        if context:
            answer = {"hookEventName": "SessionStart", "additionalContext": context}
            sys.stdout.write(json.dumps({"hookSpecificOutput": answer}) + "\n")


def archive_session(data: Mapping[str, Any], address: str, *, redact: bool = False) -> str:
    """Archive the messages of a session that are not archived yet; return a sentence on them.

    Args:
        data: the client's input.
        address: of the archive.
        redact: whether secrets are removed from archived messages.

    Raises:
        InputError: the session cannot be read, or nothing of it was archived.
        ArchiveError: the archive cannot be written.
    """
    from conspectus.engine import Compactor
    from conspectus.transcripts import mend, read_history

    scope = _scope(data)
    transcript = mend(read_history(_transcript_file(data, scope)).messages)
    with options.open_archive(address) as archive:
        compactor = Compactor(
            archive=archive,
            redact=redact,
            keep=("messages", 1),
            max_summary_tokens=SUMMARY_TOKENS,
            stale_results=False,
        )
        result = compactor.compact(
            [*transcript.messages, END], thread_id=scope.thread, tenant=scope.tenant, force=True
        )
    if result.failed is not None or result.outcome == "stuck":
        raise InputError(f"the session {scope.thread} was not archived: {result.reason}")
    new_messages = output.many(result.evicted, "message")
    all_messages = len(transcript.messages)
    return (
        f"Conspectus archived {new_messages} of this session before its compaction "
        f"({all_messages:,} in all) in {without_password(address)}; the tools search and read of "
        "its MCP server find each word for word."
    )


def _transcript_file(data: Mapping[str, Any], scope: Scope) -> Path:
    """Return the file of a session; search for it if the client does not name it."""
    if data.get("transcript_path"):
        return Path(str(data["transcript_path"])).expanduser()
    home = os.environ.get("CLAUDE_CONFIG_DIR") or "~/.claude"
    project = re.sub("[^A-Za-z0-9]", "-", scope.tenant.partition(":")[2])
    return Path(f"{home}/projects/{project}/{Path(scope.thread).name}.jsonl").expanduser()


def standing_context(data: Mapping[str, Any], address: str) -> str:
    """Return the words of a session's user, literally if there is room; empty if there are none.

    `data` is the client's input, `address` that of the archive.
    """
    from conspectus.messages.framing import recalled_text
    from conspectus.messages.harmless import as_notes
    from conspectus.notes.data import Notes
    from conspectus.notes.rendering import NotesRenderer
    from conspectus_mcp.grants import handle_of

    if data.get("source") not in ("compact", "resume"):
        return ""
    file = options.file_of(address)
    if file and not file.exists():
        return ""
    scope = _scope(data)
    with options.open_archive(address, existing=True) as archive:
        recorded = [record.notes for record in archive.chain(scope) if record.notes]
    if not recorded:
        return ""
    user_lines = [line for line in Notes.from_json(recorded[-1]).lines if line.kind == "said"]
    text = NotesRenderer([Notes(tuple(user_lines))]).render(LONGEST_CONTEXT, len)
    user_words = recalled_text(as_notes(text))
    return (
        "Earlier messages of this session are archived word for word. The tools of the server "
        f"conspectus search and read them; the session's id there is {handle_of(scope)}.\n"
        f"{user_words}"
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

    `archive` is a path or a URL; by default the user's own.

    Raises:
        InputError: another plugin is in the folder, or nothing can be written.
    """
    manifest = folder / ".claude-plugin" / "plugin.json"
    if manifest.exists() and f'"name": "{PLUGIN_NAME}"' not in manifest.read_text(
        "utf-8", "replace"
    ):
        raise InputError(f"{folder} holds another plugin; give --plugin another folder")
    if archive is not None and "://" not in archive:
        archive = str(Path(archive).expanduser().absolute())
    archive_option = [] if archive is None else ["--archive", archive]
    program = sys.executable
    module = ["-m", "conspectus.cli"]
    hooks: dict[str, Any] = {}
    for argument, event in EVENTS.items():
        line = shlex.join([program, *module, "hook", argument, *archive_option])
        command = {"type": "command", "command": line, "timeout": event.seconds}
        hooks[event.name] = [{"matcher": event.matcher, "hooks": [command]}]
    server_args = [*module, "mcp", "--project", "${CLAUDE_PROJECT_DIR:-.}", *archive_option]
    server = {"command": program, "args": server_args}
    about = {
        "name": PLUGIN_NAME,
        "version": conspectus.__version__,
        "description": PLUGIN_DESCRIPTION,
    }
    files = {
        manifest: about,
        folder / "hooks" / "hooks.json": {"description": PLUGIN_DESCRIPTION, "hooks": hooks},
        folder / ".mcp.json": {"mcpServers": {PLUGIN_NAME: server}},
    }
    for path, content in files.items():
        with suppress(OSError):  # writing the file then fails with a reason
            path.parent.mkdir(parents=True, exist_ok=True)
        output.write_file(path, json.dumps(content, indent=2) + "\n")
    return list(files)
