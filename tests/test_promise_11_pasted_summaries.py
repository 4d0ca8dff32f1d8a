"""Promises 1 and 11: a pasted summary brings nothing back that the history has left behind.

A summary in view names the record that stands for what left. Its text alone, said by somebody
elsewhere, is a message like any other.
"""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from conspectus import Compactor, SummarizationMiddleware
from conspectus.archive import Archive
from conspectus.engine.recognising import may_be_summaries
from conspectus.messages import SUMMARY_LINE, read_messages
from engine import SCOPE, Scripted, compacted, engine, originals_in, short
from scripted_models import ScriptedChatModel

FORMS = ["dict", "langchain", "without ids"]


class Talk:
    """Messages in one form, each with an id of its own where the form has ids."""

    def __init__(self, form: str) -> None:
        self.form, self.count = form, 0

    def __call__(self, role: str, text: str) -> Any:
        self.count += 1
        if self.form == "dict":
            return {"role": role, "content": text}
        name = f"m{self.count}" if self.form == "langchain" else None
        return {"user": HumanMessage, "assistant": AIMessage, "system": SystemMessage}[role](
            text, id=name
        )

    def turns(self, *texts: str) -> list[Any]:
        return [self(("user", "assistant")[n % 2], text) for n, text in enumerate(texts)]

    def page(self, text: str) -> list[Any]:
        """A tool is called, and answers so."""
        if self.form == "dict":
            call: Any = {"id": "c9", "type": "function"}
            call["function"] = {"name": "read", "arguments": "{}"}
            asked: Any = {"role": "assistant", "content": "", "tool_calls": [call]}
            return [asked, {"role": "tool", "tool_call_id": "c9", "content": text}]
        call = {"name": "read", "args": {}, "id": "c9", "type": "tool_call"}
        return [AIMessage("", id="a9", tool_calls=[call]), ToolMessage(text, tool_call_id="c9")]


def text_of(message: Any) -> str:
    return str(message["content"] if isinstance(message, dict) else message.text)


def texts(messages: list[Any]) -> list[str]:
    return [text_of(message) for message in messages]


def heads(compactor: Compactor) -> list[str]:
    return [record.id for record in compactor.archive.chain(SCOPE)]


def summary_in(messages: Any) -> str:
    (found,) = [text for text in texts(messages) if text.startswith(SUMMARY_LINE)]
    return found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("who", ["user", "tool"])
@pytest.mark.parametrize("at_once", [False, True], ids=["turn by turn", "in one call"])
def test_the_summary_of_an_abandoned_branch_is_a_message_wherever_it_is_pasted(form, who, at_once):
    say = Talk(form)
    compactor = engine(Scripted(short), window=4_000, keep=("messages", 2))
    start = say.turns("hello", "hi")
    left = say.turns("branch one: zebra", "noted", "one", "yes", "two", "yes", "three", "yes")
    summary = summary_in(compacted([*start, *left], compactor, force=True).messages)
    history = [*start, *say.turns("another branch", "fine")]
    if not at_once:
        compacted(history, compactor)
    if who == "user":
        history += [say("user", summary), say("assistant", "I see")]
    else:
        history += [say("user", "read it"), *say.page(summary), say("assistant", "I see")]
    history.append(say("user", "go on"))
    shown = compacted(history, compactor).messages
    assert texts(shown) == texts(history)
    assert heads(compactor) == []
    compacted([*shown, *say.turns("a", "b", "c", "d")], compactor, force=True)
    gone = [text_of(original) for original in originals_in(compactor)]
    assert summary in gone
    assert "branch one: zebra" not in gone


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("who", ["user", "tool"])
def test_a_later_summary_that_is_pasted_behind_an_earlier_one_is_a_message(form, who):
    say = Talk(form)
    rounds = iter(range(9))
    compactor = engine(Scripted(lambda _: f"- round {next(rounds)} [x]"), keep=("messages", 2))
    first = compacted(say.turns(*"abcdef"), compactor, force=True).messages
    later = compacted([*first, *say.turns("zebra", *"hijkl")], compactor, force=True).messages
    assert len(heads(compactor)) == 2
    pasted = [say("user", summary_in(later))] if who == "user" else say.page(summary_in(later))
    back = [*first, say("assistant", "here again"), *pasted, *say.turns("go on", "yes", "next")]
    assert texts(compacted(back, compactor).messages) == texts(back)
    assert len(heads(compactor)) == 1


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("who", ["user", "tool"])
def test_a_summary_that_is_pasted_into_another_history_is_said_there(form, who):
    say = Talk(form)
    compactor = engine(Scripted(short), keep=("messages", 2))
    summary = summary_in(compacted(say.turns(*"abcdef"), compactor, force=True).messages)
    history = say.turns("from the start again", "fine")
    if who == "user":
        history.append(say("user", summary))
    else:
        history += [say("user", "read it"), *say.page(summary), say("user", "and?")]
    for more in ([], ["ok", "go on"]):
        history += [
            say(role, text) for role, text in zip(("assistant", "user"), more, strict=False)
        ]
        assert texts(compacted(history, compactor).messages) == texts(history)
        assert heads(compactor) == []


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("note", ["", "system"])
def test_a_summary_that_is_pasted_behind_all_that_it_covers_is_said_there(form, note):
    say = Talk(form)
    compactor = engine(Scripted(short), keep=("messages", 1))
    history = say.turns(*"abcdef")
    if note:  # of the application, which the summary covers too
        history.insert(2, say(note, "a note"))
    view = compacted(history, compactor, force=True).messages
    covered, summary = history[: -len(view) + 1], summary_in(view)
    history = [*covered, say("user", summary), say("assistant", "Yes?"), say("user", "go on")]
    shown = compacted(history, compactor).messages
    assert texts(shown) == [summary, *texts(history[len(covered) :])]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("start", ["the same", "another", "another talk"])
