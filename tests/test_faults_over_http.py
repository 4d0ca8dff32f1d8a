"""Every fault of a provider, through real clients: on the summariser's call and on the answer's.

Whatever a provider does, nothing is lost or torn, no words of a failure become a summary, what may
pass is tried again after the time that was asked for, and what is not ours to handle goes through.
"""

import asyncio
import itertools
import json
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_openai import ChatOpenAI

from compactor_support import check_nothing_missing, new_compactor
from conspectus import CompactionResult, ContextGuard, SummarizationMiddleware
from conspectus.core.policy import EMBEDDED
from fault_server import FaultServer, Reply, Request, faults
from graph_support import Bench, check_nothing_lost, thread_config, tool_turns

PROTOCOLS = ("openai", "anthropic")


@dataclass
class Wires:
    """A server, and the clients that talk to it; made once, as making clients takes long."""

    server: FaultServer
    runner: asyncio.Runner
    _models: dict[tuple[str, str, bool], BaseChatModel] = field(default_factory=dict)

    def model(self, protocol: str, name: str = "m", streaming: bool = False) -> Any:
        """A client that tries nothing again by itself."""
        key = (protocol, name, streaming)
        if key not in self._models:
            options: Any = {
                "api_key": "none",
                "max_retries": 0,
                "streaming": streaming,
                "profile": {},
            }
            self._models[key] = (
                ChatOpenAI(
                    model=name, base_url=self.server.openai_url, stream_usage=True, **options
                )
                if protocol == "openai"
                else ChatAnthropic(
                    model=name, base_url=self.server.anthropic_url, max_tokens=200, **options
                )
            )
        return self._models[key]

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """On the one loop that the connections of the clients belong to."""
        return self.runner.run(work)


@contextmanager
def wired() -> Iterator[Wires]:
    """The server and its clients."""
    with FaultServer([]) as server, asyncio.Runner() as runner:
        yield Wires(server, runner)


@pytest.fixture(scope="module")
def wires() -> Iterator[Wires]:
    """The fault server, and real clients of both providers."""
    with wired() as server_and_clients:
        yield server_and_clients


MARK = "zebra"
"""A word in all that a failing provider says."""

BAD_SUMMARY = (
    f"## Goal\n- {MARK} the user wants the modules of the project looked at, one after the other."
)
GOOD_SUMMARY = "## Goal\n- The user wants the modules of the project looked at [h0]"
WINDOW = 2_500

both_protocols = pytest.mark.parametrize("protocol", PROTOCOLS)
STREAMING_AND_LOOP = list(itertools.product([False, True], [False, True]))  # streaming, on a loop

FAILS: dict[str, tuple[Reply, int]] = {
    "401": (faults.unauthorized(), 1),
    "no credit": (faults.no_credit(), 1),
    "blocked": (faults.blocked(), 1),
    "408": (faults.request_timeout(), 3),
    "429": (faults.rate_limited(), 3),
    "500": (faults.server_error(), 3),
    "503": (faults.unavailable(), 3),
    "cut before headers": (faults.cut_before_headers(), 3),
    "cut in the middle": (faults.cut_in_the_middle(BAD_SUMMARY), 3),
    "ends early": (faults.ends_early(BAD_SUMMARY), 3),
    "error in the stream": (faults.error_in_the_stream(BAD_SUMMARY), 3),
    "limit in the stream": (faults.error_in_the_stream(BAD_SUMMARY, faults.rate_limited()), 3),
    "invalid JSON": (faults.invalid_json(BAD_SUMMARY), 3),
    "empty choices": (faults.empty_choices(), 1),
    "content filter": (faults.content_filter(BAD_SUMMARY), 1),
    "refusal": (faults.refusal(f"I do not summarise this, {MARK}."), 1),
    "length": (faults.length(BAD_SUMMARY), 1),
}
"""What always fails, and how often one summariser is asked."""

TOO_LONG = {"context length": faults.context_length(10, 20), "413": faults.too_large()}


def compacted(
    wires: Wires,
    model: Any,
    messages: list[BaseMessage],
    *,
    on_loop: bool = False,
    room: bool = False,
) -> CompactionResult:
    """One compaction, and a check that nothing was lost and nothing wrong is shown."""
    size: dict[str, Any] = {"trigger": ("messages", 8)} if room else {"window": WINDOW}
    compactor = new_compactor(model, keep=("messages", 4), **size)
    if on_loop:
        result = wires.run(compactor.acompact(messages, thread_id="t"))
    else:
        result = compactor.compact(messages, thread_id="t")
    check_nothing_missing(messages, result, compactor)
    assert MARK not in json.dumps(
        [message.model_dump() for message in result.messages], default=str
    )
    return result


@pytest.mark.sampled(4)
@both_protocols
@pytest.mark.parametrize("name", FAILS)
def test_a_fault_of_the_summariser_changes_no_history_that_has_room(wires, waits, protocol, name):
    fault, tries = FAILS[name]
    sent = tool_turns(3)
    for streaming, on_loop in STREAMING_AND_LOOP[::3]:
        if (name, protocol) == ("empty choices", "openai"):
            # Its client raises an IndexError over it, which nobody knows, and a ValueError over a
            # stream, which is certain to come again.
            tries = 1 if streaming else 3
        wires.server.restart(lambda request: fault)
        waits.clear()
        model = wires.model(protocol, streaming=streaming)
        result = compacted(wires, model, sent, on_loop=on_loop, room=True)
        if result.record is not None:  # a text that is no summary: the notes stand at once
            assert name in ("empty choices", "refusal", "ends early", "content filter", "length")
            assert result.record.by == "embedded"
        else:
            assert [*map(id, result.messages)] == [*map(id, sent)]
        # An answer without a text is asked for once more.
        asked_again = name in ("empty choices", "refusal") and tries == 1
        assert tries <= len(wires.server.requests) <= tries + asked_again
        assert waits == [0.5, 2.0][: tries - 1]


