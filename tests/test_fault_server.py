"""The fault server answers real clients as the two providers do, and fails as it is told to."""

import json
import urllib.error
import urllib.request

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

from fault_server import (
    Answer,
    FaultServer,
    Request,
    ToolCall,
    Usage,
    faults,
)
from fault_support import PROTOCOLS, wired

SAID = "Two  words,\nand a line: ünïcödé 汉字."
both = pytest.mark.parametrize("protocol", PROTOCOLS)
streamed_or_not = pytest.mark.parametrize("streaming", [False, True])


@tool
def look(name: str, deep: bool) -> str:
    """Look at something."""
    return name


@both
@streamed_or_not
def test_an_answer_arrives_as_it_was_written_with_its_usage(wires, protocol, streaming):
    wires.server.restart([Answer(SAID, usage=Usage(120, 30))] * 2)
    model = wires.model(protocol, streaming=streaming)
    for answer in (model.invoke("hello"), wires.run(model.ainvoke("hello"))):
        assert answer.text == SAID
        usage = answer.usage_metadata
        assert (usage["input_tokens"], usage["output_tokens"]) == (120, 30)
    assert [one.stream for one in wires.server.requests] == [streaming] * 2
    assert [one.protocol for one in wires.server.requests] == [protocol] * 2


@both
@streamed_or_not
def test_calls_of_tools_arrive_with_their_arguments(wires, protocol, streaming):
    args = {"name": 'a "quoted" name ' * 4, "deep": True}
    wires.server.restart([Answer("Looking.", (ToolCall("look", args), ToolCall("look", args)))])
    answer = wires.model(protocol, streaming=streaming).bind_tools([look]).invoke("look")
    assert [call["args"] for call in answer.tool_calls] == [args, args]
    assert len({call["id"] for call in answer.tool_calls}) == 2
    assert answer.text == "Looking."


@both
def test_a_stream_comes_in_pieces(wires, protocol):
    wires.server.restart([SAID])
    pieces = [chunk.text for chunk in wires.model(protocol, streaming=True).stream("hello")]
    assert "".join(pieces) == SAID
    assert sum(map(bool, pieces)) > 3


@both
def test_a_script_that_is_a_function_sees_what_is_asked(wires, protocol):
    def script(request: Request) -> str:
        return f"{request.number} {request.model} {request.text}"

    wires.server.restart(script)
    answer = wires.model(protocol, "some-model").invoke([SystemMessage("be brief"), ("user", "hi")])
    assert answer.text.startswith("1 some-model ")
    assert {"be brief", "hi"} <= set(answer.text.removeprefix("1 some-model ").split("\n"))


@both
def test_a_request_larger_than_the_window_is_refused_in_the_providers_words(protocol):
    with wired() as wires:
        wires.server.restart(lambda request: "fine")
        wires.server.window = 100
        model = wires.model(protocol)
        assert model.invoke("short").text == "fine"
        with pytest.raises(Exception, match="maximum") as caught:
            model.invoke("long " * 200)
        assert getattr(caught.value, "status_code", None) == 400
        assert [one.number for one in wires.server.refused] == [2]
        assert wires.server.refused[0].tokens > 100


CALL = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "c1"}])
RESULT = ToolMessage("found", tool_call_id="c1")


@both
@pytest.mark.parametrize(
    "messages",
    [
        [HumanMessage("hi"), CALL],
        [HumanMessage("hi"), CALL, HumanMessage("go on")],
        [HumanMessage("hi"), RESULT, HumanMessage("go on")],
    ],
)
def test_torn_calls_are_refused_as_providers_do(wires, protocol, messages):
    wires.server.restart(lambda request: "fine")
    model = wires.model(protocol)
    with pytest.raises(Exception, match=r"tool_call_id|tool_result|must be a response") as caught:
        model.invoke(messages)
    assert getattr(caught.value, "status_code", None) == 400
    assert len(wires.server.torn) == 1
    assert model.invoke([HumanMessage("hi"), CALL, RESULT]).text == "fine"
    assert len(wires.server.torn) == 1


