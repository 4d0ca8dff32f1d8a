"""One fault at a time for our middleware and Deep Agents' own, on the same agent."""

from __future__ import annotations

import html
import json
import tempfile
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import deepagents
import printed
from deep_agent_run import TURN, Watch, WatchedModel, ask, call, mark
from deepagents.backends import FilesystemBackend
from deepagents.middleware.summarization import create_summarization_middleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import GetOp, Op, PutOp, Result
from langgraph.store.memory import InMemoryStore
from rich.table import Table

from conspectus.agents.state import HELD
from conspectus.archive import Archive, Scope
from conspectus.bridge import run as drive
from conspectus.compactor.settings import LOCAL
from conspectus.deep_agents import create_deep_agent, summarization_middleware
from conspectus.messages import read_messages

WINDOW = 8_000
"""Input limit of the model, in tokens; the tools alone take some 3,000."""

TURNS = 60
TRIES = 3
"""How often a step that failed is tried again."""

FAULTS = (
    "none",
    "the summariser fails",
    "the model fails after each summary",
    "the store fails on write",
    "the store fails on read",
    "a huge tool result",
)
THREAD: Any = {"configurable": {"thread_id": "t"}}


@dataclass
class Weather:
    """The present fault."""

    fault: str = "none"
    on: bool = False

    def is_now(self, fault: str) -> bool:
        """Say whether this fault is there at this moment."""
        return self.on and self.fault == fault


class FaultyStore(InMemoryStore):
    """A store that fails while the weather says so."""

    def __init__(self, weather: Weather) -> None:
        super().__init__()
        self._weather = weather

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        ops = list(ops)
        if self._weather.is_now("the store fails on write") and any(
            isinstance(op, PutOp) for op in ops
        ):
            raise OSError("no space left on device")
        if self._weather.is_now("the store fails on read") and any(
            isinstance(op, GetOp) for op in ops
        ):
            raise OSError("input/output error")
        return super().batch(ops)


class FaultyBackend(FilesystemBackend):
    """A backend whose folder for histories fails while the weather says so."""

    def __init__(self, folder: Path, weather: Weather) -> None:
        super().__init__(root_dir=folder, virtual_mode=True)
        self._weather = weather

    def _check(self, path: str, fault: str) -> None:
        if "conversation_history" in path and self._weather.is_now(fault):
            raise OSError("no space left on device")

    def write(self, file_path: str, content: str) -> Any:
        self._check(file_path, "the store fails on write")
        return super().write(file_path, content)

    def edit(self, file_path: str, *args: Any, **kwargs: Any) -> Any:
        self._check(file_path, "the store fails on write")
        return super().edit(file_path, *args, **kwargs)

    def download_files(self, paths: list[str]) -> Any:
        for path in paths:
            self._check(path, "the store fails on read")
        return super().download_files(paths)


@tool
def fetch(turn: int) -> str:
    """Fetch a page."""
    return f"{mark(turn, 'fetched')}\n" + f"a line that was fetched for turn {turn}\n" * 12


@tool
def fetch_all(turn: int) -> str:
    """Fetch everything."""
    return f"{mark(turn, 'fetched')}\n" + f"a line that was fetched for turn {turn}\n" * 300


@dataclass
class Trial:
    """One system under one fault.

    Attributes:
        paid: calls of the summariser.
        lost: messages that left the model's view and cannot be got back by the agent.
        failed: steps that raised.
        over: requests that were larger than the window.
        torn: requests with a torn pair.
    """

    paid: int = 0
    lost: int = 0
    failed: int = 0
    over: int = 0
    torn: int = 0
    watch: Watch = field(default_factory=Watch)


