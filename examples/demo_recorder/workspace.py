"""A temporary copy of this project's lower layers, and the tools that an agent has in it.

One module of the copy is not the project's any more: `identifiers.py`, as it was, which two of the
tasks change.

The tools really do what they say: they read and change files of the copy and run a real pytest and
a real Python in it. Only their output is made the same everywhere: paths become relative, timings
and addresses of objects go.
"""

from __future__ import annotations

import os
import re
import shutil
import site
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType

from demo_recorder.seeds import SEEDS

ROOT = Path(__file__).resolve().parents[2]
LAYERS = (
    "errors.py",
    "_drive.py",
    "_langchain.py",
    "_lazy.py",
    "events",
    "tokens",
    "_core",
    "messages",
    "ledger",
)
"""What is copied: the layers that import nothing above them, so that the copy runs by itself."""

LONGEST = 60_000
"""Characters that one tool result may have."""

PATIENCE = 120
"""Seconds that a test run or a script may take."""


class Workspace:
    """The copy and its tools; a context manager that removes the copy at its end.

    Every tool takes texts and numbers and returns text. What goes wrong is told in the text, which
    then begins with `error:`, as an agent has to read it.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="demo")
        self.root = Path(self._folder.name).resolve()
        self.tools: Mapping[str, Callable[..., str]] = {
            "list_files": self.list_files,
            "search": self.search,
            "read_file": self.read_file,
            "edit_file": self.edit_file,
            "run_tests": self.run_tests,
            "run_python": self.run_python,
        }

    def __enter__(self) -> Workspace:
        package = self.root / "src" / "conspectus"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text('"""The lower layers."""\n', encoding="utf-8")
        for name in LAYERS:
            source = ROOT / "src" / "conspectus" / name
            if source.is_dir():
                skipped = shutil.ignore_patterns("__pycache__", ".*")
                shutil.copytree(source, package / name, ignore=skipped)
            else:
                shutil.copy(source, package / name)
        ledger = package / "ledger"
        shutil.copy(Path(__file__).with_name("identifiers.py"), ledger)
        with (ledger / "__init__.py").open("a", encoding="utf-8") as file:
            file.write("\nfrom conspectus.ledger.identifiers import identifiers\n")
        shutil.copy(ROOT / "pyproject.toml", self.root)
        for path, text in SEEDS.items():
            self._write(self.root / path, text)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._folder.cleanup()

    def list_files(self, path: str) -> str:
        """Files below a folder, with their length in lines."""
        files = self._files(path)
        if not files:
            return f"error: there are no files under {path}"
        lines = (len(f.read_text(encoding="utf-8").splitlines()) for f in files)
        return "\n".join(f"{self._name(f)}  {count}" for f, count in zip(files, lines, strict=True))

    def search(self, pattern: str, path: str) -> str:
        """Lines that match a regular expression, as `path:line: text`."""
        try:
            wanted = re.compile(pattern)
        except re.error as problem:
            return f"error: invalid regular expression: {problem}"
        hits = [
            f"{self._name(file)}:{number}: {line}"
            for file in self._files(path)
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
            if wanted.search(line)
        ]
        return self._shown("\n".join(hits) or f"no line under {path} matches {pattern}")

    def read_file(self, path: str, start: int, end: int) -> str:
        """Lines `start` to `end` of a file, numbered."""
        file = self.root / path
        if not file.is_file():
            return f"error: there is no file {path}"
        lines = file.read_text(encoding="utf-8").splitlines()
        first = max(1, start)
        part = lines[first - 1 : end]
        if not part:
            return f"error: {path} has {len(lines)} lines; nothing from line {start} on"
        return self._shown("\n".join(f"{n:>4} {line}" for n, line in enumerate(part, first)))

    def edit_file(self, path: str, old: str, new: str) -> str:
        """Replace a text that occurs once; an empty `old` makes a new file."""
        file = self.root / path
        if not old:
            if file.exists():
                return f"error: {path} exists; say which text of it is to be replaced"
            self._write(file, new)
            return f"created {path}, {len(new.splitlines())} lines"
        if not file.is_file():
            return f"error: there is no file {path}"
        text = file.read_text(encoding="utf-8")
        count = text.count(old)
        if count == 0:
            return f"error: old text not found in {path}; read the file and copy it exactly"
        if count > 1:
            return f"error: old text occurs {count} times in {path}; give more of what surrounds it"
        at = text[: text.index(old)].count("\n") + 1
        self._write(file, text.replace(old, new))
        return f"edited {path} at line {at}: {len(old)} characters became {len(new)}"

    def run_tests(self, path_or_expr: str) -> str:
        """Run pytest on a path, or on the tests whose names match an expression."""
        path = "/" in path_or_expr or path_or_expr.endswith(".py") or path_or_expr == "tests"
        chosen = [path_or_expr] if path else ["tests", "-k", path_or_expr]
        options = "-o addopts= -q --tb=short --no-header --color=no -ra -p no:cacheprovider"
        return self._run(["-m", "pytest", *options.split(), *chosen])

    def run_python(self, code: str) -> str:
        """Run a script in the copy; gives what it prints."""
        return self._run(["-c", code])

    def _run(self, arguments: list[str]) -> str:
        dropped = ("PYTEST_", "PYTHON", "COV_")
        env = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
        env |= {
            "COLUMNS": "100",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            "PYTHONIOENCODING": "utf-8",
            "PYTHONPATH": str(self.root / "src"),
        }
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env=env,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE,
            check=False,
        )
        parts = [part.strip("\n") for part in (done.stdout, done.stderr) if part.strip()]
        return self._shown(self._neutral("\n".join(parts)) or "(no output)")

    def _neutral(self, text: str) -> str:
        """The same text on every machine and in every run."""
        for place in (str(self.root), self._folder.name):
            text = text.replace(place + os.sep, "").replace(place, ".")
        for place in {*site.getsitepackages(), sysconfig.get_path("purelib")}:
            text = text.replace(place, "site-packages")
        text = text.replace(str(Path(sysconfig.get_path("stdlib"))), "python")
        text = re.sub(r" in \d+\.\d+s\b(?: \([\d:]+\))?", "", text)
        return re.sub(r"\b0x[0-9a-f]{6,}\b", "0x...", text)

    def _files(self, path: str) -> list[Path]:
        start = self.root / path
        if start.is_file():
            return [start]
        found = (f for f in start.rglob("*") if f.is_file() and "__pycache__" not in f.parts)
        return sorted(found, key=self._name)

    def _name(self, file: Path) -> str:
        return file.relative_to(self.root).as_posix()

    def _write(self, file: Path, text: str) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def _shown(self, text: str) -> str:
        if len(text) <= LONGEST:
            return text
        kept = text[:LONGEST].rpartition("\n")[0]
        return f"{kept}\n({text.count(chr(10)) - kept.count(chr(10))} more lines not shown)"
