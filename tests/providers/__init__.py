"""Histories of each provider, their requests as its own package writes them, and its rules."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_openai_messages

from providers import anthropic, openai


def provider_refusals(messages: Sequence[Any], form: str) -> list[str]:
    """Why a provider refuses these messages; nothing where it takes them."""
    if form in ("anthropic", "claude-code"):
        rows = [message for message in messages if message["role"] != "system"]
        extra = {key for row in rows for key in row.keys() - {"role", "content"}}
        faults = anthropic.refuses({"messages": rows}, {"messages": rows})
        return [*faults, *(f"extra inputs are not permitted: {key}" for key in extra)]
    plain: list[Any] = [
        convert_to_openai_messages(message) if isinstance(message, BaseMessage) else message
        for message in messages
    ]
    return openai.refuses_chat(plain, plain)
