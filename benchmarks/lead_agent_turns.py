"""The lead agent of `examples/lead_agent` over 100 turns in a small window.

    make bench-lead-agent      or: python benchmarks/lead_agent_turns.py [--turns N] [--postgres A]

The same conversation, from a `config.yaml`: without summarisation as the measure, then with it on
SQLite and on PostgreSQL, each once in one go and once restarted: while a question of the agent is
open, and in the midst of runs. Every request that the model really gets is measured, with system
prompt and tools, those for titles and summaries too. Title, questions with their answers, files
and the last answer must be the same in all runs, and no request over the window. Ends with 1 if
that does not hold.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import printed
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatResult
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples" / "lead_agent"))

from conspectus import TokenMeter, is_summary_message
from conspectus_lab.pairs import broken_pairs
from lead_agent import LeadAgent
from lead_agent.offline import OfflineModel, calling, newest_turn

WINDOW = 6_000
"""Input limit of the model, in tokens."""

METER = TokenMeter(model="gpt-4o")
ASK_EVERY = 10
"""Every so many turns the user says something that can be read in two ways."""

KILLS = (0.31, 0.74)
"""Where in a restarted run the process dies in the midst of a turn, as shares of its turns."""

REMEMBERED = 3
"""The note whose code the last turn asks for."""

CONFIG = """
lead_agent:
  model: scripted
  checkpointer: '{checkpointer}'
summarization:
  enabled: {enabled}
  trigger:
    - {{type: fraction, value: 0.75}}
    - {{type: messages, value: 200}}
  keep: {{type: messages, value: 8}}
  recall: auto
"""


class Killed(BaseException):
    """The end of the process, which nothing may catch."""


@dataclass
class Watch:
    """Observations of every request of the model.

    Attributes:
        requests: number of requests.
        largest: in tokens, system prompt and tools included.
        over: requests larger than the window.
        torn: requests with a call without its result, or a result without its call.
        summaries: requests for a summary, or a part of one.
        kill_at: the turn in which the process dies, after its first tool call; 0 for none.
    """

    requests: int = 0
    largest: int = 0
    over: int = 0
    torn: int = 0
    summaries: int = 0
    kill_at: int = 0


class WatchedModel(OfflineModel):
    """The model of the conversation, observed."""

    watch: Any

    def _answer(self, number: int, messages: list[BaseMessage]) -> ChatResult:
        watch, tools = self.watch, self.calls[number - 1].options.get("tools", ())
        size = METER.messages(messages) + METER.tools(tools)
        watch.requests += 1
        watch.largest = max(watch.largest, size)
        watch.over += size > WINDOW
        watch.torn += bool(broken_pairs(messages))
        return super()._answer(number, messages)

    def summarised(self, messages: list[BaseMessage]) -> str:
        self.watch.summaries += 1
        return super().summarised(messages)

    def acted(self, messages: list[BaseMessage], tools: Sequence[str]) -> AIMessage:
        newest, since = newest_turn(messages)
        said = str(newest.text)
        turn = int(found.group(1)) if (found := re.match(r"Turn (\d+):", said)) else 0
        if since and turn == self.watch.kill_at:
            self.watch.kill_at = 0
            raise Killed(f"in turn {turn}")
        last, call_id = messages[-1], f"t{turn}-{since}"
        if "which code" in said:
            shown = "\n".join(str(m.text) for m in messages if m is not newest)
            known = re.search(rf"note {REMEMBERED}: its code is (\w+)", shown)
            return AIMessage(f"The code is {known.group(1)}." if known else "Nobody has said it.")
        if "book a room" in said:
            if since == 0:
                question = f"For turn {turn}: the large room or the small one?"
                return calling("ask_clarification", call_id, question=question, options=ROOMS)
            return AIMessage(f"Turn {turn} is done: {last.text}")
        if since == 0:
            text = f"{said}\n" + f"Line {turn} of the notes, for the record.\n" * 20
            return calling("write_file", call_id, path=f"workspace/{turn}.txt", content=text)
        if since == 2 and turn % 3 == 0:
            return calling("read_file", call_id, path=f"workspace/{turn - 1 - turn % 2}.txt")
        return AIMessage(f"Turn {turn} is done. " + "All of it was looked at with care. " * 6)


ROOMS = ["large", "small"]


def said_in(turn: int, turns: int) -> str:
    """Write the user's words of a turn, from 1."""
    if turn == turns:
        return f"Turn {turn}: which code has note {REMEMBERED}? It was said long ago."
    if turn % ASK_EVERY == 0:
        return f"Turn {turn}: book a room for the team, please."
    code = hashlib.sha256(f"code {turn}".encode()).hexdigest()[:8]
    return f"Turn {turn}: write note {turn}: its code is {code}. " + "Please be careful. " * 8


def _kill(turn: int) -> int:
    """Give a turn near this one that calls a tool without asking anything."""
    return turn + (turn % ASK_EVERY == 0)


@dataclass
class Outcome:
    """The outcome of a run, which must be the same in every run.

    Attributes:
        title: of the thread.
        titles: every title that was ever seen; there must be one.
        asked: questions and answers.
        files: names and content, as one hash.
        last: the agent's last words.
    """

    title: str = ""
    titles: set[str] = field(default_factory=set)
    asked: list[tuple[str, str]] = field(default_factory=list)
    files: str = ""
    last: str = ""


