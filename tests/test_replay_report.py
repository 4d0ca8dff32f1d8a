"""The page of a replay: its numbers, its links, nothing from elsewhere, hostile text kept text."""

import base64
import hashlib
import re
import sys
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from conspectus.errors import InputError
from conspectus_lab.evaluate import evaluate
from conspectus_lab.replay import Compaction, PolicyRun, Replay
from conspectus_lab.report import evaluation_page, replay_page, templates
from conspectus_lab.report.line_chart import HEIGHT, LEFT, POINTED_AT, WIDTH, drawing
from conspectus_lab.report.pages import visible
from conspectus_lab.report.replay_data import Opened, percent, pieces, report_of
from made_replays import HOSTILE, compaction, hostile, large, original, small, steps
from made_transcripts import KEEP
from page_reader import Page


@pytest.fixture(scope="module")
def text() -> str:
    return replay_page([small(), hostile(), replace(small(), name="again.json")])


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def opened(replay: Replay, run: int) -> tuple[Opened, ...]:
    return report_of([replay]).transcripts[0].runs[run].compactions


def test_every_number_of_the_table_is_that_of_the_run(page):
    rows = {row[0]: row[1:] for row in Page(replay_page([small()])).rows}
    plain = [run["totals"] for run in small().to_json()["runs"]]
    assert rows["measure"] == ["Conspectus", "LangChain", "no compaction"]
    assert rows["model calls"] == ["12", "12", "9"]
    for name, key in (
        ("peak tokens of a request", "peak_tokens"),
        ("sum of tokens sent", "sent_tokens"),
        ("summariser calls", "summarizer_calls"),
        ("summariser tokens", "summarizer_tokens"),
        ("requests with a broken pair", "broken"),
        ("requests over the window", "over"),
        ("messages missing", "missing"),
    ):
        assert rows[name] == [f"{totals[key]:,}" for totals in plain]
    assert rows["evicted text that was read"] == ["100 %", "51.1 %", "–"]
    assert plain[1]["read_share"] == pytest.approx(0.511, abs=0.001)


def test_what_failed_stands_out():
    table = report_of([small()]).transcripts[0].table
    assert table.columns == ("measure", "Conspectus", "LangChain", "no compaction")
    names = [row[0] for row in table.rows]
    assert {(names[row], column) for row, column in table.bad} == {
        ("evicted text that was read", 2),
        ("requests with a broken pair", 2),
        ("requests over the window", 2),
        ("requests over the window", 3),
        ("messages missing", 2),
    }
    found = Page(replay_page([small()]))
    assert sum(tag == "td" and a.get("class") == "bad" for tag, a in found.tags) == len(table.bad)


def test_our_policy_stands_first_and_none_last_however_they_came():
    shuffled = replace(small(), runs=small().runs[::-1])
    assert report_of([shuffled]) == report_of([small()])
    assert report_of([shuffled, shuffled]) == report_of([small(), small()])


def test_all_transcripts_together_are_summed_and_listed():
    other = replace(small(), name="other", runs=small().runs[:2])
    report = report_of([small(), other])
    rows = {row[0]: row[1:] for row in report.total.rows}
    assert rows["model calls"] == ("24", "24", "9")
    assert rows["peak tokens of a request"] == ("6,300", "8,400", "12,500")
    assert rows["evicted text that was read"] == ("100 %", "51.1 %", "–")
    assert rows["messages missing"] == ("0", "6", "0")
    assert report.overview.rows[1] == ("other", "31", "15,400", "8,000", "6,300", "8,400", "–")
    assert report.overview.bad == {(0, 5), (0, 6), (1, 5)}
    assert report_of([small()]).total is None


