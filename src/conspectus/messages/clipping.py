"""A message shown short: its beginning, its end, and a pointer to the archived original."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import groupby
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from conspectus.messages.content import describe
from conspectus.messages.entries import Entry, Source

Count = Callable[[Source], int]

HEAD = 2 / 3
"""Share of a clipped text that its beginning gets; ends hold results, beginnings say what it is."""

POINTER = "archived as "
"""Stands in every clip, before the name of its original."""

MARK = "[clipped: {left_out:,} of {whole:,} characters left out; original archived as {cite}]"

WITHOUT_SECRETS = "[shown without its secrets; archived as {cite}]"

LEVELS = ("texts", "media", "whole")
"""How much gives way: long texts; images and files too; at last all blocks become one text."""


FIRST = 2
"""Characters a token that are tried first; in most texts a token has more."""


def clip(entry: Entry, limit: int, count: Count) -> Source:
    """The message in at most `limit` tokens.

    Texts, tool results and long values in tool arguments are shortened in the middle, the longest
    first; images and files become short descriptions if that is not enough. Ids, names and the
    pairing of calls with results stay. What cannot be made that small is made as small as it goes.

    Args:
        entry: the message.
        limit: tokens that it may take.
        count: tokens of a message.
    """
    if count(entry.source) <= limit:
        return entry.source
    for level in LEVELS:
        shortest = _shorten(entry, 0, level)
        if count(shortest) <= limit:
            break
    low, high, best = 0, _longest(entry), shortest
    # From below: of a giant message only texts near the limit are counted, never half of it.
    size = max(1, FIRST * limit)
    while size < high:
        tried = _shorten(entry, size, level)
        if count(tried) > limit:
            high = size - 1
            break
        low, best, size = size, tried, 2 * size
    while low < high:
        middle = (low + high + 1) // 2
        tried = _shorten(entry, middle, level)
        if count(tried) <= limit:
            low, best = middle, tried
        else:
            high = middle - 1
    return best


def with_pointer(entry: Entry) -> Source:
    """A message from which secrets were taken, whole, saying so and where it is archived."""
    note, source = WITHOUT_SECRETS.format(cite=entry.cite), entry.source
    content: Any = source.content if isinstance(source, BaseMessage) else source.get("content")
    if isinstance(content, list):
        content = [*content, {"type": "text", "text": note}]
    else:
        content = f"{content}\n{note}" if content else note
    if not isinstance(source, BaseMessage):
        return {**source, "content": content}
    extra = {**source.additional_kwargs, "conspectus": {"clip_of": entry.cite}}
    return source.model_copy(update={"content": content, "additional_kwargs": extra})


def smallest_clip(entry: Entry, count: Count) -> int:
    """The fewest tokens that `clip` can bring a message to."""
    return min(count(entry.source), count(_shorten(entry, 0, LEVELS[-1])))


def _longest(entry: Entry) -> int:
    return max([len(entry.text), *(len(call.args) for call in entry.calls)])


def _shorten(entry: Entry, size: int, level: str) -> Source:
    """The message with every text cut to `size` characters."""
    cite, media, whole = entry.cite, level == "texts", level == "whole"

    def text(value: str) -> str:
        mark = MARK.format(left_out=max(0, len(value) - size), whole=len(value), cite=cite)
        if len(value) <= size + len(mark):
            return value
        head = int(size * HEAD)
        tail = size - head
        return "\n".join(
            part for part in (value[:head], mark, value[-tail:] if tail else "") if part
        )

    def block(value: Any) -> Any:
        if isinstance(value, str):
            return text(value)
        if not isinstance(value, Mapping):
            return value
        kind = value.get("type")
        if kind in ("tool_use", "tool_call"):
            key = "input" if "input" in value else "args"
            return {**value, key: arguments(value.get(key))}
        if isinstance(value.get("text"), str):
            return {**value, "text": text(value["text"])}
        if isinstance(value.get("content"), (str, list)):
            return {**value, "content": content(value["content"])}
        if media or kind in ("thinking", "redacted_thinking", "reasoning"):
            return value  # a signed thought must stay as it is, or the provider refuses it
        return {"type": "text", "text": f"{describe(str(kind), value)} (archived as {cite})"}

    def content(value: Any) -> Any:
        if not isinstance(value, list):
            return block(value)
        return _joined(value, block, text, cite) if whole else [block(part) for part in value]

    def arguments(value: Any, outermost: bool = True) -> Any:
        if whole and outermost and len(shown := json.dumps(value, default=str)) > size + 200:
            return {"clipped": text(shown)}
        if isinstance(value, str):
            return text(value)
        if isinstance(value, Mapping):
            return {key: arguments(part, False) for key, part in value.items()}
        return [arguments(part, False) for part in value] if isinstance(value, list) else value

    def raw_arguments(value: Any) -> Any:
        """Arguments as providers want them: a JSON object in a string, also when clipped."""
        try:
            parsed = json.loads(value)
        except (TypeError, ValueError, RecursionError):
            return value if len(str(value)) <= size else json.dumps({"clipped": text(str(value))})
        short = arguments(parsed)
        return value if short == parsed else json.dumps(short, ensure_ascii=False)

    def openai_calls(calls: Any) -> Any:
        return [
            {**c, "function": {**f, "arguments": raw_arguments(f.get("arguments"))}}
            if isinstance(f := c.get("function"), Mapping)
            else c
            for c in calls
        ]

    source = entry.source
    if not isinstance(source, BaseMessage):
        short = {**source, "content": content(source.get("content"))}
        if source.get("tool_calls"):
            short["tool_calls"] = openai_calls(source["tool_calls"])
        return short
    update: dict[str, Any] = {"content": content(source.content)}
    update["additional_kwargs"] = {**source.additional_kwargs, "conspectus": {"clip_of": cite}}
    if isinstance(source, AIMessage) and source.tool_calls:
        update["tool_calls"] = [{**c, "args": arguments(c["args"])} for c in source.tool_calls]
        if raw := source.additional_kwargs.get("tool_calls"):
            update["additional_kwargs"]["tool_calls"] = openai_calls(raw)
    return source.model_copy(update=update)


def _joined(
    blocks: list[Any], block: Callable[[Any], Any], text: Callable[[str], str], cite: str
) -> list[Any]:
    """The blocks with each run of plain texts made one, so that many small ones can be clipped."""
    out: list[Any] = []
    for plain, run in groupby(blocks, key=_is_text):
        parts = list(run)
        if plain and len(parts) > 1:
            whole = "\n".join(part["text"] for part in parts)
            short = text(whole)
            # Also where nothing is left out it is no longer the original, and says so.
            note = f"\n[joined: {len(parts)} blocks; original archived as {cite}]"
            out.append({"type": "text", "text": short if short != whole else whole + note})
        else:
            out += map(block, parts)
    return out


def _is_text(block: Any) -> bool:
    return (
        isinstance(block, Mapping)
        and block.get("type") == "text"
        and isinstance(block.get("text"), str)
    )
