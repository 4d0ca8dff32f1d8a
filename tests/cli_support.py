"""The command line as tests use it: it ends with the code that is expected, and says why not."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from conspectus.cli import output
from conspectus.cli.app import app

output.PATIENCE_SECONDS = 600.0  # A busy machine must not add lines to standard error.


def run(*arguments: object, code: int = 0, **options: Any) -> Result:
    """Run a command in this process; its arguments may also be paths and numbers."""
    finished = CliRunner().invoke(app, [*map(str, arguments)], **options)
    assert finished.exit_code == code, finished.output
    return finished


def read_json(*arguments: object, **options: Any) -> dict[str, Any]:
    """Run a command with `--json`, and read what it prints."""
    return json.loads(run(*arguments, "--json", **options).stdout)


def error_line(*arguments: object, code: int = 2, **options: Any) -> str:
    """Run a command that fails with one line on standard error; give the line."""
    finished = run(*arguments, code=code, **options)
    assert finished.stderr.startswith("conspectus: error: ")
    assert finished.stderr.count("\n") == 1
    assert "Traceback" not in finished.output
    return finished.stderr


def write_json(path: Path, value: object) -> Path:
    """Write a value as JSON, into a folder that is made where it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path
