"""Answers of upstreams that are not as the providers write them, read event by event."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from conspectus_serve.answers.chat import ChatAnswer
from conspectus_serve.answers.events import written
from conspectus_serve.answers.messages import MessagesAnswer
from conspectus_serve.answers.responses import ResponsesAnswer
from conspectus_serve.clearing import with_edits

NAME = "conspectus_recall"


def chunk(calls: list[dict[str, Any]], end: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"tool_calls": calls}, "finish_reason": end}
    return written({"id": "a", "choices": [choice]}, named=False)


def call(name: str, query: str, id: str) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps({"query": query})}
    return {"index": 0, "id": id, "type": "function", "function": function}


def test_two_calls_under_one_index_are_two():
    answer = ChatAnswer(NAME)
    seen = [*answer.event(chunk([call(NAME, "the port", "c1")]))]
    seen += answer.event(chunk([call(NAME, "the host", "c2")]))
    seen += answer.event(chunk([], "tool_calls"))
    assert seen == []
    asked = [(one.id, json.loads(one.arguments)["query"]) for one in answer.asks]
    assert asked == [("c1", "the port"), ("c2", "the host")]


def test_pieces_of_two_calls_under_one_index_stay_apart():
    answer = ChatAnswer(NAME)
    for id, pieces in (("c1", ['{"que', 'ry": "port"}']), ("c2", ['{"query"', ': "host"}'])):
        for place, piece in enumerate(pieces):
            one = call(NAME, "", id) if place == 0 else {"index": 0, "function": {}}
            one["function"]["arguments"] = piece
            answer.event(chunk([one]))
    answer.event(chunk([], "tool_calls"))
    assert [json.loads(one.arguments)["query"] for one in answer.asks] == ["port", "host"]


def test_a_call_without_an_id_cannot_be_answered_and_ends_nothing():
    messages = MessagesAnswer(NAME)
    use = {"type": "tool_use", "name": NAME, "input": {"query": "port"}}
    for event in (
        {"type": "content_block_start", "index": 0, "content_block": use},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ):
        assert messages.event(written(event)) == []
    assert messages.asks == []
    assert messages.end()

    responses = ResponsesAnswer(NAME)
    item = {"type": "function_call", "id": "f", "name": NAME, "arguments": "{}"}
    whole = {"id": "r", "object": "response", "status": "completed", "output": [item]}
    responses.whole(whole)
    assert responses.asks == []
    assert responses.body()["output"] == []


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
