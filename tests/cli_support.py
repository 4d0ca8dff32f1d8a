"""The command line as tests use it: it ends with the code that is expected, and says why not."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from conspectus.cli import output
from conspectus.cli.app import app

output.PATIENCE = 600.0  # A busy machine must not add lines to standard error.


def run(*arguments: object, code: int = 0, **more: Any) -> Result:
    """Run a command in this process; its arguments may also be paths and numbers."""
    done = CliRunner().invoke(app, [*map(str, arguments)], **more)
    assert done.exit_code == code, done.output
    return done


def read_json(*arguments: object, **more: Any) -> dict[str, Any]:
    """Run a command with `--json`, and read what it prints."""
    return json.loads(run(*arguments, "--json", **more).stdout)


def refused(*arguments: object, code: int = 2, **more: Any) -> str:
    """Run a command that fails with one line on standard error; give the line."""
    done = run(*arguments, code=code, **more)
    assert done.stderr.startswith("conspectus: error: ")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.output
    return done.stderr


def write_json(path: Path, value: object) -> Path:
    """Write a value as JSON, into a folder that is made where it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path
