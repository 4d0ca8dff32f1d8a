"""Summarisers that fail over HTTP, through real clients; ours beside LangChain's middleware.

An agent has 12 turns. In the middle third every call for a summary fails. Counted are the turns
that raised an error, the messages that no model is shown any more and that no summariser with a
good answer has read and no archive holds, and summaries in force that a failing call wrote.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware as LangChainMiddleware
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from tables import FaultServer, Row, faults

from conspectus import Compactor, NotFoundError, SummarizationMiddleware

TURNS = 12
FAULTY = range(TURNS // 3, 2 * TURNS // 3)
MARK = "zebra"
"""A word in all that a failing summariser says."""

GOOD = "The user asks about parts of a project, one after another; each question was answered. " * 4
BAD = f"The user asks about a {MARK} and its parts, one after another. " * 4
PROTOCOLS = ("openai", "anthropic")
_ASKED = re.compile(r"question-(\d+)-of-the-user")

CASES: Mapping[str, tuple[Any, bool]] = {
    "none": (GOOD, False),
    "context length": (faults.context_length(1_000, 2_000), False),
    "too large (413)": (faults.too_large(), False),
    "unauthorized (401)": (faults.unauthorized(), False),
    "no credit": (faults.no_credit(), False),
    "request timeout (408)": (faults.request_timeout(), False),
    "rate limit (429)": (faults.rate_limited(1), False),
    "server error (500)": (faults.server_error(), False),
    "overloaded": (faults.unavailable(), False),
    "filtered (400)": (faults.blocked(), False),
    "cut before headers": (faults.cut_before_headers(), False),
    "cut in the middle": (faults.cut_in_the_middle(BAD), False),
    "stream ends early": (faults.ends_early(BAD), True),
    "error in the stream": (faults.error_in_the_stream(BAD), True),
    "invalid JSON": (faults.invalid_json(BAD), False),
    "empty choices": (faults.empty_choices(), False),
    "content filter": (faults.content_filter(BAD), False),
    "refusal": (faults.refusal(BAD), False),
    "length": (faults.length(BAD), False),
}
"""What fails, and whether the client streams."""


def client(protocol: str, server: FaultServer, model: str, streaming: bool) -> Any:
    """Make a real client, which tries nothing again by itself."""
    if protocol == "openai":
        return ChatOpenAI(
            model=model, base_url=server.openai_url, api_key="none", max_retries=0,
            streaming=streaming, profile={"max_input_tokens": 50_000},
        )  # fmt: skip
    return ChatAnthropic(
        model_name=model, base_url=server.anthropic_url, api_key="none", max_retries=0,
        streaming=streaming, profile={"max_input_tokens": 50_000},
    )  # fmt: skip


def session(name: str, protocol: str, ours: bool) -> Counter[str]:
    """Run one agent; count what goes wrong."""
    fault, streaming = CASES[name]
    turn = 0
    read = set[str]()

    def script(request: Any) -> Any:
        if request.model != "small":
            return f"The answer to turn {turn}. " + "It is as was said. " * 8
        if turn in FAULTY and name != "none":
            return fault
        read.update(_ASKED.findall(request.text))
        return GOOD

    counts = Counter[str]()
    with FaultServer(script) as server, tempfile.TemporaryDirectory() as folder:
        settings: Any = {"trigger": ("messages", 8), "keep": ("messages", 3)}
        small = client(protocol, server, "small", streaming)
        path = Path(folder) / "a.db"
        middleware: Any = (
            SummarizationMiddleware(small, archive=path, **settings)
            if ours
            else LangChainMiddleware(small, **settings)
        )
        agent: Any = create_agent(
            client(protocol, server, "large", streaming),
            middleware=[middleware],
            checkpointer=InMemorySaver(),
        )
        config = {"configurable": {"thread_id": "t"}}
        for turn in range(TURNS):
            said = HumanMessage(
                f"question-{turn}-of-the-user? " + "Look closely. " * 9, id=f"q{turn}"
            )
            try:
                agent.invoke({"messages": [said]}, config)
            except Exception:
                counts["failed"] += 1
        view = "\n".join(str(m.text) for m in agent.get_state(config).values["messages"])
        counts["bad"] += MARK in view
        hidden = {str(turn) for turn in range(TURNS)} - {*_ASKED.findall(view)} - read
        counts["lost"] += sum(not (ours and _archived(path, turn)) for turn in hidden)
        if ours:
            middleware.close()
    return counts


def _archived(path: Path, turn: str) -> bool:
    """Say whether recall finds the message of a turn."""
    with Compactor(archive=path) as reader:
        try:
            recalled = reader.recall(id=f"q{turn}", thread_id="t", tokens=2_000)
        except NotFoundError:
            return False
    return f"question-{turn}-of-the-user" in recalled.text


def rows(quick: bool = False) -> Iterator[Row]:
    """Run every fault in both protocols under both middlewares."""
    names = [*CASES][:4] if quick else [*CASES]
    runs = [(name, p, ours) for name in names for p in PROTOCOLS for ours in (True, False)]
    with ThreadPoolExecutor(8) as pool:  # retries wait most of the time
        done = dict(zip(runs, pool.map(lambda run: session(*run), runs), strict=True))
    for name in names:
        mine, other = (
            sum((done[name, protocol, ours] for protocol in PROTOCOLS), Counter[str]())
            for ours in (True, False)
        )
        yield Row(f"HTTP, {name}: turns failed, messages lost, bad summaries", mine.total(), 0, "",
                  f"ours {_said(mine)}; LangChain's {_said(other)}")  # fmt: skip


def _said(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "none"
