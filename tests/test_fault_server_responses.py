"""The fault server speaks Responses to the real client, and refuses as the service does."""

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from fault_server import Answer, FaultServer, ToolCall, Usage, faults

SAID = "Two  words,\nand a line: ünïcödé 汉字."
ARGS = {"name": 'a "quoted" name ' * 4, "deep": True}
streamed_or_not = pytest.mark.parametrize("stream", [False, True])


@pytest.fixture(scope="module")
def made() -> Iterator[tuple[FaultServer, openai.OpenAI]]:
    with (
        FaultServer([]) as server,
        openai.OpenAI(base_url=server.openai_url, api_key="none", max_retries=0) as client,
    ):
        yield server, client


def asked(client: openai.OpenAI, stream: bool, given: Any = "hi", **more: Any) -> Any:
    """The response; the client puts one that is streamed together out of its events."""
    if not stream:
        return client.responses.create(model="m", input=given, **more)
    with client.responses.stream(model="m", input=given, **more) as events:
        kinds = [event.type for event in events]
        assert kinds[0] == "response.created"
        return events.get_final_response()


@streamed_or_not
def test_an_answer_arrives_with_its_calls_and_its_usage(made, stream):
    server, client = made
    calls = (ToolCall("look", ARGS), ToolCall("look", ARGS))
    server.restart([Answer(SAID, calls, usage=Usage(120, 30))])
    answer = asked(client, stream, instructions="be brief")
    assert (answer.output_text, answer.status) == (SAID, "completed")
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (120, 30)
    message, first, second = answer.output
    assert message.id.startswith("msg_")
    assert first.call_id != second.call_id
    assert first.arguments == second.arguments
    assert type(first).__name__.endswith("FunctionToolCall")
    [request] = server.requests
    assert (request.protocol, request.stream) == ("responses", stream)
    assert request.messages == [{"role": "user", "content": "hi"}]
    assert request.text == "be brief\nhi"
    # What came can be sent back as it is.
    history = [
        {"role": "user", "content": "hi"},
        *(item.model_dump(exclude_none=True) for item in answer.output),
        *(
            {"type": "function_call_output", "call_id": call.call_id, "output": "found"}
            for call in (first, second)
        ),
    ]
    server.restart(["fine"])
    assert asked(client, False, history).output_text == "fine"
    assert server.torn == []


@streamed_or_not
@pytest.mark.parametrize(
    ("fault", "status", "reason"),
    [
        (faults.length(), "incomplete", "max_output_tokens"),
        (faults.content_filter("so far"), "incomplete", "content_filter"),
        (faults.refusal("I do not."), "completed", None),
    ],
)
def test_an_answer_says_why_it_ended(made, stream, fault, status, reason):
    server, client = made
    server.restart([fault])
    if stream:
        events = list(client.responses.create(model="m", input="hi", stream=True))
        answer = events[-1].response
    else:
        answer = asked(client, stream)
    assert answer.status == status
    assert (answer.incomplete_details and answer.incomplete_details.reason) == reason
    if reason is None:
        assert answer.output[0].content[0].refusal == "I do not."


@streamed_or_not
def test_nothing_is_an_answer_without_output(made, stream):
    server, client = made
    server.restart([faults.empty_choices()])
    assert asked(client, stream).output == []


@streamed_or_not
@pytest.mark.parametrize(
    "fault",
    [
        faults.cut_before_headers(),
        faults.cut_in_the_middle(),
        faults.invalid_json(),
        faults.error_in_the_stream(),
    ],
)
def test_half_of_an_answer_is_an_error(made, stream, fault):
    server, client = made
    server.restart([fault, "and it goes on"])
    with pytest.raises(Exception):  # noqa: B017, PT011
        asked(client, stream)
    assert asked(client, stream).output_text == "and it goes on"


def test_what_is_too_long_is_refused_in_the_words_of_this_protocol(made):
    _, client = made
    with FaultServer(["fine"], window=100) as server:
        other = client.with_options(base_url=server.openai_url)
        with pytest.raises(openai.BadRequestError, match="exceeds the context window") as caught:
            asked(other, False, "long " * 200)
        assert (caught.value.code, caught.value.param) == ("context_length_exceeded", "input")
        assert asked(other, False, "short", instructions="x").output_text == "fine"
        with pytest.raises(openai.BadRequestError):
            asked(other, False, "short", instructions="x" * 2_000)
        assert [one.number for one in server.refused] == [1, 3]


USER = {"role": "user", "content": "hi"}
CALL = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "found"}
PATCH = {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "x"}
PATCHED = {"type": "custom_tool_call_output", "call_id": "c2", "output": "done"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": []}
SPOKEN = {"role": "assistant", "content": [{"type": "output_text", "text": "So."}]}


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([USER, CALL], "No tool output found for function call c1."),
        ([USER, CALL, USER], "No tool output found for function call c1."),
        ([USER, RESULT], "No tool call found for function call output with call_id c1."),
        ([USER, RESULT, CALL], "No tool call found for function call output"),
        ([USER, PATCH, RESULT], "No tool call found for function call output"),
        ([USER, PATCH], "No tool output found for custom tool call c1."),
        ([USER, CALL, CALL, RESULT], "Duplicate function call with call_id c1."),
        ([USER, {**CALL, "call_id": "c" * 65}], "maximum length 64"),
        ([USER, {**CALL, "call_id": ""}], r"input\[1\]\.call_id"),
        ([USER, {**CALL, "name": ""}, RESULT], r"input\[1\]\.name"),
        ([USER, {**CALL, "id": "call_1"}, RESULT], "begins with 'fc'"),
        ([USER, {**SPOKEN, "type": "message", "id": "x"}], "begins with 'msg'"),
        ([USER, THOUGHT], "required following item"),
        ([USER, THOUGHT, USER], "required following item"),
        ([USER, THOUGHT, SPOKEN, THOUGHT, SPOKEN], "Duplicate item found with id rs_1"),
        ([{"role": "user", "content": SPOKEN["content"]}], "Supported values are: 'input_text'"),
        ([{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}], "output_text"),
    ],
)
def test_what_the_service_refuses_is_refused(made, items, said):
    server, client = made
    server.restart(lambda request: "fine")
    with pytest.raises(openai.BadRequestError, match=said):
        asked(client, False, items)
    assert len(server.torn) == 1


@pytest.mark.parametrize(
    "items",
    [
        [USER, CALL, RESULT],
        [USER, THOUGHT, CALL, RESULT, SPOKEN, USER],
        [USER, CALL, {**PATCH, "call_id": "c2"}, USER, RESULT, PATCHED],
        [USER, CALL, RESULT, CALL, RESULT],
        [{"type": "item_reference", "id": "msg_1"}, USER],
    ],
)
def test_what_the_service_takes_is_taken(made, items):
    server, client = made
    server.restart(lambda request: "fine")
    assert asked(client, False, items).output_text == "fine"
    assert server.torn == []


def test_a_history_that_the_server_should_hold_is_not_there(made):
    server, client = made
    server.restart(["fine"])
    with pytest.raises(openai.BadRequestError, match="resp_0' not found"):
        asked(client, False, previous_response_id="resp_0")
