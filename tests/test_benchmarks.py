"""The benchmarks work, find what is wrong, and hold on small inputs.

They are scripts in a folder that is no package; the fixtures import them from there. Nothing here
is timed.
"""

import io
import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore
from rich.console import Console

from conspectus import CompactionResult, Compactor, TokenMeter
from conspectus.archive import Archive, Scope

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
SCOPE = Scope("local", "t")


@pytest.fixture(scope="module")
def thread(script: Callable[[str], ModuleType]) -> list[dict[str, Any]]:
    return script("made_thread").made_thread(120)


@pytest.fixture
def done(thread: list[dict[str, Any]]) -> tuple[CompactionResult, Archive]:
    """A compaction that kept its promises, with something clipped or evicted in it."""
    archive = Archive(InMemoryStore())
    result = Compactor(window=4_000, archive=archive).compact(thread, thread_id="t")
    assert result.outcome == "compacted"
    return result, archive


# The threads


@pytest.mark.parametrize("count", [4, 5, 50, 333])
def test_a_made_thread_is_valid_as_long_as_asked_and_always_the_same(script, count):
    make, promises = script("made_thread").made_thread, script("promises")
    thread = make(count)
    assert len(thread) == count
    assert thread == make(count)
    assert thread[-1]["role"] == "user"
    assert promises.orphans(thread) == promises.unanswered(thread) == []
    assert count < 50 or thread != make(count, seed=8)


# The judge


def test_the_judge_passes_a_result_that_is_sound(script, thread, done):
    verdict = script("promises").judge(thread, *done, SCOPE, 4_000)
    assert verdict.said == []


def _without_the_archive(result: CompactionResult, archive: Archive) -> CompactionResult:
    archive.forget("local", "t")
    return result


def _spoilt(change: Callable[[list[Any]], list[Any]]) -> Callable[..., CompactionResult]:
    return lambda result, archive: replace(result, messages=change(list(result.messages)))


def _without_a_call(messages: list[Any]) -> list[Any]:
    at = max(i for i, message in enumerate(messages) if message.get("tool_calls"))
    return [*messages[:at], *messages[at + 1 :]]


def _without_a_result(messages: list[Any]) -> list[Any]:
    at = max(i for i, message in enumerate(messages) if message["role"] == "tool")
    return [*messages[:at], *messages[at + 1 :]]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("found", "spoil"),
    [
        ("missing", _without_the_archive),
        ("broken", _spoilt(_without_a_call)),
        ("broken", _spoilt(_without_a_result)),
        ("missing", _spoilt(lambda m: m[:-1])),
        ("altered", _spoilt(lambda m: [*m[:-1], dict(m[-1], content="other")])),
        ("altered", _spoilt(lambda m: [*m[:-2], m[-1], m[-2]])),
        ("altered", _spoilt(lambda m: [*m, {"role": "user", "content": "from nowhere"}])),
        ("over", _spoilt(lambda m: [*m, {"role": "user", "content": "word " * 4_000}])),
        ("tokens", lambda result, archive: replace(result, tokens_after=1)),
        ("stuck", _spoilt(lambda m: [*m, {"role": "user", "content": "word " * 4_000}])),
    ],
)
def test_the_judge_finds_what_is_wrong(script, thread, done, found, spoil):
    result = spoil(*done)
    if found == "stuck":
        result = replace(result, outcome="stuck")
    verdict = script("promises").judge(thread, result, done[1], SCOPE, 4_000)
    assert any(found in line for line in verdict.said), verdict.said


