"""Count the tokens that an agent's tools add to each of its requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from conspectus.errors import PolicyError
from conspectus.tokens.families import Family

PER_TOOL = 8  # Tokens of a tool beside its schema: delimiters and type

TOOL_PROMPT = {"claude": 346, "unknown": 346}
"""Tokens of the system prompt that Anthropic adds for tools, from its guide to tool use (`auto`;
313 or 346 by model); other providers document none."""


def tools_tokens(tools: Sequence[Any], count: Callable[[str], int], family: Family) -> int:
    """Count the tokens that tools, in any form, add to a request."""
    if isinstance(tools, (str, bytes, Mapping)) or not isinstance(tools, Iterable | None):
        raise PolicyError(f"tools must be a list of tools, not {tools!r}")
    if not tools:
        return 0
    total = TOOL_PROMPT.get(family, 0)
    for tool in tools:
        total += PER_TOOL + count(_written(tool))
    return total


def _written(tool: Any) -> str:
    """Write the schema of a tool as it is sent."""
    schema = _schema(tool)
    try:
        return json.dumps(schema, separators=(",", ":"), default=str)
    except (TypeError, ValueError, RecursionError) as error:
        raise PolicyError(
            f"the schema of the tool {tool!r:.200} cannot be written as JSON ({error}); its keys "
            "must be text, and nothing in it may hold itself"
        ) from error


def _schema(tool: Any) -> Any:
    from langchain_core.utils.function_calling import convert_to_openai_tool

    try:
        return convert_to_openai_tool(tool)
    except Exception as error:
        if isinstance(tool, dict):  # a provider's own tool, which has a form of its own
            return tool
        raise PolicyError(
            f"{tool!r:.200} is no tool: give a LangChain tool, a function with typed arguments and "
            "a docstring, a pydantic class, or a schema"
        ) from error
