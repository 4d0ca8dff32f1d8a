"""Mend tool calls without results, and results without calls, which a provider refuses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import NamedTuple

from conspectus._langchain import is_ai_message, is_message
from conspectus.messages import Source, read_messages
from conspectus.messages.blocks import TOOL_USE, blocks_of, first_id

NAMED = 5  # messages that a note names
UNKNOWN = "[No result was recorded.]"  # in place of a missing result
MISSING = "a tool call had no result, and has one now that says so"
ORPHAN = "a tool result answers no call before it, and is left out of what is written"


class Mended(NamedTuple):
    """A history in which each call has a result; unchanged messages are the caller's own."""

    messages: list[Source]
    notes: tuple[str, ...]
    unanswered: tuple[int, ...]  # messages with a call that had no result
    orphans: tuple[int, ...]  # messages with a result without a call


def mend(messages: Sequence[Source], *, orphans: bool = True) -> Mended:
    """Give each call without a result one, right behind it.

    The last message's calls may still be carried out, so they may lack one. Results without a call
    stay, so that a compaction archives them; with `orphans=False` they are left out.
    """
    waiting: dict[str, list[int]] = defaultdict(list)  # places of the calls of an id
    lost: dict[int, list[str]] = defaultdict(list)  # results without a call, by their place
    last = -1
    for at, entry in enumerate(read_messages(messages)):
        for call in entry.calls:
            waiting[call.id].append(at)
        for answer in entry.answers:
            if waiting[answer]:
                waiting[answer].pop()
            else:
                lost[at].append(answer)
        last = at if entry.role != "tool" else last
    made: dict[int, list[Source]] = defaultdict(list)
    for name, places in waiting.items():
        for at in places:
            made[at] += _results(messages[at], name)
    missing = sorted(at for at in made if made[at])
    mended: list[Source] = []
    for at, source in enumerate(messages):
        mended += [source] if orphans or at not in lost else _without(source, lost[at])
        mended += made[at] if at < last else []
    noted = ((MISSING, [at for at in missing if at < last]), (ORPHAN, list(lost)))
    notes = tuple(_note(what, places) for what, places in noted if places)
    return Mended(mended, notes, tuple(missing), tuple(lost))


def _results(source: Source, call: str) -> list[Source]:
    """Make a result with `UNKNOWN` in the form of its call; none where a server makes it."""
    if is_message(source):
        calls = [*source.tool_calls, *source.invalid_tool_calls] if is_ai_message(source) else []
        from langchain_core.messages import ToolMessage

        result = ToolMessage(UNKNOWN, tool_call_id=call, status="error")
        return [result] if any(one["id"] == call for one in calls) else []
    if any(one.get("id") == call for one in source.get("tool_calls") or ()):
        return [{"role": "tool", "tool_call_id": call, "content": UNKNOWN}]
    if (kind := source.get("type")) in ("function_call", "custom_tool_call"):
        return [{"type": f"{kind}_output", "call_id": call, "output": UNKNOWN}]
    uses = [block.get("id") for block in blocks_of(source) if block.get("type") == "tool_use"]
    block = {"type": "tool_result", "tool_use_id": call, "content": UNKNOWN, "is_error": True}
    return [{"role": "user", "content": [block]}] if call in uses else []


def _without(source: Source, calls: Collection[str]) -> list[Source]:
    """Return a message without the results of some calls; nothing if it holds nothing else."""
    blocks = blocks_of(source)
    rest = [b for b in blocks if first_id(b, TOOL_USE) not in calls]
    if is_message(source) or not rest or len(rest) == len(blocks):
        return []
    return [{**source, "content": rest}]


def _note(what: str, at: Sequence[int]) -> str:
    more = f" and {len(at) - NAMED:,} more" * (len(at) > NAMED)
    return f"message{'s' * (len(at) > 1)} {', '.join(map(str, at[:NAMED]))}{more}: {what}"
