"""What a message says, as the measures read it: its text and, a line each, its tool arguments."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

TokenCount = Callable[[Iterable[Any]], int]
"""Tokens of a list of messages: the form of LangChain's `token_counter`."""


def text_of(message: BaseMessage) -> str:
    """The text of a message, and after it each tool call: its name, then its arguments."""
    content = message.content
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    for call in message.tool_calls if isinstance(message, AIMessage) else ():
        text += f"\n{call['name']} " + "\n".join(str(value) for value in call["args"].values())
    return text


def lines_of(messages: Iterable[BaseMessage]) -> Iterator[str]:
    """The lines of messages, as they stand."""
    for message in messages:
        yield from text_of(message).split("\n")


def folded(messages: Iterable[BaseMessage]) -> str:
    """All lines of messages, with white space inside a line made single."""
    return "\n".join(" ".join(line.split()) for line in lines_of(messages))
