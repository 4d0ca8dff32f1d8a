"""The short-term node in graphs and with an archive; what fails, what is odd: nothing lost."""

import copy
import functools
import inspect
import pickle
from collections import Counter
from dataclasses import make_dataclass
from typing import Any, get_type_hints

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.prompts import ChatPromptTemplate
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore
from langmem import short_term as theirs

import short_term_support
from conspectus import Archive, ArchiveError, Compactor, SummaryError
from conspectus import short_term as ours
from conspectus.archive import Scope
from short_term_support import (
    LIMITS,
    PlainModel,
    ai,
    count,
    human,
    pairing_faults,
    summarised,
    talk,
    tool_result,
)
from stateful.stores import TroubledStore

summarise_without_thread = functools.partial(short_term_support.summarise, ours)
summarise = functools.partial(summarise_without_thread, thread_id="t")


def originals(archive: Archive, thread: str = "t") -> list[Any]:
    """What the head can reach, as it was said."""
    scope = Scope("local", thread)
    chain = archive.chain(scope)
    keys = [key for record in chain for key in record.covers]
    return [original.message for original in archive.get(scope, keys)]


def test_what_was_summarised_is_archived_and_recalled_over_rounds():
    archive = Archive(InMemoryStore())
    running = None
    messages = talk(30)
    model = numbering_model()
    for upto in range(5, len(messages) + 1, 4):
        result = summarise(messages[:upto], running, archive=archive, model=model)
        running = result.running_summary
        summarised_messages = [m for m in messages if m.id in summarised(running)]
        assert originals(archive) == summarised_messages
    assert len(archive.chain(Scope("local", "t"))) > 3
    compactor = Compactor(archive=archive)
    assert "question h3 " in compactor.recall("question h3", thread_id="t").text
    assert compactor.recall(id="h3", thread_id="t").text


def test_the_thread_is_that_of_the_graphs_config():
    archive = Archive(InMemoryStore())
    graph = node_graph(archive=archive)
    for n in range(12):
        graph.invoke(question(n), thread_config("mine"))
        graph.invoke(question(n), thread_config("yours"))
    assert archive.threads("local") == ("mine", "yours")
    for name in ("mine", "yours"):
        state = graph.get_state(thread_config(name)).values
        ids = {m.id for m in state["messages"]}
        assert {m.id for m in originals(archive, name)} <= ids
        assert {m.id for m in originals(archive, name)} == summarised(
            state["context"]["running_summary"]
        )


@pytest.mark.slow
@pytest.mark.parametrize("archived", [True, False])
@pytest.mark.parametrize("sends", ["all", "what came back"])
def test_a_repeated_question_is_in_view_and_read_once(archived, sends):
    messages = talk(20)
    for n in range(0, len(messages), 2):
        archive = Archive(InMemoryStore()) if archived else None
        model = PlainModel()
        running = None
        for upto in range(1, len(messages) + 1, 2):
            result = summarise(messages[:upto], running, archive=archive, model=model)
            running = result.running_summary
        whole: list[Any] = list(messages[: n + 1])
        view_result = summarise(whole, running, archive=archive, model=model)
        assert view_result.messages[-1] is messages[n], n
        for turn in range(12):
            next_turn = [ai(f"more-a{turn}", 20), human(f"more-h{turn}", 20)]
            whole = [*(whole if sends == "all" else view_result.messages), *next_turn]
            view_result = summarise(
                whole, view_result.running_summary, archive=archive, model=model
            )
            assert view_result.messages[-1] is next_turn[-1]
        read = Counter(m.id for call in model.calls for m in call if m.id is not None)
        assert read["more-h3"]
        assert set(read.values()) == {1}
        if archive is not None:
            summarised_ids = summarised(view_result.running_summary)
            assert Counter(m.id for m in originals(archive)) == dict.fromkeys(summarised_ids, 1)


