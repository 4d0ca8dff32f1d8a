"""An agent that compacts, and what Prometheus can read of it.

    python examples/prometheus/agent_metrics.py [--port 9464] [--turns 60] [--once]

Serves /metrics while a LangChain agent works with a scripted model (no key, no network) in a window
of 4,000 tokens. A summariser that is busy now and then shows retries, a provider that refuses a
request shows the rescue, and a question about what has left shows recall. `--once` reads
/metrics itself after the turns, prints what it found and ends; else it goes on serving until it is
interrupted.

In a program of your own, three lines are new: the reader, the provider, and `listen`.
"""

from __future__ import annotations

import argparse
import re
import sys
import threading
import urllib.request
from collections.abc import Callable
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import CollectorRegistry, start_http_server

from conspectus import ContextGuard, SummarizationMiddleware
from conspectus.observe import OpenTelemetry, Price, listen, set_prices, unlisten

PRICES = {"writer": Price(input=0.25, output=2.0, cached=0.025)}
"""US dollars for a million tokens; yours are those of your contract."""


class Writer(FakeListChatModel):
    """A summariser that is busy at every fourth call."""

    model_name: str = "writer"
    calls: int = 0

    def _call(self, messages: Any, *rest: Any, **options: Any) -> str:
        self.calls += 1
        if self.calls % 4 == 0:
            raise ConnectionError("busy")
        shown = re.search(r'<message id="([^"]+)"', str(messages[-1].text))
        source = f" [{shown[1]}]" if shown else ""
        return f"## Goal\n- Look at every module.\n\n## Done\n- The older ones are sound.{source}"


class Worker(FakeListChatModel):
    """The agent's model; its provider finds every twentieth request too long."""

    calls: int = 0

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _call(self, messages: Any, *rest: Any, **options: Any) -> str:
        self.calls += 1
        if self.calls % 20 == 0:
            raise ValueError("prompt is too long: 4231 tokens > 4000 maximum")
        return f"Module {len(messages)} is sound. " + "It does its part. " * 60


def build_agent() -> Any:
    """An agent whose history is kept within 4,000 tokens."""
    model = Worker(responses=[])
    summarization = SummarizationMiddleware(
        model,
        trigger=("tokens", 2_000),
        keep=("messages", 6),
        summarizer=Writer(responses=[]),
        recall="auto",
    )
    return create_agent(
        model,
        tools=[],
        middleware=[summarization, ContextGuard(summarization, window=4_000)],
        checkpointer=InMemorySaver(),
        store=InMemoryStore(),
    )


def work(agent: Any, turns: int, stop: threading.Event) -> None:
    """So many turns, in three threads of conversation."""
    for turn in range(turns):
        if stop.is_set():
            return
        said = f"Look at module_{turn}.py: is it sound?"
        if turn % 10 == 9:
            said = f"What did you say of module_{turn - 9}.py?"
        thread: Any = {"configurable": {"thread_id": f"session-{turn % 3}"}}
        agent.invoke({"messages": [HumanMessage(said)]}, thread)


def serve(port: int) -> tuple[int, Callable[[], None]]:
    """Serve /metrics; answers with the port and what ends it. Port 0 takes any that is free."""
    registry = CollectorRegistry()
    reader = PrometheusMetricReader(registry=registry)
    server, thread = start_http_server(port, addr="127.0.0.1", registry=registry)
    metrics = OpenTelemetry(meter_provider=MeterProvider([reader]))
    listen(metrics)
    set_prices(PRICES)

    def end() -> None:
        unlisten(metrics)
        server.shutdown()
        server.server_close()
        thread.join()

    return server.server_port, end


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """Reads a number of the command line."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is no number from {least:,} to {most:,}")
        return int(text)

    return read


def read_metrics(port: int) -> str:
    """What Prometheus would read just now of Conspectus, without comments and buckets."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    own = [line for line in lines if line.startswith("conspectus_")]
    return "\n".join(line for line in own if "_bucket{" not in line)


def main(arguments: list[str] | None = None) -> int:
    """Serve and work."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    port_number, turns = whole_number(0, 65_535), whole_number(1, 1_000_000)
    parser.add_argument("--port", type=port_number, default=9464, help="0 for any that is free")
    parser.add_argument("--turns", type=turns, default=60, help="turns of the agent, from 1")
    parser.add_argument("--once", action="store_true", help="print /metrics after the turns; end")
    asked = parser.parse_args(arguments)
    try:
        port, end = serve(asked.port)
    except OSError as error:
        parser.error(f"port {asked.port} cannot be served: {error.strerror}; take another, or 0")
    stop = threading.Event()
    try:
        print(f"http://127.0.0.1:{port}/metrics", flush=True)
        work(build_agent(), asked.turns, stop)
        print(f"{asked.turns} turns done", flush=True)
        if asked.once:
            print(read_metrics(port), flush=True)
        else:
            print("serving until interrupted (Ctrl-C)", flush=True)
            stop.wait()
    except KeyboardInterrupt:
        pass
    finally:
        end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
