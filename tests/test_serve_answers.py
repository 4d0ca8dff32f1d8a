"""Answers of upstreams that are not as the providers write them."""

import asyncio
import json
from collections.abc import AsyncIterator

from conspectus_serve.answers.messages import MessagesAnswers
from conspectus_serve.answers.responses import ResponsesAnswers
from conspectus_serve.clearing import with_edits

NAME = "conspectus_recall"


def test_a_call_without_an_id_cannot_be_answered_and_ends_nothing():
    use = {"type": "tool_use", "name": NAME, "input": {"query": "port"}}
    body = {"type": "message", "content": [use], "stop_reason": "tool_use"}
    assert MessagesAnswers().lookups(body, NAME) == []
    assert MessagesAnswers().joined([body], NAME)["content"] == []

    item = {"type": "function_call", "id": "f", "name": NAME, "arguments": "{}"}
    whole = {"id": "r", "object": "response", "status": "completed", "output": [item]}
    assert ResponsesAnswers().lookups(whole, NAME) == []
    assert ResponsesAnswers().joined([whole], NAME)["output"] == []


def test_edits_are_reported_at_once_where_lines_end_with_carriage_returns():
    delta = b'event: message_delta\r\ndata: {"type": "message_delta", "delta": {}}\r\n\r\n'
    stop = b'event: message_stop\r\ndata: {"type": "message_stop"}\r\n\r\n'

    async def sent() -> AsyncIterator[bytes]:
        yield delta
        yield stop

    async def seen() -> list[bytes]:
        return [piece async for piece in with_edits(sent(), [{"type": "one"}], True)]

    first, last = asyncio.run(seen())
    assert json.loads(first.partition(b"data:")[2])["context_management"] == {
        "applied_edits": [{"type": "one"}]
    }
    assert last == stop