class Scene:
    """An agent, its model, its store and its backend, under one fault."""

    def __init__(self, fault: str, ours: bool, folder: Path) -> None:
        self.weather, self.ours, self.folder = Weather(fault), ours, folder
        self.trial = Trial()
        self._fail_next = False
        self.store = FaultyStore(self.weather)
        self.backend = FaultyBackend(folder, self.weather)
        self.model = WatchedModel(
            answers=self._answer,
            agent="main",
            watch=self.trial.watch,
            model_name="main",
            profile={"max_input_tokens": WINDOW},
        )
        more: dict[str, Any] = {"backend": self.backend, "checkpointer": InMemorySaver()}
        if ours:
            middle: Any = summarization_middleware(
                self.model, self.backend, summarizer=self._summary, archive=Archive(self.store)
            )
        else:
            middle = create_summarization_middleware(
                self.model, self.backend, summarizer=self._summary
            )
        create = create_deep_agent if ours else deepagents.create_deep_agent
        self.agent = create(
            self.model, [fetch, fetch_all], middleware=[middle], store=self.store, **more
        )

    def _summary(self, messages: list[BaseMessage]) -> str:
        self.trial.paid += 1
        if self.weather.is_now("the summariser fails"):
            raise ConnectionError("the summariser is down")
        self._fail_next = self.weather.is_now("the model fails after each summary")
        said = "The user asks for pages to be fetched, turn by turn, and for care. Each page was"
        return f"{said} fetched when it was asked for, and nothing else was done in between."

    def _answer(self, messages: list[BaseMessage]) -> Any:
        # Counted as Deep Agents counts, so that neither is judged by the other's estimate.
        tools = self.model.calls[-1].options.get("tools", [])
        self.trial.over += count_tokens_approximately(messages, tools=tools) > WINDOW
        if self._fail_next:
            self._fail_next = False
            return ConnectionError("the model is down")
        place = next(
            i for i in range(len(messages) - 1, -1, -1) if isinstance(messages[i], HumanMessage)
        )
        found = TURN.match(str(messages[place].text))
        turn = int(found.group(1)) if found else -1
        if len(messages) - place > 2 or turn < 0:
            return AIMessage(f"Turn {turn} is done; its mark is {mark(turn)}.")
        huge = self.weather.is_now("a huge tool result") and turn % 6 == 0
        return call("fetch_all" if huge else "fetch", f"c{turn}", turn=turn)

    def run(self) -> Trial:
        """Play all turns; a step that failed is tried again."""
        for turn in range(TURNS):
            # The fault is there in the middle, and gone before the end.
            self.weather.on = TURNS // 4 <= turn < 3 * TURNS // 4
            given: Any = ask(turn)
            for _ in range(TRIES):
                try:
                    self.agent.invoke(given, THREAD)
                    break
                except Exception:
                    self.trial.failed += 1
                    given = None
        self.weather.on = False
        self.trial.torn = self.trial.watch.torn
        self.trial.lost = self._lost()
        return self.trial

    @property
    def values(self) -> dict[str, Any]:
        found: dict[str, Any] = self.agent.get_state(THREAD).values
        return found

    def _lost(self) -> int:
        """Count summarised messages that the agent cannot get back whole."""
        messages, held = self.values["messages"], self.values.get(HELD)
        if not self.ours:
            event = self.values.get("_summarization_event")
            left = messages[: event["cutoff_index"]] if event else []
            files = self._files
            return sum(not all(part in files for part in parts_of(one)) for one in left)
        if held is None or held["head"] is None:
            return 0
        archive, scope = Archive(self.store), Scope(LOCAL, held["thread"], held["session"])
        chain = drive(archive.flow(archive.chain_at, scope, held["head"]))
        own = {entry.key: entry.source for entry in read_messages(messages)}
        found = drive(
            archive.flow(archive.find, scope, [key for one in chain for key in one.covers])
        )
        covered = [key for record in chain for key in record.covers]
        return sum(key not in found or found[key].message != own[key] for key in covered)

    @property
    def _files(self) -> str:
        """Read all files of Deep Agents for its agent, as the agent would."""
        paths = sorted(self.folder.glob("conversation_history/**/*.md"))
        return html.unescape("".join(path.read_text() for path in paths))


def parts_of(message: BaseMessage) -> list[str]:
    """Give the texts of a message that a copy must have."""
    parts = [str(message.text).strip()]
    if isinstance(message, AIMessage):
        parts += [json.dumps(value) for c in message.tool_calls for value in c["args"].values()]
    return [part for part in parts if part]


def fault_table(faults: Iterable[str] = FAULTS) -> tuple[Table, bool]:
    """Make the table, and say whether our promises held."""
    figures = {
        "summariser calls": "paid",
        "messages lost": "lost",
        "steps failed": "failed",
        "over the window": "over",
        "torn": "torn",
    }
    table = printed.table(
        f"Faults: {TURNS} turns, a window of {WINDOW:,} tokens; conspectus / Deep Agents",
        ("fault", *figures),
    )
    good = True
    for fault in faults:
        pair = [trial(fault, ours) for ours in (True, False)]
        cells = (" / ".join(str(getattr(one, name)) for one in pair) for name in figures.values())
        table.add_row(fault, *cells)
        own = pair[0]
        good &= not (own.lost or own.over or own.torn)
    return table, good


def trial(fault: str, ours: bool) -> Trial:
    """Try one system under one fault, in a folder of its own."""
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Scene(fault, ours, Path(name)).run()