def test_ids_are_matched_within_their_turn(script):
    call = {"id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}}
    asks: dict[str, Any] = {"role": "assistant", "content": "", "tool_calls": [call]}
    answer = {"role": "tool", "tool_call_id": "c", "content": "x"}
    user = {"role": "user", "content": "and now?"}
    promises = script("promises")
    assert promises.orphans([asks, answer, user, asks, answer]) == []
    assert promises.orphans([asks, user, answer]) == [2]
    assert promises.unanswered([asks, user, asks, answer]) == [(0, "c")]


def test_stuck_is_true_only_where_what_must_stay_is_too_large(script):
    large, small = "rule " * 3_000, "rule"
    least = script("promises").least_tokens
    for system, fits in ((large, False), (small, True)):
        thread = [{"role": "system", "content": system}, {"role": "user", "content": large}]
        assert (least(thread) <= 2_000) is fits


# The transcripts


def _hold(script: Callable[[str], ModuleType], data: Path, **more: Any) -> None:
    transcripts = script("transcripts")
    rows = list(transcripts.measure(data, **more))
    found = transcripts.totals(rows)
    assert found["wrong"] == []
    assert found["compactions"] > 0
    assert found["runs"] == sum(len(row.runs) for row in rows)
    screen = Console(file=io.StringIO(), width=126)
    transcripts.show(rows, screen)
    assert isinstance(screen.file, io.StringIO)
    assert f"{found['runs']:,} runs" in screen.file.getvalue()
    assert "0 messages missing" in screen.file.getvalue()


@pytest.mark.slow
def test_the_page_of_views_shows_what_is_written_today(script):
    views = script("views")
    page = views.PAGE.read_text(encoding="utf-8")
    assert views.written() == page, "run `make views WRITE=1`"
    assert page.count("### Before") == page.count("### After") == len(views.SESSIONS) == 3
    for name, session in views.SESSIONS.items():
        assert views.played(session.messages(), session.window).compactions >= 4, name


def test_readme_shows_lines_of_that_page(script):
    page = script("views").PAGE.read_text(encoding="utf-8").splitlines()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.partition("## What the model sees")[2].partition("\n## Choose")[0]
    before, after = re.findall(r"```text\n(.*?)\n```", section, re.DOTALL)
    lines = [line for line in after.splitlines() if line != "…"]
    assert len(lines) > 10
    assert [line for line in lines if line not in page] == []

    session = json.loads((EXAMPLES / "data" / "demo-transcript.json").read_text(encoding="utf-8"))
    said = {f"{one['id']} {one['role']}": one["content"] for one in session}
    for line in before.splitlines():
        speaker, _, start = line.removesuffix(" …").partition(": ")
        assert said[speaker].startswith(start), line


def test_the_figures_of_the_readers_are_those_of_their_answers():
    page = (ROOT / "docs" / "readers.md").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    draws = re.findall(r"^\| 35\d\d \| (\d+) \(\d+%\) \| [\d.]+ \| (\d+) ", page, re.MULTILINE)
    _, embedded, model = page.split("## All answers of the last draw")
    for part, figure in zip((embedded, model), draws[-1], strict=True):
        graded = re.findall(r"^\d+\. \(\w+, ([\w ]+)\)", part, re.MULTILINE)
        assert (len(graded), graded.count("right")) == (72, int(figure))
    sums = [sum(map(int, column)) for column in zip(*draws, strict=True)]
    assert f"{sums[0]} of {72 * len(draws)} questions (embedded) and {sums[1]}" in " ".join(
        readme.split()
    )
    evidence = " ".join((ROOT / "docs" / "evidence.md").read_text(encoding="utf-8").split())
    assert f"answered {sums[0]} of {72 * len(draws)} questions" in evidence
    assert f"as the model {sums[1]} of {72 * len(draws)}" in evidence


@pytest.mark.slow
def test_readme_says_how_large_that_view_is(script):
    views = script("views")
    session = views.SESSIONS["coding"].messages()
    result = views.played(session, views.SESSIONS["coding"].window).last
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"({len(session)} messages, {TokenMeter().messages(session):,} tokens" in readme
    left = len(session) - (len(result.messages) - 1)
    about = round(result.tokens_after, -2)
    assert f"After, about {about:,} tokens: system prompt, the newest" in readme
    assert f"newest {len(result.messages) - 2} messages" in readme
    assert re.search(rf"The other {left}\s+are archived", readme)
    assert result.archived


@pytest.mark.slow
def test_the_shipped_transcript_keeps_every_promise(script):
    _hold(script, EXAMPLES, windows=(2_000, 8_000))


@pytest.mark.slow
def test_some_of_the_transcripts_keep_every_promise(script):
    transcripts = script("transcripts")
    data = script("printed").transcripts_folder()
    if not transcripts.transcripts(data):
        pytest.skip("no transcripts: set CONSPECTUS_DATA to a folder of folders of *.json")
    _hold(script, data, windows=(2_000, 8_000), limit=2)


def test_a_message_that_comes_again_after_a_compaction_is_another_message(script, tmp_path):
    thread = script("made_thread").made_thread(80)
    said_again = {"role": "user", "content": "No files have been uploaded yet."}
    for at in (1, 45):
        while thread[at]["role"] != "user":  # between two turns, not within one
            at += 1
        thread.insert(at, dict(said_again))
    file = tmp_path / "archive.db"
    run = script("transcripts").one_run("again", thread, 2_000, file, held_back=45)
    assert run.verdict.said == []
    assert run.compactions == 2


# Summarisers that go wrong


@pytest.fixture(scope="module")
def runs(script: Callable[[str], ModuleType]) -> list[Any]:
    return script("summarizer_faults").measure(messages=60)


@pytest.mark.slow
def test_a_history_changes_only_by_a_summary_that_passed(script, runs):
    assert len(runs) == 2 * len(script("fault_cases").CASES)
    assert {(run.case, run.room): run.wrong for run in runs if run.wrong} == {}


@pytest.mark.slow
def test_each_fault_ends_as_it_should(runs):
    by_room = {room: {run.case: run for run in runs if run.room is room} for room in (True, False)}
    for room, cases in by_room.items():
        assert cases["a good summary"].by == "model"
        assert cases["a good summary"].calls == 1
        assert cases["busy twice (429), then good"].calls == 3
        assert cases["request too long (400)"].calls > 2
        for name in ("empty", "refuses", "error text as summary", "hangs", "fails always (500)"):
            assert cases[name].by == ("" if room else "embedded")
            assert cases[name].outcome == ("kept" if room else "compacted")


@pytest.mark.slow
def test_the_tables_of_faults_are_shown(script, runs):
    screen = Console(file=io.StringIO(), width=126)
    spoilt = replace(runs[0], wrong=["something"])
    script("summarizer_faults").show([*runs[1:], spoilt], screen)
    assert isinstance(screen.file, io.StringIO)
    shown = screen.file.getvalue()
    assert "BROKEN RULE: a good summary, with room: something" in shown
    assert all(run.case in shown for run in runs)


# Scale


@pytest.mark.slow
def test_every_size_is_measured_and_its_result_is_right(script):
    scale = script("scale")
    found = scale.measure(sizes=(200, 2_000), in_sqlite=200, most_runs=1)
    assert [(row["messages"], row["archive"]) for row in found["rows"]] == [
        (200, "memory"),
        (2_000, "memory"),
        (200, "sqlite"),
    ]
    for row in found["rows"]:
        assert row["wrong"] == []
        assert 0 < row["tokens_after"] <= scale.WINDOW < row["tokens_before"]
    screen = Console(file=io.StringIO(), width=126)
    scale.show(found, screen)
    assert isinstance(screen.file, io.StringIO)
    assert "From 200 to 2,000 messages" in screen.file.getvalue()


# Size of an archive


def test_an_archive_is_measured_with_histories_and_not_with_what_stands_beside_them(script):
    size = script("archive_size")
    [(name, messages)] = size.transcripts([size.EXAMPLES])
    assert name == "demo-transcript"
    row = size.measured(name, messages[:60])
    assert row.messages
    assert row.originals


# Imports


def test_an_import_is_timed_in_a_fresh_interpreter(script, tmp_path):
    timing = script("import_time")
    taken, heavy = timing.seconds("import conspectus", tmp_path, runs=1)
    assert taken > 0
    assert not heavy
    assert timing.seconds("import langgraph", tmp_path, runs=1)[1]
    with pytest.raises(subprocess.CalledProcessError):
        timing.seconds("raise SystemExit(3)", tmp_path, runs=1)


# Recall


@pytest.mark.slow
def test_every_question_is_timed_and_answered_within_its_tokens(script):
    speed = script("recall_speed")
    found = speed.measure(sizes=(150, 400))
    assert [row["messages"] for row in found["rows"]] == [150, 400]
    for row in found["rows"]:
        assert row["over"] == 0
        assert all(row[name] > 0 for name in ("median", "99th", "FTS5", "times", "first"))
    screen = Console(file=io.StringIO(), width=126)
    speed.show(found, screen)
    assert isinstance(screen.file, io.StringIO)
    assert "FTS5's insertion" in screen.file.getvalue()


# The bill


def long_talk() -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = [{"role": "system", "content": "You look at modules. " * 50}]
    for n in range(24):
        said.append({"role": "user", "content": f"Look at module_{n}.py. " + "Look well. " * 160})
        said.append({"role": "assistant", "content": f"module_{n}.py is sound. " * 8})
    return said


@pytest.mark.slow
def test_bills_are_of_the_same_session_under_every_system(script, tmp_path, monkeypatch):
    bill = script("bill")
    row = bill.one_row("talk", long_talk())
    totals = bill.figures([row])
    assert list(totals) == [*bill.POLICIES, bill.NONE]
    assert {data["requests"] for data in totals.values()} == {24}
    assert totals[bill.OURS]["over"] == totals[bill.OURS]["stopped"] == 0
    assert totals[bill.NONE]["over"] > 0
    assert totals[bill.EDITING]["summarizer_calls"] == totals[bill.NONE]["summarizer_calls"] == 0
    for name in (bill.OURS, bill.NOTES, bill.THEIRS):
        assert totals[name]["summarizer_calls"] > 0
        assert totals[name]["summarizer_money"]["gpt-5.4"] > 0
    summaries = [row.runs[name].compactions[0].summary for name in (bill.OURS, bill.THEIRS)]
    steps = [text.count("of the work is done") for text in summaries]
    assert steps[0] == steps[1] > 0  # of the same size
    screen = Console(file=io.StringIO(), width=220)
    bill.show([row], screen, True)
    assert "no compaction" in screen.file.getvalue()  # type: ignore[attr-defined]


def test_short_transcripts_are_left_out_of_the_bills(script):
    assert script("bill").one_row("short", long_talk()[:9]) is None


def test_a_bill_that_misses_its_targets_says_so(script):
    bill = script("bill")

    def data(money: float, over: int) -> dict[str, Any]:
        return {"money": dict.fromkeys(bill.PRICES, money), "over": over, "stopped": 0}

    good = dict.fromkeys(bill.ALL_OURS, data(8, 0))
    good |= {bill.THEIRS: data(10, 3), bill.EDITING: data(7, 9), bill.NONE: data(5, 9)}
    assert bill.wrong(good) == []
    assert len(bill.wrong({**good, bill.EDITING: data(7.0, 0)})) == len(bill.PRICES)
    for name in bill.ALL_OURS:
        assert len(bill.wrong({**good, name: data(8.6, 0)})) == len(bill.PRICES)
        assert "over the window" in bill.wrong({**good, name: data(8.0, 1)})[-1]