ERRORS = {
    "unauthorized": (faults.unauthorized(), 401, 401),
    "408": (faults.request_timeout(), 408, 408),
    "413": (faults.too_large(), 413, 413),
    "429": (faults.rate_limited(), 429, 429),
    "no credit": (faults.no_credit(), 429, 400),
    "500": (faults.server_error(), 500, 500),
    "503": (faults.unavailable(), 503, 529),
    "blocked": (faults.blocked(), 400, 400),
}


@both
@pytest.mark.parametrize("name", ERRORS)
def test_an_error_has_the_status_and_the_body_of_its_provider(wires, protocol, name):
    fault, openai, anthropic = ERRORS[name]
    wires.server.restart([fault])
    with pytest.raises(Exception) as caught:  # noqa: PT011
        wires.model(protocol).invoke("hi")
    assert caught.value.status_code == (openai if protocol == "openai" else anthropic)  # type: ignore[attr-defined]
    body = caught.value.response.json()  # type: ignore[attr-defined]
    if protocol == "openai":
        assert set(body["error"]) == {"message", "type", "param", "code"}
    else:
        assert (body["type"], set(body["error"])) == ("error", {"type", "message"})


@both
@streamed_or_not
@pytest.mark.parametrize(
    "fault", [faults.cut_before_headers(), faults.cut_in_the_middle(), faults.invalid_json()]
)
def test_half_of_an_answer_is_an_error(wires, protocol, streaming, fault):
    wires.server.restart([fault, "and it goes on"])
    model = wires.model(protocol, streaming=streaming)
    with pytest.raises(Exception):  # noqa: B017, PT011
        model.invoke("hi")
    assert model.invoke("hi").text == "and it goes on"


def test_connections_are_counted_and_used_again(wires):
    with wired() as own:
        own.server.restart(["one", "two", faults.cut_before_headers(), "three"])
        model = own.model("openai")
        model.invoke("hi")
        model.invoke("hi")
        assert own.server.connections == 1
        with pytest.raises(Exception):  # noqa: B017, PT011
            model.invoke("hi")
        model.invoke("hi")
        assert own.server.connections == 2


def test_a_script_that_ends_or_fails_says_so_when_the_server_closes():
    def run() -> None:
        with wired() as wires, pytest.raises(Exception, match="the script failed"):
            wires.model("openai").invoke("hi")

    with pytest.raises(IndexError, match="0 replies and this is request 1"):
        run()


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [("/v1/other", "{}", 404), ("/v1/messages", "no json", 400), ("/v1/responses", "{}", 400)],
)
def test_what_is_no_request_is_refused(wires, path, body, status):
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(wires.server.anthropic_url + path, body.encode())
    assert caught.value.code == status
    assert "error" in json.load(caught.value)


def test_a_slow_answer_does_not_keep_the_server_from_closing():
    with FaultServer([faults.slow(600)]) as server:
        body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
        asked = urllib.request.Request(
            server.openai_url + "/chat/completions", json.dumps(body).encode()
        )
        answer = urllib.request.urlopen(asked, timeout=60)
        assert answer.status == 200
    with pytest.raises(Exception):  # noqa: B017, PT011
        json.load(answer)


def test_a_server_that_nobody_has_entered_says_so_instead_of_keeping_clients_waiting():
    server = FaultServer(["hello"])
    with pytest.raises(RuntimeError, match="enter it: with FaultServer"):
        _ = server.openai_url
    with server:
        assert server.openai_url.startswith("http://127.0.0.1:")
        with pytest.raises(RuntimeError, match="entered once"):
            server.__enter__()
    with pytest.raises(RuntimeError, match="make another one"):
        server.__enter__()


def test_what_a_script_raised_is_forgotten_where_another_begins():
    with FaultServer([]) as server:
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
        with pytest.raises(urllib.error.HTTPError, match="500"):
            urllib.request.urlopen(server.openai_url + "/chat/completions", body)
        server.restart(["a"])
