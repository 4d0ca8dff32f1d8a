"""The recall tool: an agent looks up its own earlier messages, within bounds, and no step fails."""

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langgraph.runtime import Runtime

from conspectus import ContextGuard, SummarizationMiddleware, is_summary_message
from conspectus.tokens import TokenMeter
from engine import Scripted, short
from recalling import PORT, PORTS, RecallingAgent, recall, results

METER = TokenMeter()


def asked(*calls: dict[str, Any], asynchronous: bool = False, **more: Any) -> list[str]:
    """What the tool answers to calls made at once, after a talk of which most has left the view."""
    more.setdefault("recall", "tool")
    agent = RecallingAgent({"LOOK": [list(calls)]}, **more)
    agent.say(PORT, "The owner of the cellar key is Ms Okonkwo.")
    agent.fill()
    agent.say("LOOK", asynchronous=asynchronous)
    return [str(message.content) for message in results(agent.requests[-1])]


def ids(agent: RecallingAgent) -> list[str]:
    """Ids of archived messages, in order."""
    from conspectus.archive import Archive, Scope

    archive = Archive(agent.store)
    return [row["id"] for row in archive.export(Scope("local", "t"))]


def test_a_model_that_takes_no_tools_is_given_none_and_the_log_says_so(caplog):
    model = FakeListChatModel(responses=["Seen."])
    own = SummarizationMiddleware(model, trigger=("tokens", 4_000), recall="auto")
    made: Any = create_agent(model, middleware=[own, ContextGuard(own, window=8_000)])
    for _ in range(2):
        assert made.invoke({"messages": [("user", "hi")]})["messages"][-1].text == "Seen."
    assert sum("takes no tools" in one.message for one in caplog.records) == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("history", ["replace", "preserve"])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_it_finds_by_query(history, asynchronous):
    [text] = asked(recall(query="cellar key"), asynchronous=asynchronous, history=history)
    assert "Ms Okonkwo" in text
    assert text.startswith("<recalled>")
    assert text.endswith("</recalled>")


def test_it_finds_by_the_id_that_the_summary_cites_and_by_range():
    agent = RecallingAgent(recall="tool")
    agent.say(PORT)
    agent.fill()
    summary = str(agent.requests[-1][0].content)
    line = next(row for row in summary.split("\n") if PORT in row)
    cited = line.rsplit("[", 1)[1].rstrip("]")
    first, last = ids(agent)[0], ids(agent)[3]
    agent.calls = {
        "LOOK": [[recall(id=cited), recall(id=f"[{cited}]"), recall(id=first, until=last)]]
    }
    agent.say("LOOK")
    by_id, as_shown, by_range = [str(m.content) for m in results(agent.requests[-1])]
    assert PORT in by_id
    assert as_shown == by_id
    assert PORT in by_range
    assert "module 0" in by_range
    assert len(by_range) > len(by_id)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("call", "said"),
    [
        (recall(), "Give query, or id, or both, or id and until"),
        (recall(query="key", id="m1"), "no archived message of this branch has the id 'm1'"),
        (recall(id="m1, m2"), "Give one id at a time"),
        (recall(id="nowhere"), "no archived message of this branch has the id 'nowhere'"),
        (recall(until="m2"), "Give id together with until"),
        (recall(query="?!"), "no word to look for"),
        (recall(query="zebra"), "Nothing was found. Try other words"),
        (recall(query="key", at=5), "Give query, or id, or both, or id and until, or id and at"),
    ],
)
def test_what_is_wrong_is_told_to_the_model_and_fails_no_step(call, said):
    [text] = asked(call)
    assert said in text


def test_an_answer_takes_at_most_twice_the_tokens_of_a_turn():
    agent = RecallingAgent(recall="tool", recall_tokens=150)
    agent.say(*PORTS[:30])
    names = ids(agent)
    agent.calls = {"LOOK": [[recall(query="billing port"), recall(id=names[0], until=names[-1])]]}
    agent.say("LOOK")
    for answer in results(agent.requests[-1]):
        assert 150 < METER.text(str(answer.content)) <= 300


@pytest.mark.slow
def test_a_message_that_is_too_long_is_read_in_parts_to_its_end():
    agent = RecallingAgent(recall="tool", recall_tokens=150)
    long = " ".join(f"row-{n:04d}" for n in range(900))
    agent.say(long)
    agent.fill()
    name, read, start = ids(agent)[0], "", 0
    for turn in range(200):
        agent.calls = {"LOOK": [[recall(id=name, at=start)]]}
        agent.say("LOOK", asynchronous=turn % 2 == 1)
        text = str(results(agent.requests[-1])[-1].content)
        assert METER.text(text) <= 300
        line = text.split("\n")[2]
        shown = line.split(") ", 1)[1] if "(characters" in line else line.split("] ", 1)[1]
        read += shown
        first, last = line.split("characters ")[1].split(" of ")[0].split("-")
        assert int(first.replace(",", "")) == start + 1
        start = int(last.replace(",", ""))
        if start == len(long):
            break
    assert read.replace(" ", "") == long.replace(" ", "")
    agent.calls = {"LOOK": [[recall(id=name, at=len(long) + 7)]]}
    agent.say("LOOK")
    assert f"(the message ends at character {len(long):,})" in results(agent.requests[-1])[-1].text


# A compaction that is asked for


def compact(**args: Any) -> dict[str, Any]:
    return {"name": "compact_conversation", "args": args}


def agent_with(scripted: Scripted, calls: list[list[dict[str, Any]]], **more: Any) -> Any:
    settings: dict[str, Any] = {
        "recall": "off",
        "compact_tool": True,
        "trigger": ("messages", 500),
        "summarizer": scripted,
        **more,
    }
    agent = RecallingAgent({"COMPACT": calls}, **settings)
    agent.fill(8)
    return agent


def test_the_agent_asks_and_the_next_step_has_the_summary_with_the_focus():
    for asynchronous in (False, True):
        scripted = Scripted(short)
        agent = agent_with(scripted, [[compact(focus="the ports")]])
        agent.say("COMPACT", asynchronous=asynchronous)
        assert [request.focus for request in scripted.requests] == ["the ports"]
        assert is_summary_message(agent.requests[-1][0])
        assert isinstance(agent.requests[-1][-1], ToolMessage)
        assert not agent.values["_conspectus_asked"]
        agent.say("And now?")
        assert len(scripted.requests) == 1


def test_a_node_of_ones_own_compacts_at_once_and_sync_and_async_are_the_same():
    said: list[BaseMessage] = [HumanMessage(f"Look at module {n}.", id=f"m{n}") for n in range(9)]

    def done(asynchronous: bool) -> list[str]:
        scripted = Scripted(short)
        middle = SummarizationMiddleware(None, keep=("messages", 2), summarizer=scripted)
        state = {"messages": list(said)}
        if asynchronous:
            update = asyncio.run(middle.acompact(state, Runtime(), focus="modules"))
        else:
            update = middle.compact(state, Runtime(), focus="modules")
        assert [request.focus for request in scripted.requests] == ["modules"]
        return [str(message.content) for message in update["messages"]]

    assert done(False) == done(True)
    assert len(done(False)) == 4
