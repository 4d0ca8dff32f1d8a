"""Mend tool calls without results, and results without calls, which a provider refuses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from conspectus._langchain import is_message
from conspectus.messages import Source, read_messages
from conspectus.messages.blocks import TOOL_USE, blocks_of, first_id

NAMED = 5  # messages that a note names
UNKNOWN = "[The result of this call was not recorded.]"  # in place of a missing result
MISSING = "a tool call had no result, and has one now that says so"
ORPHAN = "a tool result answers no call before it, and is left out of what is written"


@dataclass(frozen=True, slots=True)
class Mended:
    """A history in which each call has a result; unchanged messages are the caller's own."""

    messages: list[Source]
    notes: tuple[str, ...] = ()
    unanswered: tuple[int, ...] = ()  # messages with a call that had no result
    orphans: tuple[int, ...] = ()  # messages with a result without a call


def mend(messages: Sequence[Source], *, orphans: bool) -> Mended:
    """Give each call without a result one, right behind it.

    The last message's calls may still be carried out, so they may lack one. Results without a call
    are left out; with `orphans` they stay, so that a compaction archives them.
    """
    waiting: dict[str, list[int]] = defaultdict(list)  # places of the calls of an id
    lost: dict[int, list[str]] = defaultdict(list)  # results without a call, by their place
    missing: dict[int, list[str]] = defaultdict(list)
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
    for name, places in waiting.items():
        for at in places:
            if _awaits(messages[at], name):
                missing[at].append(name)
    mended: list[Source] = []
    for at, source in enumerate(messages):
        mended += [source] if orphans or at not in lost else _without(source, lost[at])
        mended += _unknown(source, missing[at]) if at in missing and at < last else []
    noted = ((MISSING, [at for at in sorted(missing) if at < last]), (ORPHAN, list(lost)))
    notes = tuple(_note(what, places) for what, places in noted if places)
    return Mended(mended, notes, tuple(sorted(missing)), tuple(lost))


def _awaits(source: Source, call: str) -> bool:
    """Return whether the caller is to make a call's result; a provider's server makes others."""
    fields: Any = vars(source) if is_message(source) else source
    calls = [fields.get(key) or () for key in ("tool_calls", "invalid_tool_calls")]
    uses = [block for block in blocks_of(source) if block.get("type") == "tool_use"]
    return any(part.get("id") == call for parts in (*calls, uses) for part in parts)


def _without(source: Source, calls: Collection[str]) -> list[Source]:
    """Return a message without the results of some calls; nothing if it holds nothing else."""
    blocks = blocks_of(source)
    rest = [b for b in blocks if first_id(b, TOOL_USE) not in calls]
    if is_message(source) or not rest or len(rest) == len(blocks):
        return []
    return [{**source, "content": rest}]


def _unknown(source: Source, calls: Sequence[str]) -> list[Source]:
    """Make results with `UNKNOWN`, in the form of the calls' message."""
    if is_message(source):
        from langchain_core.messages import ToolMessage

        return [ToolMessage(UNKNOWN, tool_call_id=call, status="error") for call in calls]
    if source.get("tool_calls"):
        return [{"role": "tool", "tool_call_id": call, "content": UNKNOWN} for call in calls]
    kind = {"type": "tool_result", "content": UNKNOWN, "is_error": True}
    return [{"role": "user", "content": [{**kind, "tool_use_id": call} for call in calls]}]


def _note(what: str, at: Sequence[int]) -> str:
    named = ", ".join(map(str, at[:NAMED])) + (f" and {len(at) - NAMED:,} more" * (len(at) > NAMED))
    return f"message{'s' * (len(at) > 1)} {named}: {what}"
