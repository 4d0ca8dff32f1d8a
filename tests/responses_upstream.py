"""An upstream that speaks OpenAI's Responses, holds no state, and writes down what it was sent."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from conspectus.tokens import TokenMeter
from serve_support import running


class Upstream:
    """Answers with what `say` gives for a body: output items."""

    def __init__(self, say: Callable[[dict[str, Any], int], list[Any]], window: int) -> None:
        self.say, self.window = say, window
        self.bodies: list[dict[str, Any]] = []
        self.over: list[int] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        raw, more = b"", True
        while more:
            message = await receive()
            raw, more = raw + message.get("body", b""), message.get("more_body", False)
        body = json.loads(raw)
        self.bodies.append(body)
        given = body["input"] if isinstance(body["input"], list) else [USER | {"content": "text"}]
        meter = TokenMeter(model=body["model"])
        tokens = meter.messages([one for one in given if one.get("type") != "item_reference"])
        beside = meter.tools(body.get("tools") or []) + meter.text(body.get("instructions") or "")
        tokens += beside
        if tokens > self.window:
            self.over.append(tokens)
        number = len(self.bodies)
        whole = {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": 0,
            "status": "completed",
            "model": body["model"],
            "output": self.say(body, number),
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {
                "input_tokens": tokens,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": 1,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": tokens + 1,
            },
        }
        kind = b"text/event-stream" if body.get("stream") else b"application/json"
        head = [(b"content-type", kind)]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        pieces = list(events(whole)) if body.get("stream") else [json.dumps(whole).encode()]
        for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


USER = {"role": "user"}


def events(whole: dict[str, Any]) -> Iterator[bytes]:
    made: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}
    ]
    for place, item in enumerate(whole["output"]):
        at = {"output_index": place, "item": item}
        made.append({"type": "response.output_item.added", **at})
        for part in item.get("content", []):
            more = {"item_id": item["id"], "output_index": place, "content_index": 0}
            empty = {**part, "text": ""}
            made.append({"type": "response.content_part.added", **more, "part": empty})
            text = {"delta": part["text"], "logprobs": []}
            made.append({"type": "response.output_text.delta", **more, **text})
        made.append({"type": "response.output_item.done", **at})
    made.append({"type": "response.completed", "response": whole})
    for number, event in enumerate(made):
        data = json.dumps({**event, "sequence_number": number})
        yield f"event: {event['type']}\ndata: {data}\n\n".encode()


def message(text: str, number: int) -> dict[str, Any]:
    """An output item with a text."""
    part = {"type": "output_text", "text": text, "annotations": []}
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


@contextmanager
def responding(
    say: Callable[[dict[str, Any], int], list[Any]], window: int
) -> Iterator[tuple[Upstream, str]]:
    """The upstream, and its address."""
    upstream = Upstream(say, window)
    with running(upstream) as url:
        yield upstream, url
