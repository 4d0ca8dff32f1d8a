"""The promises about one compaction, checked from the outside.

Nothing here asks the engine what it did: messages are compared with messages, pairs are matched
anew, tokens are counted anew, and originals are read from the archive as any caller would.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, messages_from_dict
from langchain_core.messages.base import message_to_dict

from conspectus import CompactionResult, TokenMeter, is_summary_message
from conspectus.archive import Archive, Scope

POINTER = re.compile(r"original archived as ([^\]\s]+)\]")
"""How a message that is shown short names its original."""

LEAST_SUMMARY = 160
"""Tokens of the smallest summary message that says anything beside its frame and one rule."""

ROLES = {"human": "user", "ai": "assistant"}


@dataclass(slots=True)
class Verdict:
    """The finding of one look at a compaction; all numbers should be 0.

    Attributes:
        broken: tool results without their call in the turn, and calls that have lost theirs.
        missing: originals that are neither in view nor in the archive, equal to what they were.
        altered: messages in view that are no original, no summary and no clip of an original, or
            that stand in another order.
        over: 1 if the result does not fit the window and does not say so.
        said: the faults, one sentence each.
    """

    broken: int = 0
    missing: int = 0
    altered: int = 0
    over: int = 0
    said: list[str] = field(default_factory=list)

    def __add__(self, other: Verdict) -> Verdict:
        return Verdict(
            self.broken + other.broken,
            self.missing + other.missing,
            self.altered + other.altered,
            self.over + other.over,
            [*self.said, *other.said],
        )


def judge(
    originals: Sequence[Any],
    result: CompactionResult,
    archive: Archive,
    scope: Scope,
    window: int | None = None,
) -> Verdict:
    """Hold one result against the promises.

    Args:
        originals: every message of the conversation so far, as its owner holds them.
        result: of `compact`.
        archive: place of the originals.
        scope: their owner.
        window: limit of the result, in tokens.
    """
    rows = archive.export(scope)
    found = Verdict()
    found.broken = _broken(originals, result)
    found.missing = _missing(originals, result.messages, rows)
    found.altered = _altered(originals, result, rows)
    tokens = TokenMeter().messages(result.messages)
    if tokens != result.tokens_after:
        found.said.append(f"it says {result.tokens_after} tokens and has {tokens}")
    if window is not None and tokens > window:
        least = least_tokens(originals)
        if result.outcome != "stuck":
            found.over = 1
        elif least <= window:
            found.said.append(f"stuck, and what must stay could take {least} of {window} tokens")
    for name in ("broken", "missing", "altered", "over"):
        if count := getattr(found, name):
            found.said.append(f"{count} {name}")
    return found


def least_tokens(messages: Sequence[Any]) -> int:
    """Count the fewest tokens of the messages that must stay, with a summary.

    The system messages at the start stay whole. The newest user message, calls that nothing has
    answered, and the newest message with its call stay too, but may be shown as pointers.
    """
    meter = TokenMeter()
    lead = 0
    while lead < len(messages) and role_of(messages[lead]) == "system":
        lead += 1
    stay = {index for index, _ in unanswered(messages)} | {len(messages) - 1}
    stay |= {max((i for i, m in enumerate(messages) if role_of(m) == "user"), default=lead)}
    answers = {answer_of(messages[-1])} - {None}
    if answers:
        asked = next(
            i for i in range(len(messages) - 1, -1, -1) if answers & set(calls_of(messages[i]))
        )
        stay |= set(range(asked, len(messages)))
    rest = [messages[i] for i in sorted(stay) if i >= lead]
    whole = meter.messages(messages[:lead]) + sum(
        min(meter.message(message), meter.message(_smallest(message))) for message in rest
    )
    return whole if lead + len(rest) == len(messages) else whole + LEAST_SUMMARY


def _smallest(message: Any) -> Any:
    """Put pointers in the place of a message's text and of long arguments."""
    pointer = "[clipped: 9 of 9 characters left out; x]"

    def short(value: Any) -> Any:
        if isinstance(value, str):
            return min(value, pointer, key=len)
        if isinstance(value, dict):
            return {key: short(part) for key, part in value.items()}
        return [short(part) for part in value] if isinstance(value, list) else value

    if isinstance(message, AIMessage):
        calls = [{**call, "args": short(call["args"])} for call in message.tool_calls]
        return AIMessage(pointer, tool_calls=calls)
    if isinstance(message, BaseMessage):
        return message.model_copy(update={"content": pointer})
    calls = [
        {**c, "function": {**c["function"], "arguments": _short_json(c, short)}}
        for c in message.get("tool_calls") or ()
    ]
    return {**message, "content": pointer, **({"tool_calls": calls} if calls else {})}


