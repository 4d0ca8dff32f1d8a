"""Modules out of folders that are no packages, such as the benchmarks, and whole programs."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]


@contextmanager
def folder_of_scripts(folder: str = "benchmarks") -> Iterator[None]:
    """Let the modules of a folder be imported by their names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / folder)
        yield


def run_python(*arguments: object, **options: Any) -> subprocess.CompletedProcess[Any]:
    """A program in Python, in a process of its own, and what it said."""
    options = {"capture_output": True, "text": True, "check": False, **options}
    return subprocess.run([sys.executable, *map(str, arguments)], **options)
