"""Promise 5, where callers give messages new ids, paste old texts, or send no ids at all."""

import copy
import sqlite3
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph.message import add_messages

from compactor_support import (
    SCOPE,
    Scripted,
    check_nothing_missing,
    compacted,
    new_compactor,
    short_summary,
)
from conspectus import is_summary_message
from conspectus.messages import read_messages
from conspectus.messages.message import assign_keys, occurrences
from histories import agent_history, assistant, histories, user
from stateful.agent_world import AgentWorld
from stateful.budgets import budgeted
from stateful.compactor_world import CompactorWorld
from stateful.looks import Look, counted
from stateful.oracle import POINTER, is_summary, plain, role_of


def test_a_clip_with_a_new_id_is_recognised():
    scripted = Scripted(short_summary)
    compactor = new_compactor(scripted, window=3_000, keep=("messages", 4))
    giant = HumanMessage("x " * 9_000 + " SECRET-7788 " + "y " * 5_000)
    first = compacted([giant, AIMessage("ok")], compactor)
    assert first.clipped == 1
    state: Any = add_messages([], first.messages)  # type: ignore[arg-type]
    for n in range(30):
        state += [HumanMessage(f"q{n} " + "word " * 60, id=f"h{n}")]
        state += [AIMessage(f"a{n} " + "word " * 60, id=f"a{n}")]
    assert compacted(state, compactor).evicted
    read = [e.text for request in scripted.requests for e in request.entries]
    assert giant.text in read
    assert compactor.recall("SECRET-7788", thread_id="t").hits


def test_an_older_clip_is_shown_as_short_as_the_newest():
    compactor = new_compactor(window=3_000)
    question = user("Read this log. " + " ".join(f"line {n} is ok" for n in range(3_000)))
    first = list(compacted([question], compactor).messages)
    state = [*first, assistant("", ("c", "word " * 1_500))]
    shorter = compacted(state, compactor)
    assert len(str(shorter.messages[0])) < len(str(first[0]))
    second_result = compacted(state, compactor)
    assert second_result.outcome == "kept", "the record in force has done it"
    assert second_result.messages == shorter.messages


@pytest.mark.parametrize("id_field", [{}, {"id": "y"}], ids=["no id", "the same id"])
def test_a_message_that_is_said_again_is_another_message(id_field):
    compactor = new_compactor(keep=("messages", 2))
    history: list[Any] = []
    evicted = 0
    for n in range(4):
        answer = assistant("it is done, and all of its tests pass " * 12)
        history += [user("yes", **id_field), answer, user(f"round {n}"), assistant("ok")]
        result = compacted(history, compactor, force=True)
        history = list(result.messages)
        evicted = evicted + result.evicted
    rows = compactor.archive.export(SCOPE)
    assert len(rows) == evicted
    assert sum(row["message"]["content"] == "yes" for row in rows) >= 3


def test_keys_of_messages_without_ids_tell_how_often_a_content_came():
    entries = read_messages([user("a"), user("b"), user("a"), user("c", id="c")])
    assert sorted(occurrences(e.key for e in entries).values()) == [1, 2]
    later = read_messages([user("a")])
    assign_keys(later, occurrences(e.key for e in entries))
    assert later[0].key not in {e.key for e in entries}


def test_an_empty_id_still_gives_a_pointer_that_leads_somewhere():
    compactor = new_compactor(window=3_000)
    result = compacted([HumanMessage("x " * 20_000, id="")], compactor)
    cite = str(result.messages[0].content).split("archived as ")[1].split("]")[0]
    assert cite
    assert compactor.recall(id=cite, thread_id="t", tokens=200).hits


def test_a_clip_keeps_all_else_that_its_message_has():
    fields: dict[str, Any] = {"additional_kwargs": {"team": "billing"}, "name": "ann", "id": "big"}
    giant = HumanMessage("x " * 20_000, **fields)
    (clip,) = compacted([giant], new_compactor(window=4_000)).messages
    assert "archived as" in clip.text
    assert clip.additional_kwargs.get("team") == "billing"
    assert (clip.name, clip.id) == ("ann", "big")


@given(histories(broken=True), st.integers(300, 3_000))
def test_what_is_not_clipped_is_the_callers_own_object_unchanged(messages, window):
    copied = copy.deepcopy(messages)
    compactor = new_compactor(window=window, keep=("messages", 5))
    result = compacted(messages, compactor, force=True)
    assert messages == copied
    own_ids = {id(m) for m in messages}
    changed = [m for m in result.messages if id(m) not in own_ids and not is_summary_message(m)]
    assert len(changed) == result.clipped
    assert all("original archived as" in str(m) or "archived as" in str(m) for m in changed)
    check_nothing_missing(messages, result, compactor)


def test_the_summary_is_between_system_message_and_request():
    messages = agent_history(30)
    result = compacted(messages, new_compactor(window=3_000, keep=("messages", 4)))
    assert result.outcome == "compacted"
    kept = [m for m in result.messages if not is_summary_message(m)]
    assert [id(m) for m in kept[:2]] == [id(m) for m in messages[:2]], "the rules and the request"
    assert is_summary_message(result.messages[1]), "the newest message of a user is the user's own"


