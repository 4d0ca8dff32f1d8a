"""Convert messages to text for measuring, with each tool argument on a line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

TokenCount = Callable[[Iterable[Any]], int]
"""Count the tokens of messages; the form of LangChain's `token_counter`."""


def text_of(message: BaseMessage) -> str:
    """Return the text of a message, then each tool call with its arguments."""
    content = message.content
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    for call in message.tool_calls if isinstance(message, AIMessage) else ():
        text += f"\n{call['name']} " + "\n".join(str(value) for value in call["args"].values())
    return text


def lines_of(messages: Iterable[BaseMessage]) -> Iterator[str]:
    """Yield the lines of messages."""
    for message in messages:
        yield from text_of(message).split("\n")


def folded(messages: Iterable[BaseMessage]) -> str:
    """Join the lines of messages, with single white space."""
    return "\n".join(" ".join(line.split()) for line in lines_of(messages))
