"""The short-term node in graphs; with an archive: originals first, recall, failures."""

import copy
import functools
import inspect
import pickle
from collections import Counter
from typing import Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore

import short_term_support
from conspectus import Archive, ArchiveError, Compactor
from conspectus.archive import Scope
from short_term_support import LIMITS, PlainModel, ai, count, human, ours, summarised, talk, theirs

summarise = functools.partial(short_term_support.summarise, ours, thread_id="t")


def originals(archive: Archive, thread: str = "t") -> list[Any]:
    """What the head can reach, as it was said."""
    scope = Scope("local", thread)
    chain = archive.chain(scope)
    keys = [key for record in chain for key in record.covers]
    return [found.message for found in archive.get(scope, keys)]


class Down(InMemoryStore):
    """A store that fails while it is told to."""

    down = False

    def batch(self, ops: Any) -> Any:
        if self.down:
            raise ConnectionError("the store is away")
        return super().batch(ops)

    async def abatch(self, ops: Any) -> Any:
        if self.down:
            raise ConnectionError("the store is away")
        return await super().abatch(ops)


def test_what_was_summarised_is_archived_and_recalled_over_rounds():
    archive, running = Archive(InMemoryStore()), None
    messages = talk(30)
    model = numbered()
    for upto in range(5, len(messages) + 1, 4):
        found = summarise(messages[:upto], running, archive=archive, model=model)
        running = found.running_summary
        gone = [m for m in messages if m.id in summarised(running)]
        assert originals(archive) == gone
    assert len(archive.chain(Scope("local", "t"))) > 3
    compactor = Compactor(archive=archive)
    assert "question h3 " in compactor.recall("question h3", thread_id="t").text
    assert compactor.recall(id="h3", thread_id="t").text


def test_the_thread_is_that_of_the_graphs_config():
    archive = Archive(InMemoryStore())
    graph, seen = node_graph(InMemorySaver(), archive=archive)
    for n in range(12):
        graph.invoke(said(n), config("mine"))
        graph.invoke(said(n), config("yours"))
    assert archive.threads("local") == ("mine", "yours")
    for name in ("mine", "yours"):
        state = graph.get_state(config(name)).values
        ids = {m.id for m in state["messages"]}
        assert {m.id for m in originals(archive, name)} <= ids
        assert {m.id for m in originals(archive, name)} == summarised(
            state["context"]["running_summary"]
        )
    assert seen


@pytest.mark.slow
@pytest.mark.parametrize("archived", [True, False])
@pytest.mark.parametrize("sends", ["all", "what came back"])
def test_what_a_client_asks_again_is_in_view_and_is_read_once(archived, sends):
    messages = talk(20)
    for n in range(0, len(messages), 2):
        archive = Archive(InMemoryStore()) if archived else None
        model, running = PlainModel(), None
        for upto in range(1, len(messages) + 1, 2):
            found = summarise(messages[:upto], running, archive=archive, model=model)
            running = found.running_summary
        whole: list[Any] = list(messages[: n + 1])
        shown = summarise(whole, running, archive=archive, model=model)
        assert shown.messages[-1] is messages[n], n
        for turn in range(12):
            more = [ai(f"more-a{turn}", 20), human(f"more-h{turn}", 20)]
            whole = [*(whole if sends == "all" else shown.messages), *more]
            shown = summarise(whole, shown.running_summary, archive=archive, model=model)
            assert shown.messages[-1] is more[-1]
        read = Counter(m.id for call in model.calls for m in call if m.id is not None)
        assert read["more-h3"]
        assert set(read.values()) == {1}
        if archive is not None:
            left = summarised(shown.running_summary)
            assert Counter(m.id for m in originals(archive)) == dict.fromkeys(left, 1)


def test_a_giant_newest_message_is_shown_short_and_read_whole_later():
    archive = Archive(InMemoryStore())
    text = " ".join(f"word{n}" for n in range(2_000))
    messages: list[Any] = [*talk(3), human("giant", text=text)]
    model = PlainModel()
    found = summarise(messages, archive=archive, model=model)
    assert count(found.messages) <= 200
    clip = found.messages[-1]
    assert clip.id == "giant"
    assert "archived as" in clip.content
    # While it is the newest it is shown so again, and no model is asked for that.
    calls = len(model.calls)
    again = summarise(messages, found.running_summary, archive=archive, model=model)
    assert count(again.messages) <= 200
    assert "archived as" in again.messages[-1].content
    assert len(model.calls) == calls
    # Once it may leave, all of it is read, although the clip is what came back.
    back = [*messages[:-1], clip, ai("a9", 100), human("h9", 5)]
    last = summarise(back, again.running_summary, archive=archive, model=model)
    assert "giant" in summarised(last.running_summary)
    assert model.read["giant"].replace(" ", "") == text.replace(" ", "")
    assert [m.content for m in originals(archive) if m.id == "giant"] == [text]


def test_an_archive_that_is_away_changes_nothing_and_says_so(caplog):
    store = Down()
    archive = Archive(store)
    first = summarise(talk(8), archive=archive)
    store.down = True
    more = [*talk(8), *[human(f"x{n}", 40) for n in range(8)]]
    model = PlainModel()
    found = summarise(more, first.running_summary, archive=archive, model=model)
    assert found.running_summary == first.running_summary
    assert "cannot be read for now" in caplog.text
    assert not model.calls
    assert {m.id for m in found.messages if m.id} | summarised(first.running_summary) == {
        m.id for m in more
    }
    with pytest.raises(ArchiveError):
        summarise(more, first.running_summary, archive=archive, on_failure="raise")
    store.down = False
    found = summarise(more, first.running_summary, archive=archive)
    assert summarised(found.running_summary) > summarised(first.running_summary)


