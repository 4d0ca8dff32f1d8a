"""Mend tool calls without results, and results without calls, which a provider refuses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import NamedTuple

from conspectus._langchain import is_ai_message, is_message
from conspectus.messages import Source, read_messages
from conspectus.messages.blocks import TOOL_USE, blocks_of, first_id

MOST_NAMED = 5  # messages that a note names
UNKNOWN = "[No result was recorded.]"  # in place of a missing result
MISSING = "a tool call had no result, and has one now that says so"
ORPHAN = "a tool result answers no call before it, and is left out of what is written"


class Mended(NamedTuple):
    """A history in which each call has a result; unchanged messages are the caller's own."""

    messages: list[Source]
    notes: tuple[str, ...]
    unanswered: tuple[int, ...]  # indexes of messages with a call that had no result
    orphans: tuple[int, ...]  # indexes of messages with a result without a call


def mend(messages: Sequence[Source], *, orphans: bool = True) -> Mended:
    """Give each call without a result one, directly after the call.

    The last message's calls may still be carried out, so they may lack one. Results without a call
    stay, so that a compaction archives them; with `orphans=False` they are left out.
    """
    open_calls: dict[str, list[int]] = defaultdict(list)  # messages with a call of this id
    orphan_results: dict[int, list[str]] = defaultdict(list)  # ids of calls, by message
    last_turn = -1  # the last message that is no result
    for index, entry in enumerate(read_messages(messages)):
        for call in entry.calls:
            open_calls[call.id].append(index)
        for call_id in entry.answers:
            if open_calls[call_id]:
                open_calls[call_id].pop()
            else:
                orphan_results[index].append(call_id)
        if entry.role != "tool":
            last_turn = index
    new_results: dict[int, list[Source]] = defaultdict(list)  # by the place of the call
    for call_id, indexes in open_calls.items():
        for index in indexes:
            new_results[index] += _unknown_results(messages[index], call_id)
    unanswered = sorted(index for index, results in new_results.items() if results)
    mended: list[Source] = []
    for index, source in enumerate(messages):
        if orphans or index not in orphan_results:
            mended.append(source)
        else:
            mended += _without_results(source, orphan_results[index])
        if index < last_turn:
            mended += new_results[index]
    notes = []
    if answered_now := [index for index in unanswered if index < last_turn]:
        notes.append(_note(MISSING, answered_now))
    if orphan_results:
        notes.append(_note(ORPHAN, list(orphan_results)))
    return Mended(mended, tuple(notes), tuple(unanswered), tuple(orphan_results))


def _unknown_results(source: Source, call_id: str) -> list[Source]:
    """Make a result with `UNKNOWN` in the form of its call; none if a server makes the result."""
    if is_message(source):
        calls = [*source.tool_calls, *source.invalid_tool_calls] if is_ai_message(source) else []
        if not any(call["id"] == call_id for call in calls):
            return []
        from langchain_core.messages import ToolMessage

        return [ToolMessage(UNKNOWN, tool_call_id=call_id, status="error")]
    if any(call.get("id") == call_id for call in source.get("tool_calls") or ()):
        return [{"role": "tool", "tool_call_id": call_id, "content": UNKNOWN}]
    item_type = source.get("type")
    if item_type in ("function_call", "custom_tool_call"):
        return [{"type": f"{item_type}_output", "call_id": call_id, "output": UNKNOWN}]
    tool_uses = [block for block in blocks_of(source) if block.get("type") == "tool_use"]
    if call_id not in [block.get("id") for block in tool_uses]:
        return []
    result = {
        "type": "tool_result",
        "tool_use_id": call_id,
        "content": UNKNOWN,
        "is_error": True,
    }
    return [{"role": "user", "content": [result]}]


def _without_results(source: Source, call_ids: Collection[str]) -> list[Source]:
    """Return a message without the results of some calls; nothing if it has nothing else."""
    blocks = blocks_of(source)
    kept_blocks = [block for block in blocks if first_id(block, TOOL_USE) not in call_ids]
    if is_message(source) or not kept_blocks or len(kept_blocks) == len(blocks):
        return []
    return [{**source, "content": kept_blocks}]


def _note(text: str, indexes: Sequence[int]) -> str:
    names = ", ".join(map(str, indexes[:MOST_NAMED]))
    if len(indexes) > MOST_NAMED:
        names += f" and {len(indexes) - MOST_NAMED:,} more"
    noun = "messages" if len(indexes) > 1 else "message"
    return f"{noun} {names}: {text}"