@pytest.mark.sampled(2)
@both_protocols
@pytest.mark.parametrize("name", [*FAILS, *TOO_LONG])
def test_a_fault_of_the_summariser_without_room_brings_the_embedded_one(
    wires, waits, protocol, name
):
    fault = FAILS[name][0] if name in FAILS else TOO_LONG[name]
    sent = tool_turns(11)
    for streaming, on_loop in STREAMING_AND_LOOP[1:3]:
        wires.server.restart(lambda request: fault)
        model = wires.model(protocol, streaming=streaming)
        result = compacted(wires, model, sent, on_loop=on_loop)
        assert result.record.by == EMBEDDED
        assert result.tokens_after <= WINDOW


@both_protocols
@pytest.mark.parametrize(
    "fault", [faults.rate_limited, faults.unavailable], ids=["429", "unavailable"]
)
@pytest.mark.parametrize(("seconds", "waited"), [(0.2, [0.5]), (7, [7.0]), (3_600, [])])
def test_a_providers_retry_time_is_kept_or_ends_the_tries(
    wires, waits, protocol, fault, seconds, waited
):
    wires.server.restart([fault(seconds), GOOD_SUMMARY])
    result = compacted(wires, wires.model(protocol), tool_turns(3), room=True)
    assert waits == waited
    assert len(wires.server.requests) == 1 + len(waited)
    assert (result.record is not None) == bool(waited)


def agent_of(wires: Wires, protocol: str, streaming: bool = False, guarded: bool = True) -> Bench:
    """A real agent: the model that answers, the one that summarises, one server for both."""
    summarization = SummarizationMiddleware(
        wires.model(protocol, "sums", streaming), trigger=("messages", 500), keep=("messages", 4)
    )
    middlewares = [summarization, ContextGuard(summarization)] if guarded else []
    return Bench(wires.model(protocol, "answers", streaming), *middlewares)


def step(bench: Bench, wires: Wires, on_loop: bool, *messages: BaseMessage) -> Any:
    agent_input: Any = {"messages": list(messages)} if messages else None
    if on_loop:
        return wires.run(bench.graph.ainvoke(agent_input, thread_config()))
    return bench.graph.invoke(agent_input, thread_config())


def by_model(**replies: Any) -> Callable[[Request], Reply]:
    """A script with a reply, or a function of the request, for each model."""

    def script(request: Request) -> Reply:
        reply = replies[request.model]
        return reply(request) if callable(reply) else reply

    return script


def outcome(agent: Bench, wires: Wires, on_loop: bool) -> tuple[Any, ...]:
    """What comes of one step: the error as it reaches the caller, or the answer as it is kept."""
    try:
        messages = (*tool_turns(2), HumanMessage("and now?", id="new"))
        answer = step(agent, wires, on_loop, *messages)["messages"][-1]
    except Exception as error:
        return type(error), str(error).partition("request_id")[0]
    end_reasons = {k: v for k, v in answer.response_metadata.items() if k.endswith("_reason")}
    return answer.content, end_reasons, answer.additional_kwargs, answer.tool_calls


@pytest.mark.sampled(4)
@both_protocols
@pytest.mark.parametrize("name", FAILS)
def test_a_fault_of_the_answering_model_goes_through_untouched(wires, protocol, name):
    fault, _ = FAILS[name]
    for streaming, on_loop in STREAMING_AND_LOOP[1:3]:
        outcomes = []
        for guarded in (False, True):
            wires.server.restart([fault])
            agent = agent_of(wires, protocol, streaming, guarded)
            outcome_of_step = outcome(agent, wires, on_loop)
            assert len(wires.server.requests) == 1  # nobody tries again in its place
            outcomes.append(
                (outcome_of_step, [(m.id, m.content) for m in agent.values["messages"][:9]])
            )
            if isinstance(outcome_of_step[0], type):
                assert len(agent.values["messages"]) == 9
                wires.server.restart(["Here I am again."])
                step(agent, wires, on_loop)
                assert agent.values["messages"][-1].text == "Here I am again."
        assert outcomes[0] == outcomes[1]


@pytest.mark.sampled(1)
@both_protocols
@pytest.mark.parametrize(("streaming", "on_loop"), STREAMING_AND_LOOP[1:3])
@pytest.mark.parametrize("fault", ["context length", "413"])
def test_a_request_that_is_too_long_is_rescued_once(protocol, streaming, on_loop, fault):
    def answer(request: Request) -> Reply:
        return (
            faults.too_large() if fault != "context length" and request.tokens > WINDOW else "Yes."
        )

    with wired() as wires:
        wires.server.window = WINDOW if fault == "context length" else None
        wires.server.restart(by_model(answers=answer, sums=GOOD_SUMMARY))
        agent = agent_of(wires, protocol, streaming)
        for n in range(7):
            next_turn = (*tool_turns(1, 60, n), HumanMessage(f"go on {n}", id=f"more{n}"))
            step(agent, wires, on_loop, *next_turn)
        answering_requests = [
            sent_request
            for sent_request in wires.server.requests
            if sent_request.model == "answers"
        ]
        too_large = [
            sent_request for sent_request in answering_requests if sent_request.tokens > WINDOW
        ]
        assert len(too_large) == 1
        assert len(answering_requests) == 8
        assert not wires.server.invalid
        check_nothing_lost(agent.graph, agent.store)
