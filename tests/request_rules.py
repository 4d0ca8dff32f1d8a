"""What Anthropic and OpenAI refuse in a request, as far as their documents say it of messages."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_openai_messages


def refused(messages: Sequence[Any], form: str) -> list[str]:
    """Why a provider refuses these messages; nothing where it takes them."""
    if form in ("anthropic", "claude-code"):
        return _anthropic([one for one in messages if one["role"] != "system"])
    plain = [
        convert_to_openai_messages(one) if isinstance(one, BaseMessage) else one for one in messages
    ]
    return _openai(plain)


def _openai(messages: Sequence[Any]) -> list[str]:
    found: list[str] = []
    waiting: list[str] = []
    for place, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                found.append(f"{place}: a result without a call right before it")
            else:
                waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            found.append(f"{place}: calls without results before it: {waiting}")
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        if len(set(waiting)) < len(waiting):
            found.append(f"{place}: two calls of one id")
    return found


def _anthropic(messages: Sequence[Any]) -> list[str]:
    found: list[str] = []
    turns: list[tuple[str, list[Any]]] = []
    for message in messages:
        if extra := set(message) - {"role", "content"}:
            found.append(f"extra inputs are not permitted: {extra}")
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not blocks or any(block.get("text") == "" for block in blocks):
            found.append("a text is empty")
        if turns and turns[-1][0] == message["role"]:  # joined, as the service does
            turns[-1][1].extend(blocks)
        else:
            turns.append((message["role"], list(blocks)))
    if turns and turns[0][0] != "user":
        found.append("the first message is not the user's")
    waiting: set[str] = set()
    known: set[str] = set()
    for place, (_, blocks) in enumerate(turns):
        kinds = [block["type"] for block in blocks]
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if "tool_result" in kinds[len(results) :]:
            found.append(f"{place}: results behind other blocks")
        if set(results) != waiting or len(results) != len(waiting):
            found.append(f"{place}: results {sorted(results)} for the calls {sorted(waiting)}")
        ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if known & set(ids) or len(set(ids)) < len(ids):
            found.append(f"{place}: tool_use ids must be unique")
        known |= set(ids)
        waiting = set(ids)
    return found
