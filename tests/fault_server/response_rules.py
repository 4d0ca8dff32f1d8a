"""Find items of a request that OpenAI refuses in its Responses, with its words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

PAIRS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
}
"""Calls that the client carries out, and the items that answer them."""

ANSWERS = {answer: call for call, answer in PAIRS.items()}

PREFIXES = {
    "message": "msg",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "reasoning": "rs",
    "compaction": "cmp",
}
"""Prefixes of the ids of items; ids of results are not checked."""

PARTS = {
    "assistant": ("output_text", "refusal"),
    "user": ("input_text", "input_image", "input_file", "input_audio"),
}
"""Parts of a role's content; a system's and a developer's are a user's."""

LONGEST_CALL_ID = 64


def torn(body: Mapping[str, Any]) -> Iterator[str]:
    """Find torn pairs, wrong ids and parts, and an unknown earlier response."""
    if parent := body.get("previous_response_id"):
        yield f"Previous response with id '{parent}' not found."
    given = body["input"]
    if isinstance(given, str):
        return
    items = [one for one in given if one.get("type") != "item_reference"]
    yield from _pairs(items)
    yield from _thoughts(items)
    seen: set[str] = set()
    for place, item in enumerate(given):
        yield from _ids(place, item)
        yield from _parts(place, item)
        name = str(item.get("id") or "")
        if name and name in seen:
            yield f"Duplicate item found with id {name}. Remove duplicate items and try again."
        seen.add(name)


def _pairs(items: list[Mapping[str, Any]]) -> Iterator[str]:
    waiting: dict[tuple[str, str], str] = {}
    for item in items:
        kind, name = str(item.get("type", "message")), str(item.get("call_id"))
        words = kind.removesuffix("_output").replace("_", " ")
        if kind in PAIRS:
            if (kind, name) in waiting:
                yield f"Duplicate {words} with call_id {name}."
            waiting[kind, name] = words
        elif kind in ANSWERS and waiting.pop((ANSWERS[kind], name), None) is None:
            yield f"No tool call found for {words} output with call_id {name}."
    for (_, name), words in waiting.items():
        yield f"No tool output found for {words} {name}."


def _thoughts(items: list[Mapping[str, Any]]) -> Iterator[str]:
    """Find thoughts without the model's own words behind them."""
    for item, after in zip(items, [*items[1:], {}], strict=True):
        if item.get("type") != "reasoning":
            continue
        kind = str(after.get("type", "message"))
        if kind in ANSWERS or (kind == "message" and after.get("role") != "assistant"):
            name = item.get("id")
            yield (
                f"Item '{name}' of type 'reasoning' was provided without its required following "
                "item."
            )


def _ids(place: int, item: Mapping[str, Any]) -> Iterator[str]:
    kind, name = str(item.get("type", "message")), item.get("id")
    prefix = PREFIXES.get(kind)
    if prefix and isinstance(name, str) and not name.startswith(prefix):
        yield f"Invalid 'input[{place}].id': '{name}'. Expected an ID that begins with '{prefix}'."
    if kind not in PAIRS and kind not in ANSWERS:
        return
    call = item.get("call_id")
    if not isinstance(call, str) or not call:
        yield f"Missing required parameter: 'input[{place}].call_id'."
    elif len(call) > LONGEST_CALL_ID:
        yield (
            f"Invalid 'input[{place}].call_id': string too long. Expected a string with maximum "
            f"length {LONGEST_CALL_ID}, but got a string with length {len(call)} instead."
        )
    if kind == "function_call" and not item.get("name"):
        yield f"Missing required parameter: 'input[{place}].name'."


def _parts(place: int, item: Mapping[str, Any]) -> Iterator[str]:
    content = item.get("content")
    if item.get("type", "message") != "message" or not isinstance(content, list):
        return
    allowed = PARTS["assistant" if item.get("role") == "assistant" else "user"]
    for part in content:
        if part.get("type") not in allowed:
            known = " and ".join(f"'{one}'" for one in allowed)
            yield f"Invalid value: '{part.get('type')}'. Supported values are: {known}."
