"""What the loops of other SDKs talk to, and what they must have kept."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from conspectus import Archive
from conspectus.archive import Scope
from conspectus_sdk.fitting import plain
from fault_server import Answer, FaultServer, Request, ToolCall

WINDOW = 4_000
WINDOWS = 10
RESULT = "".join(f"line {n} of the module says what it does. " for n in range(50))
PROMPT = "You are a careful coding agent. Look before you answer."
PARAMETERS = {
    "type": "object",
    "properties": {"n": {"type": "integer", "description": "Which module."}},
    "required": ["n"],
}
OPENAI_TOOL = {
    "type": "function",
    "function": {"name": "look", "description": "Read a module.", "parameters": PARAMETERS},
}
ANTHROPIC_TOOL = {"name": "look", "description": "Read a module.", "input_schema": PARAMETERS}
RESPONSES_TOOL = {
    "type": "function", "name": "look", "description": "Read a module.", "parameters": PARAMETERS,
    "strict": False,
}  # fmt: skip


def asking(turn: int) -> str:
    return f"Look at module_{turn}.py: is it sound?"


def looked(turn: int) -> str:
    return f"module_{turn}.py: {RESULT}"


def script(request: Request) -> Answer:
    """A model that looks once at each question, and then answers."""
    last = request.messages[-1]
    content = last.get("content")
    blocks = content if isinstance(content, list) else [last]
    results = ("tool_result", "function_call_output")
    if last.get("role") == "tool" or any(block.get("type") in results for block in blocks):
        return Answer(f"It is sound, says request {request.number}.")
    return Answer("I look.", calls=(ToolCall("look", {"n": request.number}),))


def size(messages: Sequence[Any]) -> int:
    """Tokens as the servers here count them: one for four characters."""
    return len(json.dumps(messages, ensure_ascii=False)) // 4


def check_kept(archive: Archive, scope: Scope, history: Sequence[Any], sent: Sequence[Any]) -> None:
    """All of a history is in view or archived, each message as it was."""
    rows = archive.export(scope)
    kept = [row["message"] for row in rows] + [plain(one) for one in sent]
    assert len(rows) > len(history) / 2
    assert len({row["cite"] for row in rows}) == len(rows)  # each can be recalled by its own name
    for message in history:
        assert plain(message) in kept


def check_requests(server: FaultServer) -> None:
    """No request was over the window, and none had torn calls."""
    assert server.requests
    assert server.refused == []
    assert server.torn == []
    assert max(request.tokens for request in server.requests) <= WINDOW


def until_large(step: Callable[[int], None], history: Sequence[Any]) -> None:
    """Take steps until the history is ten windows large."""
    turn = 0
    while size(history) <= WINDOWS * WINDOW:
        step(turn)
        turn += 1