def test_a_rewind_before_the_first_summary_leaves_nothing_to_recall():
    archive = Archive(InMemoryStore())
    messages = talk(12)
    assert summarise(messages, archive=archive).running_summary is not None
    assert originals(archive)
    assert summarise(messages[:1], archive=archive).running_summary is None
    assert originals(archive) == []


class State(MessagesState):
    context: dict[str, Any]


class Seen(TypedDict):
    summarized_messages: list[AnyMessage]
    context: dict[str, Any]


def numbered() -> PlainModel:
    number = iter(range(10_000))
    return PlainModel(lambda messages: f"Summary number {next(number)} of all that was said.")


def node_graph(
    saver: BaseCheckpointSaver[Any] | None, model: Any = None, **more: Any
) -> tuple[Any, list[list[Any]]]:
    """A node that summarises, then one that answers; and what that one was shown."""
    seen: list[list[Any]] = []

    def call_model(state: Seen) -> dict[str, Any]:
        seen.append(state["summarized_messages"])
        return {"messages": [AIMessage("so " * 20)]}

    node = ours.SummarizationNode(model=model or numbered(), **(LIMITS | more))
    builder = StateGraph(State)
    builder.add_node("summarize", node)
    builder.add_node("call_model", call_model)
    builder.add_edge(START, "summarize")
    builder.add_edge("summarize", "call_model")
    return builder.compile(checkpointer=saver), seen


def config(name: str = "t") -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


def said(n: int) -> dict[str, Any]:
    return {"messages": [HumanMessage(f"question {n} " + "why " * 20)]}


def test_one_key_for_both_replaces_the_history():
    class Own(MessagesState):
        context: dict[str, Any]

    model = numbered()
    node = ours.SummarizationNode(model=model, output_messages_key="messages", **LIMITS)
    builder = StateGraph(Own)
    builder.add_node(node)
    builder.add_node("answer", lambda state: {"messages": [AIMessage("so " * 20)]})
    builder.add_edge(START, "summarization")
    builder.add_edge("summarization", "answer")
    graph = builder.compile(checkpointer=InMemorySaver())
    graph.invoke({"messages": [SystemMessage("Be brief.", id="s"), *said(0)["messages"]]}, config())
    names = set()
    for n in range(1, 24):
        graph.invoke(said(n), config())
        messages = graph.get_state(config()).values["messages"]
        summaries = [m for m in messages if "Summary number" in str(m.content)]
        assert len(summaries) == bool(model.calls)
        names |= {m.id for m in summaries}
        assert messages[0].id == "s"
        assert len(messages) < 12
    # A summary that stands has one id; a new one is another message.
    assert len(names) == len(model.calls) >= 3
    assert not any("Summary number" in str(m.content) for c in model.calls for m in c if m.id)


def test_a_node_has_langmems_attributes_and_follows_them():
    given: dict[str, Any] = {"model": PlainModel(), "name": "shorten", **LIMITS}
    node, theirs_node = ours.SummarizationNode(**given), theirs.SummarizationNode(**given)
    names = [n for n in inspect.signature(theirs.SummarizationNode).parameters if n != "self"]
    for name in names:
        if not name.endswith("_prompt"):
            assert getattr(node, name) == getattr(theirs_node, name), name
        assert hasattr(node, name)
    assert "context" in node.invoke({"messages": talk(8)})
    node.max_tokens = 5_000
    assert "context" not in node.invoke({"messages": talk(8)})
    node.max_summary_tokens = 5_000
    with pytest.raises(ValueError, match="must be less than"):
        node.invoke({"messages": talk(8)})
    with pytest.raises(AttributeError, match="did you mean 'max_tokens'"):
        node.max_token = 5_000


def test_a_node_can_be_copied_and_pickled_as_langmems_can():
    node = ours.SummarizationNode(model=PlainModel(), **LIMITS)
    expected = node.invoke({"messages": talk(8)})
    for again in (copy.copy(node), copy.deepcopy(node), pickle.loads(pickle.dumps(node))):
        assert again.invoke({"messages": talk(8)}) == expected


class Bare(MessagesState):
    summarized_messages: list[AnyMessage]


@pytest.mark.parametrize(("schema", "again"), [(Bare, True), (State, False)])
def test_a_state_without_a_key_for_the_running_summary_is_warned_about(schema, again, caplog):
    model = numbered()
    builder = StateGraph(schema)
    builder.add_node(ours.SummarizationNode(model=model, **LIMITS))
    builder.add_node("answer", lambda state: {"messages": [AIMessage("so " * 20)]})
    builder.add_edge(START, "summarization")
    builder.add_edge("summarization", "answer")
    graph = builder.compile(checkpointer=InMemorySaver())
    for thread in ("t", "u"):  # another conversation is not the same one, longer
        for n in range(12):
            graph.invoke(said(n), config(thread))
            before = list(graph.get_state_history(config(thread)))[:8]
    warned = ["context: dict[str, Any]" in one.message for one in caplog.records]
    assert any(warned) == again
    caplog.clear()
    for checkpoint in before:
        graph.invoke(None, checkpoint.config)
    assert again or not caplog.records
