"""The page of a measurement: its numbers, nothing from elsewhere, and hostile names kept text."""

import re

import pytest

from conspectus_lab.evaluate import (
    ConspectusSystem,
    Evaluation,
    LangChainSystem,
    TailSystem,
    Transcript,
    evaluate,
    questions_of,
)
from conspectus_lab.report import evaluation_page, templates
from conspectus_lab.report.evaluation import Bar, Chart, Group
from conspectus_lab.report.tables import tables_of
from made_transcripts import CODE, KEEP, PATH, QUESTIONS, TALK, Notes, agent
from page_reader import Page

HOSTILE = "</title><script>alert(1)</script><img src=x onerror=alert(2)>\"'&.json"


@pytest.fixture(scope="module")
def found() -> Evaluation:
    transcripts = [
        Transcript.of(HOSTILE, agent(told=True)),
        Transcript.of("talk", TALK, questions_of(QUESTIONS, "talk")),
        Transcript.of("small<b>", [{"role": "user", "content": "hi"}]),
    ]
    systems = [ConspectusSystem("<b>ours</b>", keep=KEEP), LangChainSystem(KEEP), TailSystem(KEEP)]
    return evaluate(
        transcripts,
        systems,
        keep=KEEP,
        summary_tokens=[128, 256],
        minimum_tokens=500,
        rounds=2,
        recall_tokens=64,
    )


@pytest.fixture(scope="module")
def page(found: Evaluation) -> Page:
    return Page(evaluation_page(found))


@pytest.mark.slow
def test_the_page_is_whole_and_loads_nothing(found, page):
    assert page.open == []
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "img", "link", "iframe", "object", "embed", "a", "image", "use"}
    for _, attributes in page.tags:
        assert not {"src", "href", "xlink:href", "action", "style"} & attributes.keys()
        assert not any(name.startswith("on") for name in attributes)
    text = evaluation_page(found)
    assert "//" not in re.sub(r"<title>.*?</title>", "", text)
    assert "url(" not in text
    assert "@import" not in text
    policy = next(a for t, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in str(policy["content"])


def test_hostile_names_stay_text(found, page):
    text = evaluation_page(found)
    assert "<script" not in text
    assert "onerror=alert" not in text.replace("&lt;img src=x onerror=alert(2)&gt;", "")
    names = [row[0] for row in page.rows]
    assert HOSTILE in names
    assert "small<b>" in names
    assert "<b>ours</b> 256" in names
    assert "b" not in {tag for tag, _ in page.tags}


def test_every_number_of_every_table_is_on_the_page(found, page):
    tables = tables_of(found)
    assert [table.title for table in tables] == [
        "Future use",
        "Quoted, by kind of identifier",
        "Quoted, by distance in messages",
        "Answers",
        "Answers beside a plain search",
        "Answers, by category of question",
        "2 rounds of compaction of one thread",
        "What became of what left the view",
        "What summarising took",
        "The first system beside the others",
    ]
    for table in tables:
        assert all(list(row) in page.rows for row in (table.columns, *table.rows))


def test_the_numbers_are_those_of_the_measurement(found, page):
    result = found.system("<b>ours</b>", 256)
    use, answers, rounds = result.future_use, result.answers, result.rounds
    rows = [row for row in page.rows if row[0] == result.label]
    assert rows[0] == [
        result.label,
        f"{use.quoted.value:.3f}",
        "–",
        f"{use.far.value:.3f}",
        "0",
        "0",
        f"{int(use.contexts.tokens + 0.5):,}",
        "1",
        "3",
    ]
    path = use.by_kind["path"].share
    assert rows[1][1 + list(use.by_kind).index("path")] == f"{path:.3f}"
    assert rows[3][1] == f"{answers.answers.value:.3f}"
    assert rows[4][3] == f"{answers.gain.value:+.3f}"
    assert rows[6][1:3] == [f"{rounds.one:.3f}", f"{rounds.many:.3f}"]


def test_bars_are_as_long_as_their_numbers(found, page):
    result = found.system("<b>ours</b>", 256)
    assert result.future_use is not None
    rects = [a for tag, a in page.tags if tag == "rect"]
    full = float(str(rects[0]["width"]))
    widths = [float(str(a["width"])) for a in rects if a["class"] != "back"]
    values = [r.future_use.quoted.value for r in found.systems if r.future_use is not None]
    assert widths[: len(values)] == [pytest.approx(v * full, abs=0.06) for v in values]
    assert max(values) > 0


def test_a_transcript_that_was_left_out_says_why(page):
    row = next(row for row in page.rows if row[0] == "small<b>")
    assert row[-1] == "it has fewer than 500 tokens"


def test_a_page_without_figures_is_still_a_page():
    nothing = evaluate([], [], keep=KEEP)
    page = Page(evaluation_page(nothing))
    assert page.open == []
    assert "svg" not in {tag for tag, _ in page.tags}
    assert tables_of(nothing) == []


def measured(notes: str | None) -> Evaluation:
    few = {"keep": KEEP, "summary_tokens": [64], "minimum_tokens": 0}
    return evaluate([Transcript.of("a", agent())], [Notes(notes)], **few)


def test_far_and_quoted_are_not_mixed_up():
    (row,) = tables_of(measured(f"{PATH} {CODE}"))[0].rows
    assert row[:4] == ("notes 64", "0.000", "–", "1.000")


def test_a_failure_stands_out():
    page = Page(evaluation_page(measured(None)))
    assert [a for tag, a in page.tags if tag == "td" and a.get("class") == "bad"]


def drawn(title: str, groups: list[Group], most: float) -> Page:
    bars = templates().get_template("bar_chart.html").module.bars
    return Page(str(bars(Chart(title, tuple(groups), most))))


def test_a_chart_keeps_bars_within_its_width_whatever_the_numbers():
    bars = (Bar("a", -1.0, "-1"), Bar("b", 5.0, "5"), Bar("<c>", 0.5, "0.5", 99, 0.2, 0.9))
    chart = drawn('a "title"', [Group("g & h", bars)], 1.0)
    widths = [float(str(a["width"])) for t, a in chart.tags if t == "rect" and a["class"] != "back"]
    assert widths[0] == 0.0
    assert widths[2] == widths[1] / 2
    assert chart.tags[0][1]["aria-label"] == 'a "title"'
    assert "g & h" in chart.text
    assert drawn("t", [], 0.0).open == []
