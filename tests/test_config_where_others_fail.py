"""Where DeerFlow's summarisation goes wrong, and ours does not, with the same values.

Its middleware is LangChain's with its own settings; what it hands on to LangChain is shown with
LangChain's. The values are those of the file that it ships.
"""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware as LangChains
from langchain_core.messages import AIMessage
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.checkpoint.memory import InMemorySaver

from config_support import SUMMARY, Agent, answering, loaded, summarising
from conspectus.messages import is_summary_message
from conspectus_lab.testing.scripted_models import ScriptedChatModel

SHIPPED = """
enabled: true
model_name: small
trigger: {type: tokens, value: 32000}
keep: {type: messages, value: 10}
trim_tokens_to_summarize: 15564
"""
THEIRS = {
    "trigger": ("tokens", 32_000),
    "keep": ("messages", 10),
    "trim_tokens_to_summarize": 15_564,
}
TURNS = 40
PAGE = "the page goes on with what was said about the harbour and its ships " * 50


def marker(turn: int) -> str:
    return f"berth-{turn:02d}-{turn * 7919 % 10_000:04d}"


def shown_to(model: ScriptedChatModel) -> str:
    return "\n".join(call.text for call in model.calls)


def theirs(small: ScriptedChatModel, turns: int, **settings: Any) -> Any:
    """LangChain's middleware, and what its state holds at the end."""
    own = answering("Noted.")
    graph = create_agent(
        own, middleware=[LangChains(small, **settings)], checkpointer=InMemorySaver()
    )
    thread: Any = {"configurable": {"thread_id": "t"}}
    for turn in range(turns):
        graph.invoke({"messages": [("user", f"{marker(turn)}: {PAGE}")]}, thread)
    return graph.get_state(thread).values["messages"]


def unread(small: ScriptedChatModel, messages: list[Any]) -> list[int]:
    """Turns that have left and that no summariser was shown."""
    told = shown_to(small)
    here = "\n".join(m.text for m in messages if not is_summary_message(m))
    return [n for n in range(TURNS) if marker(n) not in told and marker(n) not in here]


@pytest.mark.slow
def test_with_the_shipped_values_whole_turns_leave_unread_there_and_none_here(tmp_path):
    small = summarising()
    left = unread(small, theirs(small, TURNS, **THEIRS))
    assert len(left) > 5

    small = summarising(profile={"max_input_tokens": 128_000})
    agent = Agent(loaded(tmp_path, SHIPPED), model_registry={"small": small})
    for turn in range(TURNS):
        agent.say(f"{marker(turn)}: {PAGE}")
    assert is_summary_message(agent.messages[0])
    assert unread(small, agent.messages) == []


@pytest.mark.slow
def test_null_switches_trimming_off_here_where_leaving_it_out_leaves_it_on_there(tmp_path):
    # DeerFlow hands the value on only where it is not null, so LangChain's own 4,000 stays.
    values = {key: value for key, value in THEIRS.items() if key != "trim_tokens_to_summarize"}
    small = summarising()
    left = unread(small, theirs(small, TURNS, **values))
    assert len(left) > 20

    small = summarising(profile={"max_input_tokens": 128_000})
    section = SHIPPED.replace("15564", "null")
    agent = Agent(loaded(tmp_path, section), model_registry={"small": small})
    for turn in range(TURNS):
        agent.say(f"{marker(turn)}: {PAGE}")
    assert unread(small, agent.messages) == []
    summaries = sum(len(m.content) > 0 for m in agent.messages if is_summary_message(m))
    assert summaries == 1
    first = small.calls[0].text
    read = [n for n in range(TURNS) if marker(n) in first]
    assert len(read) > 20  # all that left, at one reading


class Reporting(ScriptedChatModel):
    """A model of a known provider, whose reports of usage are believed."""

    def _get_ls_params(self, stop: Any = None, **kwargs: Any) -> Any:
        return {**super()._get_ls_params(stop, **kwargs), "ls_provider": "openai"}


def reporting(tokens: int) -> Reporting:
    """One whose system prompt and tools alone take so many tokens."""

    def answer(messages: Any) -> AIMessage:
        used = {"input_tokens": tokens, "output_tokens": 5, "total_tokens": tokens + 5}
        about = {"model_provider": "openai", "model_name": "gpt-4o"}
        return AIMessage("Noted.", usage_metadata=used, response_metadata=about)  # type: ignore

    return Reporting(answers=answer)


def test_a_reported_usage_of_system_prompt_and_tools_alone_does_not_fire_at_every_step(tmp_path):
    # 5,000 tokens are reported for each request, of which the messages are a hundred or two.
    own, small = reporting(5_000), summarising()
    middleware = LangChains(own, trigger=("tokens", 4_000), keep=("messages", 4))
    middleware._create_summary = lambda messages: small.invoke(messages).text  # type: ignore
    graph = create_agent(own, middleware=[middleware], checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "t"}}
    for turn in range(24):
        graph.invoke({"messages": [("user", f"look at berth {turn}")]}, thread)
    there = len(small.calls)
    assert there > 15

    small = summarising()
    section = """
        enabled: true
        model_name: small
        trigger: {type: tokens, value: 4000}
        keep: {type: messages, value: 4}
        """
    agent = Agent(
        loaded(tmp_path, section), model=reporting(5_000), model_registry={"small": small}
    )
    for turn in range(24):
        agent.say(f"look at berth {turn}")
    assert len(small.calls) <= 2


@pytest.mark.slow
@pytest.mark.parametrize("words", [20, 1_200])
def test_a_summary_is_shown_as_it_is_counted_in_whole_lines(words, tmp_path):
    long = "## Facts\n" + "\n".join(f"- berth {n} is free on day {n}" for n in range(words))
    section = """
        enabled: true
        model_name: small
        trigger: {type: tokens, value: 3000}
        keep: {type: messages, value: 4}
        max_summary_tokens: 1200
        notes: false
        """
    small = answering(long)
    own = answering(SUMMARY)
    agent = Agent(loaded(tmp_path, section), model=own, model_registry={"small": small})
    for turn in range(12):
        sent = agent.say(f"{marker(turn)}: {PAGE[:1800]}")
    [shown] = [m for m in sent if is_summary_message(m)]
    [counted] = [m for m in agent.messages if is_summary_message(m)]
    assert shown.text == counted.text  # what the trigger counts is what the model is sent
    assert count_tokens_approximately([shown]) < 1_500
    told = [line for line in shown.text.splitlines() if line.startswith("- berth ")]
    assert told
    assert set(told) <= set(long.splitlines())  # none is cut
    assert (words == 1_200) == (set(told) < set(long.splitlines()[1:]))
