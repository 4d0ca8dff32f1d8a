"""Mend tool calls without results, and results without calls, which a provider refuses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conspectus._langchain import is_message
from conspectus.messages import Source

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
    left_out: int = 0  # messages that lost such results


def mend(messages: Sequence[Source], *, orphans: bool) -> Mended:
    """Give each call without a result one, right behind it.

    The last message's calls may still be carried out, so they may lack one. Results without a call
    are left out; with `orphans` they stay, so that a compaction archives them.
    """
    waiting: dict[str, list[int]] = defaultdict(list)  # places of the calls of an id
    lost: dict[int, set[int]] = {}  # results without a call, by the place of their message
    last = -1
    for at, source in enumerate(messages):
        results = _results(source)
        for index, call in results.items():
            if waiting[call]:
                waiting[call].pop()
            else:
                lost.setdefault(at, set()).add(index)
        for call in _calls(source):
            waiting[call].append(at)
        if not results or (not _is_result(source) and len(results) < len(_blocks(source))):
            last = at
    unanswered = sorted({at for places in waiting.values() for at in places})
    missing: dict[int, list[str]] = defaultdict(list)
    for call, places in waiting.items():
        for at in places:
            if at < last:
                missing[at].append(call)
    mended: list[Source] = []
    for at, source in enumerate(messages):
        if orphans or at not in lost:
            mended.append(source)
        elif isinstance(source, Mapping) and not _is_result(source):
            rest = [block for i, block in enumerate(_blocks(source)) if i not in lost[at]]
            mended += [{**source, "content": rest}] if rest else []
        mended += _unknown(source, missing.get(at, ()))
    notes = tuple(
        _note(what, sorted(at)) for what, at in ((MISSING, missing), (ORPHAN, lost)) if at
    )
    left_out = 0 if orphans else len(lost)
    return Mended(mended, notes, tuple(unanswered), tuple(sorted(lost)), left_out)


def _results(source: Source) -> dict[int, str]:
    """Return the ids of the calls that a message answers, by the places of the blocks."""
    if _is_result(source):
        return {0: str(_get(source, "tool_call_id"))}
    return {
        index: str(_get(block, "tool_use_id"))
        for index, block in enumerate(_blocks(source))
        if _get(block, "type") == "tool_result"
    }


def _is_result(source: Source) -> bool:
    return _get(source, "tool_call_id") is not None


def _calls(source: Source) -> list[str]:
    """Return the ids of a message's calls, each once; LangChain's messages list them twice."""
    lists = (_get(source, key) for key in ("tool_calls", "invalid_tool_calls"))
    calls = [call for one in lists if isinstance(one, list) for call in one]
    calls += [block for block in _blocks(source) if _get(block, "type") == "tool_use"]
    return list(dict.fromkeys(str(_get(call, "id")) for call in calls if _get(call, "id")))


def _unknown(source: Source, calls: Sequence[str]) -> list[Source]:
    """Make results with `UNKNOWN`, in the form of the calls' message."""
    if is_message(source):
        from langchain_core.messages import ToolMessage

        return [ToolMessage(UNKNOWN, tool_call_id=call, status="error") for call in calls]
    if _get(source, "tool_calls"):
        return [{"role": "tool", "tool_call_id": call, "content": UNKNOWN} for call in calls]
    kind = {"type": "tool_result", "content": UNKNOWN, "is_error": True}
    blocks = [{**kind, "tool_use_id": call} for call in calls]
    return [{"role": "user", "content": blocks}] if blocks else []


def _note(what: str, at: Sequence[int]) -> str:
    named = ", ".join(map(str, at[:NAMED])) + (f" and {len(at) - NAMED:,} more" * (len(at) > NAMED))
    return f"message{'s' * (len(at) > 1)} {named}: {what}"


def _get(source: Any, key: str) -> Any:
    return source.get(key) if isinstance(source, Mapping) else getattr(source, key, None)


def _blocks(source: Source) -> list[Any]:
    content = _get(source, "content")
    return content if isinstance(content, list) else []