def test_the_chart_has_every_request_and_every_compaction(page):
    svg = [a for tag, a in page.tags if tag == "svg" and a.get("class") == "plot"]
    assert len(svg) == 5  # two of the three transcripts need a second one for their whole height
    lines = [a for tag, a in page.tags if tag == "polyline"]
    for line, run in zip(lines, small().runs[::-1], strict=False):
        assert len(str(line["points"]).split()) == len(run.steps)
    assert "Requests too high to show: 1 of no compaction." in page.text
    links = [str(a["href"]) for tag, a in page.tags if tag == "a" and "aria-label" in a]
    assert links[:4] == ["#t1-p2-c1", "#t1-p2-c2", "#t1-p1-c1", "#t1-p1-c2"]
    assert "Call 11: Conspectus 3,900 · LangChain 1,500 · no compaction – tokens" in page.text


def test_lines_run_where_their_numbers_are_and_the_scale_is_round():
    told = report_of([small()]).transcripts[0]
    drawn, whole = drawing(told), drawing(told, whole=True)
    assert [tick.label for tick in drawn.up] == ["0", "2,000", "4,000", "6,000", "8,000", "10,000"]
    assert [tick.label for tick in drawn.across] == ["2", "4", "6", "8", "10", "12"]
    floor, at_8_000 = drawn.up[0].at, drawn.up[4].at
    assert drawn.window == at_8_000
    ours = [tuple(map(float, one.split(","))) for one in drawn.lines[-1].path.split()]
    assert ours[1][1] == pytest.approx(floor - 1_800 / 8_000 * (floor - at_8_000), abs=0.1)
    gaps = [after[0] - before[0] for before, after in pairwise(ours)]
    assert gaps == pytest.approx([drawn.step] * 11, abs=0.11)
    assert min(float(one.split(",")[1]) for one in drawn.lines[0].path.split()) < 0
    for line in whole.lines:
        for one in line.path.split():
            x, y = map(float, one.split(","))
            assert LEFT < x < WIDTH
            assert 0 < y < HEIGHT


def test_the_chart_is_told_in_words(page):
    named = {a["id"] for tag, a in page.tags if tag in ("title", "desc") and "id" in a}
    for svg in (a for tag, a in page.tags if tag == "svg" and a.get("class") == "plot"):
        assert {svg["aria-labelledby"], svg["aria-describedby"]} <= named
    assert (
        "The window holds 8,000 tokens. Conspectus: 12 calls, the largest of 6,300 tokens, "
        "compactions before 2 of them." in page.text
    )


@pytest.mark.parametrize("tokens", [[], [0], [1], [7, 10**9]])
def test_any_sizes_make_a_chart(tokens):
    run = PolicyRun("conspectus", "Conspectus", steps(tokens, ()), (), 0)
    found = Page(replay_page([replace(small(), runs=(run,))]))
    assert found.open == []
    empty = Page(replay_page([replace(small(), window=1, runs=())]))
    assert empty.open == []


def test_calls_too_many_to_point_at_do_not_swell_the_page():
    sizes = [100] * (POINTED_AT + 1)
    run = PolicyRun("conspectus", "Conspectus", steps(sizes, ()), (), 0)
    told = report_of([replace(small(), runs=(run,))]).transcripts[0]
    assert drawing(told).calls == ()
    fewer = replace(run, steps=steps(sizes[1:], ()))
    told = report_of([replace(small(), runs=(fewer,))]).transcripts[0]
    assert len(drawing(told).calls) == POINTED_AT


def test_compactions_of_one_call_share_a_mark_and_a_run_may_stop_at_one():
    left = (original(1, "a"), original(2, "b"))
    made = tuple(compaction(step, left[:1], "s") for step in (2, 2, 9))
    run = PolicyRun("conspectus", "Conspectus", steps([5, 6], {2}), made, 0, "stuck")
    (line,) = drawing(report_of([replace(small(), runs=(run,))]).transcripts[0]).lines
    assert [point.says for point in line.points] == [
        "Conspectus: 2 compactions before call 2, 6 tokens",
        "Conspectus: a compaction before call 9, 2,104 tokens",
    ]


def test_a_compaction_says_what_it_was(page):
    one = small().runs[1].compactions[0]
    for said in (
        "1. before call 7",
        "6,512 → 2,104 tokens · 8 messages left the view · 62.0 % read",
        one.cause,
        f"{one.characters:,} characters in 8 messages",
        "5,230",
        "They read rows.",
    ):
        assert said in page.text
    assert "no compaction: nothing left the view" in page.text
    assert "no compaction stopped early: call 10 would have been refused" in page.text