class KeptIsUntouched:
    """What stays is shown in its order, unchanged; each clip leads to its original."""

    def judge(self, look: Look) -> None:
        if look.error is not None:
            return
        _, said_messages, clips = look.parts
        indexes_by_text: dict[str, list[int]] = {}
        for n, message in enumerate(look.whole):
            indexes_by_text.setdefault(plain(message), []).append(n)
        last_index = -1
        for message in said_messages:
            later = [n for n in indexes_by_text[plain(message)] if n > last_index]
            assert later, "the order has changed"
            last_index = later[0]
        if look.reach is None:
            assert not clips
            return
        covered = counted(look.reach[: look.covered])
        clipped = counted(look.not_shown) - covered
        assert len(clips) == clipped.total(), "something is shown that nobody said"
        self.clips_lead_back(look, clips)

    def clips_lead_back(self, look: Look, clips: list[object]) -> None:
        reachable = counted(look.reach or [])
        originals = [m for m in look.not_shown if reachable[plain(m)]]
        for clip in clips:
            cites = POINTER.findall(plain(clip))
            assert cites, "clipped without saying so"
            same_role = [m for m in originals if role_of(m) == role_of(clip)]
            assert same_role, "a clip of nothing that was said"


class KeptIsUntouchedCompactor(KeptIsUntouched, CompactorWorld):
    def judge(self, look: Look) -> None:
        super().judge(look)
        assert [plain(message) for message in self.sent] == look.sent_texts, "a message was changed"
        if look.error is None:
            own_ids = {id(message) for message in [*self.sent, *self.current.whole]}
            changed = [m for m in look.shown if id(m) not in own_ids and not is_summary(m)]
            assert not [m for m in changed if not POINTER.search(plain(m))]
            for clip in changed:
                cite = POINTER.findall(plain(clip))[0].rstrip("\\\"'")
                assert self.compactor.recall(id=cite, **self.current.scope_arguments).hits


TestKeptIsUntouchedThroughCompactor = budgeted(KeptIsUntouchedCompactor, short=7, long=600)


class KeptIsUntouchedAgent(KeptIsUntouched, AgentWorld):
    def clips_lead_back(self, look: Look, clips: list[object]) -> None:
        archived_by_id = {m.id: m for m in look.archived_originals or []}
        for clip in clips:
            assert POINTER.findall(plain(clip)), "clipped without saying so"
            original = archived_by_id[clip.id]  # type: ignore[attr-defined]
            assert plain(original) in {plain(m) for m in look.whole}

    def judge(self, look: Look) -> None:
        look.reach = look.not_shown  # what is in force at this very request is not known
        look.covered = len(look.not_shown) - len(look.parts.clips)
        super().judge(look)


TestKeptIsUntouchedThroughAgents = budgeted(KeptIsUntouchedAgent, short=2, long=100)


def test_a_clip_with_a_damaged_original_fails_nothing(tmp_path, caplog):
    path = tmp_path / "archive.db"
    compactor = new_compactor(window=3_000, archive=str(path))
    question = user("Read this log. " + " ".join(f"line {n} is ok" for n in range(3_000)))
    state = [*compacted([question], compactor).messages, assistant("", ("c", "word " * 1_500))]
    with sqlite3.connect(path) as database:
        damaged = database.execute("UPDATE item SET body = x'00' WHERE length(body) > 5000")
        assert damaged.rowcount
    database.close()
    result = compacted(state, new_compactor(window=3_000, archive=str(path), on_failure="raise"))
    assert result.outcome == "compacted"
    assert "originals_lost" in [record.conspectus["event"] for record in caplog.records]


LOSE = {
    "forgotten": "DELETE FROM item WHERE length(body) > 5000",
    "damaged": "UPDATE item SET body = x'00' WHERE length(body) > 5000",
}


@pytest.mark.parametrize("statement", LOSE.values(), ids=LOSE)
@pytest.mark.parametrize("summarizer", [None, Scripted(short_summary)], ids=["embedded", "own"])
def test_a_clip_whose_original_is_lost_leaves_as_it_came(tmp_path, statement, summarizer):
    path = tmp_path / "archive.db"
    settings: dict[str, Any] = {"window": 3_000, "keep": ("messages", 2), "archive": str(path)}
    giant = HumanMessage(" ".join(f"line {n} is ok" for n in range(3_000)), id="giant")
    first = compacted([giant, AIMessage("ok", id="a")], new_compactor(**settings))
    assert first.clipped == 1
    with sqlite3.connect(path) as database:
        assert database.execute(statement).rowcount
    database.close()
    talk: list[Any] = [HumanMessage(f"{n} " + "word " * 400, id=f"u{n}") for n in range(9)]
    compactor = new_compactor(summarizer, **settings, on_failure="raise")
    result = compacted([*first.messages, *talk], compactor)
    assert result.outcome == "compacted"
    archived = compactor.archive.get(SCOPE, result.record.covers)
    clip = first.messages[0]
    assert clip.content in [original.text for original in archived]
