"""Large arguments of calls that write files, shown short: the file has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from conspectus._langchain import is_ai_message
from conspectus.messages.clipping import ARCHIVED
from conspectus.messages.entries import Entry, Source

WRITERS = frozenset({"write_file", "edit_file"})
"""Tools of Deep Agents whose arguments hold the text of files."""

HEAD = 20  # Characters of a large argument that stay, as in Deep Agents


def has_long_arguments(source: object, longest: int) -> bool:
    """Tell whether a call to write a file has an argument longer than `longest`."""
    if not is_ai_message(source):
        return False
    return any(
        isinstance(value, str) and len(value) > longest
        for call in source.tool_calls
        if call["name"] in WRITERS
        for value in call["args"].values()
    )


def with_short_arguments(entry: Entry, longest: int, ending: str, where: str = ARCHIVED) -> Source:
    """Cut arguments of file writers that are longer than `longest`.

    Names, ids and all other arguments stay, in every form in which the message has its calls.
    `ending` and a pointer to the original follow the rest of each; `where` is as for `clip`.
    """
    source = entry.source
    if not has_long_arguments(source, longest):
        return source
    assert is_ai_message(source)
    note = f"{ending} [original {where.replace('{cite}', entry.cite)}]"

    def short(args: Any) -> Any:
        if isinstance(args, str):
            try:
                parsed = json.loads(args)
            except (ValueError, RecursionError):
                return args
            return json.dumps(short(parsed), ensure_ascii=False)
        if not isinstance(args, Mapping):
            return args
        return {
            name: value[:HEAD] + note if isinstance(value, str) and len(value) > longest else value
            for name, value in args.items()
        }

    def block(part: Any) -> Any:
        if not isinstance(part, Mapping):
            return part
        if isinstance(part.get("function"), Mapping):
            return {**part, "function": block(part["function"])}
        if part.get("name") not in WRITERS:
            return part
        own = [key for key in ("input", "args", "arguments") if key in part]
        return {**part, **{key: short(part[key]) for key in own}}

    def blocks(parts: Any) -> Any:
        return [block(part) for part in parts] if isinstance(parts, list) else parts

    extra = {**source.additional_kwargs, "conspectus": {"clip_of": entry.cite}}
    if "tool_calls" in extra:
        extra["tool_calls"] = blocks(extra["tool_calls"])
    made = {"content": blocks(source.content), "tool_calls": blocks(source.tool_calls)}
    return source.model_copy(update={**made, "additional_kwargs": extra})