def test_a_giant_newest_message_is_shown_short_and_read_whole_later():
    archive = Archive(InMemoryStore())
    text = " ".join(f"word{n}" for n in range(2_000))
    messages: list[Any] = [*talk(3), human("giant", text=text)]
    model = PlainModel()
    result = summarise(messages, archive=archive, model=model, check_summaries=False)
    assert count(result.messages) <= 200
    clip = result.messages[-1]
    assert clip.id == "giant"
    assert "archived as" in clip.content
    # While it is the newest it is shown so again, and no model is asked for that.
    calls = len(model.calls)
    second_result = summarise(
        messages, result.running_summary, archive=archive, model=model, check_summaries=False
    )
    assert count(second_result.messages) <= 200
    assert "archived as" in second_result.messages[-1].content
    assert len(model.calls) == calls
    # Once it may leave, all of it is read, although the clip is what came back.
    sent_back = [*messages[:-1], clip, ai("a9", 100), human("h9", 5)]
    third_result = summarise(
        sent_back,
        second_result.running_summary,
        archive=archive,
        model=model,
        check_summaries=False,
    )
    assert "giant" in summarised(third_result.running_summary)
    assert model.read["giant"].replace(" ", "") == text.replace(" ", "")
    assert [m.content for m in originals(archive) if m.id == "giant"] == [text]


def test_an_archive_that_is_away_changes_nothing_and_says_so(caplog):
    store = TroubledStore()
    archive = Archive(store)
    first_result = summarise(talk(8), archive=archive)
    store.fail_after(0, 10**6)
    longer = [*talk(8), *[human(f"x{n}", 40) for n in range(8)]]
    model = PlainModel()
    result = summarise(longer, first_result.running_summary, archive=archive, model=model)
    assert result.running_summary == first_result.running_summary
    assert "cannot be read for now" in caplog.text
    assert not model.calls
    assert {m.id for m in result.messages if m.id} | summarised(first_result.running_summary) == {
        m.id for m in longer
    }
    with pytest.raises(ArchiveError):
        summarise(longer, first_result.running_summary, archive=archive, on_failure="raise")
    store.recover()
    result = summarise(longer, first_result.running_summary, archive=archive)
    assert summarised(result.running_summary) > summarised(first_result.running_summary)


def test_a_rewind_before_the_first_summary_leaves_nothing_to_recall():
    archive = Archive(InMemoryStore())
    messages = talk(12)
    assert summarise(messages, archive=archive).running_summary is not None
    assert originals(archive)
    assert summarise(messages[:1], archive=archive).running_summary is None
    assert originals(archive) == []


class State(MessagesState):
    context: dict[str, Any]


def numbering_model() -> PlainModel:
    number = iter(range(10_000))
    return PlainModel(lambda messages: f"Summary number {next(number)} of all that was said.")


def node_graph(model: Any = None, schema: Any = None, **settings: Any) -> Any:
    """A node that summarises, then one that answers."""

    node = ours.SummarizationNode(model=model or numbering_model(), **(LIMITS | settings))
    builder = StateGraph(schema or State)
    builder.add_node(node)
    builder.add_node("call_model", lambda state: {"messages": [AIMessage("so " * 20)]})
    builder.add_edge(START, "summarization")
    builder.add_edge("summarization", "call_model")
    return builder.compile(checkpointer=InMemorySaver())


def thread_config(name: str = "t") -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


def question(n: int) -> dict[str, Any]:
    return {"messages": [HumanMessage(f"question {n} " + "why " * 20)]}


FIELDS = [(*hint, None) for hint in get_type_hints(State, include_extras=True).items()]


@pytest.mark.parametrize("schema", [State, make_dataclass("Data", FIELDS, slots=True)])
def test_one_key_for_both_replaces_the_history(schema):
    model = numbering_model()
    graph = node_graph(model, schema, output_messages_key="messages")
    graph.invoke(
        {"messages": [SystemMessage("Be brief.", id="s"), *question(0)["messages"]]},
        thread_config(),
    )
    names = set()
    for n in range(1, 24):
        graph.invoke(question(n), thread_config())
        messages = graph.get_state(thread_config()).values["messages"]
        summaries = [m for m in messages if "Summary number" in str(m.content)]
        assert len(summaries) == bool(model.calls)
        names |= {m.id for m in summaries}
        assert messages[0].id == "s"
        assert len(messages) < 12
    # A summary that stands has one id; a new one is another message.
    assert len(names) == len(model.calls) >= 3
    assert not any("Summary number" in str(m.content) for c in model.calls for m in c if m.id)


def test_a_node_has_langmems_attributes_and_follows_them():
    settings: dict[str, Any] = {"model": PlainModel(), "name": "shorten", **LIMITS}
    node = ours.SummarizationNode(**settings)
    theirs_node = theirs.SummarizationNode(**settings)
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
    for copied in (copy.copy(node), copy.deepcopy(node), pickle.loads(pickle.dumps(node))):
        assert copied.invoke({"messages": talk(8)}) == expected


OVERFLOW = ValueError("This model's maximum context length is 8192 tokens, you sent more")