def test_anchors_are_unique_and_every_link_has_its_end(page):
    anchors = [a["id"] for _, a in page.tags if "id" in a]
    assert len(anchors) == len(set(anchors))
    links = [str(a["href"]) for tag, a in page.tags if tag == "a"]
    assert links
    assert {link.removeprefix("#") for link in links} <= set(anchors)
    assert {a["data-whole"] for _, a in page.tags if "data-whole" in a} <= set(anchors)


def test_citations_lead_to_originals_that_have_left_and_to_no_others():
    first, second = opened(small(), 0)
    where = {left.anchor: left.original.cite for one in (first, second) for left in one.left}
    links = [piece for piece in first.summary if piece.kind == "link"]
    assert [piece.text for piece in links] == ["m1", "m2", "m8"]
    links = [piece for piece in second.summary if piece.kind == "link"]
    assert [piece.text for piece in links] == ["m1", "m2", "m8", "m9", "m10", "m18"]
    assert all(where[piece.anchor] == piece.text for piece in links)
    early = replace(small().runs[0].compactions[0], summary="It will leave later. [m9]")
    run = replace(small().runs[0], compactions=(early, small().runs[0].compactions[1]))
    assert [p.kind for p in opened(replace(small(), runs=(run,)), 0)[0].summary] == ["text"]


def test_a_name_that_was_used_again_means_the_later_message():
    made = (
        compaction(1, (original(1, "old"),), "[m1]"),
        compaction(2, (original(1, "new"),), "[m1]"),
    )
    run = PolicyRun("conspectus", "Conspectus", steps([1, 2], {1, 2}), made, 0)
    ends = [
        next(piece.anchor for piece in one.summary if piece.kind == "link")
        for one in opened(replace(small(), runs=(run,)), 0)
    ]
    assert ends == ["t1-p1-c1-m1", "t1-p1-c2-m1"]


def test_a_message_that_left_twice_in_a_run_is_cited_where_its_text_is():
    made = tuple(compaction(step, (original(1, "same"),), "[m1]") for step in (1, 2))
    run = PolicyRun("conspectus", "Conspectus", steps([1, 2], {1, 2}), made, 0)
    _, again = opened(replace(small(), runs=(run,)), 0)
    assert again.left[0].whole == again.summary[1].anchor == "t1-p1-c1-m1"


def test_a_text_stands_on_the_page_once_and_under_our_policy():
    replay = large(60, 10_000)
    text = replay_page([replay])
    whole = sum(len(one.text) for c in replay.runs[0].compactions for one in c.left)
    assert len(text) < 50_000 + 1.7 * whole
    for left in (left for one in opened(replay, 0) for left in one.left):
        assert left.whole == left.anchor
    for left in (left for one in opened(replay, 1) for left in one.left):
        assert left.whole == left.anchor.replace("-p2-", "-p1-")
    assert text.count(str(escape(replay.runs[0].compactions[0].left[0].text))) == 1


def test_every_original_is_there_whole(page):
    for run in small().runs:
        for one in run.compactions:
            for left in one.left:
                assert visible(left.text) in page.text


def test_the_page_is_whole_and_loads_nothing(text, page):
    assert page.open == []
    names = {tag for tag, _ in page.tags}
    assert not names & {"img", "link", "iframe", "object", "embed", "image", "use", "base", "form"}
    for _, attributes in page.tags:
        assert not {"src", "srcset", "xlink:href", "action", "style"} & attributes.keys()
        assert not any(name.startswith("on") for name in attributes)
        assert str(attributes.get("href", "#")).startswith("#")
    assert not re.search(r"url\(|@import|//", "".join(page.kept["style"]))
    assert "://" not in text


