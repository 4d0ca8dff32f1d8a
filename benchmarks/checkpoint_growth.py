"""Checkpoints of a preserved history on disk, beside Deep Agents' own.

    make bench-checkpoints        or: python benchmarks/checkpoint_growth.py [--steps N]

The same conversation of 1,000 model calls, checkpointed in a SQLite file (which holds all channels
of a state anew for each step, delta channels excepted), with a compaction every 60 messages or so.
Bytes of the file after a quarter, half and all of it; two that grow with the square are stopped
earlier. A delta channel is written whole every so many updates, so all of them grow somewhat faster
than in proportion. Ends with 1 if a preserved history on a delta channel does so by more than half,
or takes over a quarter more than what Deep Agents' own takes.
"""

from __future__ import annotations

import argparse
import logging
import sqlite3
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deepagents
import printed
from deepagents.backends import FilesystemBackend
from deepagents.middleware.summarization import SummarizationMiddleware as DeepAgentsMiddleware
from langchain.agents import create_agent
from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.memory import InMemoryStore
from rich.table import Table

from conspectus import SummarizationMiddleware
from conspectus.deep_agents import create_deep_agent, summarization_middleware
from conspectus.middleware import PreservedState
from conspectus_lab.testing.scripted_models import ScriptedChatModel

THREAD: Any = {"configurable": {"thread_id": "t"}}
LIMITS: dict[str, Any] = {"trigger": ("messages", 80), "keep": ("messages", 20)}
PARTS = (4, 2, 1)
UNTIL = {
    "Deep Agents, conspectus without a store": 2,
    'LangChain, history="preserve", plain channel': 4,
}
"""Parts after which an agent is stopped: a half, a quarter."""

STRAIGHT = 1.6
"""How much more than in proportion the whole may take, measured by its first half."""

MORE = 1.25
"""How much more than Deep Agents' own ours may take: what each turn is shown again is in it."""


def summarise(messages: list[BaseMessage]) -> str:
    """Write a summary of a usual size, some 300 tokens."""
    return f"{len(messages)} messages about the notes were read. " + "One more detail of it. " * 50


def model() -> ScriptedChatModel:
    """Make a model that answers with some 60 tokens."""
    return ScriptedChatModel(
        answers=lambda messages: "That is what the module does, and nothing else of note. " * 5,
        profile={"max_input_tokens": 100_000},
    )


def ours(**more: Any) -> SummarizationMiddleware:
    """Make the middleware for LangChain's own agents."""
    return SummarizationMiddleware(model(), summarizer=summarise, **LIMITS, **more)


def deep(folder: Path, saver: Any, archive: bool, recall: str = "auto") -> Any:
    """Make a deep agent of ours."""
    backend = FilesystemBackend(root_dir=folder, virtual_mode=True)
    chat = model()
    middle = summarization_middleware(chat, backend, summarizer=summarise, recall=recall, **LIMITS)
    store = InMemoryStore() if archive else None
    return create_deep_agent(
        chat, backend=backend, middleware=[middle], checkpointer=saver, store=store
    )


def theirs(folder: Path, saver: Any) -> Any:
    """Make a deep agent of Deep Agents'."""
    backend = FilesystemBackend(root_dir=folder, virtual_mode=True)
    middle = DeepAgentsMiddleware(model(), backend=backend, summarizer=summarise, **LIMITS)
    return deepagents.create_deep_agent(
        model(), backend=backend, middleware=[middle], checkpointer=saver
    )


def plain(saver: Any, history: Any, schema: Any = None) -> Any:
    """Make an agent of LangChain's."""
    return create_agent(
        model(),
        [],
        middleware=[ours(history=history)],
        checkpointer=saver,
        store=InMemoryStore(),
        state_schema=schema,
    )


Make = Callable[[Path, Any], Any]
AGENTS: dict[str, Make] = {
    "Deep Agents, its own": theirs,
    "Deep Agents, conspectus": lambda folder, saver: deep(folder, saver, True),
    "Deep Agents, conspectus, recall off": lambda folder, saver: deep(folder, saver, True, "off"),
    "Deep Agents, conspectus without a store": lambda folder, saver: deep(folder, saver, False),
    'LangChain, history="replace"': lambda folder, saver: plain(saver, "replace"),
    'LangChain, history="preserve", PreservedState': lambda folder, saver: plain(
        saver, "preserve", PreservedState
    ),
    'LangChain, history="preserve", plain channel': lambda folder, saver: plain(saver, "preserve"),
}


def grown(make: Make, steps: int, until: int = 1) -> list[int]:
    """Count the checkpoints' bytes after a quarter, half and all of the steps."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "checkpoints.sqlite"
        connection = sqlite3.connect(path, check_same_thread=False)
        agent = make(folder, SqliteSaver(connection))
        sizes = []
        for step in range(1, steps // until + 1):
            text = f"Question {step}: what does module {step} do? " + "Look closely. " * 15
            agent.invoke({"messages": [HumanMessage(text)]}, THREAD)
            if step in [steps // part for part in PARTS]:
                connection.commit()
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                sizes.append(path.stat().st_size)
        connection.close()
    return sizes


def report(steps: int) -> tuple[Table, bool]:
    """Make the table, and say whether the growth is bounded."""
    columns = ("agent", *(f"{steps // part:,}" for part in PARTS))
    table = printed.table("Checkpoints in MB, after so many model calls", columns)
    found = {}
    for name, make in AGENTS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found[name] = grown(make, steps, UNTIL.get(name, 1))
        shown = [f"{size / 1e6:,.1f}" for size in found[name]]
        table.add_row(name, *shown, *["-"] * (len(PARTS) - len(shown)))
    own, other = found["Deep Agents, conspectus"], found["Deep Agents, its own"]
    good = own[-1] <= MORE * other[-1]
    for name in ("Deep Agents, conspectus", 'LangChain, history="preserve", PreservedState'):
        half, whole = found[name][-2:]
        good &= whole <= 2 * STRAIGHT * half
    return table, good


def main() -> int:
    """Measure all agents; give the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--steps", type=int, default=1_000)
    logging.getLogger("conspectus").setLevel(logging.ERROR)
    table, good = report(parser.parse_args().steps)
    printed.screen(110).print(table)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
