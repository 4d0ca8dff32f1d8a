"""Write a plugin for Claude Code, with two hooks and the server."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import conspectus
from conspectus.cli import output
from conspectus.errors import InputError

NAME = "conspectus"
ABOUT = "Archives a session before it is compacted, and lets the agent search what has left."


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

    def hook(event: str, seconds: int, **more: str) -> list[dict[str, object]]:
        line = shlex.join([*program, "hook", event, *asked])
        return [{**more, "hooks": [{"type": "command", "command": line, "timeout": seconds}]}]

    hooks = {
        "PreCompact": hook("pre-compact", 120),
        "SessionStart": hook("session-start", 30, matcher="compact|resume"),
    }
    server = [*program[1:], "mcp", "--project", "${CLAUDE_PROJECT_DIR:-.}", *asked]
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