@dataclass
class Run:
    """One run of the conversation, in a folder of its own.

    Attributes:
        folder: with its `config.yaml`.
        address: of the checkpointer.
        thread: its id.
        turns: of the conversation.
        enabled: whether anything is summarised.
    """

    folder: Path
    address: str
    thread: str
    turns: int
    enabled: bool = True
    watch: Watch = field(default_factory=Watch)
    starts: int = 0
    shown: bool = False

    def opened(self) -> LeadAgent:
        """Make the agent as a new process does, without anything of an earlier one."""
        self.folder.mkdir(parents=True, exist_ok=True)
        enabled = str(self.enabled).lower()
        file = self.folder / "config.yaml"
        file.write_text(CONFIG.format(checkpointer=self.address, enabled=enabled))
        self.starts += 1
        window = WINDOW if self.enabled else 10_000_000
        model = WatchedModel(
            answers=[],
            watch=self.watch,
            profile={"max_input_tokens": window},
            model_name="gpt-4o",
        )
        return LeadAgent(file, model=model)

    def go(self, *, restarts: bool) -> Outcome:
        """Play all turns.

        Args:
            restarts: die in two turns, and start anew while a question is open.
        """
        kills = {_kill(round(share * self.turns)) for share in KILLS} if restarts else set()
        waits = self.turns // 2 // ASK_EVERY * ASK_EVERY if restarts else 0
        found, agent, turn = Outcome(), self.opened(), 1
        try:
            while turn <= self.turns:
                if turn in kills:
                    kills.discard(turn)
                    self.watch.kill_at = turn
                try:
                    # A turn that was cut off is sent again under its id, as a client would.
                    reply = agent.turn(self.thread, said_in(turn, self.turns), f"turn-{turn}")
                except Killed:
                    agent.close()
                    agent = self.opened()
                    continue
                if question := reply.get("clarification"):
                    if turn == waits:
                        agent.close()
                        agent = self.opened()
                        question = agent.look(self.thread)["clarification"]
                    room = ROOMS[turn // ASK_EVERY % 2]
                    found.asked.append((question["question"], room))
                    reply = agent.answer(self.thread, f"The {room} one.")
                found.titles.add(reply["title"])
                found.last = reply["answer"]
                turn += 1
            found.title = reply["title"]
            config = {"configurable": {"thread_id": self.thread}}
            messages = agent.graph.get_state(config).values["messages"]
            self.shown = any(map(is_summary_message, messages))
        finally:
            agent.close()
        found.files = self._files()
        return found

    def _files(self) -> str:
        texts = sorted(
            (path.name, path.read_text())
            for path in (self.folder / "data").glob("threads/*/workspace/*")
        )
        return f"{len(texts)}:{hashlib.sha256(repr(texts).encode()).hexdigest()[:12]}"


def runs(turns: int, postgres: str | None, folder: Path) -> tuple[Table, bool]:
    """Make every run; give the table, and whether all held."""
    columns = "run starts requests largest over torn summaries questions titles same".split()
    table = printed.table(f"{turns} turns, a window of {WINDOW:,} tokens", columns)
    measure = Run(folder / "measure", "memory:", "measure", turns, enabled=False)
    wanted = measure.go(restarts=False)
    _row(table, "without summaries", measure, wanted, "")
    # The measure itself has to be what the conversation asks for.
    good = measure.watch.largest > WINDOW and len(wanted.asked) == (turns - 1) // ASK_EVERY
    good &= len(wanted.titles) == 1 and wanted.last.startswith("The code is")
    places = {"SQLite": "sqlite:///data/checkpoints.sqlite"}
    if postgres is not None:
        places["PostgreSQL"] = postgres
    for place, address in places.items():
        for restarts in (False, True):
            name = f"{place}, restarted" if restarts else place
            run = Run(folder / name, address, name, turns)
            found = run.go(restarts=restarts)
            same = found == wanted
            _row(table, name, run, found, "yes" if same else "NO")
            good &= same and run.watch.over == 0 and run.watch.torn == 0
            good &= run.shown and run.watch.summaries > 0
            good &= run.starts == (2 + len(KILLS) if restarts else 1)
    return table, good


def _row(table: Table, name: str, run: Run, found: Outcome, same: str) -> None:
    watch = run.watch
    counts = (run.starts, watch.requests, watch.largest, watch.over, watch.torn, watch.summaries)
    sizes = [f"{number:,}" for number in (*counts, len(found.asked), len(found.titles))]
    sizes[3] = sizes[3] if run.enabled else "-"
    table.add_row(name, *sizes, same)


def main() -> int:
    """Run everything; give the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--postgres", help="address of an empty database")
    given = parser.parse_args()
    logging.getLogger("conspectus").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as name:
        table, good = runs(given.turns, given.postgres, Path(name))
    screen = printed.screen(120)
    screen.print(table)
    if given.postgres is None:
        screen.print("PostgreSQL was left out; give --postgres ADDRESS of an empty database.")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
