"""The demo transcript keeps its promises, and the demo proves its case.

The transcript was recorded by an earlier version, on the source of that time. The demo is a script
under `examples`, which is no package; the fixture imports it from there.
"""

import io
import json
import re
from typing import Any

import pytest
from rich.console import Console

from conspectus.archive import Archive
from conspectus_lab.recording import Recording, broken_pairs
from scripts import ROOT, imported

SHIPPED = ROOT / "examples" / "data" / "demo-transcript.json"


demo_module = imported("demo", "examples")


@pytest.fixture
def transcript() -> list[dict[str, Any]]:
    return json.loads(SHIPPED.read_text(encoding="utf-8"))


def test_the_shipped_transcript_is_a_whole_long_session_that_names_no_machine(transcript):
    text = SHIPPED.read_text(encoding="utf-8")
    assert not re.search(r"/tmp|/root|/home|/usr/|/Users/|\b[A-Z]:\\\\", text)
    assert [message["id"] for message in transcript] == [
        f"m{n + 1}" for n in range(len(transcript))
    ]
    assert broken_pairs(Recording.of(transcript).messages) == []
    results = [len(m["content"]) for m in transcript if m["role"] == "tool"]
    assert len(transcript) >= 300
    assert sum(m["role"] == "user" for m in transcript) >= 10
    assert max(results) >= 40_000
    for part in ("Never edit files under tests/", "has moved to Monday", "文件路径必须写成"):
        assert part in text


@pytest.mark.slow
def test_the_demo_proves_its_case_and_notices_an_original_that_was_lost(demo_module, tmp_path):
    shown = io.StringIO()
    demo = demo_module.Demo(Console(file=shown, width=100, markup=False), str(tmp_path / "out"))
    assert demo.run() == 0, shown.getvalue()
    assert shown.getvalue().count("is recalled word for word") == 2

    demo.before[5]["content"] += " (changed)"
    with Archive.open(tmp_path / "out" / "archive.db") as archive:
        demo.verify(archive)
    assert any("originals are equal" in failure for failure in demo.failed)
