"""What the demo transcript promises, each promise checked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conspectus.messages import read_messages
from conspectus.tokens import TokenMeter

FEWEST_MESSAGES = 300
FEWEST_TOKENS = 60_000
FEWEST_TURNS = 10
LARGE_RESULT = 40_000
"""Characters of the largest tool result, at least."""
LARGEST_FILE = 500_000
"""Bytes of the file, at most."""

SAID = {
    "a rule about tests": "Never edit files under tests/",
    "a rule about docstrings": "must always keep their docstrings",
    "a preferred naming": "Prefer full words in names",
    "a cap": "at most 40 lines",
    "a raised cap": "up to 60 lines per function are fine",
    "a deadline": "The deadline for this branch is Friday",
    "a moved deadline": "has moved to Monday",
    "a turn in Chinese": "文件路径必须写成",
}
"""What the user says, by what it is."""

SEEN = {
    "an invalid pattern": r"error: invalid regular expression: .+",
    "an edit that finds nothing": r"error: old text not found in ",
    "failing tests": r"\d+ failed",
    "passing tests": r"\d+ passed",
    "a traceback": r"Traceback \(most recent call last\)",
}
"""What tools answer, as patterns."""

MACHINE_PATHS = re.compile(r"/tmp|/root|/home|/usr/|/Users/|\b[A-Z]:\\\\")


def problems(path: Path) -> list[str]:
    """What a transcript promises and does not keep; empty for a good one."""
    text = path.read_text(encoding="utf-8")
    messages = json.loads(text)
    return [*_sizes(text, messages), *_pairs(messages), *_contents(text, messages)]


def measures(messages: list[dict[str, Any]]) -> dict[str, int]:
    """Messages, tokens, user turns, tool calls, and the characters of the largest tool result."""
    results = [len(m["content"]) for m in messages if m["role"] == "tool"]
    return {
        "messages": len(messages),
        "tokens": TokenMeter().messages(messages),
        "turns": sum(m["role"] == "user" for m in messages),
        "calls": len(results),
        "largest": max(results, default=0),
    }


def out_of_order(messages: list[dict[str, Any]]) -> int:
    """How many messages made several calls that were answered in another order."""
    count = 0
    for at, message in enumerate(messages):
        made = [call["id"] for call in message.get("tool_calls", ())]
        answered = [str(m.get("tool_call_id")) for m in messages[at + 1 : at + 1 + len(made)]]
        count += len(made) > 1 and made != answered and sorted(made) == sorted(answered)
    return count


def _sizes(text: str, messages: list[dict[str, Any]]) -> Iterator[str]:
    found = measures(messages)
    for name, least in (
        ("messages", FEWEST_MESSAGES),
        ("tokens", FEWEST_TOKENS),
        ("turns", FEWEST_TURNS),
        ("largest", LARGE_RESULT),
    ):
        if found[name] < least:
            yield f"{name}: {found[name]:,}, fewer than {least:,}"
    if len(text.encode()) >= LARGEST_FILE:
        yield f"the file has {len(text.encode()):,} bytes, not fewer than {LARGEST_FILE:,}"


def _pairs(messages: list[dict[str, Any]]) -> Iterator[str]:
    wanted = [f"m{place}" for place in range(1, len(messages) + 1)]
    if [message["id"] for message in messages] != wanted:
        yield "the ids are not m1, m2 and so on"
    open_calls: set[str] = set()
    seen: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                yield f"{message['id']} answers a call that is not open"
            open_calls.discard(message["tool_call_id"])
            continue
        if open_calls:
            yield f"{message['id']} comes before the answers to {sorted(open_calls)}"
        made = {call["id"] for call in message.get("tool_calls", ())}
        if made & seen:
            yield f"{message['id']} uses a call id again"
        open_calls, seen = made, seen | made
    if open_calls:
        yield f"{sorted(open_calls)} were never answered"
    if out_of_order(messages) < 2:
        yield "fewer than two parallel calls are answered out of order"
    read_messages(messages)


def _contents(text: str, messages: list[dict[str, Any]]) -> Iterator[str]:
    said = "\n".join(m["content"] for m in messages if m["role"] == "user")
    seen = "\n".join(m["content"] for m in messages if m["role"] == "tool")
    agent = "\n".join(m["content"] for m in messages if m["role"] == "assistant")
    yield from (f"the user states no {what[2:]}" for what, part in SAID.items() if part not in said)
    yield from (f"no tool shows {what}" for what, form in SEEN.items() if not re.search(form, seen))
    if len(re.findall(r"I decided .+ because ", agent)) < 4:
        yield "fewer than four decisions are given with their reasons"
    if "Pending:" not in agent:
        yield "no pending work is listed"
    if "I stop here:" in agent:
        yield "a task was given up"
    if found := sorted(set(MACHINE_PATHS.findall(text))):
        yield f"it names places of a machine: {', '.join(found)}"