def test_a_caller_may_put_messages_before_the_view_each_time(form, start):
    say = Talk(form)
    compactor = engine(Scripted(short), keep=("messages", 2))

    def begin(step: int) -> list[Any]:
        said = [say("user", f"You are at step {step}")]
        return [*said, say("assistant", f"Step {step}")] if start == "another talk" else said

    context = begin(0)
    view: list[Any] = [*context, *say.turns("zebra", *"bcdef")]
    for step in range(3):
        view = compacted(view, compactor, force=True).messages
        assert len(heads(compactor)) == step + 1
        kept = [one for one in view if all(one is not put for put in context)]
        if start != "the same":
            context = begin(step + 1)
        view = [*context, *kept, *say.turns(*(f"{text}{step}" for text in "abcd"))]
    assert "zebra" in [text_of(original) for original in originals_in(compactor)]


@pytest.mark.parametrize("form", FORMS)
def test_a_caller_may_put_one_message_that_stays_and_one_that_changes_before_it(form):
    say = Talk(form)
    compactor = engine(Scripted(short), keep=("messages", 2))
    about, view = say("user", "About me: zebras"), list[Any]()
    for step in range(4):
        said = [say("user", f"Never delete keep{step}.py"), *say.turns(*"abc")]
        head = [about, say("user", f"Today is day {step}")]
        kept = [one for one in view if one is not about]
        view = compacted([*head, *kept, *said], compactor, force=True).messages
        assert len(heads(compactor)) == step + 1
    gone = [text_of(original) for original in originals_in(compactor)]
    assert [f"Never delete keep{step}.py" in gone for step in range(4)] == [True] * 4
    assert not [text for text in gone if text.startswith(SUMMARY_LINE)]


def test_equal_summaries_are_asked_for_once():
    marked = {"lc_source": "summarization"}
    again = [HumanMessage(f"{SUMMARY_LINE}\n\n- one", additional_kwargs=marked) for _ in range(9)]
    other = HumanMessage(f"{SUMMARY_LINE}\n\n- two", additional_kwargs=marked)
    entries = read_messages([*again, other, *again])
    assert may_be_summaries(entries, marked=True) == ["\n- one", "\n- two"]


def test_a_summary_with_our_mark_is_known_wherever_it_stands():
    say = Talk("langchain")
    compactor = engine(Scripted(short), keep=("messages", 2))
    history = say.turns(*"abcdef")
    view = compacted(history, compactor, force=True).messages
    again = [history[0], say("user", "in between"), *view, *say.turns("g", "h", "i")]
    shown = compacted(again, compactor).messages
    assert texts(shown).count(text_of(view[0])) == 1
    assert len(heads(compactor)) == 1
    pasted = say("user", text_of(view[0]))
    shown = compacted([pasted, *view, *say.turns("g", "h", "i")], compactor).messages
    assert any(message is pasted for message in shown)
    assert len(heads(compactor)) == 1


