"""Real clients at the real endpoint: ten windows, and every fault of an upstream."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest

from conspectus.archive import Archive, Scope
from conspectus.config import SummarizationConfig
from conspectus_serve.settings import DEFAULT_SUMMARIZATION
from fault_server import FaultServer, faults
from histories import call_and_result, user
from postgres_support import postgres_schema
from sdk_support import Chat, Messages, script
from serve_support import (
    METER,
    SECRET,
    WINDOW,
    Serving,
    conspectus_header,
    provider_tokens,
    proxied_script,
    serving,
    talk,
)

LONG = "Its tests say so, and they say why, and what else it may come to, now and later. " * 12
FILLER = "The function reads its input, checks it, and gives back what it has found there. " * 4
USER: Any = {"role": "user", "content": "hi"}


def endpoint_with_window(
    path: Path, script: Any = script, **settings: Any
) -> AbstractContextManager[tuple[FaultServer, Serving]]:
    return proxied_script(script, path, limit=WINDOW, count=provider_tokens, **settings)


def archived_text(path: Path | str) -> str:
    """All that is archived of the tenant's only thread."""
    with Archive.open(path) as archive:
        [thread] = archive.threads(SECRET.tenant("k"))
        return json.dumps(archive.export(Scope(SECRET.tenant("k"), thread)))


@pytest.mark.slow
@pytest.mark.parametrize("loop", [Chat, Messages])
def test_ten_windows_go_through_one(loop, tmp_path):
    with endpoint_with_window(tmp_path / "a.db") as (upstream, endpoint):
        talk = loop(endpoint)
        talk.model = "m"
        for turn in range(45):
            talk.ask(f"Question {turn}. {LONG}")
            talk.add_results(talk.answer(talk.history), LONG * 2)
            assert talk.answer(talk.history) == []
        assert METER.count_messages(talk.history) > 10 * WINDOW
        assert upstream.too_long == upstream.invalid == []
        last = upstream.requests[-1].text
    archived_or_sent = archived_text(tmp_path / "a.db") + last
    assert [turn for turn in range(45) if f"Question {turn}." not in archived_or_sent] == []


def post(endpoint: Serving, history: list[Any], **fields: Any) -> httpx.Response:
    body = {"model": "m", "messages": history, **fields}
    key = {"authorization": "Bearer k"}
    return httpx.post(f"{endpoint.openai_url}/chat/completions", json=body, headers=key, timeout=60)


def test_a_message_that_was_only_clipped_is_counted_in_a_header(tmp_path):
    read = call_and_result("read_file", {"path": "log.txt"}, "x" * 40_000, "a1")
    history = [user("Read the log."), *read]
    with endpoint_with_window(tmp_path / "a.db") as (upstream, endpoint):
        answer = post(endpoint, history)
        [sent] = [request.body["messages"] for request in upstream.requests]
    assert len(sent) == len(history)
    assert conspectus_header(answer, "messages-evicted") == "0"
    assert conspectus_header(answer, "messages-clipped") == "1"


def test_headers_count_evictions_also_after_a_restart(tmp_path):
    history = talk(30)
    longer = [*history, {"role": "assistant", "content": "x"}, history[-1]]
    with endpoint_with_window(tmp_path / "a.db", alternate_roles="off") as (upstream, endpoint):
        short = post(endpoint, history[:1])
        whole = post(endpoint, history)
        longer_answer = post(endpoint, longer)
        sent = upstream.requests[1].body["messages"]
        assert longer_answer.json()["usage"]["prompt_tokens"] == upstream.requests[2].tokens
    with endpoint_with_window(tmp_path / "a.db") as (_, endpoint):
        after_restart = post(endpoint, longer)
    headers = [
        {name.removeprefix("x-conspectus-"): value for name, value in response.headers.items()}
        for response in (short, whole, longer_answer, after_restart)
    ]
    assert (headers[0]["compacted"], headers[0]["messages-evicted"]) == ("false", "0")
    assert headers[1]["compacted"] == "true"
    assert len(sent) == len(history) - int(headers[1]["messages-evicted"]) + 1
    assert int(headers[1]["tokens-before"]) == METER.count_messages(history)
    assert int(headers[1]["tokens-after"]) == METER.count_messages(sent)
    for name in ("thread", "record", "messages-evicted"):
        assert headers[1][name] == headers[2][name] == headers[3][name]


