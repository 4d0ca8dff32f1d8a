"""`conspectus undo`, `show` and `blame`."""

from pathlib import Path
from typing import Any

import pytest

from cli_support import error_line, read_json, run
from compactor_support import SCOPE, Scripted
from conspectus import Compactor
from conspectus.archive import Archive
from conspectus.messages import summary_text
from histories import assistant, talk, tool_result, user


@pytest.fixture
def archive(tmp_path: Path, own_data_folder: None) -> str:
    """An archive with the thread `t`, which was compacted twice."""
    path = str(tmp_path / "a.db")
    with Compactor(keep=("messages", 4), archive=path) as compactor:
        view = compactor.compact(talk(10), thread_id="t", force=True).messages
        compactor.compact([*view, *talk(6, 30)], thread_id="t", force=True)
    return path


def named(archive: str) -> list[str]:
    return ["--thread", "t", "--archive", archive]


def records(archive: str) -> list[Any]:
    with Archive.open(archive) as kept:
        return [*kept.chain(SCOPE)]


def test_undo_says_what_was_taken_back_and_what_remains(archive):
    first, second = records(archive)
    said = run("undo", *named(archive))
    assert second.id in said.stdout
    assert first.id in said.stdout
    assert f"--to {second.id}" in said.stderr
    assert [record.id for record in records(archive)] == [first.id]


def test_undo_prints_json_and_redo_is_the_same_command(archive):
    first, second = records(archive)
    undone = read_json("undo", *named(archive), "--to", "start")
    assert undone["taken_back"] == [second.id, first.id]
    assert undone["came_back"] == len(first.covers) + len(second.covers)
    redone = read_json("undo", *named(archive), "--to", second.id)
    assert redone["put_in_force"] == [first.id, second.id]
    assert "Nothing has changed" in run("undo", *named(archive), "--to", second.id).stdout


def test_undo_of_nothing_or_of_an_unknown_record_is_bad_input(archive):
    assert records(archive)[0].id in error_line("undo", *named(archive), "--to", "zzzz")
    run("undo", *named(archive), "--to", "start")
    assert "no compaction is in force" in error_line("undo", *named(archive))
    assert "keeps no thread" in error_line("undo", "--thread", "u", "--archive", archive)


def test_show_prints_what_was_sent(archive):
    first, second = records(archive)
    shown = read_json("show", *named(archive), "--record", first.id)
    with Archive.open(archive) as kept:
        [whole] = kept.chain_at(SCOPE, first.id)
    summary = summary_text(whole.summary, archived=True, number=whole.notes_number)
    assert shown["messages"][0]["text"] == summary
    assert [message["text"] for message in shown["messages"][1:]] == [
        message["content"] for message in talk(10)[-4:]
    ]
    assert shown["not_stored"] == 0
    newest = read_json("show", *named(archive))
    assert newest["record"] == second.id
    assert newest["not_stored"] == newest["messages_sent"] - 1
    assert "still in view" in run("show", *named(archive)).stdout


def test_show_prints_clips_as_the_model_saw_them(tmp_path):
    path = str(tmp_path / "a.db")
    looked = talk(8)
    for n in range(8):
        looked += [user("Look."), assistant("", (f"c{n}", "a table"))]
        looked += [tool_result(f"c{n}", f"row {n} of it\n" * 350), assistant("I see.")]
    settings: dict[str, Any] = {"window": 20_000, "stale_results": {"over": 400}}
    with Compactor(keep=("messages", 6), archive=path, **settings) as compactor:
        compactor.compact(talk(8), thread_id="t", force=True)
        clipping = compactor.compact(looked, thread_id="t")
        assert clipping.clipped
    shown = read_json("show", *named(path), "--record", clipping.record_id)
    clips = [message["text"] for message in shown["messages"] if message["known"] == "clipped"]
    assert clips
    assert clips == [m["content"] for m in clipping.messages if "archived as" in m["content"]]


def test_blame_names_what_a_line_cites(archive):
    [line] = read_json("blame", "question 7 about", *named(archive))
    assert line["ground"] == "citation"
    assert [source["text"] for source in line["sources"]] == [talk(10)[14]["content"]]
    assert line["sources"][0]["position"] == 15
    assert "question 7" in run("blame", "question 7 about", *named(archive)).stdout


def test_blame_finds_the_originals_of_a_line_without_a_citation(tmp_path):
    path = str(tmp_path / "a.db")
    said = [user("The harbour of Reykjavik closes at nine."), assistant("Noted."), *talk(8)]
    summarizer = Scripted(lambda request: "- The harbour of Reykjavik closes at nine o'clock")
    settings: dict[str, Any] = {"notes": False, "keep": ("messages", 4)}
    with Compactor(summarizer, archive=path, **settings) as compactor:
        compactor.compact(said, thread_id="t", force=True)
    [line] = read_json("blame", "harbour", *named(path))
    assert line["ground"] == "words"
    assert line["sources"][0]["text"] == said[0]["content"]


def test_blame_of_words_that_are_nowhere_is_bad_input(archive):
    assert "has the words" in error_line("blame", "no such words", *named(archive))
    assert "some words" in error_line("blame", " ", *named(archive))