def _short_json(call: Mapping[str, Any], short: Callable[[Any], Any]) -> str:
    raw = call["function"]["arguments"]
    try:
        return json.dumps(short(json.loads(raw)), ensure_ascii=False)
    except ValueError:
        return str(short(raw))


# Pairs


def role_of(message: Any) -> str:
    """Give the role: `system`, `user`, `assistant` or `tool`."""
    if isinstance(message, BaseMessage):
        return ROLES.get(message.type, message.type)
    return str(message["role"])


def calls_of(message: Any) -> list[str]:
    """List the ids of the tool calls that a message makes."""
    if isinstance(message, AIMessage):
        made = [*message.tool_calls, *message.invalid_tool_calls]
        return [call["id"] or "" for call in made]
    if isinstance(message, Mapping):
        return [call["id"] for call in message.get("tool_calls") or ()]
    return []


def answer_of(message: Any) -> str | None:
    """Give the id of the tool call that a message answers."""
    if isinstance(message, ToolMessage):
        return message.tool_call_id
    return message.get("tool_call_id") if isinstance(message, Mapping) else None


def orphans(messages: Sequence[Any]) -> list[int]:
    """Find tool results without their call before them in the same turn."""
    waiting: Counter[str] = Counter()
    found = []
    for index, message in enumerate(messages):
        answer = answer_of(message)
        if role_of(message) == "user":
            waiting.clear()
        waiting.update(calls_of(message))
        if answer is not None:
            if waiting[answer]:
                waiting[answer] -= 1
            else:
                found.append(index)
    return found


def unanswered(messages: Sequence[Any]) -> list[tuple[int, str]]:
    """Find tool calls that nothing answers in their turn: places and ids."""
    waiting: list[tuple[int, str]] = []
    found = []
    for index, message in enumerate(messages):
        answer = answer_of(message)
        if role_of(message) == "user":
            found += waiting
            waiting = []
        waiting += [(index, call) for call in calls_of(message)]
        if answer is not None:
            match = next((call for call in reversed(waiting) if call[1] == answer), None)
            if match is not None:
                waiting.remove(match)
    return found + waiting


def _broken(originals: Sequence[Any], result: CompactionResult) -> int:
    """Count orphans in the result, and calls answered in the original alone."""
    lost = len(unanswered(result.messages)) - len(unanswered(originals))
    found = len(orphans(result.messages))
    if not result.evicted and not result.dropped:  # as sent, with whatever was wrong before
        found -= len(orphans(originals))
    return max(0, found) + max(0, lost)


# Originals


def fingerprint(message: Any) -> str:
    """Give a text that is equal for equal messages only."""
    data = message_to_dict(message) if isinstance(message, BaseMessage) else message
    return json.dumps(data, sort_keys=True, default=repr)


def _restored(row: Mapping[str, Any]) -> Any:
    """Restore the message of an exported row in the kind in which it was sent."""
    return messages_from_dict([row["message"]])[0] if row["form"] == "langchain" else row["message"]


def _missing(originals: Sequence[Any], shown: Sequence[Any], rows: Sequence[Any]) -> int:
    """Count originals that are neither in view, as objects, nor in the archive."""
    in_view = {id(message) for message in shown}
    left = Counter(fingerprint(message) for message in originals if id(message) not in in_view)
    left.subtract(Counter(fingerprint(_restored(row)) for row in rows))
    return sum(count for count in left.values() if count > 0)


def _altered(originals: Sequence[Any], result: CompactionResult, rows: Sequence[Any]) -> int:
    """Count messages in view that are nobody's, or out of order."""
    place = {id(message): index for index, message in enumerate(originals)}
    by_print: dict[str, list[int]] = {}
    for index, message in enumerate(originals):
        by_print.setdefault(fingerprint(message), []).append(index)
    cited = {row["cite"]: fingerprint(_restored(row)) for row in rows}
    bad = summaries = 0
    last = -1
    for message in result.messages:
        at = place.get(id(message))
        if at is None and is_summary_message(message) and result.summary in _text(message):
            summaries += 1
            continue
        if at is None and (pointer := POINTER.search(_text(message))):
            places = by_print.get(cited.get(pointer.group(1), ""), [])
            at = next((index for index in places if index > last), None)
        if at is None or at <= last:
            bad += 1
        else:
            last = at
    return bad + max(0, summaries - 1)


def _text(message: Any) -> str:
    """Give all words of a message, its calls included."""
    data = message.content if isinstance(message, BaseMessage) else message.get("content")
    calls = (
        [message.tool_calls, message.additional_kwargs]
        if isinstance(message, AIMessage)
        else message.get("tool_calls")
        if isinstance(message, Mapping)
        else None
    )
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return text if not calls else text + json.dumps(calls, ensure_ascii=False, default=repr)
