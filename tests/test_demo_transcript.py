"""The demo transcript keeps its promises, and the demo proves its case.

The transcript was recorded by an earlier version, on the source of that time. The demo is a script
under `examples`, which is no package; the fixture imports it from there.
"""

import io
import json
from typing import Any

import pytest
from rich.console import Console

from conspectus.archive import Archive
from demo_checks import problems
from scripts import ROOT, imported

SHIPPED = ROOT / "examples" / "data" / "demo-transcript.json"


demo_module = imported("demo", "examples")


@pytest.fixture
def transcript() -> list[dict[str, Any]]:
    return json.loads(SHIPPED.read_text(encoding="utf-8"))


def test_the_shipped_transcript_keeps_its_promises():
    assert problems(SHIPPED) == []


def _without_a_result(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    last = max(at for at, message in enumerate(messages) if message["role"] == "tool")
    return [message for at, message in enumerate(messages) if at != last]


def _with_a_place(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**messages[0], "content": "see /home/somebody/file"}, *messages[1:]]


def _without_the_raise(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    gone = "up to 60 lines per function are fine"
    return [{**m, "content": m["content"].replace(gone, "")} for m in messages]


def _short(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return messages[:299]


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (_without_a_result, "comes before the answers to"),
        (_with_a_place, "names places of a machine: /home"),
        (_without_the_raise, "the user states no raised cap"),
        (_short, "messages: 299, fewer than 300"),
    ],
)
def test_a_transcript_that_breaks_a_promise_is_found_out(transcript, tmp_path, damage, told):
    file = tmp_path / "damaged.json"
    file.write_text(json.dumps(damage(transcript), ensure_ascii=False), encoding="utf-8")
    assert any(told in problem for problem in problems(file))


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
