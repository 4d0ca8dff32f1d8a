"""Messages of made-up talks, and a count of their tokens, for the tests of notes."""

import json
from typing import Any

Message = dict[str, Any]


def user(text: str, name: str) -> Message:
    return {"role": "user", "content": text, "id": name}


def step(tool: str, args: dict[str, Any], result: str, name: str, text: str = "") -> list[Message]:
    """A call of a tool and its result."""
    function = {"name": tool, "arguments": json.dumps(args)}
    call = {"id": f"c-{name}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": text, "id": name, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c-{name}", "content": result, "id": f"{name}r"},
    ]


def count(text: str) -> int:
    return len(text) // 4