def test_a_fitting_request_passes_byte_for_byte(tmp_path):
    raw = b'{"messages" : [{"role":"user","content":"h\\u00e9"}],\n "model":"m", "stream":true}'
    with endpoint_with_window(tmp_path / "a.db", lambda request: faults.slow(0.2, FILLER)) as (
        upstream,
        endpoint,
    ):
        answers = [
            httpx.post(f"{url}/chat/completions", content=raw)
            for url in (upstream.openai_url, endpoint.openai_url)
        ]
        direct, through = (answer.content.replace(b"cmpl-2", b"cmpl-1") for answer in answers)
        assert direct == through
        assert {request.headers["content-length"] for request in upstream.requests} == {
            str(len(raw))
        }


def test_beside_many_tools_the_window_is_not_filled_to_its_brim(tmp_path):
    look = {"name": "look", "description": FILLER * 15, "parameters": {"type": "object"}}
    tools = [{"type": "function", "function": look}]
    history = talk(0)
    with endpoint_with_window(tmp_path / "a.db", lambda request: FILLER) as (upstream, endpoint):
        for _ in range(30):  # what a provider counts may differ from the estimate
            answer = post(endpoint, history, tools=tools)
            history += [answer.json()["choices"][0]["message"], *talk(1, 30)]
    assert METER.count_tools(tools) > 0.25 * WINDOW
    assert 0.8 * WINDOW < max(sent.tokens for sent in upstream.requests) < 0.97 * WINDOW


def test_a_long_answer_takes_half_of_what_tools_leave(tmp_path):
    look = {"name": "look", "description": FILLER * 32, "parameters": {"type": "object"}}
    tools = [{"type": "function", "function": look}]
    assert METER.count_tools(tools) > WINDOW / 2
    with endpoint_with_window(tmp_path / "a.db", lambda request: "fine") as (upstream, endpoint):
        answer = post(endpoint, [USER], tools=tools, max_tokens=WINDOW)
        assert answer.status_code == 200, answer.text
        assert len(upstream.requests) == 1


def test_room_for_the_answer_does_not_shrink_a_window(tmp_path):
    answers = []
    with proxied_script(
        ["fine"] * 3, tmp_path / "a.db", window=20_000, count=provider_tokens
    ) as upstream_and_endpoint:
        for max_tokens in (6_000, 9_000, 9_000):  # a client that wants a longer answer asks again
            answers.append(post(upstream_and_endpoint[1], talk(22), max_tokens=max_tokens))
    assert [answer.headers["x-conspectus-compacted"] for answer in answers] == ["false"] * 3


@pytest.mark.parametrize("window", [WINDOW, None])
def test_a_refused_request_is_sent_once_more_and_smaller(tmp_path, window):
    settings = {**DEFAULT_SUMMARIZATION, "keep": {"type": "fraction", "value": 0.5}}
    config = SummarizationConfig.model_validate(settings)
    history = talk(10)
    with (
        FaultServer(["fine", "fine"], window=1_200, count=provider_tokens) as upstream,
        serving(upstream.anthropic_url, tmp_path / "a.db", config, window=window) as endpoint,
    ):
        answer = post(endpoint, history)
        assert (answer.status_code, answer.headers["x-conspectus-compacted"]) == (200, "true")
        assert len(upstream.requests) == 2
        longer = [*history, {"role": "assistant", "content": "fine"}, history[-1]]
        assert post(endpoint, longer).status_code == 200
        assert len(upstream.too_long) == 1  # the limit is known now


def test_what_cannot_be_smaller_is_told_as_the_provider_would(tmp_path):
    messages: Any = [{"role": "system", "content": FILLER * 200}, USER]
    with (
        endpoint_with_window(tmp_path / "a.db") as (upstream, endpoint),
        openai.OpenAI(base_url=endpoint.openai_url, api_key="k", max_retries=0) as openai_client,
        anthropic.Anthropic(base_url=endpoint.url, api_key="k", max_retries=0) as anthropic_client,
    ):
        with pytest.raises(openai.BadRequestError, match="tokens") as caught:
            openai_client.chat.completions.create(model="m", messages=messages)
        assert caught.value.code == "context_length_exceeded"
        with pytest.raises(anthropic.BadRequestError, match="tokens"):
            anthropic_client.messages.create(
                model="m", system=FILLER * 200, messages=[USER], max_tokens=9
            )
        assert upstream.requests == []