def test_the_browser_runs_our_program_only(page):
    (program,) = page.kept["script"]
    assert [a for tag, a in page.tags if tag == "script"] == [{}]
    policy = next(a["content"] for _, a in page.tags if "http-equiv" in a)
    digest = base64.b64encode(hashlib.sha256(program.encode()).digest()).decode()
    assert str(policy).startswith("default-src 'none'; ")
    assert str(policy).endswith(f"; script-src 'sha256-{digest}'")


def test_hostile_text_stays_text(text, page):
    assert {"img", "style"} & {tag for tag, _ in page.tags} == {"style"}
    assert len(page.kept["style"]) == 1
    assert len(page.kept["script"]) == 1
    assert HOSTILE.partition("\u202e")[0] in page.text
    assert "\\u202egnp.exe \u2028 \\x00\\x1b[31m \\ud800" in page.text
    assert text.encode()  # no half characters
    assert "\x00" not in text
    assert "\u202e" not in text


TEMPLATE = templates().from_string("<p>{{ text }}</p>")


@given(st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs"])) | st.text("<>&\"'/!-#xs;\n"))
def test_any_text_comes_back_from_the_page_as_it_was(text):
    read = Page(TEMPLATE.render(text=text))
    assert [tag for tag, _ in read.tags] == ["p"]
    assert read.text == text


@given(st.text("abm12 ,;[]#\n"))
def test_the_pieces_of_a_summary_are_its_text(summary):
    found = list(pieces(summary, {"m1": "x", "m2": "y", "a": "z"}))
    assert "".join(piece.text for piece in found) == summary
    assert all(piece.text in ("m1", "m2", "a") for piece in found if piece.kind == "link")


def test_citations_are_found_in_their_forms_and_headings_told_apart():
    found = list(
        pieces("## Done [m1]\n# Next\n[m2,m1; m2] m1 (m2) [m1 m3]", {"m1": "x", "m2": "y"})
    )
    assert [(piece.kind, piece.text) for piece in found if piece.kind != "text"] == [
        ("link", "m1"),
        ("heading", "# Next"),
        ("link", "m2"),
        ("link", "m1"),
        ("link", "m2"),
        ("link", "m1"),
    ]


def test_a_share_is_never_rounded_up_to_all():
    assert percent(0.999_999) == "99.9 %"
    assert percent(1.0) == "100 %"
    assert percent(0.0) == "0.0 %"


def test_a_compaction_in_which_nothing_left_is_shown_too():
    nothing = Compaction(1, "cause", 5, 4, (), 0, 0, "", 0, 0, "")
    run = PolicyRun("x", "Other", steps([5], {1}), (nothing,), 0)
    found = Page(replay_page([replace(small(), runs=(run, replace(run, policy="y", title="Z")))]))
    assert found.open == []
    assert "5 → 4 tokens · nothing left the view" in found.text


def test_equal_replays_give_equal_pages(text):
    assert text == replay_page([small(), hostile(), replace(small(), name="again.json")])


def test_paper_opens_the_compactions(page):
    (style,) = page.kept["style"]
    paper = style.partition("@media print{")[2]
    assert ".few .compaction::details-content{content-visibility:visible" in paper
    assert ("main", {"class": "few"}) in page.tags


def test_paper_leaves_many_compactions_as_they_are_and_says_so():
    made = tuple(compaction(step, (original(step, "a"),), "s") for step in range(1, 202))
    run = PolicyRun("conspectus", "Conspectus", steps([5] * 201, range(1, 202)), made, 0)
    found = Page(replay_page([replace(small(), runs=(run,))]))
    assert ("main", {}) in found.tags
    assert "those are shown that were open on the screen" in found.text


def test_no_replay_is_still_a_page():
    found = Page(replay_page([]))
    assert found.open == []
    assert "No transcript was replayed." in found.text


def test_without_the_extra_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(InputError, match=r"pip install .*\[report\]'"):
        replay_page([small()])
    with pytest.raises(InputError, match=r"pip install .*\[report\]'"):
        evaluation_page(evaluate([], [], keep=KEEP))


def test_the_page_is_small(text):
    assert len(text.encode()) < 120_000
