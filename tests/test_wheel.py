"""What is published works by itself: the wheel, installed alone, runs the README's examples."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from test_docs import ROOT, blocks_of

UV = Path(sys.executable).with_name("uv")


def carried_out(*command: str | Path, folder: Path) -> str:
    """What a command prints, run without this project's own folders in its path."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=clean, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_alone_runs_the_examples_of_the_readme(tmp_path):
    carried_out(UV, "build", "--wheel", "--out-dir", tmp_path / "dist", ROOT, folder=tmp_path)
    [wheel] = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
    for package in (
        "conspectus", "conspectus_lab", "conspectus_mcp", "conspectus_sdk", "conspectus_secrets",
    ):  # fmt: skip
        assert f"{package}/py.typed" in names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/"))]

    fresh = tmp_path / "fresh"
    carried_out(UV, "venv", "--python", sys.executable, fresh, folder=tmp_path)
    python = fresh / ("Scripts" if os.name == "nt" else "bin") / "python"
    carried_out(
        UV, "pip", "install", "--python", python, "--constraint", ROOT / "requirements.lock",
        f"{wheel}[deepagents]", folder=tmp_path,
    )  # fmt: skip
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = [block.text for block in blocks_of("README.md", text) if block.language == "python"]
    assert len(blocks) >= 2
    (tmp_path / "readme.py").write_text("\n\n".join(blocks), encoding="utf-8")
    carried_out(python, tmp_path / "readme.py", folder=tmp_path)
    place = carried_out(
        python, "-c", "import conspectus; print(conspectus.__file__)", folder=tmp_path
    )
    assert Path(place.strip()).is_relative_to(fresh)
    shown = carried_out(python.with_name("conspectus"), "--version", folder=tmp_path)
    assert shown.startswith("conspectus ")