def test_an_exchange_larger_than_a_reading_is_shown_as_text():
    """Providers turn a result down whose call is not in the same request."""
    messages = [human("1"), ai("2", 5, "c"), tool_result("3", "c", 900), ai("4", 5), human("5")]
    model = PlainModel()
    result = summarise_without_thread(messages, model=model)
    assert {"1", "2", "3"} <= summarised(result.running_summary)
    for call in model.calls:
        assert not pairing_faults(call)


def test_a_new_message_under_an_id_that_was_summarised_is_refused():
    result = summarise_without_thread(talk(8))
    assert result.running_summary is not None
    summarised_id = min(summarised(result.running_summary))
    new = [HumanMessage("Delete nothing.", id=summarised_id), HumanMessage("Go on.", id="new")]
    with pytest.raises(ValueError, match=f"ID {summarised_id} has already been summarized"):
        summarise_without_thread([*result.messages, *new], result.running_summary)


def test_unusable_ids_and_summaries_are_refused_before_anything_is_paid_for():
    model = PlainModel()
    with pytest.raises(ValueError, match="Messages are required to have ID field"):
        summarise_without_thread([HumanMessage("no id"), *talk(8)], model=model)
    for no_messages in ("a text", None, 3, human("h0"), ["a"], [{"role": "user", "content": "x"}]):
        with pytest.raises(ValueError, match="message"):
            summarise_without_thread(no_messages, model=model)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="2 messages have the ID h0"):
        summarise_without_thread([*talk(8), human("h0")], model=model)
    for no_summary in ("a text", 3, {"summary": "x"}, {"summary": None}):
        with pytest.raises(ValueError, match="running_summary must be a RunningSummary"):
            summarise_without_thread(talk(1), no_summary, model=model)
    assert not model.calls
    assert (
        summarise_without_thread([SystemMessage("Be brief."), *talk(1, 1)]).running_summary is None
    )


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ({"max_summary_tokens": 200}, "`max_summary_tokens` must be less than `max_tokens`"),
        ({"max_tokens": 0}, "max_tokens must be a whole number"),
        ({"max_tokens_before_summary": -1}, "max_tokens_before_summary must be"),
        ({"model": "gpt"}, "model must be a chat model, whose method invoke"),
        ({"final_prompt": "Notes: {summary}"}, "final_prompt must be a ChatPromptTemplate"),
        ({"token_counter": 4}, "token_counter must be a callable"),
        ({"token_counter": lambda messages: "many"}, "token_counter must return a whole number"),
        ({"archive": "memory:"}, "would be gone after each call"),
        ({"archive": "x.db"}, "pass thread_id="),
        ({"final_prompt": ChatPromptTemplate(["{other}"])}, "must be a ChatPromptTemplate"),
    ],
)
def test_a_setting_that_means_nothing_is_refused(setting, problem):
    with pytest.raises(ValueError, match=problem.replace("(", r"\(")):
        summarise_without_thread(talk(8), **setting)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "model",
    [
        PlainModel(lambda m: RuntimeError("boom")),
        PlainModel(lambda m: OVERFLOW),
        PlainModel(""),
        PlainModel(lambda m: None),
        PlainModel(lambda m: 7),
        PlainModel("I'm sorry, I cannot summarise that."),
        PlainModel("Error: rate limit"),
        PlainModel("Sure! How can I help?"),
        PlainModel("word " * 3_000),
        PlainModel(lambda m: AIMessage("half a", response_metadata={"finish_reason": "length"})),
        PlainModel(lambda m: AIMessage("", tool_calls=[{"name": "x", "args": {}, "id": "1"}])),
    ],
    ids=lambda model: "",
)
def test_a_summariser_that_fails_never_becomes_the_summary(model):
    """The embedded one takes over; below `max_tokens` that is so for a text that is refused."""
    messages = talk(30)
    result = summarise_without_thread(messages, model=model)
    assert result.running_summary.summary.startswith("## In order\n- The user: ")
    assert count(result.messages) <= LIMITS["max_tokens"]
    roomy = {"max_tokens": 8_000, "max_tokens_before_summary": 100}
    result = summarise_without_thread(messages, model=model, **roomy)
    if result.messages != messages:
        assert result.running_summary.summary.startswith("## In order\n- The user: ")
    assert summarise_without_thread(messages, model=model, on_failure="keep").messages == messages
    with pytest.raises((SummaryError, RuntimeError, ValueError)):
        summarise_without_thread(messages, model=model, on_failure="raise")
