"""What other sections of a file say that matters here, and what aliases may make of any of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml  # type: ignore[import-untyped]

MERGE = "tag:yaml.org,2002:merge"
"""The tag of `<<`."""

MOST = 10_000
"""Values in the sections that are read; aliases could make more of a small file than memory has."""


def pairs(node: Any, known: dict[int, int]) -> int:
    """How many keys a mapping has when all that it merges is written out."""
    if id(node) not in known:
        known[id(node)] = 0  # one that merges itself
        total = 0
        for key, value in node.value:
            merged = value.value if isinstance(value, yaml.SequenceNode) else [value]
            for one in merged if key.tag == MERGE else ():
                total += pairs(one, known) if isinstance(one, yaml.MappingNode) else 0
            total += key.tag != MERGE
        known[id(node)] = total
    return known[id(node)]


def _nodes(node: Any) -> Iterator[Any]:
    """Each node below one, and itself, once however many aliases name it."""
    seen, left = set(), [node]
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, yaml.MappingNode):
            left += (part for pair in one.value for part in pair)
        elif isinstance(one, yaml.SequenceNode):
            left += one.value


def _plain(node: Any) -> Any:
    """A section of somebody else's, read as far as it can be."""
    try:
        known: dict[int, int] = {}
        mappings = (one for one in _nodes(node) if isinstance(one, yaml.MappingNode))
        if node is None or any(pairs(one, known) > MOST for one in mappings):
            return None
        return yaml.SafeLoader("").construct_document(node)
    except Exception:  # whatever its tags and aliases do, it is not ours to refuse
        return None


def models_in(node: Any) -> tuple[dict[str, int], dict[str, tuple[str, str]]]:
    """What a file says of its models: windows in tokens, and how they are made."""
    windows: dict[str, int] = {}
    kinds: dict[str, tuple[str, str]] = {}
    listed = _plain(node)
    for one in listed if isinstance(listed, list) else ():
        if not isinstance(one, dict) or not isinstance(one.get("name"), str):
            continue
        name = one["name"]
        for key in ("context_window", "max_input_tokens"):
            limit = one.get(key)
            if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0:
                windows.setdefault(name, limit)
        use, model = one.get("use"), one.get("model")
        if isinstance(use, str) and isinstance(model, str) and use.startswith("langchain_"):
            provider = re.split(r"[:.]", use)[0].removeprefix("langchain_")
            kinds[name] = (provider, model)
    return windows, kinds


def skills_in(node: Any) -> str | None:
    data = _plain(node)
    found = data.get("container_path") if isinstance(data, dict) else None
    return found if isinstance(found, str) and found else None
