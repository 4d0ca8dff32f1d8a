"""Define a state whose messages are checkpointed one by one, for whole histories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Required, cast

from langchain.agents.middleware.types import AgentState
from langchain_core.messages import AnyMessage, BaseMessage, convert_to_messages
from langgraph.channels.delta import DeltaChannel
from langgraph.graph.message import Messages, add_messages

from conspectus.langchain.state import name_messages

SNAPSHOT = 50
"""Updates after which the whole channel is written once."""


def added(before: Messages | None, writes: Sequence[Messages]) -> Messages:
    """Add messages write by write; those without ids get the same ones each time."""
    state: Messages = before or []
    for write in writes:
        new = convert_to_messages(cast("list[Any]", write if isinstance(write, list) else [write]))
        name_messages(new, cast("list[BaseMessage]", state))
        state = add_messages(state, cast("Messages", new))
    return state


class PreservedState(AgentState[Any]):
    """State for `create_agent(state_schema=...)` with `history="preserve"`.

    A plain channel is written whole at each step, so checkpoints grow with the square of the
    history. This is LangGraph's delta channel, as in Deep Agents: each step writes the new
    messages, and every 50th the whole. Reading and writing stay the same.

    Example:
        >>> from langchain.agents import create_agent
        >>> from langchain_core.language_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=["hello"])
        >>> agent = create_agent(model, state_schema=PreservedState)
        >>> agent.invoke({"messages": [("user", "hi")]})["messages"][-1].text
        'hello'
    """

    messages: Required[
        Annotated[list[AnyMessage], DeltaChannel(added, snapshot_frequency=SNAPSHOT)]
    ]
