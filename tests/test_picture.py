"""The picture of the README shows what the demo does today."""

from pathlib import Path

import pytest

from scripts import run_python

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
def test_the_picture_of_the_readme_is_the_demos(tmp_path):
    drawn = tmp_path / "picture.svg"
    finished = run_python(str(ROOT / "examples" / "picture.py"), str(drawn))
    assert finished.returncode == 0, finished.stderr
    assert drawn.read_text("utf-8") == (ROOT / "docs" / "before_after.svg").read_text("utf-8"), (
        "run: python examples/picture.py docs/before_after.svg"
    )