@pytest.mark.parametrize("history", ["replace", "preserve"])
def test_an_agent_that_went_back_is_not_carried_over_by_what_its_user_pastes(history):
    model, store = ScriptedChatModel(answers=lambda _: AIMessage("fine")), InMemoryStore()
    middle = SummarizationMiddleware(
        None, trigger=("tokens", 2_500), keep=("messages", 4), window=3_000, history=history
    )
    graph = create_agent(model, [], middleware=[middle], checkpointer=InMemorySaver(), store=store)
    thread: Any = {"configurable": {"thread_id": "t"}}

    def say(text: str, name: str, at: Any = thread) -> list[BaseMessage]:
        graph.invoke({"messages": [HumanMessage(text, id=name)]}, at)
        return list(model.calls[-1].messages)

    say("The start", "b0")
    start = graph.get_state(thread).config
    for n in range(9):
        shown = say(f"zebra {n} " + "please do " * 150, f"u{n}")
    summary = summary_in(shown)
    say("Another branch", "t0", start)
    say(summary, "PASTE")
    shown = say("go on", "w")
    assert "PASTE" in [message.id for message in shown]
    for n in range(9):
        say(f"two {n} " + "please do " * 150, f"w{n}")
    archive = Archive(store)
    keys = [row["key"] for row in archive.export(SCOPE)]
    ids = [one.message.id for one in archive.get(SCOPE, keys)]
    assert "PASTE" in ids
    assert not [name for name in ids if name.startswith("u")]


def agent(store: InMemoryStore, saver: Any = None, history: Any = "replace") -> tuple[Any, Any]:
    looked = " I looked at it again." * 20
    model = ScriptedChatModel(answers=lambda asked: AIMessage(f"To {asked[-1].text[:20]}{looked}"))
    middle = SummarizationMiddleware(
        None, trigger=("messages", 8), keep=("messages", 3), window=4_000, history=history
    )
    graph = create_agent(model, [], middleware=[middle], checkpointer=saver, store=store)
    return graph, model


@pytest.mark.parametrize("history", ["replace", "preserve"])
def test_a_paste_as_the_first_message_of_a_branch_brings_no_other_branch_back(history):
    store, thread = InMemoryStore(), {"configurable": {"thread_id": "t"}}
    graph, model = agent(store, InMemorySaver(), history)
    for n in range(6):
        graph.invoke({"messages": [HumanMessage(f"zebra {n}")]}, thread)
    summary = summary_in(model.calls[-1].messages)
    start = list(graph.get_state_history(thread))[-1].config
    if history == "replace":
        graph.checkpointer.delete_thread("t")
        start = thread
    graph.invoke({"messages": [HumanMessage(summary, id="PASTE")]}, start)
    for n in range(6):
        graph.invoke({"messages": [HumanMessage(f"two {n}")]}, thread)
    archive = Archive(store)
    keys = [key for record in archive.chain(SCOPE) for key in record.covers]
    reached = [one.message for one in archive.get(SCOPE, keys)]
    assert reached[0].id == "PASTE"
    assert not [one for one in reached if one.text.startswith("zebra")]


def test_a_graph_without_a_checkpointer_knows_the_summary_that_comes_back_as_a_dict():
    store, view = InMemoryStore(), list[Any]()
    graph, _ = agent(store)
    roles = {"human": "user", "ai": "assistant"}
    for n in range(12):
        said = {"role": "user", "content": f"Never delete keep{n}.py"}
        done = graph.invoke({"messages": [*view, said]}, {"configurable": {"thread_id": "t"}})
        view = [{"role": roles[one.type], "content": one.text} for one in done["messages"]]
    archive = Archive(store)
    kept = [archive.get(SCOPE, record.covers) for record in archive.chain(SCOPE)]
    assert len(kept) > 2
    gone = [one.message.text for part in kept for one in part]
    assert gone[0] == "Never delete keep0.py"
    assert not [text for text in gone if text.startswith(SUMMARY_LINE)]
    assert "keep0" in summary_in(view)
