"""The fault server answers real clients as the providers do, and fails as it is told to."""

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from fault_server import Answer, FaultServer, ToolCall, Usage
from fault_support import PROTOCOLS, wired

SAID = "Two  words,\nand a line: ünïcödé 汉字."
ARGS = {"name": 'a "quoted" name ' * 4, "deep": True}
CALLS = (ToolCall("look", ARGS), ToolCall("look", ARGS))
both = pytest.mark.parametrize("protocol", PROTOCOLS)
streamed_or_not = pytest.mark.parametrize("streaming", [False, True])


@tool
def look(name: str, deep: bool) -> str:
    """Look at something."""
    return name


@both
@streamed_or_not
def test_an_answer_arrives_as_it_was_written_with_its_calls_and_usage(wires, protocol, streaming):
    wires.server.restart([Answer(SAID, CALLS, usage=Usage(120, 30))] * 2)
    model = wires.model(protocol, streaming=streaming).bind_tools([look])
    for answer in (model.invoke("hello"), wires.run(model.ainvoke("hello"))):
        assert answer.text == SAID
        assert [call["args"] for call in answer.tool_calls] == [ARGS, ARGS]
        assert len({call["id"] for call in answer.tool_calls}) == 2
        usage = answer.usage_metadata
        assert (usage["input_tokens"], usage["output_tokens"]) == (120, 30)
    assert [(one.stream, one.protocol) for one in wires.server.requests] == [
        (streaming, protocol)
    ] * 2


CALL = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "c1"}])
RESULT = ToolMessage("found", tool_call_id="c1")
HI = HumanMessage("hi")


@both
@pytest.mark.parametrize("messages", [[HI, CALL], [HI, CALL, HI], [HI, RESULT, HI]])
def test_torn_calls_are_refused_as_providers_do(wires, protocol, messages):
    wires.server.restart(lambda request: "fine")
    model = wires.model(protocol)
    with pytest.raises(Exception, match=r"tool_call_id|tool_result|must be a response"):
        model.invoke(messages)
    assert model.invoke([HI, CALL, RESULT]).text == "fine"
    assert len(wires.server.torn) == 1


def test_a_script_that_ends_says_so_when_the_server_closes():
    def run() -> None:
        with wired() as wires, pytest.raises(Exception, match="the script failed"):
            wires.model("openai").invoke("hi")

    with pytest.raises(IndexError, match="0 replies and this is request 1"):
        run()


# OpenAI's Responses


@pytest.fixture(scope="module")
def responses() -> Iterator[tuple[FaultServer, openai.OpenAI]]:
    with (
        FaultServer([]) as server,
        openai.OpenAI(base_url=server.openai_url, api_key="none", max_retries=0) as client,
    ):
        yield server, client


def asked(client: openai.OpenAI, given: Any = "hi", stream: bool = False) -> Any:
    """The response; the client puts one that is streamed together out of its events."""
    if not stream:
        return client.responses.create(model="m", input=given)
    with client.responses.stream(model="m", input=given) as events:
        list(events)
        return events.get_final_response()


@streamed_or_not
def test_a_response_arrives_and_can_be_sent_back(responses, streaming):
    server, client = responses
    server.restart([Answer(SAID, CALLS, usage=Usage(120, 30)), "fine"])
    answer = asked(client, stream=streaming)
    assert (answer.output_text, answer.status) == (SAID, "completed")
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (120, 30)
    _, first, second = answer.output
    assert first.arguments == second.arguments == json.dumps(ARGS)
    items = [item.model_dump(exclude_none=True) for item in answer.output]
    result = {"type": "function_call_output", "output": "found"}
    results = [{**result, "call_id": call.call_id} for call in (first, second)]
    assert asked(client, [{"role": "user", "content": "hi"}, *items, *results]).output_text
    assert server.torn == []


USER = {"role": "user", "content": "hi"}
ITEM = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "found"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": []}
SPOKEN = {"role": "assistant", "content": [{"type": "output_text", "text": "So."}]}


@pytest.mark.parametrize(
    ("items", "refused"),
    [
        ([USER, ITEM], "No tool output found for function call c1."),
        ([USER, OUTPUT, ITEM], "No tool call found for function call output"),
        ([USER, ITEM, ITEM, OUTPUT], "Duplicate function call with call_id c1."),
        ([USER, {**ITEM, "call_id": "c" * 65}], "maximum length 64"),
        ([USER, {**ITEM, "id": "call_1"}, OUTPUT], "begins with 'fc'"),
        ([USER, THOUGHT, USER], "required following item"),
        ([USER, THOUGHT, SPOKEN, THOUGHT, SPOKEN], "Duplicate item found with id rs_1"),
        ([{"role": "user", "content": SPOKEN["content"]}], "Supported values are"),
        ([USER, THOUGHT, ITEM, OUTPUT, SPOKEN, USER], ""),
        ([USER, ITEM, OUTPUT, ITEM, OUTPUT], ""),
        ([{"type": "item_reference", "id": "msg_1"}, USER], ""),
    ],
)
def test_what_the_service_refuses_is_refused(responses, items, refused):
    server, client = responses
    server.restart(lambda request: "fine")
    if refused:
        with pytest.raises(openai.BadRequestError, match=refused):
            asked(client, items)
    else:
        assert asked(client, items).output_text == "fine"
    assert len(server.torn) == bool(refused)
