"""Archives, drafts and threads of earlier versions are read, and go on where they stood.

The files in `tests/golden` are never written anew; see there.
"""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from conspectus.archive import Archive, Scope
from conspectus.core.records import Draft, Record
from conspectus.langchain.state import HELD, REQUEST, read_head, read_requested
from conspectus.messages import is_summary_message
from golden import threads
from golden.threads import AGENTS, DATA, NODE, QUESTIONS, TENANT, VERSIONS
from graph_support import SUMMARY, is_summary, said, thread, torn
from short_term_support import PlainModel

TALK, UNPAID = Scope(TENANT, "talk"), Scope(TENANT, "unpaid")


@dataclass(frozen=True)
class Old:
    """What one version wrote, in files of this test's own."""

    archive: Archive
    saver: SqliteSaver
    holds: dict[str, Any]


@pytest.fixture(params=VERSIONS)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Old]:
    folder = DATA / str(request.param)
    for name in ("archive.db", "checkpoints.db", "expected.json"):
        (tmp_path / name).write_bytes(gzip.decompress((folder / f"{name}.gz").read_bytes()))
    holds = json.loads((tmp_path / "expected.json").read_text(encoding="utf-8"))
    with (
        Archive.open(tmp_path / "archive.db") as archive,
        SqliteSaver.from_conn_string(str(tmp_path / "checkpoints.db")) as saver,
    ):
        yield Old(archive, saver, holds)


def plain(data: Any) -> Any:
    return json.loads(json.dumps(data))


def test_there_is_a_version_and_the_files_are_small():
    assert VERSIONS == list(range(1, len(VERSIONS) + 1)) != []
    for number in VERSIONS:
        assert sum(file.stat().st_size for file in (DATA / str(number)).iterdir()) < 200_000


def test_records_are_read_as_they_were_written(old):
    written = old.holds["talk"]["records"]
    assert [plain(Record.from_json(one).to_json()) for one in written] == written
    chain = old.archive.chain(TALK)
    assert [plain(one.to_json()) for one in chain] == written
    for one in chain:  # the id says what the record holds, so its plain form is the same
        parts = {name: getattr(one, name) for name in type(one).__slots__ if name != "id"}
        assert Record.make(**parts).id == one.id
    assert old.archive.threads(TENANT) == tuple(
        sorted({"talk", "unpaid", *AGENTS} - {"without an archive"})
    )


def test_originals_are_found_again_word_for_word(old):
    assert plain(old.archive.export(TALK)) == old.holds["talk"]["rows"]
    engine = threads.compactor(old.archive)
    assert old.holds["talk"]["questions"] == QUESTIONS
    for question, answer in QUESTIONS.items():
        found = engine.recall(question, thread_id="talk", tenant=TENANT)
        assert any(answer in hit.text for hit in found.hits), question


@pytest.mark.parametrize("sent", ["view", "whole"])
def test_a_history_goes_on_from_the_record_in_force(old, sent):
    """Whether a caller sends back the view that it got, or its whole history."""
    engine, told = threads.compactor(old.archive), old.holds["talk"]
    shown = engine.compact(told[sent], thread_id="talk", tenant=TENANT)
    assert shown.outcome == "kept"
    [summary] = [m for m in shown.messages if is_summary_message(m)]
    assert told["records"][-1]["summary"] in summary["content"]
    kept = [m for m in shown.messages if m is not summary]
    assert kept == [m for m in told["view"] if not is_summary_message(m)]
    more = [*told[sent], *threads.talk(6)[4:]]
    done = engine.compact(more, thread_id="talk", tenant=TENANT)
    assert done.outcome == "compacted", done.reason
    assert done.record.parent == told["records"][-1]["id"]
    before = {key for one in told["records"] for key in one["covers"]}
    assert not before & set(done.record.covers), "archived and summarised once"
    assert [one.id for one in old.archive.chain(TALK)][:-1] == [r["id"] for r in told["records"]]


def test_a_draft_is_read_and_not_paid_for_again(old):
    written = old.holds["draft"]
    assert plain(Draft.from_json(written["draft"]).to_json()) == written["draft"]
    draft = old.archive.find_draft(UNPAID, written["plan"])
    assert plain(draft.to_json()) == written["draft"]
    scripted = threads.paid()
    engine = threads.drafting(old.archive, scripted)
    done = engine.compact(written["messages"], thread_id="unpaid", tenant=TENANT, force=True)
    assert done.outcome == "compacted", done.reason
    assert scripted.requests == [], "paid for again"
    assert done.summary == draft.text
    assert list(done.record.covers) == written["draft"]["read"]


@pytest.mark.parametrize("name", AGENTS)
def test_a_thread_is_read_and_goes_on(old, name):
    graph, model = AGENTS[name](old.saver, old.archive)
    told = old.holds["graphs"][name]
    values = graph.get_state(thread(name)).values
    assert [[m.type, m.text, m.id, is_summary(m)] for m in values["messages"]] == told["messages"]
    assert {one: values[one] for one in told["held"]} == told["held"]
    held = read_head(values, None, values["messages"])
    before = graph.get_state(thread(name)).config
    if name == "waits for approval":
        out = graph.invoke(Command(resume="approve"), thread(name))
        while "__interrupt__" in out:
            out = graph.invoke(Command(resume="approve"), thread(name))
    else:
        assert held.to_json() == told["held"][HELD]
        assert held.head
        out = graph.invoke(said(threads.asked(2)), thread(name))
    assert out["messages"][-1].text == "All looked at."
    assert model.calls
    assert any(SUMMARY in text for call in model.calls for text in [call.text])
    assert [torn(call.messages) for call in model.calls] == [[] for _ in model.calls]
    after = read_head(graph.get_state(thread(name)).values, None, out["messages"])
    assert after.head_id not in ("", held.head_id)
    if name != "without an archive":
        scope = Scope(TENANT, name)
        chain = [one.id for one in old.archive.chain(scope)]
        assert chain[-1] == after.head_id
        assert held.head_id in ("", *chain[:-1]), "it goes on from the record that it held"
        covers = [key for one in old.archive.chain(scope) for key in one.covers]
        assert len(covers) == len(set(covers)), "archived and summarised once"
    again = graph.get_state(before).values  # the old checkpoint is there to go back to
    assert [m.id for m in again["messages"]] == [m[2] for m in told["messages"]]


def test_what_the_guard_has_seen_is_read(old):
    held = old.holds["graphs"]["guarded"]["held"]
    assert plain(read_requested(held).to_json()) == held[REQUEST]
    assert read_requested(held).window == 50_000


def test_a_running_summary_is_read_and_goes_on(old):
    model = PlainModel()
    graph = threads.node_graph(old.saver, model)
    told = old.holds["graphs"][NODE]
    values = graph.get_state(thread(NODE)).values
    assert [[m.type, m.text, m.id, is_summary(m)] for m in values["messages"]] == told["messages"]
    running = values["context"]["running_summary"]
    assert type(running) is threads.ours.RunningSummary
    assert [running.summary, sorted(running.summarized_message_ids)] == told["running"]
    for number in range(6, 9):
        graph.invoke(said(threads.asked(number)), thread(NODE))
    assert model.calls
    assert not model.read.keys() & running.summarized_message_ids, "read twice"
    after = graph.get_state(thread(NODE)).values["context"]["running_summary"]
    assert after.summarized_message_ids > running.summarized_message_ids
