"""Promise 3: calls and results stay together, and what is pending or newest stays in view."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.store.memory import InMemoryStore

from conspectus import Archive, Compactor, is_summary_message
from conspectus.messages import SUMMARY_LINE
from engine import check_nothing_missing, check_sequence, compacted, engine
from histories import assistant, histories, talk, tool, user


@given(histories(broken=True), st.integers(200, 3_000), st.integers(1, 12))
def test_no_pair_is_broken_and_nothing_pending_leaves(messages, window, keep):
    compactor = engine(window=window, keep=("messages", keep))
    result = compacted(messages, compactor, force=True)
    check_sequence(messages, result)
    check_nothing_missing(messages, result, compactor)


def test_the_summary_stands_after_the_system_message_and_before_all_else():
    messages = [{"role": "system", "content": "be brief"}, *talk(40)]
    result = compacted(messages, engine(), force=True)
    assert [is_summary_message(m) for m in result.messages[:3]] == [False, True, False]


def test_an_orphan_in_the_kept_part_goes_to_the_archive():
    messages = [*talk(40), tool("nobody", "who asked?"), user("go on")]
    compactor = engine()
    result = compacted(messages, compactor, force=True)
    assert not any(m["role"] == "tool" for m in result.messages)
    check_nothing_missing(messages, result, compactor)


def test_a_pending_approval_early_in_the_history_is_never_compacted():
    waiting = assistant("", ("p", "delete everything?"))
    messages = [user("start"), waiting, *talk(40)]
    result = compacted(messages, engine(), force=True)
    assert any(m is waiting for m in result.messages)


@pytest.mark.parametrize("window", [300, 900])
def test_a_call_that_may_yet_be_carried_out_is_never_clipped(window):
    """With half of its arguments it would do something else, once it is approved."""
    writes = assistant("I will write the file. " * 10, ("p", "line " * 300))
    result = engine(window=window, keep=("messages", 1)).compact([*talk(40), writes], thread_id="t")
    assert result.messages[-1] is writes
    assert result.outcome == ("compacted" if window == 900 else "stuck")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["dicts", "messages"])
@pytest.mark.parametrize("archived", [True, False])
def test_what_a_client_asks_again_stays_wherever_a_summary_ends(form, archived):
    history: list[Any] = talk(12)
    if form == "messages":
        kinds: dict[str, Any] = {"user": HumanMessage, "assistant": AIMessage}
        history = [kinds[m["role"]](m["content"], id=f"m{n}") for n, m in enumerate(history)]
    for n in range(0, len(history), 2):
        compactor = Compactor(
            trigger=("messages", 10),
            keep=("messages", 4),
            archive=Archive(InMemoryStore()) if archived else None,
        )
        for end in range(1, len(history) + 1):
            compactor.compact(history[:end], thread_id="t")
        result = compactor.compact(history[: n + 1], thread_id="t")
        assert result.messages[-1] is history[n], n


def test_another_librarys_summary_is_not_what_a_user_said_last():
    mark = {"lc_source": "summarization"}
    before = HumanMessage(f"{SUMMARY_LINE}\n\nWe began.", id="s", additional_kwargs=mark)
    history = [before, *(AIMessage(f"Step {n} is done.", id=f"a{n}") for n in range(10))]
    compactor = Compactor(trigger=("messages", 10), keep=("messages", 4))
    first = compactor.compact(history, thread_id="t")
    assert first.outcome == "compacted"
    again = compactor.compact(history, thread_id="t")
    assert (again.outcome, again.messages) == ("kept", first.messages)


@pytest.mark.parametrize("summary", ["pinned", "among dicts"])
def test_a_marked_summary_that_counts_as_a_message_is_not_what_a_user_said_last(summary):
    pinned = summary == "pinned"
    mark = {"lc_source": "summarization", "keep": pinned}
    asked = HumanMessage("Do the thing.", id="u1")
    history: list[Any] = [
        asked if pinned else user("Do the thing."),
        AIMessage("I do.", id="b1"),
        HumanMessage(f"{SUMMARY_LINE}\n\nWe began.", id="s", additional_kwargs=mark),
    ]
    read: list[Any] = []

    def summarise(messages: list[Any]) -> str:
        read.extend(messages)
        return "## Done\n- Steps."

    compactor = Compactor(
        summarise, trigger=("messages", 10), keep=("messages", 4), pin="keep" if pinned else None
    )
    for n in range(30):
        history.append(AIMessage(f"Step {n} is done.", id=f"a{n}"))
        result = compactor.compact(list(history), thread_id="t")
        assert any(one is history[0] for one in result.messages), n
    texts = [one.text for one in read if isinstance(one, AIMessage)]
    assert texts
    assert len(texts) == len(set(texts)), "a message was read again"
