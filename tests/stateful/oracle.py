"""An observer with code of his own: what was said, what a provider would reject, what is a clip.

Nothing here calls the library. It is naive on purpose.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

FIRST_LINE = "Here is a summary of the conversation to date:"
POINTER = re.compile(r"archived as ([^\]\s)]+)")


def plain(message: Any) -> str:
    """All that a message is, as one text."""
    if isinstance(message, BaseMessage):
        data = {key: value for key, value in message.model_dump().items() if value is not None}
    else:
        data = dict(message)
    return json.dumps(data, sort_keys=True, default=repr)


def role_of(message: Any) -> str:
    """`system`, `user`, `assistant` or `tool`; a user's message that only holds results is the
    last of them."""
    if isinstance(message, BaseMessage):
        kinds = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
        return kinds.get(message.type, message.type)
    parts = message.get("content")
    if message["role"] == "user" and isinstance(parts, list) and parts:
        kinds_in = {part.get("type") for part in parts if isinstance(part, dict)}
        if kinds_in == {"tool_result"}:
            return "tool"
    return str(message["role"])


def calls_of(message: Any) -> list[str]:
    """Ids of the calls that a message makes."""
    if isinstance(message, AIMessage):
        return [str(call["id"]) for call in message.tool_calls]
    if isinstance(message, BaseMessage):
        return []
    call_ids = [str(call["id"]) for call in message.get("tool_calls") or ()]
    return call_ids + [str(block["id"]) for block in _blocks(message, "tool_use")]


def answers_of(message: Any) -> list[str]:
    """Ids of the calls that a message answers."""
    if isinstance(message, ToolMessage):
        return [message.tool_call_id]
    if isinstance(message, BaseMessage):
        return []
    if message["role"] == "tool":
        return [str(message["tool_call_id"])]
    return [str(block["tool_use_id"]) for block in _blocks(message, "tool_result")]


def _blocks(message: Any, block_type: str) -> list[Any]:
    parts = message["content"] if isinstance(message.get("content"), list) else []
    return [part for part in parts if isinstance(part, dict) and part.get("type") == block_type]


def content_of(message: Any) -> Any:
    """Its content as it stands."""
    return message.content if isinstance(message, BaseMessage) else message.get("content")


def text_of(message: Any) -> str:
    """Its content as one text."""
    content = content_of(message)
    return content if isinstance(content, str) else json.dumps(content, default=repr)


def is_summary(message: Any) -> bool:
    """Whether it begins as all summaries do, and a user seems to say it."""
    return role_of(message) == "user" and text_of(message).startswith(FIRST_LINE)


def openai_rejects(messages: Sequence[Any]) -> Counter[str]:
    """What the chat completions API would not take: results that do not follow their call, calls
    without all their results right after them."""
    faults: Counter[str] = Counter()
    waiting: list[str] = []
    for message in messages:
        answered_ids = answers_of(message)
        for call_id in answered_ids:
            if call_id in waiting:
                waiting.remove(call_id)
            else:
                faults[f"result {call_id} follows no call"] += 1
        if answered_ids:
            continue
        faults.update(f"call {call_id} has no result after it" for call_id in waiting)
        waiting = calls_of(message)
    faults.update(f"call {call_id} has no result after it" for call_id in waiting)
    return faults


def anthropic_rejects(messages: Sequence[Any]) -> Counter[str]:
    """What the messages API would not take: neighbours of one role are one message there; it
    begins with a user, and the results of a turn of the agent are in the very next message."""
    faults: Counter[str] = Counter()
    turns: list[tuple[str, list[str], list[str]]] = []
    for message in messages:
        role = "user" if role_of(message) in ("user", "tool") else role_of(message)
        if role == "system":
            continue  # given beside the messages
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(calls_of(message))
            turns[-1][2].extend(answers_of(message))
        else:
            turns.append((role, calls_of(message), answers_of(message)))
    if turns and turns[0][0] != "user":
        faults["it does not begin with a user"] += 1
    for number, (_, calls, answers) in enumerate(turns):
        calls_before = list(turns[number - 1][1]) if number else []
        answers_after = list(turns[number + 1][2]) if number + 1 < len(turns) else []
        faults.update(f"result {a} follows no call" for a in _without(answers, calls_before))
        faults.update(f"call {c} has no result after it" for c in _without(calls, answers_after))
    return faults


def _without(ids: Iterable[str], other_ids: Sequence[str]) -> list[str]:
    return list((Counter(ids) - Counter(other_ids)).elements())


def unanswered(messages: Sequence[Any]) -> list[Any]:
    """Messages with a call that has no result anywhere after it, ids matched with the nearest."""
    open_calls: dict[str, list[Any]] = {}
    for message in messages:
        for call_id in answers_of(message):
            if open_calls.get(call_id):
                open_calls[call_id].pop()
        for call_id in calls_of(message):
            open_calls.setdefault(call_id, []).append(message)
    by_identity = {id(message): message for waiting in open_calls.values() for message in waiting}
    return list(by_identity.values())


class ShownParts(NamedTuple):
    """What is shown, by kind."""

    summaries: list[Any]
    said: list[Any]
    """Messages as they were said."""

    clips: list[Any]
    """All others, which are clips if all is well."""


def split(shown: Sequence[Any], whole: Sequence[Any]) -> ShownParts:
    """Divide what is shown into its kinds."""
    not_yet_shown = Counter(plain(message) for message in whole)
    summaries = []
    said_messages = []
    other_messages = []
    for message in shown:
        text = plain(message)
        if not_yet_shown[text] > 0:
            not_yet_shown[text] -= 1
            said_messages.append(message)
        elif is_summary(message):
            summaries.append(message)
        else:
            other_messages.append(message)
    return ShownParts(summaries, said_messages, other_messages)


def not_shown(shown: Sequence[Any], whole: Sequence[Any]) -> list[Any]:
    """Messages that were said and are not shown, in order; of equal ones the first are gone."""
    not_yet_missing = Counter(plain(message) for message in shown)
    missing = []
    for message in reversed(whole):
        text = plain(message)
        if not_yet_missing[text] > 0:
            not_yet_missing[text] -= 1
        else:
            missing.append(message)
    return missing[::-1]
