"""Behind the endpoint a fault is what it is; a client that breaks off leaves nothing behind."""

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from fault_server import FaultServer, faults
from serve_support import between

FAULTS: dict[str, Any] = {
    "none": "This is an answer.",
    "context_length": faults.context_length(100, 200),
    "too_long": faults.too_long(),
    "too_large": faults.too_large(),
    "bad_request": faults.bad_request("no such parameter"),
    "not_found": faults.not_found("the model"),
    "unauthorized": faults.unauthorized(),
    "no_credit": faults.no_credit(),
    "rate_limited": faults.rate_limited(7),
    "request_timeout": faults.request_timeout(),
    "server_error": faults.server_error(),
    "unavailable": faults.unavailable(3),
    "blocked": faults.blocked(),
    "slow": faults.slow(0.2),
    "cut_before_headers": faults.cut_before_headers(),
    "cut_in_the_middle": faults.cut_in_the_middle(),
    "ends_early": faults.ends_early(),
    "error_in_the_stream": faults.error_in_the_stream(),
    "invalid_json": faults.invalid_json(),
    "empty_choices": faults.empty_choices(),
    "content_filter": faults.content_filter("What there was"),
    "refusal": faults.refusal("I do not do this."),
    "length": faults.length(),
    "lying_usage": faults.lying_usage(0, 0),
}
PATHS = {"messages": "/v1/messages", "chat": "/v1/chat/completions", "responses": "/v1/responses"}
OVERFLOW = ("context_length", "too_long", "too_large")
"""After these the endpoint sends less, which the provider refuses here too."""


def body(protocol: str, stream: bool, model: str) -> dict[str, Any]:
    """A request of one question."""
    field = "input" if protocol == "responses" else "messages"
    made = {"model": model, field: [{"role": "user", "content": "What is it?"}], "stream": stream}
    return made | ({"max_tokens": 100} if protocol == "messages" else {})


def received(url: str, protocol: str, stream: bool, fault: str) -> tuple[int, str, bytes, bool]:
    """The status, the kind and the bytes of an answer, and whether it came to its end."""
    # Of each model the endpoint learns how much it takes, so that each fault needs one of its own.
    sent = body(protocol, stream, f"{fault}-{protocol}-{stream}")
    status, kind, got, whole = 0, "", b"", False
    try:
        with httpx.stream("POST", url + PATHS[protocol], json=sent) as answer:
            status, kind = answer.status_code, answer.headers.get("content-type", "")
            for piece in answer.iter_raw():
                got += piece
            whole = True
    except httpx.TransportError:
        pass
    return status, kind, got, whole


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    archive = tmp_path_factory.mktemp("faults") / "a.db"
    with between(lambda request: "Good.", archive) as (upstream, endpoint):
        yield upstream, endpoint


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_comes_through_as_it_is(staged, fault, stream):
    upstream, endpoint = staged
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


def test_a_client_that_breaks_off_leaves_no_connection_open(tmp_path):
    def slow(request: Any) -> Any:
        return faults.slow(5.0, "One word after the other. " * 12)

    with between(slow, tmp_path / "a.db") as (upstream, endpoint):
        given = {"json": body("chat", True, "m"), "timeout": 60.0}
        with httpx.stream("POST", endpoint.url + PATHS["chat"], **given) as answer:  # type: ignore[arg-type]
            next(answer.iter_raw())
            assert _open(upstream) == 1
        until = time.monotonic() + 4
        while _open(upstream) and time.monotonic() < until:
            time.sleep(0.02)
        assert _open(upstream) == 0


def _open(upstream: FaultServer) -> int:
    return upstream.open_connections
