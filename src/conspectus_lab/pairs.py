"""Find tool calls and results without their partner, as a provider does."""

from __future__ import annotations

from collections.abc import Iterable

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

Pair = tuple[str, str]
"""Id of a message, and of a call in it without its partner."""


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
