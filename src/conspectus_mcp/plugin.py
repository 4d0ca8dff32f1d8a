"""Write a plugin for Claude Code, with two hooks and the server."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import conspectus
from conspectus.cli import output
from conspectus.errors import InputError

NAME = "conspectus"
ABOUT = "Archives a session before it is compacted, and lets the agent search what has left."
ARCHIVING, BRINGING = 120, 30
"""Seconds that Claude Code waits for each hook."""


def write_plugin(folder: Path, archive: str | None = None) -> list[Path]:
    """Write a plugin for Claude Code that runs this installation, and return its files.

    Args:
        folder: where it goes; made if it is missing.
        archive: a path or a URL of the archive. Default: the user's own.

    Raises:
        InputError: another plugin is there, or the folder cannot be written to.
    """
    manifest = folder / ".claude-plugin" / "plugin.json"
    if manifest.exists() and _name(manifest) != NAME:
        raise InputError(f"{folder} holds another plugin; give --plugin another folder")
    if archive is not None and "://" not in archive:
        archive = str(Path(archive).expanduser().absolute())
    asked = [] if archive is None else ["--archive", archive]
    program = [sys.executable, "-m", "conspectus.cli"]

    def command(event: str, seconds: int) -> dict[str, Any]:
        line = shlex.join([*program, "hook", event, *asked])
        return {"type": "command", "command": line, "timeout": seconds}

    server = [*program[1:], "mcp", "--project", "${CLAUDE_PROJECT_DIR:-.}", *asked]
    files = {
        manifest: {"name": NAME, "version": conspectus.__version__, "description": ABOUT},
        folder / "hooks" / "hooks.json": {
            "description": ABOUT,
            "hooks": {
                "PreCompact": [{"hooks": [command("pre-compact", ARCHIVING)]}],
                "SessionStart": [
                    {"matcher": "compact|resume", "hooks": [command("session-start", BRINGING)]}
                ],
            },
        },
        folder / ".mcp.json": {"mcpServers": {NAME: {"command": program[0], "args": server}}},
    }
    for path, data in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{path.parent} cannot be made: {error.strerror}") from error
        output.write_file(path, json.dumps(data, indent=2) + "\n")
    return list(files)


def _name(manifest: Path) -> Any:
    try:
        data = json.loads(manifest.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return data.get("name") if isinstance(data, dict) else None
