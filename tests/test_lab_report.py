"""The page of a replay: whole, escaped, and the figures of the data."""

import re
from xml.etree import ElementTree

import pytest

from conspectus.errors import InputError
from conspectus_lab.replay import Compaction, Lost, Original, PolicyRun, Replay, Step
from conspectus_lab.report import replay_page

HOSTILE = (
    "</pre></details></script><script>document.title='owned'</script>"
    '<img src=x onerror="alert(1)"><style>body{display:none}</style>'
    "\u202egnp.exe \u2028 \x00\x1b[31m \ud800"
)


def a_replay(text: str = "plain") -> Replay:
    left = (
        Original("i1", "m1", "user", "", f"The rule. {text}", 5, read=10),
        Original("i2", "m2", "tool", text, "rows", 4),
    )
    done = Compaction(2, "window", 1_900, 700, left, f"# Notes\n- kept [m1] {text}")
    steps = (
        Step(1, 900, 3, False, 0, 0),
        Step(2, 700, 2, True, 1, 0, needed=3, quoted=2),
        Step(3, 2_500, 4, False, 0, 500),
    )
    lost = (Lost("Which key?", ("K-77", text), True),)
    run = PolicyRun(
        "conspectus",
        "Conspectus",
        steps,
        (done,),
        7,
        f"stopped {text}",
        asked=2,
        lost=lost,
        ours=True,
    )
    return Replay(f"session {text}", "d", 5, 9_000, 2_000, "t", "k", "s", (run,))


def loads_nothing(page: str) -> bool:
    return not re.search(r"<(script|link|img|iframe|object|form)|\b(src|href|on\w+)=.?http", page)


def test_a_page_holds_the_figures_the_chart_and_every_original_whole():
    page = replay_page([a_replay()])
    for text in ("9,000 tokens", "1,900 → 700 tokens", "The rule. plain", "# Notes", "stopped"):
        assert text in page
    for figure in ("2,500", "4,100"):  # the peak, and all that was sent
        assert f"<td>{figure}</td>" in page
    failures = re.findall(r'<td class="bad">([^<]*)</td>', page)
    # Read, broken, over, missing; the same figures are in the table of what survives.
    assert failures == 2 * ["52.6%", "1", "1", "7"]
    for text in ("66.6%", "50.0%", "100%", "Which key?", "K-77"):  # quoted, in view, recalled
        assert text in page
    drawn = ElementTree.fromstring(re.findall(r"<svg.*?</svg>", page, re.DOTALL)[0])
    points = [p.split(",") for p in drawn.findall("polyline")[0].attrib["points"].split()]
    assert [float(x) for x, _ in points] == [300.0, 600.0, 900.0]
    heights = [float(y) for _, y in points]
    assert heights[2] == 0.0
    assert heights[1] > heights[0] > float(drawn.findall("line")[0].attrib["y1"])
    assert len(drawn.findall("circle")) == 1


def test_hostile_text_stays_text_and_the_page_loads_nothing():
    page = replay_page([a_replay(HOSTILE)])
    assert page.startswith("<!doctype html>")
    assert loads_nothing(page)
    assert "&lt;script&gt;document.title" in page
    assert not re.search(r"[\x00\x1b]", page)
    page.encode("utf-8")
    assert "default-src 'none'" in page


def test_without_the_extra_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    with pytest.raises(InputError, match=r"report"):
        replay_page([])
