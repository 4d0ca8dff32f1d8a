"""The engine alone: no other package of ours can be imported, and everything else works.

A fresh interpreter has a copy of `src/conspectus` and what others have written, and nothing else of
ours: first without our distribution, then with its entry points left over, as where somebody has
deleted the other packages.
"""

import json
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

import conspectus

START = """\
import sys
sys.path[:] = [*{ours!r}, *(path for path in sys.path if "site-packages" not in path)]
for part in ("lab", "mcp", "sdk", "secrets", "serve"):
    name = f"conspectus_{{part}}"
    try:
        __import__(name)
    except ModuleNotFoundError:
        continue
    raise SystemExit(f"{{name}} can be imported")
"""
COMMANDS = """
import contextlib, io, json
from conspectus.cli import main
done = []
for line in json.loads(sys.argv[1]):
    sys.argv[1:] = line
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code
    done.append((code, out.getvalue(), err.getvalue()))
print(json.dumps(done))
"""
TALK = [
    {"role": role, "content": f"message {turn}: the port is {8000 + turn}, and nothing else is new"}
    for turn in range(30)
    for role in ("user", "assistant")
]


YAML = """\
summarization:
  enabled: true
  redact: true
  trigger: {type: messages, value: 40}
"""
NO_REDACTOR = (
    "redact=True needs a default redactor, and none is installed; install the package "
    "conspectus_secrets, or give redact= a function from text to text or a Redactor"
)


@dataclass(frozen=True, slots=True)
class Alone:
    """An interpreter that has the engine only."""

    paths: tuple[str, ...]
    folder: Path

    def run(self, code: str, *args: object) -> subprocess.CompletedProcess[str]:
        """Run code with arguments, in a folder of its own."""
        return subprocess.run(
            [sys.executable, "-I", "-S", "-c", START.format(ours=self.paths) + code]
            + [str(arg) for arg in args],
            cwd=self.folder,
            env={"HOME": str(self.folder), "TERM": "dumb", "COLUMNS": "100"},
            capture_output=True,
            text=True,
            check=False,
        )

    def commands(self, *lines: list[str]) -> list[tuple[int, str, str]]:
        """Exit code, output and errors of each command line, all in one interpreter."""
        done = self.run(COMMANDS, json.dumps(lines))
        assert done.returncode == 0, done.stderr
        return [tuple(one) for one in json.loads(done.stdout)]


@pytest.fixture(scope="module", params=["no entry points", "entry points that lead nowhere"])
def alone(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Alone:
    folder = tmp_path_factory.mktemp("alone")
    source = Path(conspectus.__file__).parent
    skipped = shutil.ignore_patterns("__pycache__")
    shutil.copytree(source, folder / "engine" / "conspectus", ignore=skipped)
    others = folder / "site-packages"
    others.mkdir()
    left_over = request.param == "entry points that lead nowhere"
    for name in ("purelib", "platlib"):
        for path in Path(sysconfig.get_path(name)).iterdir():
            ours = path.name.startswith(("conspectus", "_conspectus", "_editable", "__editable__"))
            is_there = (others / path.name).is_symlink()
            if not is_there and (not ours or (left_over and path.suffix == ".dist-info")):
                (others / path.name).symlink_to(path)
    assert left_over == any(others.glob("conspectus-*.dist-info/entry_points.txt"))
    return Alone((str(folder / "engine"), str(others)), folder)


def test_a_history_is_compacted_and_recalled(alone):
    code = f"""
from conspectus import Compactor
compactor = Compactor(window=2_000, trigger={{"messages": 20}}, archive="memory:")
result = compactor.compact({TALK!r}, thread_id="t")
print(result.outcome, len(result.messages), "8003" in compactor.recall("8003", thread_id="t").text)
assert not [name for name in sys.modules if name.startswith("conspectus_")]
"""
    done = alone.run(code)
    assert done.returncode == 0, done.stderr
    outcome, messages, found = done.stdout.split()
    assert (outcome, found) == ("compacted", "True")
    assert int(messages) < len(TALK)


def test_redaction_without_the_scanner_is_refused_and_never_passed_over(alone):
    code = """
from pathlib import Path
from conspectus import Compactor, ConspectusError, ContextGuard, SummarizationMiddleware
from conspectus.config import load_config
from conspectus.config.schema import redactor
Path("on.yaml").write_text(sys.argv[1])
asked = [
    lambda: Compactor(window=1_000, redact=True),
    lambda: Compactor(window=1_000, redact="secrets"),
    lambda: SummarizationMiddleware(None, redact=True),
    lambda: ContextGuard(window=1_000, redact=True),
    lambda: redactor(load_config("on.yaml").redact),
]
for one in asked:
    try:
        one()
    except ConspectusError as error:
        print(type(error).__name__, error)
    else:
        print("passed over")
"""
    done = alone.run(code, YAML)
    assert done.returncode == 0, done.stderr
    python, yaml = done.stdout.splitlines()[:4], done.stdout.splitlines()[4:]
    assert python == [f"PolicyError {NO_REDACTOR}"] * 4
    assert yaml[0].startswith("ConfigError ")
    assert "line 3" in "".join(yaml)
    assert NO_REDACTOR in "".join(yaml)
