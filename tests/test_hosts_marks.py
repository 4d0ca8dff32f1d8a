"""What a host looks for: marks on the summary in its state and streams, tags, hooks and the log."""

import logging
import re
from itertools import pairwise
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, messages_from_dict, messages_to_dict
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.checkpoint.memory import InMemorySaver

from conspectus import Compactor, is_summary_message
from conspectus.langchain import ContextGuard, SummarizationEvent
from graph_support import (
    StreamingModel,
    look,
    new_agent,
    new_middleware,
    new_summariser,
    thread_config,
    tool_steps,
    tool_turns,
    user_input,
)


def is_hidden(message: Any) -> bool:
    """Whether DeerFlow's pages and journal leave a message out."""
    return message.name == "summary" or message.additional_kwargs.get("hide_from_ui") is True


def is_of_summary(message: Any) -> bool:
    return "Here is a summary" in str(message.content)


def streamed(mode: str, **settings: Any) -> list[Any]:
    """All events of one mode, of an agent that compacts several times."""
    model = StreamingModel(answers=tool_steps(24))
    graph: Any = create_agent(
        model, [look], middleware=[new_middleware(**settings)], checkpointer=InMemorySaver()
    )
    return list(graph.stream(user_input("Look at all modules."), thread_config(), stream_mode=mode))


def test_a_summary_in_the_values_bears_the_marks_of_each_host():
    shown = [message for values in streamed("values") for message in values["messages"]]
    summaries = [message for message in shown if is_of_summary(message)]

    assert summaries
    assert all(message.name == "summary" for message in summaries)
    assert all(message.additional_kwargs["hide_from_ui"] is True for message in summaries)
    assert all(message.additional_kwargs["lc_source"] == "summarization" for message in summaries)


def test_a_summary_in_an_update_is_hidden():
    updates = [update for event in streamed("updates") for update in event.values() if update]
    shown = [message for update in updates for message in update.get("messages", ())]
    summaries = [message for message in shown if is_of_summary(message)]

    assert summaries
    assert all(map(is_hidden, summaries))


def test_the_stream_of_messages_shows_no_summary():
    shown = [message for message, _ in streamed("messages")]
    assert shown
    assert not any(map(is_of_summary, shown))


@pytest.mark.parametrize("history", ["replace", "preserve"])
def test_no_record_of_ours_is_in_the_values(history):
    events = streamed("values", history=history)
    assert not [key for values in events for key in values if key.startswith("_conspectus")]


def test_the_state_and_its_checkpoints_have_the_record_all_the_same():
    graph, _ = new_agent(tool_steps(24), new_middleware(), store=None)
    graph.invoke(user_input("Look at all modules."), thread_config())
    states = list(graph.get_state_history(thread_config()))

    assert states[0].values["_conspectus"]["head_id"]
    assert any(not state.values.get("_conspectus") for state in states)
    channel_before = graph.get_state(thread_config()).values["_conspectus"]
    graph.update_state(thread_config(), {"messages": [HumanMessage("One more.")]})
    assert graph.get_state(thread_config()).values["_conspectus"] == channel_before


def test_no_request_names_the_summary():
    middleware = new_middleware()
    graph, model = new_agent(tool_steps(24), middleware, ContextGuard(middleware, window=100_000))
    graph.invoke(user_input("Look at all modules."), thread_config())
    summaries = [sent for call in model.calls for sent in call.messages if is_of_summary(sent)]

    assert summaries
    assert {message.name for message in summaries} == {None}
    assert len({message.id for message in summaries}) < len(summaries)


def test_a_summary_is_known_again_after_json():
    graph, _ = new_agent(tool_steps(24), new_middleware())
    state = graph.invoke(user_input("Look at all modules."), thread_config())
    read_again = messages_from_dict(messages_to_dict(state["messages"]))

    assert read_again == state["messages"]
    assert [message.id for message in read_again if is_summary_message(message)] == [
        read_again[0].id
    ]
    graph.update_state(thread_config(), {"messages": read_again})
    assert graph.get_state(thread_config()).values["messages"] == read_again


def test_a_compactors_summary_has_no_name_that_would_be_sent():
    result = Compactor(window=4_000).compact(tool_turns(20), thread_id="t")

    assert is_of_summary(result.messages[0])
    assert result.messages[0].name is None
    assert is_hidden(result.messages[0])


def test_a_summarisers_calls_are_tagged_for_the_journal():
    writer = new_summariser()
    graph, _ = new_agent(tool_steps(24), new_middleware(model=writer))
    graph.invoke(user_input("Look at all modules."), thread_config())

    assert writer.calls
    assert all("middleware:summarize" in call.tags for call in writer.calls)


@pytest.mark.parametrize("where_named", ["context", "configurable", "built"])
def test_a_hook_gets_the_agents_name_and_the_runtime(where_named):
    events: list[SummarizationEvent] = []
    middleware = new_middleware(before_summarization=events.append)
    name_argument = {"name": "researcher"} if where_named == "built" else {}
    graph, _ = new_agent(tool_steps(12), middleware, context_schema=dict, **name_argument)
    context = {"run": 7} | ({"agent_name": "researcher"} if where_named == "context" else {})
    config = thread_config()
    config["configurable"] |= {"agent_name": "researcher"} if where_named == "configurable" else {}
    graph.invoke(user_input("Look at all modules."), config, context=context)

    assert events
    assert {event.agent_name for event in events} == {"researcher"}
    assert all(event.runtime.context == context for event in events)


def test_the_log_counts_as_the_trigger_does(caplog):
    caplog.set_level(logging.INFO, logger="conspectus")
    middleware = new_middleware(trigger=("tokens", 900), keep=("messages", 4), window=100_000)
    states: list[int] = []
    graph, _ = new_agent(tool_steps(24), middleware)
    for values in graph.stream(
        user_input("Look at all modules."), thread_config(), stream_mode="values"
    ):
        states.append(count_tokens_approximately(values["messages"]))
    lines = [
        record.getMessage() for record in caplog.records if "compacted " in record.getMessage()
    ]
    numbers = [re.findall(r"compacted ([\d,]+) → ([\d,]+) tokens", line)[0] for line in lines]
    counts = [tuple(int(number.replace(",", "")) for number in pair) for pair in numbers]

    assert counts
    assert all(900 <= tokens_before < 1_200 for tokens_before, _ in counts)
    assert [tokens_after for _, tokens_after in counts] == [b for a, b in pairwise(states) if b < a]
