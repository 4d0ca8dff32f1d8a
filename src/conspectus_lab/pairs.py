"""Match the ids of messages, tool calls and results, as a provider does."""

from __future__ import annotations

from collections.abc import Container, Iterable
from itertools import count

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

Pair = tuple[str, str]
"""Id of a message, and of a call in it without its partner."""


RESULT_BLOCKS = frozenset({"tool_result", "function_call_output", "custom_tool_call_output"})
"""Types of blocks that hold the result of a tool."""


def unused(name: str, taken: Container[str]) -> str:
    """Return a name that is not taken: itself, or itself with a number."""
    numbered = (f"{name}~{number}" for number in count(2))
    return name if name not in taken else next(n for n in numbered if n not in taken)


def broken_pairs(messages: Iterable[BaseMessage]) -> list[Pair]:
    """List tool calls and results without their partner.

    The results of a message's calls stand right after it. A provider refuses a history in which
    another message stands between them, or a result has no call.
    """
    broken: list[Pair] = []
    owner, waiting = "", set[str]()
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in waiting:
                broken.append((str(message.id), message.tool_call_id))
            waiting.discard(message.tool_call_id)
            continue
        broken += [(owner, call) for call in sorted(waiting)]
        owner, waiting = str(message.id), set[str]()
        if isinstance(message, AIMessage):
            waiting = {str(call["id"]) for call in message.tool_calls}
    return broken + [(owner, call) for call in sorted(waiting)]
