"""Promises 1 and 11: a pasted summary brings nothing back that the history has left behind.

A summary in view names the record that stands for what left. Its text alone, said by somebody
elsewhere, is a message like any other.
"""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.store.memory import InMemoryStore

from conspectus import Compactor, SummarizationMiddleware
from conspectus.archive import Archive
from conspectus.messages import SUMMARY_LINE
from engine import SCOPE, Scripted, compacted, engine, short
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


def agent(store: InMemoryStore, saver: Any = None, history: Any = "replace") -> tuple[Any, Any]:
    looked = " I looked at it again." * 20
    model = ScriptedChatModel(answers=lambda asked: AIMessage(f"To {asked[-1].text[:20]}{looked}"))
    middle = SummarizationMiddleware(
        None, trigger=("messages", 8), keep=("messages", 3), window=4_000, history=history
    )
    graph = create_agent(model, [], middleware=[middle], checkpointer=saver, store=store)
    return graph, model


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
