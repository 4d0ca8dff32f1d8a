"""What the loops of other SDKs talk to, and what they must have kept."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from conspectus import Archive
from conspectus.archive import Scope
from conspectus_lab.testing.fault_server import Answer, FaultServer, Request, ToolCall
from conspectus_sdk.fitting import plain

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
    blocks = last["content"] if isinstance(last["content"], list) else []
    if last["role"] == "tool" or any(block.get("type") == "tool_result" for block in blocks):
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


@dataclass
class ResponsesServer:
    """What speaks OpenAI's Responses on loopback, without a stream.

    Attributes:
        url: the `base_url` for a client.
        bodies: of all requests.
        wrong: why a request is none that the provider takes.
    """

    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """One response."""
        self.bodies.append(body)
        items, number = body["input"], len(self.bodies)
        calls = [one["call_id"] for one in items if one.get("type") == "function_call"]
        results = [one["call_id"] for one in items if one.get("type") == "function_call_output"]
        if calls != results:
            self.wrong.append(f"{number}: calls {calls}, results {results}")
        parts = [items, body.get("instructions", ""), body.get("tools", [])]
        if sum(map(size, parts)) > WINDOW:
            self.wrong.append(f"{number}: over the window")
        if items[-1].get("type") == "function_call_output":
            text = {
                "type": "output_text",
                "text": f"It is sound, says {number}.",
                "annotations": [],
            }
            output = {
                "id": f"msg_{number}", "type": "message", "role": "assistant",
                "status": "completed", "content": [text],
            }  # fmt: skip
        else:
            output = {
                "id": f"fc_{number}", "type": "function_call", "call_id": f"call_{number}",
                "name": "look", "arguments": json.dumps({"n": number}), "status": "completed",
            }  # fmt: skip
        return {
            "id": f"resp_{number}", "object": "response", "created_at": 0, "status": "completed",
            "model": body["model"], "output": [output], "tools": [], "tool_choice": "auto",
            "parallel_tool_calls": True, "metadata": {},
            "usage": {
                "input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens_details": {"reasoning_tokens": 0},
            },
        }  # fmt: skip


@contextmanager
def responses_server() -> Iterator[ResponsesServer]:
    """A server that speaks Responses, until the end of the block."""
    made = ResponsesServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            text = json.dumps(made.answer(body)).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    made.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()


def until_large(step: Callable[[int], None], history: Sequence[Any]) -> None:
    """Take steps until the history is ten windows large."""
    turn = 0
    while size(history) <= WINDOWS * WINDOW:
        step(turn)
        turn += 1