@pytest.mark.slow
@pytest.mark.postgres
def test_two_instances_serve_the_same_conversations():
    with (
        postgres_schema() as address,
        FaultServer(
            lambda request: f"Answer. {LONG}", window=WINDOW, count=provider_tokens
        ) as upstream,
        serving(upstream.anthropic_url, address, secret_file="unused") as first_instance,
        serving(upstream.anthropic_url, address, secret_file="unused") as second_instance,
    ):

        def converse(number: int) -> list[str]:
            history: list[Any] = []
            threads = []
            for turn in range(18):
                # All begin with the same words.
                question = f"Question {turn} of {number}." if turn else "Hello."
                history.append({"role": "user", "content": f"{question} {LONG}"})
                answer = post((first_instance, second_instance)[turn % 2], history)
                assert answer.status_code == 200, answer.text
                threads.append(answer.headers["x-conspectus-thread"])
                text = answer.json()["choices"][0]["message"]["content"]
                history.append({"role": "assistant", "content": f"{text} {number}"})
            return threads

        with ThreadPoolExecutor(6) as pool:
            threads = list(pool.map(converse, range(6)))
        assert upstream.too_long == []
        # Once they differ, each keeps to one thread, and no two share any.
        later_threads = [set(names[4:]) for names in threads]
        assert all(len(names) == 1 for names in later_threads)
        assert len(set.union(*later_threads)) == 6
        with Archive.open(address) as archive:
            for number, [thread] in enumerate(later_threads):
                rows = str(archive.export(Scope(SECRET.tenant("k"), thread)))
                conversations_found = [n for n in range(6) if f"Question 1 of {n}." in rows]
                assert conversations_found == [number]


PLAIN = """unauthorized no_credit request_timeout server_error blocked cut_before_headers too_large
    cut_in_the_middle ends_early error_in_the_stream invalid_json empty_choices length""".split()
FAULTS: dict[str, Any] = {
    **{name: getattr(faults, name)() for name in PLAIN},
    "none": "This is an answer.",
    "context_length": faults.context_length(100, 200),
    "bad_request": faults.bad_request("no such parameter"),
    "not_found": faults.not_found("the model"),
    "rate_limited": faults.rate_limited(7),
    "unavailable": faults.unavailable(3),
    "slow": faults.slow(0.2),
    "content_filter": faults.content_filter("What there was"),
    "refusal": faults.refusal("I do not do this."),
    "lying_usage": faults.lying_usage(0, 0),
}
PATHS = {"messages": "/v1/messages", "chat": "/v1/chat/completions", "responses": "/v1/responses"}
OVERFLOW = ("context_length", "too_large")
"""After these the endpoint sends less, which the provider refuses here too."""


def body(protocol: str, stream: bool, model: str) -> dict[str, Any]:
    """A request of one question."""
    field = "input" if protocol == "responses" else "messages"
    fields = {"model": model, field: [{"role": "user", "content": "What is it?"}], "stream": stream}
    return fields | ({"max_tokens": 100} if protocol == "messages" else {})


def received(url: str, protocol: str, stream: bool, fault: str) -> tuple[int, str, bytes, bool]:
    """The status, the kind and the bytes of an answer, and whether it came to its end."""
    # Of each model the endpoint learns how much it takes, so that each fault needs one of its own.
    request_body = body(protocol, stream, f"{fault}-{protocol}-{stream}")
    status = 0
    content_type = ""
    received_bytes = b""
    complete = False
    try:
        with httpx.stream("POST", url + PATHS[protocol], json=request_body, timeout=60) as answer:
            status = answer.status_code
            content_type = answer.headers.get("content-type", "")
            for piece in answer.iter_raw():
                received_bytes += piece
            complete = True
    except httpx.TransportError:
        pass
    return status, content_type, received_bytes, complete


@pytest.fixture(scope="module")
def upstream_and_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    archive = tmp_path_factory.mktemp("faults") / "a.db"
    with proxied_script(lambda request: "Good.", archive) as (upstream, endpoint):
        yield upstream, endpoint


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_comes_through_as_it_is(upstream_and_endpoint, fault, stream):
    upstream, endpoint = upstream_and_endpoint
    for protocol in PATHS:
        upstream.restart(lambda request: FAULTS[fault])
        through = received(endpoint.url, protocol, stream, fault)
        tries = len(upstream.requests)
        assert tries == 1 or fault in OVERFLOW
        upstream.restart(lambda request: FAULTS[fault])
        for _ in range(tries):  # answers are numbered
            direct = received(upstream.anthropic_url, protocol, stream, fault)
        if fault == "cut_before_headers":  # nothing came that could be passed on
            assert (direct[0], through[0]) == (0, 502)
        elif not stream and fault in ("cut_in_the_middle", "ends_early"):
            # It is read whole, as a refusal may stand in it: the client gets no half of an answer.
            assert (direct[0], through[0]) == (200, 502)
        elif fault == "cut_in_the_middle":  # what came with the break is not passed on
            assert through[0] == 502 or (direct[2].startswith(through[2]) and not through[3])
        else:
            assert through == direct
